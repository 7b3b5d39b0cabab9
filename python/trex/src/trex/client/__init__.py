"""What a client of TRex consists of beside the streams: ports, runs, counters, events."""
