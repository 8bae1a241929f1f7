if b > 0 or c > 0 then
  b = b + units
else
  a, b, c = now, units, 0
end
