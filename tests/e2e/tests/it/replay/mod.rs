//! Tests of `wirestorm replay`: command line, exit status, JSON result, and frames as seen by
//! tcpdump and tshark.

mod bad_input;
mod counts;
mod edits;
mod frames;
mod inputs;
mod interface_faults;
mod pacing;
mod receiving;
mod signals;
mod two_interfaces;
