-- Decides a batch of decisions, one after another, each of them whole: the twin of core/decide.ts.
--
-- KEYS[i]   `prefix:{hash}`, the subjects of all decisions; string: the cells, see shared/cell.lua
--
-- ARGV[1]   JSON: [prescribed, margin, notAfter, rules, work]
--   prescribed the time of the call, or 0 for the server's own
--   margin     ms that keys are kept longer, where the time is prescribed
--   notAfter   server time in ms, or 0: later than that nothing is decided nor counted
--   rules      [{ scope, algorithm (1-5), limit, window, capacity (limit), epoch (false), shadow (false), hold (60000),
--              ladder ([]) }, …]; in brackets what is meant where it is left out
--   work       flat numbers. For each decision: how many items, then for each item: key, rule (both from 1), operation
--              and its own numbers:
--     1 consume cost · 2 peek cost · 3 reserve cost · 4 settle at, held, actual · 5 charge units
--     6 refund at, units · 7 block ms (-1: for ever) · 8 unblock · 9 reset · 10 forgive
--     and on a cluster, where a decision about several subjects is made key by key:
--     11 judge cost: as consume where another rule refuses · 12 claim hold, cost: as reserve, on hold for at least `hold` ms
--     13 commit at, hold, cost: the claimed units become used · 14 release at, hold, cost: they are let go
--
-- Reply: flat integers. The time; then -2 when it was too late. Else for each item of each decision:
--   reason (0 ok, 1 blocked, 2 cost, 3 limit, 4 held) + 8 if its block started + 16 if its block ended + 32 if one stands,
--   remaining, [retryAfterMs, unless ok], moreAfterMs, resetAfterMs, [ms that the block lasts, if one stands]; -1: never.
--   For a decision that failed: -1 and the error.
local prescribed, margin, notAfter, rules, work = unpack(cjson.decode(ARGV[1]))
--@include shared/clock.lua
if notAfter > 0 and now > notAfter then
  return { now, -2 }
end
--@include shared/slot.lua
for i = 1, #rules do
  local rule = rules[i]
  rule.capacity = rule.capacity or rule.limit
  rule.hold = rule.hold or 60000
end

local cellsOf, existed, dirty = {}, {}, {}

local function cellAt(key, scope)
  local cells = cellsOf[key]
  if not cells then
    cells, existed[key] = readCells(KEYS[key])
    cellsOf[key] = cells
  end
  for i = 1, #cells do
    if cells[i].scope == scope then
      return cells[i], i
    end
  end
  return nil, #cells + 1
end

-- How many numbers an operation has, by its code.
local OPERANDS = { 1, 1, 1, 3, 1, 2, 1, 0, 0, 0, 1, 2, 3, 3 }

local function chargeUnits(slot, units)
  if units == 0 then
    return
  end
  local rule = slot.rule
  local full = rule.capacity * rule.window
  local added = min(units, floorDiv(max(0, 2 * full - slot.used), rule.window))
  if added > 0 then
    addUnits(slot, added)
  end
  if slot.used >= full then
    startSlotBlock(slot)
  end
end

-- An operation that asks nothing.
local function apply(slot)
  local operation, at = slot.operation, slot.at
  local a, b, c = work[at], work[at + 1], work[at + 2]
  local stood = isStanding(slot.block, now)
  if operation == 4 then
    changeHold(slot, lapseTime(a, slot.rule.hold), -b)
    chargeUnits(slot, c)
  elseif operation == 5 then
    chargeUnits(slot, a)
  elseif operation == 6 then
    if slot.state and b > 0 then
      setState(slot, slot.algorithm.refund(slot.state, slot.rule, now, a, b))
    end
  elseif operation == 7 then
    setBlock(slot, blocking().byHand(slot.block, a, now))
  elseif operation == 8 then
    setBlock(slot, false)
  elseif operation <= 10 then
    setState(slot, false)
    slot.holds, slot.others = false, false
    setBlock(slot, operation == 10 and blocking().forgiven(slot.block, now))
  else
    changeHold(slot, lapseTime(a, b), -c)
    if operation == 13 and c > 0 then
      addUnits(slot, c)
    end
    slot.reason = OK
  end
  slot.ended = stood
  return operation >= 13 and c or 0
end

-- What a deciding operation does once its whole decision is known.
local function follow(slot, allowed)
  local operation, cost = slot.operation, slot.cost
  if operation == 2 or cost == 0 then
    return
  elseif slot.reason == LIMIT then
    startSlotBlock(slot)
  elseif slot.reason == OK and allowed and operation ~= 11 then
    if slot.hold then
      changeHold(slot, lapseTime(now, slot.hold), cost)
    else
      addUnits(slot, cost)
    end
  end
end

-- The decision whose items begin at `at`. Answers the new length of the reply.
local function decideOne(at, count, reply, n)
  local slots, allowed = {}, true
  for i = 1, count do
    local key, rule, operation = work[at], rules[work[at + 1]], work[at + 2]
    local slot = openSlot(rule, cellAt(key, rule.scope))
    at = at + 3
    slot.key, slot.operation, slot.at = key, operation, at
    -- Does the operation ask anything? The units that it asks for, then; and do they go on hold, for how long?
    if operation <= 3 or operation == 11 then
      slot.cost, slot.hold = work[at], operation == 3 and rule.hold
    elseif operation == 12 then
      slot.hold, slot.cost = work[at], work[at + 1]
    end
    if slot.cost then
      slot.reason = verdict(slot, slot.cost)
      allowed = allowed and (slot.reason == OK or rule.shadow)
    end
    at = at + OPERANDS[operation]
    slots[i] = slot
  end
  for i = 1, count do
    local slot, cost = slots[i], nil
    if slot.cost then
      cost = slot.cost
      follow(slot, allowed)
    else
      cost = apply(slot)
    end
    n = readSlot(slot, cost, slot.reason or verdict(slot, cost), reply, n)
  end
  -- Nothing above has touched the cells themselves: a decision that fails half-way leaves no trace.
  for i = 1, count do
    local slot = slots[i]
    if slot.changed then
      local key, cell = slot.key, closeSlot(slot)
      local _, index = cellAt(key, slot.rule.scope)
      if cell then
        cellsOf[key][index] = cell
      else
        table.remove(cellsOf[key], index)
      end
      dirty[key] = true
    end
  end
  return n
end

local reply, n, at = { now }, 1, 1
while at <= #work do
  local count, from = work[at], at + 1
  at = from
  for _ = 1, count do
    at = at + 3 + OPERANDS[work[at + 2]]
  end
  local ok, length = pcall(decideOne, from, count, reply, n)
  if ok then
    n = length
  else
    for i = #reply, n + 1, -1 do
      reply[i] = nil
    end
    reply[n + 1], reply[n + 2] = -1, tostring(length)
    n = n + 2
  end
end

for key, cells in pairs(cellsOf) do
  if dirty[key] then
    writeCells(KEYS[key], cells, now, margin)
  elseif existed[key] and #cells > 0 and redis.call('PTTL', KEYS[key]) == -1 then
    redis.call('PEXPIRE', KEYS[key], decimal(lifetime(cells, now) + margin))
  end
end
return reply
