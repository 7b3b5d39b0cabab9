//! The stateless data plane: what is to be sent becomes frames in a port's buffers, each with
//! the time it is due.
//!
//! Pure: time comes in as an argument, captures as chunks of bytes, frames leave through a
//! [`wirestorm_base::port::Transmit`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod edit;
pub mod impairment;
pub mod measure;
pub mod replay;
pub mod sides;
pub mod stream;
pub mod tunnel;
