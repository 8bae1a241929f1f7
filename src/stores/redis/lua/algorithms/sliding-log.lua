-- The twin of algorithms/sliding-log.ts. State: a { time, units, time, units, … } in order of time.
--@include ../shared/numbers.lua
local function slidingLog()
  local algorithm = {}

  local function firstLive(log, rule, now)
    local i, n, dead = 1, #log, now - rule.window
    while i < n and log[i] <= dead do
      i = i + 2
    end
    return i
  end

  local function sumFrom(log, first)
    local sum = 0
    for i = first + 1, #log, 2 do
      sum = sum + log[i]
    end
    return sum
  end

  local function dropDead(log, rule, now)
    local first, n = firstLive(log, rule, now), #log
    if first > 1 then
      for i = first, n do
        log[i - first + 1] = log[i]
      end
      for i = n, n - first + 2, -1 do
        log[i] = nil
      end
    end
  end

  function algorithm.used(counter, rule, now)
    local log = counter.a
    return sumFrom(log, firstLive(log, rule, now)) * rule.window
  end

  function algorithm.add(counter, rule, now, units)
    local log = counter.a
    if not log then
      counter.a = { now, units }
      return
    end
    dropDead(log, rule, now)
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
  end

  function algorithm.refund(counter, rule, now, at, units)
    local log = counter.a
    dropDead(log, rule, now)
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
  end

  function algorithm.waitFor(counter, rule, now, target)
    local log = counter.a
    local i = firstLive(log, rule, now)
    local sum, wait = sumFrom(log, i), 0
    while sum > target do
      sum = sum - log[i + 1]
      wait = log[i] + rule.window - now
      i = i + 2
    end
    return wait
  end

  function algorithm.forgettableAt(counter, rule)
    local log = counter.a
    return log[#log - 1] + rule.window
  end

  return algorithm
end
