"""Parts of the package nose that TRex's stateful regression tests use."""
