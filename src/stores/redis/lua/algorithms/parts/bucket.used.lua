used = a
if now > b then
  used = used - (now - b) * limit
end
if used < 0 then
  used = 0
end
