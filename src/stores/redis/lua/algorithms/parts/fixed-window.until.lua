untl = a + window
