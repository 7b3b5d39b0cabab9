//! Ports on real interfaces, and what it takes to open them.

pub mod af_packet;
pub mod af_xdp;
pub mod clock;
pub mod fuse;
pub mod link;
pub mod lock;
pub mod mounts;
pub mod namespace;
pub mod pcap;
pub mod privilege;
mod system;
pub mod xdp;
