//! TCP: one end of a connection as a value, without input or output (RFC 9293).
//!
//! ```text
//! segment ->  arrival  \              / departure  -> segment
//!                       > Connection <
//! time    ->  timers   /  | | | |    \ what the program is told
//!                         | | | disorder, ranges: what arrived beyond holes, here and there
//!                         | | congestion: how much may be on its way; paced: and how fast, with BBR
//!                         | round_trip: how long to wait for an answer
//!                         recovery, rack: what to send again; undo: windows reduced for nothing
//! ```

pub mod arrival;
pub mod congestion;
pub mod connection;
pub mod counters;
pub(crate) mod departure;
pub mod details;
mod disorder;
mod fast_open;
mod paced;
mod path;
mod rack;
pub mod ranges;
mod recovery;
pub mod round_trip;
pub mod segment;
pub mod sequence;
mod time_wait;
mod timers;
mod undo;
