"""Older location of services. The code is in `trex.services`."""
