a, b = used + units * window, now > b and now or b
