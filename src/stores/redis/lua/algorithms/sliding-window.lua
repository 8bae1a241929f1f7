-- The twin of algorithms/sliding-window.ts. State: a start, b current, c previous.
--@include ../shared/numbers.lua
local function slidingWindow()
  local algorithm = {}

  -- The windows as they stand at `now`, and the time into the current one; no units when both are over.
  local function roll(counter, window, now)
    local start, current = counter.a, counter.b
    local elapsed = now - start
    if elapsed < window then
      return start, current, counter.c, elapsed > 0 and elapsed or 0
    elseif elapsed < 2 * window then
      return start + window, 0, current, elapsed - window
    end
    return now, 0, 0, 0
  end

  function algorithm.used(counter, rule, now)
    local window = rule.window
    local _, current, previous, elapsed = roll(counter, window, now)
    return previous * (window - elapsed) + current * window
  end

  function algorithm.add(counter, rule, now, units)
    if counter.a then
      local start, current, previous = roll(counter, rule.window, now)
      if current > 0 or previous > 0 then
        counter.a, counter.b, counter.c = start, current + units, previous
        return
      end
    end
    counter.a, counter.b, counter.c = now, units, 0
  end

  function algorithm.refund(counter, rule, now, at, units)
    local window = rule.window
    local start, current, previous = roll(counter, window, now)
    if current == 0 and previous == 0 then
      return
    elseif at >= start and at < start + window then
      counter.a, counter.b, counter.c = start, math.max(0, current - units), previous
    elseif at < start and at >= start - window then
      counter.a, counter.b, counter.c = start, current, math.max(0, previous - units)
    end
  end

  function algorithm.waitFor(counter, rule, now, target)
    local window = rule.window
    local start, current, previous = roll(counter, window, now)
    if current <= target then
      return start + window - floorDiv((target - current) * window, previous) - now
    end
    return start + 2 * window - floorDiv(target * window, current) - now
  end

  function algorithm.forgettableAt(counter, rule)
    return counter.a + (counter.b > 0 and 2 or 1) * rule.window
  end

  return algorithm
end
