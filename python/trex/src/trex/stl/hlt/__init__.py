"""The HLTAPI: streams by named arguments, as chassis of other makers are told them."""
