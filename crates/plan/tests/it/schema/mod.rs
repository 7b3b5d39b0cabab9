//! What the schemas of plans say, and what their readers do.

mod change;
mod emulation;
mod examples;
mod traffic;
