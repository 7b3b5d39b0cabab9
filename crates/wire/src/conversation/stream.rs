//! Reassembly of the data that one side of a TCP connection sends.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// One direction of a TCP connection. Its bytes are numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Sequence number of the next byte; `None` before the first segment.
    next: Option<u32>,
    /// Initial sequence number, if there is a SYN.
    initial: Option<u32>,
    /// Number of bytes in order so far.
    delivered: u64,
    /// Out-of-order segments, by the offset of their first byte.
    out_of_order: BTreeMap<u64, OutOfOrderSegment>,
    /// Bytes of the out-of-order segments.
    out_of_order_bytes: usize,
    /// End of the stream, if there is a FIN.
    end: Option<u64>,
    /// Offset that the other side has acknowledged, and the packet that did.
    acknowledged: (u64, u64),
}

#[derive(Debug)]
struct OutOfOrderSegment {
    bytes: Vec<u8>,
    packet: u64,
}

/// Data missing in a stream.
pub(super) enum MissingData {
    /// A gap before a packet whose first byte has offset `found`.
    Hole { packet: u64, found: u64 },
    /// Packet `packet` acknowledges data up to `found`.
    Unseen { packet: u64, found: u64 },
}

impl Stream {
    /// Begins the stream with a SYN. Returns `false` if the stream already began with another
    /// sequence number.
    pub(super) fn begin(&mut self, initial: u32) -> bool {
        match (self.initial, self.next) {
            (Some(known), _) => known == initial,
            (None, Some(_)) => false,
            (None, None) => {
                self.initial = Some(initial);
                self.next = Some(initial.wrapping_add(1));
                true
            }
        }
    }

    /// Returns the number of bytes in order so far.
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the number of out-of-order segments.
    pub(super) fn early(&self) -> usize {
        self.out_of_order.len()
    }

    /// Returns the bytes that the stream keeps.
    pub(super) fn memory(&self) -> usize {
        self.delivered as usize
            + self.out_of_order_bytes
            + self.out_of_order.len() * size_of::<(u64, OutOfOrderSegment)>()
    }

    /// Returns whether everything in order is acknowledged.
    pub(super) const fn is_acknowledged(&self) -> bool {
        self.acknowledged.0 >= self.delivered
    }

    /// Returns whether there is a FIN and everything before it has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| end <= self.delivered)
    }

    /// Takes bytes from a sequence number on, and appends the bytes that are now in order to `to`.
    /// Returns whether any of the bytes are new.
    pub(super) fn take(
        &mut self,
        sequence: u32,
        bytes: &[u8],
        packet: u64,
        to: &mut Vec<u8>,
    ) -> bool {
        let place = self.offset_of(sequence);
        // Skip bytes before the first one: a keepalive repeats the number before it.
        let skipped = usize::try_from(-place).unwrap_or(0).min(bytes.len());
        let bytes = bytes.get(skipped..).unwrap_or_default();
        let place = place.max(0).cast_unsigned();
        if bytes.is_empty() || self.is_complete() {
            return false;
        }
        if place > self.delivered {
            let known = self.out_of_order.get(&place).map_or(0, |it| it.bytes.len());
            if known < bytes.len() {
                self.out_of_order_bytes += bytes.len() - known;
                self.out_of_order
                    .insert(place, OutOfOrderSegment { bytes: bytes.to_vec(), packet });
            }
            return known < bytes.len();
        }
        self.append(place, bytes, to);
        while let Some(entry) = self.out_of_order.first_entry()
            && *entry.key() <= self.delivered
        {
            let (place, early) = entry.remove_entry();
            self.out_of_order_bytes -= early.bytes.len();
            self.append(place, &early.bytes, to);
        }
        !to.is_empty()
    }

    /// Appends the new part of bytes that begin at or before the end of the ordered data.
    fn append(&mut self, place: u64, bytes: &[u8], to: &mut Vec<u8>) {
        let known = usize::try_from(self.delivered - place).unwrap_or(usize::MAX);
        let new = bytes.get(known..).unwrap_or_default();
        // Ignore data behind a FIN.
        let room = self.end.map_or(u64::MAX, |end| end.saturating_sub(self.delivered));
        let new = &new[..new.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        to.extend_from_slice(new);
        self.delivered += new.len() as u64;
        if let Some(next) = &mut self.next {
            *next = next.wrapping_add(new.len() as u32);
        }
    }

    /// Ends the stream before this sequence number.
    pub(super) fn finish(&mut self, sequence: u32) {
        let end = self.offset_of(sequence);
        if self.end.is_none() && end >= self.delivered.cast_signed() {
            self.end = Some(end.cast_unsigned());
        }
    }

    /// Takes an acknowledgement of this sequence number. Returns whether it is new.
    pub(super) fn acknowledge(&mut self, sequence: u32, packet: u64) -> bool {
        let place = self.offset_of(sequence);
        let place = u64::try_from(place).ok().filter(|place| *place > self.acknowledged.0);
        if let Some(place) = place {
            self.acknowledged = (place, packet);
        }
        place.is_some()
    }

    /// Returns the missing data, if any.
    pub(super) fn missing_data(&self) -> Option<MissingData> {
        if let Some((&found, early)) = self.out_of_order.first_key_value()
            && !self.is_complete()
        {
            return Some(MissingData::Hole { packet: early.packet, found });
        }
        let (found, packet) = self.acknowledged;
        let with_end = self.delivered + u64::from(self.is_complete());
        (found > with_end).then_some(MissingData::Unseen { packet, found })
    }

    /// Returns the offset of a sequence number; negative before the first byte. Without a SYN, the
    /// first number seen becomes offset 0.
    fn offset_of(&mut self, sequence: u32) -> i64 {
        let next = *self.next.get_or_insert(sequence);
        let ahead = sequence.wrapping_sub(next).cast_signed();
        self.delivered.cast_signed() + i64::from(ahead)
    }
}
