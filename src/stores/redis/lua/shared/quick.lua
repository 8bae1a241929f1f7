-- The short way for the usual call: one consume of one rule, by a subject of which nothing else is stored. It has no function,
-- since a script is run from its first line at every call (see need.lua), and such a call ends before it meets one. What it
-- is not made for it leaves untouched to the rest of the script: a block that is to start, a value of the other form, a key
-- that has lost its expiry.
--
-- Needs `now`, `time`, `prescribed` and `margin`; decide.lua tells the arguments and the reply.
local kind = ARGV[2]
-- 2^47: what is added to such a time still fits six bytes.
if ARGV[3] and now < 140737488355328 then
  local pack = struct.pack
  local key, head, window, units, limit = KEYS[1], ARGV[3], ARGV[4] + 0, ARGV[5] + 0, 0
  local form, bytes = '>I6I4I4', 14
  if kind == 'b' then
    form, bytes, limit = '>I6I6I6', 18, ARGV[8] + 0
  elseif kind ~= 's' then
    form, bytes = '>I6I4', 10
  end
  local value = redis.pcall('GET', key)
  -- Where `long` has four bytes, no value of this form is ever written.
  if not value and struct.size('l') == 8 or value and #value == #head + bytes and string.sub(value, 1, #head) == head then
    -- As it begins, what has counted nothing.
    local a, b, c, used, untl = now, 0, 0, 0, 0
    -- Does the expiry that the key has stay right? It does while the same window runs.
    local keeps = false
    if value then
      a, b, c = struct.unpack(form, value, #head + 1)
    elseif kind == 'b' then
      a, b = 0, now
    end
    if kind == 's' then
      local elapsed = 0
      --@inline ../algorithms/parts/sliding-window.roll.lua
      --@inline ../algorithms/parts/sliding-window.used.lua
      keeps = b > 0
    elseif kind == 'b' then
      --@inline ../algorithms/parts/bucket.used.lua
    else
      --@inline ../algorithms/parts/fixed-window.used.lua
      keeps = used > 0
    end
    if used <= ARGV[6] + 0 then
      if kind == 's' then
        --@inline ../algorithms/parts/sliding-window.add.lua
        --@inline ../algorithms/parts/sliding-window.until.lua
        value = pack(form, a, b, c)
      elseif kind == 'b' then
        local target, over, rest, leaking = 0, 0, 0, 0
        --@inline ../algorithms/parts/bucket.add.lua
        --@inline ../algorithms/parts/bucket.leaking.lua
        untl = b + leaking
        value = pack(form, a, b, untl)
      else
        local epoch = kind == 'e'
        --@inline ../algorithms/parts/fixed-window.add.lua
        --@inline ../algorithms/parts/fixed-window.until.lua
        value = pack(form, a, b)
      end
      -- Whole numbers are handed on in full.
      if keeps and prescribed == 0 then
        redis.call('SET', key, head .. value, 'KEEPTTL')
      else
        redis.call('SET', key, head .. value, 'PX', untl - now + margin)
      end
      return { time[1], time[2], 64, a, b, c }
    elseif (ARGV[7] or '') == '' and (not value or redis.call('PTTL', key) ~= -1) then
      return { time[1], time[2], 65, a, b, c }
    end
  end
end
