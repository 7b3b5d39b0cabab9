//! Views of packets.

pub mod ethertype;
pub mod protocol;
