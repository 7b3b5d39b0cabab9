//! Ports that a backend opened.

use super::{Descriptor, TransmitPort};
use crate::port::ReceivePort;

/// The backend of an interface, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The backend.
    pub(crate) backend: &'static Descriptor,
    /// Reason for the choice.
    pub(crate) why: String,
}

/// Both halves of a port, and its backend.
pub(crate) struct DuplexPort {
    pub(crate) transmit: TransmitPort,
    pub(crate) receive: ReceivePort,
    pub(crate) choice: Choice,
}
