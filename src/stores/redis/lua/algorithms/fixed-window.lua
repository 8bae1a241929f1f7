-- The twin of algorithms/fixed-window.ts. State: a start, b count.
local function fixedWindow()
  local algorithm = {}

  function algorithm.used(counter, rule, now)
    local a, b, window = counter.a, counter.b, rule.window
    local used
    --@inline parts/fixed-window.used.lua
    return used
  end

  function algorithm.add(counter, rule, now, units)
    local a, b, window, epoch = counter.a, counter.b, rule.window, rule.epoch
    local used = a and algorithm.used(counter, rule, now) or 0
    --@inline parts/fixed-window.add.lua
    counter.a, counter.b = a, b
  end

  function algorithm.refund(counter, rule, now, at, units)
    local start = counter.a
    local over = start + rule.window
    if at >= start and at < over and now < over then
      counter.b = math.max(0, counter.b - units)
    end
  end

  function algorithm.forgettableAt(counter, rule)
    local a, window = counter.a, rule.window
    local untl
    --@inline parts/fixed-window.until.lua
    return untl
  end

  function algorithm.waitFor(counter, rule, now)
    return algorithm.forgettableAt(counter, rule) - now
  end

  return algorithm
end
