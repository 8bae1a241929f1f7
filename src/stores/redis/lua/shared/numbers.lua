-- Whole numbers in a language that only has doubles. Every amount is at most 2^53, where a double is exact; only the end of
-- the longest debt lies beyond, and may be a millisecond off. But:
-- `a % b` is a - floor(a / b) * b here, whose quotient is rounded before the floor is taken; with fmod nothing is.
-- `..` and tostring keep 14 digits of a number; decimal() keeps them all.
local fmod, floor, format = math.fmod, math.floor, string.format

local function floorDiv(a, b)
  return (a - fmod(a, b)) / b
end

local function decimal(number)
  return format('%.0f', number)
end
