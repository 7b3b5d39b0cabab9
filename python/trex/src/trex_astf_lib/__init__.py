"""The older name of `trex.astf`."""
