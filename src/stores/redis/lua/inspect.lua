-- Tells all cells of some subjects. Writes nothing.
--
-- KEYS[i]   `prefix:{hash}`, see shared/cell.lua
-- ARGV[1]   prescribed time in ms, or 0
--
-- Reply: [time as text (see decide.lua), [cells of KEYS[1]], …]; a cell as in shared/reply.lua.
local prescribed = tonumber(ARGV[1])
--@include shared/clock.lua
--@include shared/reply.lua
local reply = { decimal(now) }
for i, key in ipairs(KEYS) do
  reply[i + 1] = replyOf(readCells(key))
end
return reply
