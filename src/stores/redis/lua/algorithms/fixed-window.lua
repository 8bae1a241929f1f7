-- The twin of algorithms/fixed-window.ts. State: { start, count }.
--@include ../shared/numbers.lua
local function fixedWindow()
  local algorithm = {}

  local function isRunning(state, rule, now)
    return state and now < state[1] + rule.window
  end

  function algorithm.used(state, rule, now)
    return isRunning(state, rule, now) and state[2] * rule.window or 0
  end

  function algorithm.add(state, rule, now, units)
    if isRunning(state, rule, now) and state[2] > 0 then
      return { state[1], state[2] + units }
    end
    return { rule.epoch and now - fmod(now, rule.window) or now, units }
  end

  function algorithm.refund(state, rule, now, at, units)
    local start = state[1]
    if at < start or at >= start + rule.window or not isRunning(state, rule, now) then
      return state
    end
    return { start, max(0, state[2] - units) }
  end

  function algorithm.waitFor(state, rule, now, target)
    if not isRunning(state, rule, now) or state[2] <= target then
      return 0
    end
    return state[1] + rule.window - now
  end

  return algorithm
end
