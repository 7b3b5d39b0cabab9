//! What a connection begins with, as long as that does not say whose it is.

use alloc::vec;
use alloc::vec::Vec;

use crate::tcp::connection::{Connection, Now};
use crate::tcp::counters::TcpCounters;
use crate::tcp::sequence::SequenceNumber;

/// The first data of a connection, of which no template is known yet.
#[derive(Clone, Debug)]
pub(super) struct FirstData {
    /// The number of the first byte.
    first: SequenceNumber,
    /// As much as is looked at; what has not arrived is zero.
    bytes: Vec<u8>,
    /// When the first of it came.
    pub(super) came_at: Now,
    /// What was counted since then.
    pub(super) counted: TcpCounters,
}

impl FirstData {
    /// Nothing yet of so many bytes from a number on.
    pub(super) fn new(first: SequenceNumber, length: usize, came_at: Now) -> Self {
        Self { first, bytes: vec![0; length], came_at, counted: TcpCounters::default() }
    }

    /// Takes the data of a segment, which may be a part of it, none, or some once more.
    pub(super) fn take(&mut self, sequence: SequenceNumber, data: &[u8]) {
        let place = sequence.distance_from(self.first);
        let before = usize::try_from(place.saturating_neg()).unwrap_or(0);
        let place = usize::try_from(place).unwrap_or(0);
        let room = self.bytes.get_mut(place..).unwrap_or_default();
        let data = data.get(before..).unwrap_or_default();
        room.iter_mut().zip(data).for_each(|(room, byte)| *room = *byte);
    }

    /// What of it has arrived without a hole.
    pub(super) fn known(&self, connection: &Connection) -> &[u8] {
        // The end of the peer's data has a number as well.
        let end = i32::from(connection.is_peer_done());
        let there = connection.expected().distance_from(self.first) - end;
        let there = usize::try_from(there).unwrap_or(0);
        self.bytes.get(..there).unwrap_or(&self.bytes)
    }
}
