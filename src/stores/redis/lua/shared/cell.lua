-- Reading and writing the value of a subject: all its cells, of every scope.
--
-- A value has one of two forms, told apart by the first byte, which is also the mark of the format.
--
-- A letter: one counter and nothing else, as most subjects are. Short, and read and written at once:
--   letter (s sliding window, f fixed window, t token bucket, l leaky bucket), window as hexadecimal seconds, or
--   milliseconds with an m behind them, ':', scope; then the state, whole numbers of 6 or 4 bytes, the high byte first:
--   s start 6, current 4, previous 4 · f start 6, count 4 · t and l level 6, at 6, until 6
--
-- A 1: a stream of MessagePack items, of which that is the first. A string begins the cell of that scope; a number begins a
-- part of the cell:
--   0x40 + flags   block: since, until, strikes         flags: 1 manual, 2 for ever (then there is no `until`)
--   algorithm + flags   counter: window, state, holds   flags: 8 it has holds, 16 it has no state (only holds keep it)
-- State by algorithm: 1 sliding window: start, current, previous · 2 fixed window: start, count
--   3 sliding log: [time, units, …], each time as the distance to the one before · 4 and 5 buckets: level, at, until
-- When a counter may be forgotten follows from its state, but for buckets, which leak at a rate that only the rule knows.
--
-- In memory, as in core/cell.ts but for the state, which is kept as up to three values a, b, c (no table of its own):
-- cell { scope, block, counter… }, block { since, untl (nil: for ever), manual, strikes },
-- counter { algorithm, window, untl, holds, a, b, c }. What is not there is false; no state: a is false.
--@include need.lua
--@include numbers.lua
--@include block.lua
local VERSION = 1
-- "For ever" still gets an expiry, so that no key of ours is without one: a century from the last write.
local FOR_EVER = 100 * 366 * 24 * 60 * 60 * 1000
-- 2^53, twice the largest capacity * window: the most that a counter in debt holds. A bucket may take that long to drain.
local MOST = 9007199254740992
-- Lua 5.1 hands on a few thousand values at once, and a subject may have a thousand cells of four items each.
local MOST_AT_ONCE = 1000
--@include rare.lua
--@include plain.lua

-- A bucket keeps it in c, as it was written.
local function untilOf(algorithm, window, a, b, c)
  local untl = c
  if algorithm == 1 then
    --@inline ../algorithms/parts/sliding-window.until.lua
  elseif algorithm == 2 then
    --@inline ../algorithms/parts/fixed-window.until.lua
  end
  return untl
end

-- Comparing raises an error for what is no number, and is false for NaN: readCells catches both.
local function parse(value)
  local plain = plainAlgorithm(value)
  if plain then
    local window, scope, a, b, c = parsePlain(value, plain)
    local untl = untilOf(plain, window, a, b, c)
    if not (window > 0 and window <= MOST and untl <= 2 * MOST) then
      error('not a cell')
    end
    -- What follows the state is the place from which nothing was read yet, where there is no c.
    c = plain == 1 and c or false
    local counter = { algorithm = plain, window = window, untl = untl, holds = false, a = a, b = b, c = c }
    return { { scope = scope, block = false, counter } }
  end
  -- No item is shorter than a byte.
  local values = #value <= MOST_AT_ONCE and { cmsgpack.unpack(value) } or need(rareParts).unpackItems(value)
  if values[1] ~= VERSION then
    error('not a cell')
  end
  -- `nil` as an item: room for the one cell, and its one counter, that most subjects have.
  local cells, cell, i, n = { nil }, nil, 2, #values
  while i <= n do
    local head = values[i]
    if type(head) == 'string' then
      cell = { scope = head, block = false, nil }
      cells[#cells + 1] = cell
      i = i + 1
    elseif head >= 64 then
      cell.block, i = need(rareParts).block(values, i + 1, head - 64)
    else
      local algorithm, window = head % 8, values[i + 1]
      local a, b, c, untl, holds = values[i + 2], values[i + 3], values[i + 4], 0, false
      if head >= 16 then
        a, b, c, i = false, false, false, i + 2
      elseif algorithm == 1 then
        if not (a >= 0 and b >= 0 and c >= 0 and a <= MOST and b <= MOST and c <= MOST) then
          error('not a cell')
        end
        untl, i = untilOf(algorithm, window, a, b, c), i + 5
      elseif algorithm == 2 then
        if not (a >= 0 and b >= 0 and a <= MOST and b <= MOST) then
          error('not a cell')
        end
        c, untl, i = false, untilOf(algorithm, window, a, b, c), i + 4
      elseif algorithm == 3 then
        a, b, c = need(rareParts).log(a), false, false
        untl, i = a[#a - 1] + window, i + 3
      else
        if not (a >= 0 and b >= 0 and a <= MOST and b <= MOST) then
          error('not a cell')
        end
        c, untl, i = false, c, i + 5
      end
      if head % 16 >= 8 then
        holds, i = need(rareParts).pairs(values[i]), i + 1
        untl = math.max(untl, holds[#holds - 1])
      end
      if not (algorithm >= 1 and algorithm <= 5 and window > 0 and window <= MOST and untl <= 2 * MOST) then
        error('not a cell')
      end
      cell[#cell + 1] = { algorithm = algorithm, window = window, untl = untl, holds = holds, a = a, b = b, c = c }
    end
  end
  return cells
end

-- The cells under a key, and whether anything is there. What is not ours (another type, another format) counts as nothing
-- stored: the next write replaces it, and nobody is locked out meanwhile.
local function readCells(key)
  local value = redis.pcall('GET', key)
  if type(value) ~= 'string' then
    -- Anything but another type means that it could not be read, and must not pass for an empty one.
    if value and not string.find(value.err, 'WRONGTYPE', 1, true) then
      error(value.err)
    end
    return {}, false
  end
  local ok, cells = pcall(parse, value)
  return ok and cells or {}, true
end

-- How many milliseconds the cells must be kept.
local function lifetime(cells, now)
  local untl = now + 1
  for i = 1, #cells do
    local cell = cells[i]
    if cell.block then
      untl = math.max(untl, blockForgettableAt(cell.block) or now + FOR_EVER)
    end
    for j = 1, #cell do
      local counted = cell[j].untl
      if counted > untl then
        untl = counted
      end
    end
  end
  return untl - now
end

local items = { VERSION }

local function packedValue(cells)
  local n = 1
  for i = 1, #cells do
    local cell = cells[i]
    local block = cell.block
    n = n + 1
    items[n] = cell.scope
    if block then
      items[n + 1], items[n + 2] = 64 + (block.manual and 1 or 0) + (block.untl and 0 or 2), block.since
      n = n + 2
      if block.untl then
        n = n + 1
        items[n] = block.untl
      end
      n = n + 1
      items[n] = block.strikes
    end
    for j = 1, #cell do
      local counter = cell[j]
      local algorithm, holds, a = counter.algorithm, counter.holds, counter.a
      items[n + 1], items[n + 2] = algorithm + (holds and 8 or 0) + (a and 0 or 16), counter.window
      n = n + 2
      if not a then
        -- Holds alone.
      elseif algorithm == 1 then
        items[n + 1], items[n + 2], items[n + 3] = a, counter.b, counter.c
        n = n + 3
      elseif algorithm == 2 then
        items[n + 1], items[n + 2] = a, counter.b
        n = n + 2
      elseif algorithm == 3 then
        n = n + 1
        items[n] = need(rareParts).distances(a)
      else
        items[n + 1], items[n + 2], items[n + 3] = a, counter.b, counter.untl
        n = n + 3
      end
      if holds then
        n = n + 1
        items[n] = holds
      end
    end
  end
  return n <= MOST_AT_ONCE and cmsgpack.pack(unpack(items, 1, n)) or need(rareParts).packItems(items, n)
end

-- margin: milliseconds that the key is kept longer, where the time of the call is not this server's own.
local function writeCells(key, cells, now, margin)
  if #cells == 0 then
    redis.call('DEL', key)
    return
  end
  local value = plainValue(cells) or packedValue(cells)
  redis.call('SET', key, value, 'PX', decimal(lifetime(cells, now) + margin))
end