-- a, b, c as they stand at `now`, and `elapsed`, the time into the current window. No units when both windows are over.
elapsed = now - a
if elapsed < 0 then
  elapsed = 0
elseif elapsed >= 2 * window then
  a, b, c, elapsed = now, 0, 0, 0
elseif elapsed >= window then
  a, b, c, elapsed = a + window, 0, b, elapsed - window
end
