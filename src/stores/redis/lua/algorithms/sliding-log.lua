-- The twin of algorithms/sliding-log.ts. State: { time, units, time, units, … } in order of time.
--@include ../shared/numbers.lua
local function slidingLog()
  local algorithm = {}

  local function firstLive(log, rule, now)
    local i = 1
    while i < #log and log[i] <= now - rule.window do
      i = i + 2
    end
    return i
  end

  local function sumFrom(log, first)
    local sum = 0
    for i = first, #log, 2 do
      sum = sum + log[i + 1]
    end
    return sum
  end

  local function liveLog(log, rule, now)
    local copy = {}
    for i = firstLive(log, rule, now), #log do
      copy[#copy + 1] = log[i]
    end
    return copy
  end

  function algorithm.used(state, rule, now)
    return state and sumFrom(state, firstLive(state, rule, now)) * rule.window or 0
  end

  function algorithm.add(state, rule, now, units)
    local log = state and liveLog(state, rule, now) or {}
    local i = #log + 1
    while i > 1 and log[i - 2] > now do
      i = i - 2
    end
    if i > 1 and log[i - 2] == now then
      log[i - 1] = log[i - 1] + units
    else
      table.insert(log, i, now)
      table.insert(log, i + 1, units)
    end
    return log
  end

  function algorithm.refund(state, rule, now, at, units)
    local log = liveLog(state, rule, now)
    for i = 1, #log, 2 do
      if log[i] == at then
        if log[i + 1] > units then
          log[i + 1] = log[i + 1] - units
        else
          table.remove(log, i + 1)
          table.remove(log, i)
        end
        break
      end
    end
    return log
  end

  function algorithm.waitFor(state, rule, now, target)
    local i = firstLive(state, rule, now)
    local sum, wait = sumFrom(state, i), 0
    while sum > target do
      sum = sum - state[i + 1]
      wait = state[i] + rule.window - now
      i = i + 2
    end
    return wait
  end

  return algorithm
end
