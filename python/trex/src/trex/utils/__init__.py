"""Modules that scripts import helpers from by their older place."""
