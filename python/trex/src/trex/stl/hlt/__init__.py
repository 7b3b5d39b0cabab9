"""The HLTAPI: streams with named arguments, as for the traffic generators of other vendors."""
