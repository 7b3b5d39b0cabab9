//! Ports on real interfaces, and what it takes to open them.

pub mod xdp;
