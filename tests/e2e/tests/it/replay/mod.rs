//! `wirestorm replay` as its users know it: command line, exit status, JSON result, and what
//! tcpdump and tshark see at the other end.

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
