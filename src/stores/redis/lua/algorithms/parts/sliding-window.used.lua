used = c * (window - elapsed) + b * window
