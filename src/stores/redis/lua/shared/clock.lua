-- The time of this call in whole milliseconds: the server's, or one that the caller prescribes (a test's clock; on a
-- cluster the time at which the first of several nodes decided). 0: none is prescribed.
--@include numbers.lua
local function timeOf(prescribed)
  if prescribed > 0 then
    return prescribed
  end
  local time = redis.call('TIME')
  return time[1] * 1000 + floor(time[2] / 1000)
end
