//! Sent buffers, for retransmission.

use alloc::vec::Vec;

use wirestorm_wire::checksum;

use super::{Run, Wait};
use crate::program::{BufferId, Buffers};
use crate::tcp::connection::Connection;
use crate::tcp::sequence::SequenceNumber;

/// Buffer in flight, and the sequence number of its first byte.
pub(super) type Sending = (BufferId, SequenceNumber);

impl Run {
    /// Copies sent bytes from a sequence number on, and returns their one's complement sum.
    #[inline]
    pub(crate) fn copy(&self, number: SequenceNumber, to: &mut [u8], buffers: &Buffers) -> u16 {
        let (buffer, start) = self.sending;
        if number.is_before(start) {
            return self.copy_across(number, to, buffers);
        }
        buffers.get(buffer).copy(number.0.wrapping_sub(start.0), to)
    }

    #[cold]
    fn copy_across(&self, number: SequenceNumber, to: &mut [u8], buffers: &Buffers) -> u16 {
        if let Some(exchange) = self.exchange() {
            return exchange.copy(number, to);
        }
        let all = || self.extra.iter().flat_map(|it| &it.before).chain([&self.sending]);
        let ends = all().skip(1).map(|(_, start)| Some(*start)).chain([None]);
        for (&(buffer, start), end) in all().zip(ends) {
            let from = number.0.wrapping_sub(start.0);
            let bytes = end.map_or(u32::MAX, |end| end.0.wrapping_sub(start.0));
            if number.is_before(start) || from >= bytes {
                continue;
            }
            let length = to.len().min((bytes - from) as usize);
            let (mine, others) = to.split_at_mut(length);
            buffers.get(buffer).copy(from, mine);
            if !others.is_empty() {
                self.copy(number + length as u32, others, buffers);
            }
            break;
        }
        checksum::sum(to)
    }

    /// Records that a buffer is sent at the next sequence number.
    pub(super) fn send(&mut self, buffer: BufferId, connection: &Connection, buffers: &Buffers) {
        // The backlog may be the SYN alone, before any data.
        let is_first = self.sending.0 == buffers.nothing();
        if connection.backlog() > 0 && !is_first {
            let before = &mut self.extra.get_or_insert_default().before;
            let unacknowledged = connection.unacknowledged();
            // Of two consecutive buffers, the first is needed for the bytes before the second.
            before.push(self.sending);
            let needed = before.iter().rposition(|(_, start)| !unacknowledged.is_before(*start));
            before.drain(..needed.unwrap_or(0));
        } else if let Some(extra) = &mut self.extra {
            extra.before.clear();
        }
        self.sending = (buffer, connection.queued());
    }

    /// Frees the list of earlier buffers once all is acknowledged, to keep idle flows small.
    #[cold]
    pub(super) fn free_acknowledged(&mut self, connection: &Connection) {
        let Some(extra) = &mut self.extra else { return };
        if extra.before.capacity() == 0 || connection.backlog() > 0 {
            return;
        }
        extra.before = Vec::new();
        if extra.is_unused() {
            self.extra = None;
        }
    }

    pub(super) const fn wait_after_send(&self) -> Wait {
        if self.waits_for_acknowledgements { Wait::Acknowledgement } else { Wait::Departure }
    }

    /// Like [`Self::wait_after_send`], with an exchange.
    pub(super) const fn wait_after_exchange_send(&self) -> Wait {
        if self.waits_for_acknowledgements {
            Wait::ExchangeAcknowledgement
        } else {
            Wait::Departure
        }
    }
}
