-- The twin of what core/cell.ts says of holds: { lapse, units, lapse, units, … } in order of lapse; false when there are
-- none.
--@include numbers.lua
local function holding()
  local holds = {}

  function holds.units(held, now)
    local sum = 0
    for i = 1, #held, 2 do
      if held[i] > now then
        sum = sum + held[i + 1]
      end
    end
    return sum
  end

  function holds.lapseTime(at, hold)
    return (floor(at / hold) + 2) * hold
  end

  function holds.changed(held, lapse, units, now)
    local lapses, sums = {}, {}
    for i = 1, held and #held or 0, 2 do
      if held[i] > now then
        lapses[#lapses + 1] = held[i]
        sums[held[i]] = held[i + 1]
      end
    end
    if sums[lapse] then
      sums[lapse] = math.max(0, sums[lapse] + units)
    elseif units > 0 then
      lapses[#lapses + 1] = lapse
      sums[lapse] = units
      table.sort(lapses)
    end
    local changed = {}
    for _, at in ipairs(lapses) do
      if sums[at] > 0 then
        changed[#changed + 1] = at
        changed[#changed + 1] = sums[at]
      end
    end
    return #changed > 0 and changed
  end

  return holds
end
