"""Older name of `trex.astf`."""
