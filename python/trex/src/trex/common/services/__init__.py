"""Services, by the names that scripts import them from; they live in `trex.services`."""
