//! Ports on capture files: one writes frames to a file, one reads them from a file.

mod receive;
mod transmit;

pub use receive::PcapReceive;
pub use transmit::PcapTransmit;
