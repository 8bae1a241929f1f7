-- The twin of class Slot in core/decide.ts: the cell of one rule while it is worked on. `now` is the time of the call.
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
local ALGORITHMS = { slidingWindow, fixedWindow, slidingLog, bucket, bucket }

local function openSlot(rule, cell, now)
  local slot = { rule = rule, now = now, algorithm = ALGORITHMS[rule.algorithm] }
  if cell then
    slot.block = cell.block
    for _, counter in ipairs(cell.counters) do
      if counter.algorithm == rule.algorithm and counter.window == rule.window then
        slot.state, slot.holds = counter.state, counter.holds
      else
        slot.others = slot.others or {}
        slot.others[#slot.others + 1] = counter
      end
    end
  end
  return slot
end

local function usedUnits(slot)
  return slot.algorithm.used(slot.state, slot.rule, slot.now)
end

local function freeUnits(slot)
  local rule = slot.rule
  local over = usedUnits(slot) - rule.capacity * rule.window
  if over > 0 then
    return -ceilDiv(over, rule.window)
  end
  return floorDiv(-over, rule.window)
end

local function verdict(slot, cost)
  if isStanding(slot.block, slot.now) then
    return BLOCKED
  elseif cost > slot.rule.capacity then
    return COST
  end
  local free = freeUnits(slot)
  if cost > free then
    return LIMIT
  end
  return cost > free - heldUnits(slot.holds, slot.now) and HELD or OK
end

local function addUnits(slot, units)
  slot.state = slot.algorithm.add(slot.state, slot.rule, slot.now, units)
  slot.changed = true
end

local function changeHold(slot, lapse, units)
  if units ~= 0 then
    slot.holds = changedHolds(slot.holds, lapse, units, slot.now)
    slot.changed = true
  end
end

local function setBlock(slot, block)
  slot.block = block
  slot.changed = true
end

local function startSlotBlock(slot)
  local ladder = slot.rule.ladder
  if #ladder > 0 and not isStanding(slot.block, slot.now) then
    setBlock(slot, startBlock(slot.block, ladder, slot.now))
    slot.started = true
  end
end

local function chargeUnits(slot, units)
  if units == 0 then
    return
  end
  local rule = slot.rule
  local room = floorDiv(max(0, 2 * rule.capacity * rule.window - usedUnits(slot)), rule.window)
  local added = min(units, room)
  if added > 0 then
    addUnits(slot, added)
  end
  if usedUnits(slot) >= rule.capacity * rule.window then
    startSlotBlock(slot)
  end
end

local function refundUnits(slot, at, units)
  if slot.state and units > 0 then
    slot.state = slot.algorithm.refund(slot.state, slot.rule, slot.now, at, units)
    slot.changed = true
  end
end

local function forgetSlot(slot, block)
  slot.state, slot.holds, slot.others = nil, nil, nil
  setBlock(slot, block)
end

local function blockWait(slot)
  if not isStanding(slot.block, slot.now) then
    return 0
  end
  return slot.block.untl and slot.block.untl - slot.now or NEVER
end

local function usedWait(slot, target)
  return slot.state and slot.algorithm.waitFor(slot.state, slot.rule, slot.now, target) or 0
end

local function holdsWait(slot)
  local holds = slot.holds
  return holds and max(0, holds[#holds - 1] - slot.now) or 0
end

local function waitFor(slot, cost)
  local wait, now, holds = blockWait(slot), slot.now, slot.holds
  if wait == NEVER or cost > slot.rule.capacity then
    return NEVER
  end
  local room = slot.rule.capacity - cost
  if not holds then
    return max(wait, usedWait(slot, room))
  end
  local held = heldUnits(holds, now)
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

-- Appends the reading to the reply; its form is told in decide.lua.
local function readSlot(slot, cost, reason, reply)
  local capacity = slot.rule.capacity
  local blocked = blockWait(slot)
  local remaining = 0
  if blocked == 0 then
    remaining = max(0, freeUnits(slot) - heldUnits(slot.holds, slot.now))
  end
  local code = reason
  if slot.started then
    code = code + 8
  end
  if slot.ended and blocked == 0 then
    code = code + 16
  end
  if blocked ~= 0 then
    code = code + 32
  end
  local n = #reply
  reply[n + 1], reply[n + 2] = code, remaining
  n = n + 2
  if reason ~= OK then
    n = n + 1
    reply[n] = waitFor(slot, cost)
  end
  if capacity == 0 then
    reply[n + 1] = NEVER
  elseif remaining == capacity then
    reply[n + 1] = 0
  else
    reply[n + 1] = waitFor(slot, remaining + 1)
  end
  if blocked == NEVER then
    reply[n + 2] = NEVER
  else
    reply[n + 2] = max(blocked, usedWait(slot, 0), holdsWait(slot))
  end
  if blocked ~= 0 then
    reply[n + 3] = blocked
  end
end

-- The cell to store: without what is dead by now; nil when nothing is left.
local function closeSlot(slot)
  local rule, now = slot.rule, slot.now
  local cell = { scope = rule.scope, counters = {} }
  for _, counter in ipairs(slot.others or {}) do
    if counter.untl > now then
      cell.counters[#cell.counters + 1] = counter
    end
  end
  local wait = max(usedWait(slot, 0), holdsWait(slot))
  if wait > 0 then
    cell.counters[#cell.counters + 1] = {
      algorithm = rule.algorithm,
      window = rule.window,
      state = usedUnits(slot) > 0 and slot.state or nil,
      holds = slot.holds,
      untl = now + wait,
    }
  end
  if slot.block then
    local untl = blockForgettableAt(slot.block)
    if not untl or untl > now then
      cell.block = slot.block
    end
  end
  if cell.block or #cell.counters > 0 then
    return cell
  end
  return nil
end
