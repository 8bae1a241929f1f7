-- Whole numbers in a language that only has doubles. Every amount stays below 2^53, where a double is exact, but:
-- `a % b` is a - floor(a / b) * b here, whose quotient is rounded before the floor is taken; fmod is exact.
-- `..` and tostring keep 14 digits of a number; decimal() keeps them all.
local fmod, floor, max, min = math.fmod, math.floor, math.max, math.min

local function floorDiv(a, b)
  return (a - fmod(a, b)) / b
end

local function ceilDiv(a, b)
  local rest = fmod(a, b)
  if rest == 0 then
    return a / b
  end
  return (a - rest) / b + 1
end

local function decimal(number)
  return string.format('%.0f', number)
end
