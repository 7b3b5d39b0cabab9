//! What every other crate of Wirestorm agrees on: time, rates, the port contract, histograms.
//!
//! This crate is pure: no socket, thread, clock or environment. Time comes in as an argument,
//! frames go in and out through a [`port::Transmit`] or a [`port::Receive`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "contract")]
pub mod contract;
pub mod count;
pub mod departure;
pub mod histogram;
pub mod pace;
pub mod port;
pub mod prefetch;
pub mod rate;
pub mod time;
pub mod wheel;
pub mod wrapper;
