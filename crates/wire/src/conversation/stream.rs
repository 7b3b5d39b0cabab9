//! What one side of a connection says, put in order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// One direction of a connection of TCP. Its bytes count from 0.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The sequence number of the next byte; `None` until something tells it.
    next: Option<u32>,
    /// The initial sequence number, where there is a SYN.
    initial: Option<u32>,
    /// Bytes in order so far.
    delivered: u64,
    /// What waits for what is before it, by the place of its first byte.
    early: BTreeMap<u64, Early>,
    /// Bytes of those.
    early_bytes: usize,
    /// Where it ends, where there is a FIN.
    end: Option<u64>,
    /// How much the other side has acknowledged, and the packet that did.
    acknowledged: (u64, u64),
}

#[derive(Debug)]
struct Early {
    bytes: Vec<u8>,
    packet: u64,
}

/// What a stream lacks.
pub(super) enum Lack {
    /// A hole before a packet's bytes, the first of which has this place.
    Hole { packet: u64, found: u64 },
    /// What a packet acknowledges.
    Unseen { packet: u64, found: u64 },
}

impl Stream {
    /// Its first byte follows a SYN of this number. Returns whether the stream can begin so: it
    /// has not begun, or did with the same number.
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

    /// Bytes in order so far.
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Segments that wait.
    pub(super) fn early(&self) -> usize {
        self.early.len()
    }

    /// Bytes that are kept of it, in order or not.
    pub(super) fn kept(&self) -> usize {
        self.delivered as usize + self.early_bytes + self.early.len() * size_of::<(u64, Early)>()
    }

    /// Whether everything in order was acknowledged.
    pub(super) const fn is_acknowledged(&self) -> bool {
        self.acknowledged.0 >= self.delivered
    }

    /// Whether a FIN was sent, and everything before it is there.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| end <= self.delivered)
    }

    /// Takes bytes from a sequence number on, and appends those that are now in order to `to`.
    /// Returns whether there is anything among them that was not there before.
    pub(super) fn take(
        &mut self,
        sequence: u32,
        bytes: &[u8],
        packet: u64,
        to: &mut Vec<u8>,
    ) -> bool {
        let place = self.place(sequence);
        // Before the first byte there is nothing: a keepalive has the number before it.
        let skipped = usize::try_from(-place).unwrap_or(0).min(bytes.len());
        let bytes = bytes.get(skipped..).unwrap_or_default();
        let place = place.max(0).cast_unsigned();
        if bytes.is_empty() || self.is_over() {
            return false;
        }
        if place > self.delivered {
            let known = self.early.get(&place).map_or(0, |it| it.bytes.len());
            if known < bytes.len() {
                self.early_bytes += bytes.len() - known;
                self.early.insert(place, Early { bytes: bytes.to_vec(), packet });
            }
            return known < bytes.len();
        }
        self.append(place, bytes, to);
        while let Some(entry) = self.early.first_entry()
            && *entry.key() <= self.delivered
        {
            let (place, early) = entry.remove_entry();
            self.early_bytes -= early.bytes.len();
            self.append(place, &early.bytes, to);
        }
        !to.is_empty()
    }

    /// Appends what is new of bytes that begin where there are others already, or behind them.
    fn append(&mut self, place: u64, bytes: &[u8], to: &mut Vec<u8>) {
        let known = usize::try_from(self.delivered - place).unwrap_or(usize::MAX);
        let new = bytes.get(known..).unwrap_or_default();
        // Nothing is behind a FIN.
        let room = self.end.map_or(u64::MAX, |end| end.saturating_sub(self.delivered));
        let new = &new[..new.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        to.extend_from_slice(new);
        self.delivered += new.len() as u64;
        if let Some(next) = &mut self.next {
            *next = next.wrapping_add(new.len() as u32);
        }
    }

    /// It ends before this sequence number.
    pub(super) fn finish(&mut self, sequence: u32) {
        let end = self.place(sequence);
        if self.end.is_none() && end >= self.delivered.cast_signed() {
            self.end = Some(end.cast_unsigned());
        }
    }

    /// The other side waits for this sequence number. Returns whether that is new.
    pub(super) fn acknowledge(&mut self, sequence: u32, packet: u64) -> bool {
        let place = self.place(sequence);
        let place = u64::try_from(place).ok().filter(|place| *place > self.acknowledged.0);
        if let Some(place) = place {
            self.acknowledged = (place, packet);
        }
        place.is_some()
    }

    /// What is missing, where something is.
    pub(super) fn lack(&self) -> Option<Lack> {
        if let Some((&found, early)) = self.early.first_key_value()
            && !self.is_over()
        {
            return Some(Lack::Hole { packet: early.packet, found });
        }
        let (found, packet) = self.acknowledged;
        let with_end = self.delivered + u64::from(self.is_over());
        (found > with_end).then_some(Lack::Unseen { packet, found })
    }

    /// The place of a byte; negative before the first one. The first number that is heard of is
    /// that of the first byte.
    fn place(&mut self, sequence: u32) -> i64 {
        let next = *self.next.get_or_insert(sequence);
        let ahead = sequence.wrapping_sub(next).cast_signed();
        self.delivered.cast_signed() + i64::from(ahead)
    }
}
