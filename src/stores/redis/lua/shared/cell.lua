-- Reading and writing the value of a subject: all its cells, of every scope.
--
-- The value is a stream of MessagePack items. The first is the format version. A string begins the cell of that scope;
-- a number begins a part of the cell:
--   0x40 + flags   block: since, until, strikes         flags: 1 manual, 2 for ever (then there is no `until`)
--   algorithm + flags   counter: window, state, holds   flags: 8 it has holds, 16 it has no state (only holds keep it)
-- State by algorithm: 1 sliding window: start, current, previous · 2 fixed window: start, count
--   3 sliding log: [time, units, …], each time as the distance to the one before · 4 and 5 buckets: level, at, until
-- When a counter may be forgotten follows from its state, but for buckets, which leak at a rate that only the rule knows.
--
-- In memory: cell { scope, counters, block }, block { since, untl (nil: for ever), manual, strikes },
-- counter { algorithm, window, untl, state, holds }, as in core/cell.ts; what is not there is nil or false.
--@include numbers.lua
local VERSION = 1
local STRIKE_MEMORY = 24 * 60 * 60 * 1000
-- "For ever" still gets an expiry, so that no key of ours is without one: a century from the last write.
local FOR_EVER = 100 * 366 * 24 * 60 * 60 * 1000
local MOST = 9007199254740992

local function blockForgettableAt(block)
  if not block.untl then
    return nil
  end
  return block.strikes > 0 and block.untl + STRIKE_MEMORY or block.untl
end

-- The parts of a value that most subjects do not have.
local function rareParts()
  local parts = {}

  local function isWhole(value)
    return value >= 0 and value <= MOST and fmod(value, 1) == 0
  end

  -- A list of pairs, as holds and logs are.
  function parts.pairs(values)
    if type(values) ~= 'table' or #values == 0 or #values % 2 ~= 0 then
      error('not a cell')
    end
    for i = 1, #values do
      if not isWhole(values[i]) then
        error('not a cell')
      end
    end
    return values
  end

  function parts.log(values)
    local before = 0
    for i = 1, #parts.pairs(values), 2 do
      before = before + values[i]
      values[i] = before
    end
    return values
  end

  -- From one entry to the next only the distance is kept: three bytes instead of nine.
  function parts.distances(log)
    local packed, before = {}, 0
    for i = 1, #log, 2 do
      packed[i], packed[i + 1] = log[i] - before, log[i + 1]
      before = log[i]
    end
    return packed
  end

  function parts.block(values, i, flags)
    local block = { since = values[i], manual = flags % 2 == 1 }
    if flags < 2 then
      i = i + 1
      block.untl = values[i]
    end
    block.strikes = values[i + 1]
    if not (isWhole(block.since) and isWhole(block.untl or 0) and isWhole(block.strikes)) then
      error('not a cell')
    end
    return block, i + 2
  end

  return parts
end

local rare
local function rarely()
  rare = rare or rareParts()
  return rare
end

-- Lua 5.1 hands on a few thousand values at once, and a subject may have a thousand cells of four items each.
local MOST_AT_ONCE = 1000

local function unpackItems(value)
  -- No item is shorter than a byte.
  if #value <= MOST_AT_ONCE then
    return { cmsgpack.unpack(value) }
  end
  local values, n, offset = {}, 0, 0
  while offset >= 0 do
    local some = { cmsgpack.unpack_limit(value, MOST_AT_ONCE, offset) }
    offset = some[1]
    for i = 2, #some do
      n = n + 1
      values[n] = some[i]
    end
  end
  return values
end

local function packItems(items)
  local n = #items
  if n <= MOST_AT_ONCE then
    return cmsgpack.pack(unpack(items))
  end
  local pieces = {}
  for i = 1, n, MOST_AT_ONCE do
    pieces[#pieces + 1] = cmsgpack.pack(unpack(items, i, math.min(i + MOST_AT_ONCE - 1, n)))
  end
  return table.concat(pieces)
end

-- Comparing raises an error for what is no number, and is false for NaN: readCells catches both.
local function parse(value)
  local values = unpackItems(value)
  if values[1] ~= VERSION then
    error('not a cell')
  end
  local cells, cell, i, n = {}, nil, 2, #values
  while i <= n do
    local head = values[i]
    if type(head) == 'string' then
      cell = { scope = head, counters = {}, block = false }
      cells[#cells + 1] = cell
      i = i + 1
    elseif head >= 64 then
      cell.block, i = rarely().block(values, i + 1, head - 64)
    else
      local algorithm, window = head % 8, values[i + 1]
      local a, b, c = values[i + 2], values[i + 3], values[i + 4]
      local state, untl = false, 0
      if head >= 16 then
        i = i + 2
      elseif algorithm == 1 then
        if not (a >= 0 and b >= 0 and c >= 0 and a + b + c <= MOST) then
          error('not a cell')
        end
        state, untl, i = { a, b, c }, b > 0 and a + 2 * window or a + window, i + 5
      elseif algorithm == 2 then
        if not (a >= 0 and b >= 0 and a + b <= MOST) then
          error('not a cell')
        end
        state, untl, i = { a, b }, a + window, i + 4
      elseif algorithm == 3 then
        state = rarely().log(a)
        untl, i = state[#state - 1] + window, i + 3
      else
        if not (a >= 0 and b >= 0 and a <= MOST and b <= MOST) then
          error('not a cell')
        end
        state, untl, i = { a, b }, c, i + 5
      end
      local holds = false
      if floor(head / 8) % 2 == 1 then
        holds = rarely().pairs(values[i])
        untl, i = max(untl, holds[#holds - 1]), i + 1
      end
      if not (algorithm >= 1 and algorithm <= 5 and window > 0 and window <= MOST and untl <= MOST) then
        error('not a cell')
      end
      local counters = cell.counters
      counters[#counters + 1] =
        { algorithm = algorithm, window = window, untl = untl, state = state, holds = holds }
    end
  end
  return cells
end

-- The cells under a key, and whether anything is there. What is not ours (another type, another format) counts as nothing
-- stored: the next write replaces it, and nobody is locked out meanwhile.
local function readCells(key)
  local value = redis.pcall('GET', key)
  if type(value) ~= 'string' then
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
      untl = max(untl, blockForgettableAt(cell.block) or now + FOR_EVER)
    end
    local counters = cell.counters
    for j = 1, #counters do
      untl = max(untl, counters[j].untl)
    end
  end
  return untl - now
end

-- margin: milliseconds that the key is kept longer, where the time of the call is not this server's own.
local function writeCells(key, cells, now, margin)
  if #cells == 0 then
    redis.call('DEL', key)
    return
  end
  local out, n = { VERSION }, 1
  for i = 1, #cells do
    local cell = cells[i]
    out[n + 1] = cell.scope
    n = n + 1
    local block = cell.block
    if block then
      out[n + 1], out[n + 2] = 64 + (block.manual and 1 or 0) + (block.untl and 0 or 2), block.since
      n = n + 2
      if block.untl then
        n = n + 1
        out[n] = block.untl
      end
      n = n + 1
      out[n] = block.strikes
    end
    local counters = cell.counters
    for j = 1, #counters do
      local counter = counters[j]
      local state, algorithm, holds = counter.state, counter.algorithm, counter.holds
      out[n + 1], out[n + 2] = algorithm + (holds and 8 or 0) + (state and 0 or 16), counter.window
      n = n + 2
      if not state then
        -- Holds alone.
      elseif algorithm == 1 then
        out[n + 1], out[n + 2], out[n + 3] = state[1], state[2], state[3]
        n = n + 3
      elseif algorithm == 2 then
        out[n + 1], out[n + 2] = state[1], state[2]
        n = n + 2
      elseif algorithm == 3 then
        n = n + 1
        out[n] = rarely().distances(state)
      else
        out[n + 1], out[n + 2], out[n + 3] = state[1], state[2], counter.untl
        n = n + 3
      end
      if holds then
        n = n + 1
        out[n] = holds
      end
    end
  end
  redis.call('SET', key, packItems(out), 'PX', decimal(lifetime(cells, now) + margin))
end
