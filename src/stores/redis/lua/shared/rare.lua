-- The parts of a value that most subjects do not have, and values too long to be handed on at once.
local function rareParts()
  local parts = {}

  -- A quotient by 1 is never rounded: `%` is exact here, and needs no call.
  local function isWhole(value)
    return value >= 0 and value <= MOST and value % 1 == 0
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

  function parts.unpackItems(value)
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

  function parts.packItems(items, n)
    local pieces = {}
    for i = 1, n, MOST_AT_ONCE do
      pieces[#pieces + 1] = cmsgpack.pack(unpack(items, i, math.min(i + MOST_AT_ONCE - 1, n)))
    end
    return table.concat(pieces)
  end

  return parts
end
