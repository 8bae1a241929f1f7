-- How these scripts are written: a script is run from its first line at every call, and no table or function outlives the
-- call. Every function that is defined costs time at every call, and so does every local that it captures; every table that
-- is made costs time for each decision. Hence what few calls need stands inside a function that makes it when it is needed
-- first, and what each decision needs is made once and used again.
local made = {}

local function need(make)
  local parts = made[make]
  if not parts then
    parts = make()
    made[make] = parts
  end
  return parts
end
