-- The twin of algorithms/sliding-window.ts. State: a start, b current, c previous.
--@include ../shared/numbers.lua
local function slidingWindow()
  local algorithm = {}

  local function roll(a, b, c, window, now)
    local elapsed
    --@inline parts/sliding-window.roll.lua
    return a, b, c, elapsed
  end

  function algorithm.used(counter, rule, now)
    local window = rule.window
    local _, b, c, elapsed = roll(counter.a, counter.b, counter.c, window, now)
    local used
    --@inline parts/sliding-window.used.lua
    return used
  end

  function algorithm.add(counter, rule, now, units)
    local a, b, c = counter.a, 0, 0
    if a then
      a, b, c = roll(a, counter.b, counter.c, rule.window, now)
    end
    --@inline parts/sliding-window.add.lua
    counter.a, counter.b, counter.c = a, b, c
  end

  function algorithm.refund(counter, rule, now, at, units)
    local window = rule.window
    local a, b, c = roll(counter.a, counter.b, counter.c, window, now)
    if b == 0 and c == 0 then
      return
    elseif at >= a and at < a + window then
      counter.a, counter.b, counter.c = a, math.max(0, b - units), c
    elseif at < a and at >= a - window then
      counter.a, counter.b, counter.c = a, b, math.max(0, c - units)
    end
  end

  function algorithm.waitFor(counter, rule, now, target)
    local window = rule.window
    local a, b, c = roll(counter.a, counter.b, counter.c, window, now)
    if b <= target then
      return a + window - floorDiv((target - b) * window, c) - now
    end
    return a + 2 * window - floorDiv(target * window, b) - now
  end

  function algorithm.forgettableAt(counter, rule)
    local a, b, window = counter.a, counter.b, rule.window
    local untl
    --@inline parts/sliding-window.until.lua
    return untl
  end

  return algorithm
end
