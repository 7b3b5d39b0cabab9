//! `wirestorm replay` as its users know it: command line, exit status, JSON result, and what
//! tcpdump and tshark see at the other end.

mod frames;
