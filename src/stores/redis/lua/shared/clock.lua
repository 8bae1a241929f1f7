-- The time of this call in whole milliseconds: the server's, or one that the caller prescribes (a test's clock; on a
-- cluster the time at which the first of several nodes decided). Needs `prescribed`; 0: none is.
local now = prescribed
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
