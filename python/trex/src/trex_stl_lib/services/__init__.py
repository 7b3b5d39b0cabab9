"""Services, by the older names that scripts import; they live in `trex.services`."""
