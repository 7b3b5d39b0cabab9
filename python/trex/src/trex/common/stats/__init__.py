"""Modules that scripts import names from by their older place."""
