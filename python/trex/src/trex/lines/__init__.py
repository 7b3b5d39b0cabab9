"""Commands of a console: a line of words each, and what comes of them as text."""
