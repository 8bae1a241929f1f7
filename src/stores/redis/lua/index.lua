-- Keeps one list of blocks: the shard of a subject, or the blocks in which one part of a subject occurs.
--
-- KEYS[1]   sorted set: members by the end of the block, to drop what is over and, when the list is full, what ends first
-- KEYS[2]   sorted set: the same members, all with score 0, to page through them in an order that does not change
-- ARGV[1]   prescribed time in ms, or 0
-- ARGV[2]   margin in ms, as in decide.lua
-- ARGV[3]   the most members kept
-- ARGV[4]   ms that the block lasts from now; -1: for ever; 0: it is over, remove the member
-- ARGV[5]   the member: `hash:scope`; '': do nothing but find out whether everything here may be done
local prescribed = tonumber(ARGV[1])
--@include shared/clock.lua
--@include shared/numbers.lua
local margin, most, lasts, member = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local byEnd, byName = KEYS[1], KEYS[2]
-- As in shared/cell.lua: a century.
local FOR_EVER = 100 * 366 * 24 * 60 * 60 * 1000

-- Both keys are ours alone; what else lies there is no list.
if redis.call('TYPE', byEnd).ok ~= 'zset' or redis.call('TYPE', byName).ok ~= 'zset' then
  redis.call('DEL', byEnd, byName)
end

if member == '' then
  for _, key in ipairs(KEYS) do
    redis.call('ZADD', key, 'XX', 0, member)
    redis.call('ZREM', key, member)
    redis.call('ZCARD', key)
    redis.call('ZRANGE', key, 0, 0)
    redis.call('ZRANGEBYSCORE', key, '-inf', '(-inf', 'LIMIT', 0, 1)
    local left = redis.call('PTTL', key)
    redis.call('PEXPIRE', key, decimal(left > 0 and left or FOR_EVER))
  end
  return 0
end

local function drop(members)
  for _, name in ipairs(members) do
    redis.call('ZREM', byEnd, name)
    redis.call('ZREM', byName, name)
  end
end

if lasts == 0 then
  drop({ member })
  return 0
end

local ends = now + (lasts < 0 and FOR_EVER or lasts)
redis.call('ZADD', byEnd, decimal(ends), member)
redis.call('ZADD', byName, 0, member)
-- Some at a time: a list that was forgotten for long must not hold the server up.
drop(redis.call('ZRANGEBYSCORE', byEnd, '-inf', decimal(now), 'LIMIT', 0, 100))
local over = redis.call('ZCARD', byEnd) - most
if over > 0 then
  drop(redis.call('ZRANGE', byEnd, 0, math.min(over, 100) - 1))
end
local last = redis.call('ZRANGE', byEnd, -1, -1, 'WITHSCORES')
if last[2] then
  for _, key in ipairs(KEYS) do
    redis.call('PEXPIRE', key, decimal(math.max(1, tonumber(last[2]) - now) + margin))
  end
end
return 1
