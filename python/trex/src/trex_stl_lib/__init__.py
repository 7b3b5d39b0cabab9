"""The older name of `trex.stl`, which many profiles import."""
