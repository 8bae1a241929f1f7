-- Reads a piece of one list of blocks, see index.lua. Writes nothing.
--
-- KEYS[1]   sorted set: the members, all with score 0
-- ARGV[1]   from where, as ZRANGEBYLEX takes it
-- ARGV[2]   how many at most
--
-- Reply: ['', [member, …]]: text first, see decide.lua.
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then
  -- What else lies there is no list; the next block replaces it.
  return { '', {} }
end
return { '', redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2]) }
