-- The twin of algorithms/fixed-window.ts. State: a start, b count.
--@include ../shared/numbers.lua
local function fixedWindow()
  local algorithm = {}

  function algorithm.used(counter, rule, now)
    return now < counter.a + rule.window and counter.b * rule.window or 0
  end

  function algorithm.add(counter, rule, now, units)
    local start = counter.a
    if start and now < start + rule.window and counter.b > 0 then
      counter.b = counter.b + units
    else
      counter.a, counter.b = rule.epoch and now - fmod(now, rule.window) or now, units
    end
  end

  function algorithm.refund(counter, rule, now, at, units)
    local start = counter.a
    local over = start + rule.window
    if at >= start and at < over and now < over then
      counter.b = math.max(0, counter.b - units)
    end
  end

  function algorithm.waitFor(counter, rule, now)
    return counter.a + rule.window - now
  end

  function algorithm.forgettableAt(counter, rule)
    return counter.a + rule.window
  end

  return algorithm
end
