-- The time of this call: the server's, or one that the caller prescribes (a test's clock; on a cluster the time at which
-- the first of several nodes decided). Needs `prescribed`; 0: none is.
-- time: as two texts, seconds and microseconds, as TIME tells it · now: in whole milliseconds
local time, now
if prescribed == 0 then
  time = redis.call('TIME')
  now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
else
  now = prescribed
  time = { string.format('%.0f', (now - now % 1000) / 1000), string.format('%.0f', now % 1000 * 1000) }
end
