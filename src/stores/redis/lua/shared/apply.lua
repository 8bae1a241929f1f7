-- The operations that ask nothing: the twin of Slot.apply in core/decide.ts. decide.lua tells their codes and numbers.
--@include slot.lua
local function applying()
  local function charge(slot, units)
    local rule = slot.rule
    local full = rule.capacity * rule.window
    local added = math.min(units, floorDiv(math.max(0, 2 * full - slot.used), rule.window))
    if added > 0 then
      addUnits(slot, added)
    end
    if units > 0 and slot.used >= full then
      startSlotBlock(slot)
    end
  end

  local function refund(slot, at, units)
    local rule, counter = slot.rule, slot.counter
    if counter and counter.a and units > 0 then
      rule.counting.refund(counter, rule, now, at, units)
      slot.used = rule.counting.used(counter, rule, now)
      slot.changed = true
    end
  end

  local function setBlock(slot, block)
    slot.cell.block, slot.changed = block, true
  end

  local function forget(slot, block)
    local cell = slot.cell
    for i = #cell, 1, -1 do
      cell[i] = nil
    end
    slot.counter, slot.used = false, 0
    setBlock(slot, block)
  end

  -- Answers the cost that the reading is for. a, b, c: the numbers of the operation.
  return function(slot, operation, a, b, c)
    local block = slot.cell.block
    if isStanding(block, now) then
      slot.code = 16
    end
    if operation == 4 then
      changeHold(slot, need(holding).lapseTime(a, slot.rule.hold), -b)
      charge(slot, c)
    elseif operation == 5 then
      charge(slot, a)
    elseif operation == 6 then
      refund(slot, a, b)
    elseif operation == 7 then
      setBlock(slot, need(blocking).byHand(block, a, now))
    elseif operation == 8 then
      setBlock(slot, false)
    elseif operation == 9 then
      forget(slot, false)
    elseif operation == 10 then
      forget(slot, need(blocking).forgiven(block, now))
    else
      changeHold(slot, need(holding).lapseTime(a, b), -c)
      if operation == 13 and c > 0 then
        addUnits(slot, c)
      end
      slot.reason = OK
      return c
    end
    return 0
  end
end
