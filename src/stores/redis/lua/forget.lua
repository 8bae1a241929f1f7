-- Forgets the cells of a subject, of all scopes or of some.
--
-- KEYS[1]   `prefix:{hash}`, see shared/cell.lua
-- ARGV[1]   prescribed time in ms, or 0
-- ARGV[2]   margin in ms, as in decide.lua
-- ARGV[3…]  the scopes; none: all
--
-- Reply: [time as text (see decide.lua), [the cells that were removed]]; a cell as in shared/reply.lua.
local prescribed = tonumber(ARGV[1])
--@include shared/clock.lua
--@include shared/reply.lua
local named = {}
for i = 3, #ARGV do
  named[ARGV[i]] = true
end

local kept, removed = {}, {}
local cells, exists = readCells(KEYS[1])
for _, cell in ipairs(cells) do
  local list = (#ARGV < 3 or named[cell.scope]) and removed or kept
  list[#list + 1] = cell
end
-- A value that nobody can read is a string of another kind, and goes when everything goes.
if #removed > 0 or (#ARGV < 3 and exists) then
  writeCells(KEYS[1], kept, now, tonumber(ARGV[2]))
end
return { decimal(now), replyOf(removed) }
