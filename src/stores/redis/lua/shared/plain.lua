-- The form of a value that is one counter and nothing else, as most subjects are: what names the counter as text, its
-- state in bytes. See cell.lua.
local LETTERS = 'sf-tl'
local STATE_FORMS = { '>I6I4I4', '>I6I4', false, '>I6I6I6', '>I6I6I6' }
local STATE_BYTES = { 14, 10, 0, 18, 18 }
local WIDE, WIDER = 4294967296, 281474976710656

local function plainAlgorithm(value)
  return string.find(LETTERS, string.sub(value, 1, 1), 1, true)
end

-- window, and where the scope begins. An error for what is no such head.
local function parseHead(value)
  local window, unit, from = string.match(value, '^.(%x+)(m?):()')
  return tonumber(window, 16) * (unit == 'm' and 1 or 1000), from
end

-- window, scope, and the state.
local function parsePlain(value, algorithm)
  local window, from = parseHead(value)
  local state = #value - STATE_BYTES[algorithm] + 1
  return window, string.sub(value, from, state - 1), struct.unpack(STATE_FORMS[algorithm], value, state)
end

-- The value of these cells in this form; nil: they have none.
local function plainValue(cells)
  local cell = cells[1]
  local counter = cell[1]
  if cells[2] or cell[2] or cell.block or not counter or counter.holds then
    return nil
  end
  local algorithm, a, b, c = counter.algorithm, counter.a, counter.b, counter.c
  -- `struct` reads and writes no more than a `long`, and a 32-bit server's has four bytes.
  if algorithm == 3 or not a or a >= WIDER or struct.size('l') < 8 then
    return nil
  elseif algorithm >= 4 then
    c = counter.untl
    if b >= WIDER or c >= WIDER then
      return nil
    end
  elseif b >= WIDE or c and c >= WIDE then
    return nil
  end
  local window = counter.window
  return string.sub(LETTERS, algorithm, algorithm)
    .. (fmod(window, 1000) == 0 and format('%x:', window / 1000) or format('%xm:', window))
    .. cell.scope
    .. struct.pack(STATE_FORMS[algorithm], a, b, c or nil)
end
