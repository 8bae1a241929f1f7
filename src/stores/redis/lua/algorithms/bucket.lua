-- The twin of algorithms/bucket.ts. State: a level, b at, the level scaled by the window.
local function bucket()
  local algorithm = {}

  function algorithm.used(counter, rule, now)
    local a, b, limit = counter.a, counter.b, rule.limit
    local used
    --@inline parts/bucket.used.lua
    return used
  end

  function algorithm.add(counter, rule, now, units)
    local window, used, a, b = rule.window, 0, 0, now
    if counter.a then
      used, b = algorithm.used(counter, rule, now), counter.b
    end
    --@inline parts/bucket.add.lua
    counter.a, counter.b = a, b
  end

  function algorithm.refund(counter, rule, now, at, units)
    local left = math.max(0, units * rule.window - math.max(0, now - at) * rule.limit)
    counter.a, counter.b = math.max(0, algorithm.used(counter, rule, now) - left), math.max(now, counter.b)
  end

  local function leakingTo(target, counter, rule)
    local a, limit = counter.a, rule.limit
    local over, rest, leaking
    --@inline parts/bucket.leaking.lua
    return leaking
  end

  function algorithm.waitFor(counter, rule, now, target)
    -- Durations first: b plus the wait of the longest debt, 2^53 ms, would be rounded.
    return leakingTo(target * rule.window, counter, rule) - (now - counter.b)
  end

  function algorithm.forgettableAt(counter, rule)
    return counter.b + leakingTo(0, counter, rule)
  end

  return algorithm
end
