//! Ports whose wire is a capture file: one writes it instead of sending, one reads it as if it
//! arrived.

mod receive;
mod transmit;

pub use receive::PcapReceive;
pub use transmit::PcapTransmit;
