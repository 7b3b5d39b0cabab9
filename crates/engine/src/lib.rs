//! Stateless data plane: turns captures and streams into frames in a port's buffers, each with its
//! due time.
//!
//! The crate performs no I/O: the caller passes the time as an argument and captures as chunks of
//! bytes. Frames leave through a [`wirestorm_base::port::Transmit`].
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
