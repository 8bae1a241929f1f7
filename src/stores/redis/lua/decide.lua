-- Decides a batch of decisions, one after another, each of them whole: the twin of core/decide.ts.
--
-- KEYS[i]   `prefix:{hash}`, the subjects of all decisions; string: the cells, see shared/cell.lua
--
-- ARGV[1]   JSON: [prescribed, margin, notAfter, rules, work]
--   prescribed the time of the call, or 0 for the server's own
--   margin     ms that keys are kept longer, where the time is prescribed
--   notAfter   server time in ms, or 0: later than that nothing is decided nor counted
--   rules      [{ scope, algorithm (1-5), limit, window, capacity, epoch, shadow, hold, ladder }, …]
--   work       flat numbers. For each decision: how many items, then for each item: key, rule (both from 1), operation
--              and its own numbers:
--     1 consume cost · 2 peek cost · 3 reserve cost · 4 settle at, held, actual · 5 charge units
--     6 refund at, units · 7 block ms (-1: for ever) · 8 unblock · 9 reset · 10 forgive
--     and on a cluster, where a decision about several subjects is made key by key:
--     11 judge cost: as consume where another rule refuses · 12 claim hold, cost: as reserve, on hold for at least `hold` ms
--     13 commit at, hold, cost: the claimed units become used · 14 release at, hold, cost: they are let go
--
-- Reply: flat integers. The time; nothing more when it was too late. Then for each item of each decision:
--   reason (0 ok, 1 blocked, 2 cost, 3 limit, 4 held) + 8 if its block started + 16 if its block ended + 32 if one stands,
--   remaining, [retryAfterMs, unless ok], moreAfterMs, resetAfterMs, [ms that the block lasts, if one stands]; -1: never.
--   For a decision that failed: -1 and the error.
--@include shared/clock.lua
--@include shared/slot.lua
local prescribed, margin, notAfter, rules, work = unpack(cjson.decode(ARGV[1]))
local now = timeOf(prescribed)
if notAfter > 0 and now > notAfter then
  return { now }
end

local cellsOf, existed, dirty = {}, {}, {}

local function cellAt(k, scope)
  if not cellsOf[k] then
    cellsOf[k], existed[k] = readCells(KEYS[k])
  end
  local cells = cellsOf[k]
  for i = 1, #cells do
    if cells[i].scope == scope then
      return cells[i], i
    end
  end
  return nil, #cells + 1
end

-- Does the operation ask anything? The units that it asks for, then; and do they go on hold, for how long?
local function asked(operation, a, b, rule)
  if operation <= 2 or operation == 11 then
    return a, nil
  elseif operation == 3 then
    return a, rule.hold
  elseif operation == 12 then
    return b, a
  end
  return nil, nil
end

-- How many numbers an operation has, by its code.
local OPERANDS = { 1, 1, 1, 3, 1, 2, 1, 0, 0, 0, 1, 2, 3, 3 }

-- What a deciding operation does once its whole decision is known.
local function follow(item, allowed)
  local slot, operation, cost = item.slot, item.operation, item.cost
  if operation == 2 or cost == 0 then
    return
  elseif item.reason == LIMIT then
    startSlotBlock(slot)
  elseif item.reason == OK and allowed and operation ~= 11 then
    if item.hold then
      changeHold(slot, lapseTime(now, item.hold), cost)
    else
      addUnits(slot, cost)
    end
  end
end

-- An operation that asks nothing.
local function apply(item)
  local slot, operation, a, b, c = item.slot, item.operation, item.a, item.b, item.c
  local stood = isStanding(slot.block, now)
  if operation == 4 then
    changeHold(slot, lapseTime(a, slot.rule.hold), -b)
    chargeUnits(slot, c)
  elseif operation == 5 then
    chargeUnits(slot, a)
  elseif operation == 6 then
    refundUnits(slot, a, b)
  elseif operation == 7 then
    setBlock(slot, manualBlock(slot.block, a, now))
  elseif operation == 8 then
    setBlock(slot, nil)
  elseif operation == 9 then
    forgetSlot(slot, nil)
  elseif operation == 10 then
    forgetSlot(slot, forgivenBlock(slot.block, now))
  else
    changeHold(slot, lapseTime(a, b), -c)
    if operation == 13 and c > 0 then
      addUnits(slot, c)
    end
    item.cost, item.reason = c, OK
  end
  slot.ended = stood
end

local function decideOne(at, count, reply)
  local items, allowed = {}, true
  for i = 1, count do
    local k, rule, operation = work[at], rules[work[at + 1]], work[at + 2]
    local a, b, c = work[at + 3], work[at + 4], work[at + 5]
    at = at + 3 + OPERANDS[operation]
    local item = { k = k, operation = operation, a = a, b = b, c = c, slot = openSlot(rule, cellAt(k, rule.scope), now) }
    item.cost, item.hold = asked(operation, a, b, rule)
    if item.cost then
      item.reason = verdict(item.slot, item.cost)
      allowed = allowed and (item.reason == OK or rule.shadow)
    end
    items[i] = item
  end
  for i = 1, count do
    local item = items[i]
    if item.cost then
      follow(item, allowed)
    else
      apply(item)
    end
    local cost = item.cost or 0
    readSlot(item.slot, cost, item.reason or verdict(item.slot, cost), reply)
  end
  -- Nothing above has touched the cells themselves: a decision that fails half-way leaves no trace.
  for i = 1, count do
    local item = items[i]
    if item.slot.changed then
      local _, index = cellAt(item.k, item.slot.rule.scope)
      local cell = closeSlot(item.slot)
      if cell then
        cellsOf[item.k][index] = cell
      else
        table.remove(cellsOf[item.k], index)
      end
      dirty[item.k] = true
    end
  end
end

local reply, at = { now }, 1
while at <= #work do
  local count = work[at]
  local from, first = at + 1, #reply
  at = from
  for _ = 1, count do
    at = at + 3 + OPERANDS[work[at + 2]]
  end
  local ok, failure = pcall(decideOne, from, count, reply)
  if not ok then
    for i = #reply, first + 1, -1 do
      reply[i] = nil
    end
    reply[first + 1], reply[first + 2] = -1, tostring(failure)
  end
end

for k, cells in pairs(cellsOf) do
  if dirty[k] then
    writeCells(KEYS[k], cells, now, margin)
  elseif existed[k] and #cells > 0 and redis.call('PTTL', KEYS[k]) == -1 then
    redis.call('PEXPIRE', KEYS[k], decimal(lifetime(cells, now) + margin))
  end
end
return reply
