if used > 0 then
  b = b + units
else
  a, b = epoch and now - math.fmod(now, window) or now, units
end
