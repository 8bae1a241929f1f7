-- Whole numbers in a language that only has doubles. Every amount stays below 2^53, where a double is exact, but:
-- `a % b` is a - floor(a / b) * b here, whose quotient is rounded before the floor is taken; fmod is exact.
-- `..` and tostring keep 14 digits of a number; decimal() keeps them all.
local fmod, floor, format = math.fmod, math.floor, string.format

local function floorDiv(a, b)
  return (a - fmod(a, b)) / b
end

local function decimal(number)
  return format('%.0f', number)
end
