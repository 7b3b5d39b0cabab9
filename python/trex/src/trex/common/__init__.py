"""Older location of names that scripts import."""
