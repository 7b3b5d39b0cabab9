//! Base of all Wirestorm crates: time, rates, the port contract, histograms.
//!
//! This crate is pure: it uses no socket, thread, clock or environment. Time comes in as an
//! argument. Frames pass through a [`port::Transmit`] or a [`port::Receive`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bytes;
#[cfg(feature = "contract")]
pub mod contract;
pub mod count;
pub mod departure;
pub mod histogram;
pub mod pace;
pub mod port;
pub mod prefetch;
pub mod random;
pub mod rate;
pub mod resident;
pub mod time;
pub mod timer_wheel;
pub mod wrapper;
