"""Older location of helper modules."""
