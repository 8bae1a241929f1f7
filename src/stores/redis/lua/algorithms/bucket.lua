-- The twin of algorithms/bucket.ts. State: { level, at }, the level scaled by the window.
--@include ../shared/numbers.lua
local function bucket()
  local algorithm = {}

  local function level(state, rule, now)
    return state and max(0, state[1] - max(0, now - state[2]) * rule.limit) or 0
  end

  algorithm.used = level

  function algorithm.add(state, rule, now, units)
    return { level(state, rule, now) + units * rule.window, state and max(now, state[2]) or now }
  end

  function algorithm.refund(state, rule, now, at, units)
    local left = max(0, units * rule.window - max(0, now - at) * rule.limit)
    return { max(0, level(state, rule, now) - left), max(now, state[2]) }
  end

  function algorithm.waitFor(state, rule, now, target)
    local over = state[1] - target * rule.window
    if over <= 0 then
      return 0
    end
    local rest = fmod(over, rule.limit)
    local wait = rest == 0 and over / rule.limit or (over - rest) / rule.limit + 1
    return max(0, state[2] + wait - now)
  end

  return algorithm
end
