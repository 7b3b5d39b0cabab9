//! Tests of the test kit with the kernel, tcpdump and tshark.

mod net;
mod sample;
