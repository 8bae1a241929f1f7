-- Brings a cell up to date that has changed: the twin of Slot.cell in core/decide.ts. What is dead is left out, the rule's
-- own counter stands last, and a cell of which nothing is left is taken from those of its subject.
--@include block.lua
local function sweeping()
  local function keep(cells, cell)
    local i = 1
    while cells[i] and cells[i].scope ~= cell.scope do
      i = i + 1
    end
    if cell.block or cell[1] then
      cells[i] = cell
    elseif cells[i] then
      table.remove(cells, i)
    end
  end

  return function(cells, cell, own, used, now)
    local n, last = 0, #cell
    for i = 1, last do
      local counter = cell[i]
      if counter ~= own and counter.untl > now then
        n = n + 1
        cell[n] = counter
      end
    end
    if own and own.untl > now then
      if used == 0 then
        own.a, own.b, own.c = false, false, false
      end
      n = n + 1
      cell[n] = own
    end
    for i = last, n + 1, -1 do
      cell[i] = nil
    end
    local forgettable = cell.block and blockForgettableAt(cell.block)
    if forgettable and forgettable <= now then
      cell.block = false
    end
    keep(cells, cell)
  end
end
