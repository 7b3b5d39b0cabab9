"""TRex's Python interface, on Wirestorm."""
