//! The schemas of plans, compared with the readers.

mod change;
mod emulation;
mod examples;
mod traffic;
