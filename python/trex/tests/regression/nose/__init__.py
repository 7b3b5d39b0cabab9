"""Of the package that TRex's stateful regression tests are written with what they use."""
