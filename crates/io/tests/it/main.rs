//! Tests of the ports on real interfaces. They need root and kernel support.

mod af_packet;
mod af_xdp;
mod link;
mod mounts;
mod offload;
mod pcap;
mod support;
mod timestamps;
mod xdp;
