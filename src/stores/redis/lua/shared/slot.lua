-- The twin of class Slot in core/decide.ts: the cell of one rule while it is worked on. Needs `now`, the time of the call.
--@include numbers.lua
--@include cell.lua
--@include block.lua
--@include holds.lua
--@include ../algorithms/sliding-window.lua
--@include ../algorithms/fixed-window.lua
--@include ../algorithms/sliding-log.lua
--@include ../algorithms/bucket.lua
local OK, BLOCKED, COST, LIMIT, HELD = 0, 1, 2, 3, 4
local NEVER = -1
local MAKERS = { slidingWindow, fixedWindow, slidingLog, bucket, bucket }
local algorithms = {}

local function openSlot(rule, cell)
  local code = rule.algorithm
  local algorithm = algorithms[code]
  if not algorithm then
    algorithm = MAKERS[code]()
    algorithms[code] = algorithm
  end
  local state, holds, block, others = false, false, false, false
  if cell then
    block = cell.block
    local counters = cell.counters
    for i = 1, #counters do
      local counter = counters[i]
      if counter.algorithm == code and counter.window == rule.window then
        state, holds = counter.state, counter.holds
      else
        others = others or {}
        others[#others + 1] = counter
      end
    end
  end
  -- All fields at once: a table that grows field by field is laid out anew several times.
  return {
    rule = rule,
    algorithm = algorithm,
    state = state,
    holds = holds,
    block = block,
    others = others,
    used = algorithm.used(state, rule, now),
    changed = false,
    started = false,
    ended = false,
    key = 0,
    operation = 0,
    at = 0,
    cost = false,
    hold = false,
    reason = false,
  }
end

local function setState(slot, state)
  slot.state, slot.changed = state, true
  slot.used = slot.algorithm.used(state, slot.rule, now)
end

-- Whole units that fit beside those used, holds left aside; negative in debt.
local function freeUnits(slot)
  local rule = slot.rule
  local window = rule.window
  local over = slot.used - rule.capacity * window
  if over > 0 then
    return -floorDiv(over + window - 1, window)
  end
  return floorDiv(-over, window)
end

local function verdict(slot, cost)
  if slot.block and isStanding(slot.block, now) then
    return BLOCKED
  elseif cost > slot.rule.capacity then
    return COST
  end
  local free = freeUnits(slot)
  if cost > free then
    return LIMIT
  end
  return slot.holds and cost > free - heldUnits(slot.holds, now) and HELD or OK
end

local function addUnits(slot, units)
  setState(slot, slot.algorithm.add(slot.state, slot.rule, now, units))
end

local function changeHold(slot, lapse, units)
  if units ~= 0 then
    slot.holds = changedHolds(slot.holds, lapse, units, now)
    slot.changed = true
  end
end

local function setBlock(slot, block)
  slot.block, slot.changed = block, true
end

local function startSlotBlock(slot)
  local ladder = slot.rule.ladder
  if ladder and not isStanding(slot.block, now) then
    setBlock(slot, blocking().start(slot.block, ladder, now))
    slot.started = true
  end
end

local function usedWait(slot, target)
  return slot.state and slot.algorithm.waitFor(slot.state, slot.rule, now, target) or 0
end

local function holdsWait(slot)
  local holds = slot.holds
  return holds and max(0, holds[#holds - 1] - now) or 0
end

-- blocked: how long a block stands.
local function waitFor(slot, cost, blocked)
  local capacity, holds = slot.rule.capacity, slot.holds
  if blocked == NEVER or cost > capacity then
    return NEVER
  end
  local room = capacity - cost
  if not holds then
    return max(blocked, usedWait(slot, room))
  end
  local wait, held = blocked, heldUnits(holds, now)
  for i = 1, #holds + 1, 2 do
    local lapse = holds[i] or math.huge
    if lapse > now then
      if held <= room then
        local fits = max(wait, usedWait(slot, room - held))
        if now + fits < lapse then
          return fits
        end
      end
      held = held - (holds[i + 1] or 0)
      wait = max(wait, lapse - now)
    end
  end
  return wait
end

-- Appends the reading to the reply; its form is told in decide.lua. Answers the new length.
local function readSlot(slot, cost, reason, reply, n)
  local capacity, block = slot.rule.capacity, slot.block
  local blocked, remaining, code = 0, 0, reason
  if block and isStanding(block, now) then
    blocked = block.untl and block.untl - now or NEVER
    code = code + 32
  else
    remaining = freeUnits(slot)
    if slot.holds then
      remaining = remaining - heldUnits(slot.holds, now)
    end
    if remaining < 0 then
      remaining = 0
    end
    if slot.ended then
      code = code + 16
    end
  end
  if slot.started then
    code = code + 8
  end
  reply[n + 1], reply[n + 2] = code, remaining
  n = n + 2
  if reason ~= OK then
    n = n + 1
    reply[n] = waitFor(slot, cost, blocked)
  end
  if capacity == 0 then
    reply[n + 1] = NEVER
  elseif remaining == capacity then
    reply[n + 1] = 0
  else
    reply[n + 1] = waitFor(slot, remaining + 1, blocked)
  end
  local counted = max(usedWait(slot, 0), holdsWait(slot))
  -- closeSlot wants the same.
  slot.counted = counted
  reply[n + 2] = blocked == NEVER and NEVER or max(blocked, counted)
  n = n + 2
  if blocked ~= 0 then
    n = n + 1
    reply[n] = blocked
  end
  return n
end

-- The cell to store, once it was read: without what is dead by now; nil when nothing is left.
local function closeSlot(slot)
  local rule, block, counters = slot.rule, slot.block, {}
  for i = 1, slot.others and #slot.others or 0 do
    if slot.others[i].untl > now then
      counters[#counters + 1] = slot.others[i]
    end
  end
  if slot.counted > 0 then
    counters[#counters + 1] = {
      algorithm = rule.algorithm,
      window = rule.window,
      untl = now + slot.counted,
      state = slot.used > 0 and slot.state,
      holds = slot.holds,
    }
  end
  if block then
    local untl = blockForgettableAt(block)
    block = (not untl or untl > now) and block
  end
  if block or #counters > 0 then
    return { scope = rule.scope, counters = counters, block = block }
  end
  return nil
end
