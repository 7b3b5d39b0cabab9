"""Clients of a server, over TRex's protocol: JSON-RPC over ZeroMQ."""
