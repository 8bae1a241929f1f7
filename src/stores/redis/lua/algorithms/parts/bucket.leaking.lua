-- How long from b on until at most `target` scaled units are left, where more are stored.
over = a - target
rest = math.fmod(over, limit)
leaking = rest == 0 and over / limit or (over - rest) / limit + 1
