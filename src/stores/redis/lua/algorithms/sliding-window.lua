-- The twin of algorithms/sliding-window.ts. State: { start, current, previous }.
--@include ../shared/numbers.lua
local function slidingWindow()
  local algorithm = {}

  local function windowsAt(state, rule, now)
    if not state then
      return nil
    end
    local start, window = state[1], rule.window
    local elapsed = now - start
    if elapsed < window then
      return start, state[2], state[3], elapsed > 0 and elapsed or 0
    elseif elapsed >= 2 * window then
      return nil
    end
    return start + window, 0, state[2], elapsed - window
  end

  function algorithm.used(state, rule, now)
    local start, current, previous, elapsed = windowsAt(state, rule, now)
    return start and previous * (rule.window - elapsed) + current * rule.window or 0
  end

  function algorithm.add(state, rule, now, units)
    local start, current, previous = windowsAt(state, rule, now)
    if not start or (current == 0 and previous == 0) then
      return { now, units, 0 }
    end
    return { start, current + units, previous }
  end

  function algorithm.refund(state, rule, now, at, units)
    local start, current, previous = windowsAt(state, rule, now)
    if not start then
      return state
    elseif at >= start and at < start + rule.window then
      return { start, max(0, current - units), previous }
    elseif at < start and at >= start - rule.window then
      return { start, current, max(0, previous - units) }
    end
    return state
  end

  function algorithm.waitFor(state, rule, now, target)
    local start, current, previous, elapsed = windowsAt(state, rule, now)
    local window = rule.window
    local allowed = target * window
    if not start or previous * (window - elapsed) + current * window <= allowed then
      return 0
    elseif current <= target then
      return start + window - floorDiv(allowed - current * window, previous) - now
    end
    return start + 2 * window - floorDiv(allowed, current) - now
  end

  return algorithm
end
