//! First data of a connection whose template is unknown.

use alloc::vec;
use alloc::vec::Vec;

use crate::tcp::connection::Connection;
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;
use crate::tcp::sequence::SequenceNumber;

/// First data of a connection whose template is unknown.
#[derive(Clone, Debug)]
pub(super) struct FirstData {
    /// Sequence number of the first byte.
    first: SequenceNumber,
    /// The bytes that servers examine; 0 if not received.
    bytes: Vec<u8>,
    /// Arrival time of the first data.
    pub(super) arrived_at: Now,
    /// TCP counters since then.
    pub(super) counted: TcpCounters,
}

impl FirstData {
    /// Creates the buffer for `length` bytes from a sequence number on.
    pub(super) fn new(first: SequenceNumber, length: usize, came_at: Now) -> Self {
        Self { first, bytes: vec![0; length], arrived_at: came_at, counted: TcpCounters::default() }
    }

    /// Takes the data of a segment, of which any part may be old or beyond the buffer.
    pub(super) fn take(&mut self, sequence: SequenceNumber, data: &[u8]) {
        let place = sequence.distance_from(self.first);
        let before = usize::try_from(place.saturating_neg()).unwrap_or(0);
        let place = usize::try_from(place).unwrap_or(0);
        let room = self.bytes.get_mut(place..).unwrap_or_default();
        let data = data.get(before..).unwrap_or_default();
        room.iter_mut().zip(data).for_each(|(room, byte)| *room = *byte);
    }

    /// Returns the bytes that have arrived in sequence.
    pub(super) fn known(&self, connection: &Connection) -> &[u8] {
        // FIN occupies a sequence number as well.
        let end = i32::from(connection.has_received_fin());
        let there = connection.expected().distance_from(self.first) - end;
        let there = usize::try_from(there).unwrap_or(0);
        self.bytes.get(..there).unwrap_or(&self.bytes)
    }
}
