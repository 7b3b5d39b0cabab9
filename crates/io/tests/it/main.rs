//! The ports on real interfaces, and what they need of the kernel.

mod af_packet;
mod af_xdp;
mod link;
mod mounts;
mod offload;
mod pcap;
mod support;
mod xdp;
