"""Services at the location that scripts import. The code is in `trex.services`."""
