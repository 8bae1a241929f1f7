-- The twin of algorithms/bucket.ts. State: { level, at }, the level scaled by the window.
--@include ../shared/numbers.lua
local bucket = {}

function bucket.used(state, rule, now)
  return state and max(0, state[1] - max(0, now - state[2]) * rule.limit) or 0
end

function bucket.add(state, rule, now, units)
  return { bucket.used(state, rule, now) + units * rule.window, state and max(now, state[2]) or now }
end

function bucket.refund(state, rule, now, at, units)
  local left = max(0, units * rule.window - max(0, now - at) * rule.limit)
  return { max(0, bucket.used(state, rule, now) - left), max(now, state[2]) }
end

function bucket.waitFor(state, rule, now, target)
  local over = state[1] - target * rule.window
  if over <= 0 then
    return 0
  end
  return max(0, state[2] + ceilDiv(over, rule.limit) - now)
end
