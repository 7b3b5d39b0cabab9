//! What state machines want to be done.

use crate::exchange::Exchange;
use crate::ptp::address::Destination;
use crate::ptp::slave::Parent;

/// Number of an event message, with which the caller returns the time stamp of its departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StampId(pub u64);

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Receivers.
    pub to: Destination,
    /// The message.
    pub bytes: Vec<u8>,
    /// Set for event messages: pass the time stamp of the departure to `handle_sent`.
    pub stamp: Option<StampId>,
}

/// Something that a state machine wants to be done, or reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message.
    Send(Transmission),
    /// The slave measured the clocks. The near clock is its own; `t1` to `t4` have the corrections
    /// of the messages applied, and the far times are UTC if the master knows the offset.
    Exchange(Exchange),
    /// The slave follows another master, or none.
    Parent(Option<Parent>),
}
