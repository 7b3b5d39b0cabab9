"""Older name of `trex.stl`, which many profiles import."""
