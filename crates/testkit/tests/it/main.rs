//! The test kit against the kernel, tcpdump and tshark.

mod net;
mod sample;
