untl = b > 0 and a + 2 * window or a + window
