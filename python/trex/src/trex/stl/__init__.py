"""The stateless mode: streams, packets, field-engine programs and profiles."""
