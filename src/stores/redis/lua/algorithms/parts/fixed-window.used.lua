used = now < a + window and b * window or 0
