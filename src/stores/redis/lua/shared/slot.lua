-- The twin of class Slot in core/decide.ts: the cell of one rule while it is worked on. Needs `now`, the time of the call.
--
-- slot { rule, cell, counter (the one that the rule counts in; false: none), used (the scaled units in it), changed,
-- code (for the reply: 8 its block started, 16 one stood before), cost and reason (of an operation that asks) }.
-- A slot works on the cell itself, which core/decide.ts does not: decide.lua tells how a decision that fails leaves no
-- trace all the same.
--@include need.lua
--@include numbers.lua
--@include cell.lua
--@include block.lua
--@include holds.lua
--@include sweep.lua
--@include ../algorithms/sliding-window.lua
--@include ../algorithms/fixed-window.lua
--@include ../algorithms/sliding-log.lua
--@include ../algorithms/bucket.lua
local OK, BLOCKED, COST, LIMIT, HELD = 0, 1, 2, 3, 4
local NEVER = -1
local COUNTING = { slidingWindow, fixedWindow, slidingLog, bucket, bucket }

-- Puts the slot to use, for the first time or again.
local function openSlot(slot, rule, cells)
  local scope, code, window, counting = rule.scope, rule.algorithm, rule.window, rule.counting
  if not counting then
    counting = need(COUNTING[code])
    rule.counting = counting
  end
  local cell, counter, used = false, false, 0
  for i = 1, #cells do
    local found = cells[i]
    if found.scope == scope then
      cell = found
      break
    end
  end
  if cell then
    for i = 1, #cell do
      local found = cell[i]
      if found.algorithm == code and found.window == window then
        counter = found
        used = found.a and counting.used(found, rule, now) or 0
      end
    end
  else
    cell = { scope = scope, block = false }
  end
  slot.rule, slot.cell, slot.counter, slot.used, slot.changed, slot.code = rule, cell, counter, used, false, 0
end

-- "Used + held + cost exceed the capacity" without a product beyond 2^53: the cost is at most the capacity by then.
local function verdict(slot, cost)
  local rule, counter, block = slot.rule, slot.counter, slot.cell.block
  local room = rule.capacity - cost
  if block and isStanding(block, now) then
    return BLOCKED
  elseif room < 0 then
    return COST
  elseif not counter then
    return OK
  elseif slot.used > room * rule.window then
    return LIMIT
  end
  local holds = counter.holds
  return holds and slot.used > (room - need(holding).units(holds, now)) * rule.window and HELD or OK
end

local function newCounter(rule)
  return { algorithm = rule.algorithm, window = rule.window, untl = 0, holds = false, a = false, b = false, c = false }
end

local function addUnits(slot, units)
  local rule = slot.rule
  local counter = slot.counter or newCounter(rule)
  rule.counting.add(counter, rule, now, units)
  -- Whatever the algorithm, a unit counts in full at the moment when it is added.
  slot.counter, slot.used, slot.changed = counter, slot.used + units * rule.window, true
end

local function changeHold(slot, lapse, units)
  if units ~= 0 then
    local counter = slot.counter or newCounter(slot.rule)
    counter.holds = need(holding).changed(counter.holds, lapse, units, now)
    slot.counter, slot.changed = counter, true
  end
end

local function startSlotBlock(slot)
  local cell, ladder = slot.cell, slot.rule.ladder
  if ladder and not isStanding(cell.block, now) then
    cell.block = need(blocking).start(cell.block, ladder, now)
    slot.code, slot.changed = 8, true
  end
end

-- The smallest wait after which `room` has space for what is used and held, and which is not shorter than a block.
local function waitFor(rule, counter, used, holds, room, blocked)
  if blocked == NEVER or room < 0 then
    return NEVER
  elseif not holds then
    -- An algorithm is asked only when more is used.
    local wait = used > room * rule.window and rule.counting.waitFor(counter, rule, now, room) or 0
    return wait > blocked and wait or blocked
  end
  -- From one lapse time to the next the held units are constant: try each such span, the holds shrinking.
  local wait, held = blocked, need(holding).units(holds, now)
  for i = 1, #holds + 1, 2 do
    local lapse = holds[i] or math.huge
    if lapse > now then
      if held <= room then
        local fits = waitFor(rule, counter, used, false, room - held, wait)
        if now + fits < lapse then
          return fits
        end
      end
      held = held - (holds[i + 1] or 0)
      wait = math.max(wait, lapse - now)
    end
  end
  return wait
end

-- Appends the reading to the reply, its form told in decide.lua, and brings the cell up to date. Answers the new length.
local function readSlot(slot, cost, reason, reply, n, cells)
  local rule, cell, counter, used = slot.rule, slot.cell, slot.counter, slot.used
  local capacity, window, block, holds = rule.capacity, rule.window, cell.block, counter and counter.holds
  local blocked, remaining, code = 0, 0, reason + slot.code
  if block and isStanding(block, now) then
    blocked = block.untl and block.untl - now or NEVER
    code = code % 16 + 32
  elseif used < capacity * window then
    remaining = floorDiv(capacity * window - used, window)
    if holds then
      remaining = math.max(0, remaining - need(holding).units(holds, now))
    end
  end
  n = n + 2
  reply[n - 1], reply[n] = code, remaining
  if reason ~= OK then
    n = n + 1
    reply[n] = waitFor(rule, counter, used, holds, capacity - cost, blocked)
  end
  local more, counted = 0, used > 0 and rule.counting.forgettableAt(counter, rule) - now or 0
  if remaining < capacity then
    more = waitFor(rule, counter, used, holds, capacity - remaining - 1, blocked)
  elseif capacity == 0 then
    more = NEVER
  end
  if holds then
    counted = math.max(counted, holds[#holds - 1] - now)
  end
  n = n + 2
  reply[n - 1], reply[n] = more, counted
  if blocked ~= 0 then
    reply[n] = blocked == NEVER and NEVER or math.max(blocked, counted)
    n = n + 1
    reply[n] = blocked
  end
  if slot.changed then
    if counter then
      counter.untl = now + counted
    end
    -- The usual cell, one counter that still counts, has nothing dead in it.
    if used == 0 or block or cell[1] ~= counter or cell[2] then
      need(sweeping)(cells, cell, counter, used, now)
    end
  end
  return n
end
