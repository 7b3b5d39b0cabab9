"""Parts of a TRex client other than streams: ports, runs, counters and events."""
