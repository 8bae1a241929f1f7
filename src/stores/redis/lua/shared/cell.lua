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
-- In memory: cell { scope, block?, counters }, block { since, untl (nil: for ever), manual, strikes },
-- counter { algorithm, window, state?, holds?, untl }, as in core/cell.ts.
--@include numbers.lua
local VERSION = 1
local STRIKE_MEMORY = 24 * 60 * 60 * 1000
-- "For ever" still gets an expiry, so that no key of ours is without one: a century from the last write.
local FOR_EVER = 100 * 366 * 24 * 60 * 60 * 1000

local function whole(value)
  if type(value) ~= 'number' or value < 0 or value > 9007199254740992 or fmod(value, 1) ~= 0 then
    error('not a cell')
  end
  return value
end

local function wholes(values)
  if type(values) ~= 'table' or #values == 0 or #values % 2 ~= 0 then
    error('not a cell')
  end
  for i = 1, #values do
    whole(values[i])
  end
  return values
end

-- From one entry to the next only the distance is kept: three bytes instead of nine.
local function toDistances(log)
  local packed, before = {}, 0
  for i = 1, #log, 2 do
    packed[i], packed[i + 1] = log[i] - before, log[i + 1]
    before = log[i]
  end
  return packed
end

local function fromDistances(log)
  local before = 0
  for i = 1, #log, 2 do
    before = before + log[i]
    log[i] = before
  end
  return log
end

local function stateUntil(counter)
  local state, window = counter.state, counter.window
  if not state then
    return 0
  elseif counter.algorithm == 1 then
    return state[2] > 0 and state[1] + 2 * window or state[1] + window
  elseif counter.algorithm == 2 then
    return state[1] + window
  end
  return state[#state - 1] + window
end

local function readBlock(values, i, flags)
  local block = { manual = flags % 2 == 1, since = whole(values[i]) }
  i = i + 1
  if flags < 2 then
    block.untl = whole(values[i])
    i = i + 1
  end
  block.strikes = whole(values[i])
  return block, i + 1
end

local function readCounter(values, i, code)
  local counter = { algorithm = code % 8, window = whole(values[i]) }
  local bucketUntil
  i = i + 1
  if code < 16 then
    if counter.algorithm == 1 then
      counter.state = { whole(values[i]), whole(values[i + 1]), whole(values[i + 2]) }
      i = i + 3
    elseif counter.algorithm == 2 then
      counter.state = { whole(values[i]), whole(values[i + 1]) }
      i = i + 2
    elseif counter.algorithm == 3 then
      counter.state = fromDistances(wholes(values[i]))
      i = i + 1
    elseif counter.algorithm == 4 or counter.algorithm == 5 then
      counter.state = { whole(values[i]), whole(values[i + 1]) }
      bucketUntil = whole(values[i + 2])
      i = i + 3
    else
      error('not a cell')
    end
  end
  counter.untl = bucketUntil or stateUntil(counter)
  if floor(code / 8) % 2 == 1 then
    counter.holds = wholes(values[i])
    counter.untl = max(counter.untl, counter.holds[#counter.holds - 1])
    i = i + 1
  end
  return counter, i
end

local function parse(value)
  local values = { cmsgpack.unpack(value) }
  if values[1] ~= VERSION then
    error('not a cell')
  end
  local cells, cell, i = {}, nil, 2
  while i <= #values do
    local head = values[i]
    i = i + 1
    if type(head) == 'string' then
      cell = { scope = head, counters = {} }
      cells[#cells + 1] = cell
    elseif whole(head) >= 64 then
      cell.block, i = readBlock(values, i, head - 64)
    else
      cell.counters[#cell.counters + 1], i = readCounter(values, i, head)
    end
  end
  return cells
end

-- The cells under a key. Whatever is not ours (another type, another format) counts as nothing stored: the next write
-- replaces it, and nobody is locked out meanwhile.
local function readCells(key)
  local value = redis.pcall('GET', key)
  if type(value) ~= 'string' then
    return {}, false
  end
  local ok, cells = pcall(parse, value)
  return ok and cells or {}, true
end

local function blockForgettableAt(block)
  if not block.untl then
    return nil
  end
  return block.strikes > 0 and block.untl + STRIKE_MEMORY or block.untl
end

local function packCell(cell, parts)
  parts[#parts + 1] = cmsgpack.pack(cell.scope)
  local block = cell.block
  if block then
    local manual = block.manual and 1 or 0
    if block.untl then
      parts[#parts + 1] = cmsgpack.pack(64 + manual, block.since, block.untl, block.strikes)
    else
      parts[#parts + 1] = cmsgpack.pack(66 + manual, block.since, block.strikes)
    end
  end
  for _, counter in ipairs(cell.counters) do
    local state, algorithm = counter.state, counter.algorithm
    local code = algorithm + (counter.holds and 8 or 0)
    if not state then
      parts[#parts + 1] = cmsgpack.pack(code + 16, counter.window)
    elseif algorithm == 1 then
      parts[#parts + 1] = cmsgpack.pack(code, counter.window, state[1], state[2], state[3])
    elseif algorithm == 2 then
      parts[#parts + 1] = cmsgpack.pack(code, counter.window, state[1], state[2])
    elseif algorithm == 3 then
      parts[#parts + 1] = cmsgpack.pack(code, counter.window, toDistances(state))
    else
      parts[#parts + 1] = cmsgpack.pack(code, counter.window, state[1], state[2], counter.untl)
    end
    if counter.holds then
      parts[#parts + 1] = cmsgpack.pack(counter.holds)
    end
  end
end

-- How many milliseconds the cells must be kept.
local function lifetime(cells, now)
  local untl = now + 1
  for _, cell in ipairs(cells) do
    if cell.block then
      untl = max(untl, blockForgettableAt(cell.block) or now + FOR_EVER)
    end
    for _, counter in ipairs(cell.counters) do
      untl = max(untl, counter.untl)
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
  local parts = { cmsgpack.pack(VERSION) }
  for _, cell in ipairs(cells) do
    packCell(cell, parts)
  end
  redis.call('SET', key, table.concat(parts), 'PX', decimal(lifetime(cells, now) + margin))
end
