"""Console commands: each takes a line of words and prints its result."""
