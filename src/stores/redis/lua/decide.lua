-- Decides a batch of decisions, one after another, each of them whole: the twin of core/decide.ts.
--
-- KEYS[i]   `prefix:{hash}`, the subjects of all decisions; string: the cells, see shared/cell.lua
--
-- ARGV[1]   notAfter: server time in ms, or 0: later than that nothing is decided nor counted. Where the time of the call is
--           prescribed: `notAfter time margin`; margin: ms that keys are kept longer, the time not being this server's own
-- ARGV[2]   JSON: [rules, work]
--   rules      [{ scope, algorithm (1-5), limit, window, capacity (limit), epoch (false), shadow (false), hold (60000),
--              ladder ([]) }, …]; in brackets what is meant where it is left out
--   work       flat numbers. For each decision: how many items, then for each item: key, rule (both from 1), operation
--              and its own numbers:
--     1 consume cost · 2 peek cost · 3 reserve cost · 4 settle at, held, actual · 5 charge units
--     6 refund at, units · 7 block ms (-1: for ever) · 8 unblock · 9 reset · 10 forgive
--     and on a cluster, where a decision about several subjects is made key by key:
--     11 judge cost: as consume where another rule refuses · 12 claim hold, cost: as reserve, on hold for at least `hold` ms
--     13 commit at, hold, cost: the claimed units become used · 14 release at, hold, cost: they are let go
-- or, where all of that is one consume of at least one unit:
-- ARGV[2]   s sliding window, f fixed window, e fixed window aligned with the epoch, b bucket
-- ARGV[3]   how a value of this counter alone begins, see shared/cell.lua
-- ARGV[4]   window
-- ARGV[5]   cost
-- ARGV[6]   the most scaled units that may be used before it: (capacity - cost) * window
-- ARGV[7]   ladder as JSON; '' or left out: none
-- ARGV[8]   limit, for buckets
--
-- Reply: flat integers. First the time, as two texts, seconds and microseconds: clients that have been subscribed take a list
--   that begins with a number for a message, and choke on it. Then -2 when it was too late. Else for each item of each
--   decision:
--   reason (0 ok, 1 blocked, 2 cost, 3 limit, 4 held) + 8 if its block started + 16 if its block ended + 32 if one stands,
--   remaining, [retryAfterMs, unless ok], moreAfterMs, resetAfterMs, [ms that the block lasts, if one stands]; -1: never.
--   For a decision that failed: -1 and the error.
--   From shared/quick.lua: 64 counted or 65 refused, and the state of the counter, which is all there is to know.
local notAfter, prescribed, margin = tonumber(ARGV[1]), 0, 0
if not notAfter then
  notAfter, prescribed, margin = string.match(ARGV[1], '^(%d+) (%d+) (%d+)$')
  notAfter, prescribed, margin = tonumber(notAfter), tonumber(prescribed), tonumber(margin)
end
--@include shared/clock.lua
if notAfter > 0 and now > notAfter then
  return { time[1], time[2], -2 }
end
--@include shared/quick.lua

-- The rest in a function of its own: what the first lines of a script share a stack with costs them time.
local function decideAtLength()
  --@include shared/slot.lua
  --@include shared/apply.lua
  local rules, work
  if ARGV[3] then
    local window, from = parseHead(ARGV[3])
    local cost = ARGV[5] + 0
    local capacity, ladder = ARGV[6] / window + cost, ARGV[7] or ''
    rules = {
      {
        scope = string.sub(ARGV[3], from),
        algorithm = plainAlgorithm(ARGV[3]),
        limit = ARGV[8] and ARGV[8] + 0 or capacity,
        window = window,
        capacity = capacity,
        epoch = kind == 'e',
        ladder = ladder ~= '' and cjson.decode(ladder) or nil,
      },
    }
    work = { 1, 1, 1, 1, cost }
  else
    rules, work = unpack(cjson.decode(ARGV[2]))
  end
  for i = 1, #rules do
    local rule = rules[i]
    rule.capacity = rule.capacity or rule.limit
    rule.hold = rule.hold or 60000
  end

  local cellsOf, dirty, slots = {}, {}, {}

  -- How many numbers an operation has, by its code.
  local OPERANDS = { 1, 1, 1, 3, 1, 2, 1, 0, 0, 0, 1, 2, 3, 3 }

  -- The decision whose items begin at `from`. Answers the new length of the reply, and where the next decision begins.
  local function decideOne(from, count, reply, n)
    local at, allowed = from, true
    for i = 1, count do
      local rule, operation, slot = rules[work[at + 1]], work[at + 2], slots[i]
      if not slot then
        -- All fields at once: a table that grows field by field is laid out anew several times.
        slot = { rule = 0, cell = 0, counter = 0, used = 0, changed = 0, code = 0, cost = 0, reason = 0 }
        slots[i] = slot
      end
      openSlot(slot, rule, cellsOf[work[at]])
      -- Does the operation ask anything? The units that it asks for, then.
      local cost, reason = false, false
      if operation <= 3 or operation == 11 then
        cost = work[at + 3]
      elseif operation == 12 then
        cost = work[at + 4]
      end
      if cost then
        reason = verdict(slot, cost)
        allowed = allowed and (reason == OK or rule.shadow)
      end
      slot.cost, slot.reason = cost, reason
      at = at + 3 + OPERANDS[operation]
    end
    at = from
    for i = 1, count do
      local slot, key, operation = slots[i], work[at], work[at + 2]
      local cost, reason = slot.cost, slot.reason
      if not reason then
        cost = need(applying)(slot, operation, work[at + 3], work[at + 4], work[at + 5])
        reason = slot.reason or verdict(slot, cost)
      elseif cost == 0 or operation == 2 then
        -- Counts nothing, and starts nothing.
      elseif reason == LIMIT then
        startSlotBlock(slot)
      elseif reason == OK and allowed and operation ~= 11 then
        if operation == 1 then
          addUnits(slot, cost)
        else
          changeHold(slot, need(holding).lapseTime(now, operation == 12 and work[at + 3] or slot.rule.hold), cost)
        end
      end
      n = readSlot(slot, cost, reason, reply, n, cellsOf[key])
      if slot.changed then
        dirty[key] = true
      end
      at = at + 3 + OPERANDS[operation]
    end
    return n, at
  end

  -- By the place of a decision in `work`: with what error it failed. current: the decision that is being made.
  local failures, current = {}, 0

  local function decideAll()
    for i = 1, #KEYS do
      cellsOf[i], dirty[i] = readCells(KEYS[i]), false
    end
    local reply, n, at, last = { time[1], time[2] }, 2, 1, #work
    while at <= last do
      current = at
      if not failures[at] then
        n, at = decideOne(at + 1, work[at], reply, n)
      else
        reply[n + 1], reply[n + 2] = -1, failures[at]
        n, at = n + 2, at + 1
        for _ = 1, work[current] do
          at = at + 3 + OPERANDS[work[at + 2]]
        end
      end
    end
    return reply
  end

  -- A decision that fails must leave no trace, and may have touched cells that decisions before it have changed: everything
  -- is decided once more without it, from what is stored. Nothing is written before all are decided.
  local ok, reply
  repeat
    ok, reply = pcall(decideAll)
    if not ok then
      if failures[current] or current == 0 then
        error(reply, 0)
      end
      failures[current] = tostring(reply)
    end
  until ok

  for i = 1, #KEYS do
    local cells = cellsOf[i]
    if dirty[i] then
      writeCells(KEYS[i], cells, now, margin)
    elseif #cells > 0 and redis.call('PTTL', KEYS[i]) == -1 then
      redis.call('PEXPIRE', KEYS[i], decimal(lifetime(cells, now) + margin))
    end
  end
  return reply
end
return decideAtLength()
