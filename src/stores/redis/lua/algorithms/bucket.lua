-- The twin of algorithms/bucket.ts. State: a level, b at, the level scaled by the window.
--@include ../shared/numbers.lua
local function bucket()
  local algorithm = {}

  local function level(counter, rule, now)
    local stored, at = counter.a, counter.b
    if now > at then
      stored = stored - (now - at) * rule.limit
    end
    return stored > 0 and stored or 0
  end

  -- How long from b on until at most `target` scaled units are left, where more are stored.
  local function leaking(counter, rule, target)
    local over, limit = counter.a - target, rule.limit
    local rest = fmod(over, limit)
    return rest == 0 and over / limit or (over - rest) / limit + 1
  end

  algorithm.used = level

  function algorithm.add(counter, rule, now, units)
    local added = units * rule.window
    if counter.a then
      counter.a, counter.b = level(counter, rule, now) + added, math.max(now, counter.b)
    else
      counter.a, counter.b = added, now
    end
  end

  function algorithm.refund(counter, rule, now, at, units)
    local left = math.max(0, units * rule.window - math.max(0, now - at) * rule.limit)
    counter.a, counter.b = math.max(0, level(counter, rule, now) - left), math.max(now, counter.b)
  end

  function algorithm.waitFor(counter, rule, now, target)
    -- Durations first: b plus the wait of the longest debt, 2^53 ms, would be rounded.
    return leaking(counter, rule, target * rule.window) - (now - counter.b)
  end

  function algorithm.forgettableAt(counter, rule)
    return counter.b + leaking(counter, rule, 0)
  end

  return algorithm
end
