//! TCP (RFC 9293): what its connections are made of.

pub mod congestion;
pub mod round_trip;
pub mod sequence;
