-- Cells as a reply for operators: [scope, block, counters].
--   block: [] or [since, until (-1: for ever), manual (0 or 1), strikes]
--   counter: [algorithm, window, until, state, holds], the last two as flat lists, [] for none
-- As integers: Redis would cut a number's fraction off, but there is none. The scope has a ":" before it, since some
-- HTTP clients take a string of digits for a number.
--@include cell.lua
local function stateOf(counter)
  if not counter.a then
    return {}
  elseif counter.algorithm == 3 then
    return counter.a
  end
  return { counter.a, counter.b, counter.c or nil }
end

local function replyOf(cells)
  local reply = {}
  for i, cell in ipairs(cells) do
    local block, counters = {}, {}
    if cell.block then
      block = { cell.block.since, cell.block.untl or -1, cell.block.manual and 1 or 0, cell.block.strikes }
    end
    for j, counter in ipairs(cell) do
      counters[j] = { counter.algorithm, counter.window, counter.untl, stateOf(counter), counter.holds or {} }
    end
    reply[i] = { ':' .. cell.scope, block, counters }
  end
  return reply
end
