//! TCP: one end of a connection as a value that does no I/O (RFC 9293).
//!
//! ```text
//! segment ->  arrival  \              / departure  -> segment
//!                       > Connection <
//! time    ->  timers   /  | | | |    \ events for the program
//!                         | | | disorder, ranges: out-of-order data, SACK scoreboard
//!                         | | congestion: congestion window; paced: pacing rate with BBR
//!                         | round_trip: RTT estimate and retransmission timeout
//!                         recovery, rack: retransmissions; undo: spurious window reductions
//! ```

pub mod congestion;
pub mod connection;
pub mod counters;
pub mod details;
mod fast_open;
pub mod now;
mod paced;
mod path;
pub mod ranges;
pub mod receive;
mod recovery;
pub mod round_trip;
pub mod segment;
pub mod sequence;
mod time_wait;
mod timers;
pub(crate) mod transmit;
