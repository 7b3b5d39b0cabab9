//! Ports on network interfaces and capture files, and the system calls that they need.

pub mod adjtimex;
pub mod af_packet;
pub mod af_xdp;
pub mod clock;
mod clock_ports;
pub mod fuse;
pub mod link;
pub mod local_datagram;
pub mod lock;
pub mod mounts;
pub mod namespace;
pub mod pcap;
pub mod phc;
pub mod privilege;
mod system;
pub mod tap;
pub mod timestamps;
pub mod udp;
pub mod xdp;
