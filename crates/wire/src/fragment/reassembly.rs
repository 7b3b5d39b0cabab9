//! Reassembly of fragments.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use wirestorm_base::time::{Duration, Instant};

use super::{ECN_CE, Fragment, Key};
use crate::packet::{ipv4, ipv6, protocol};

/// Limits of the memory and time for incomplete packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Packets. Above this, the oldest one is dropped.
    pub packets: usize,
    /// Bytes of data, holes included. Above this, the oldest packet is dropped.
    pub bytes: usize,
    /// Time from the first received fragment until the packet is dropped.
    pub time: Duration,
}

impl ReassemblyLimits {
    /// 4,096 packets, 4 MiB and 60 s. RFC 8200 section 4.5: "within 60 seconds of the reception of
    /// the first-arriving fragment"; RFC 1122 section 3.3.2: "between 60 seconds and 120 seconds".
    pub const DEFAULT: Self =
        Self { packets: 4_096, bytes: 4 << 20, time: Duration::from_secs(60) };
}

impl Default for ReassemblyLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Result of [`Reassembler::take`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The packet is incomplete, or was already dropped.
    Incomplete,
    /// The fragment completed its packet: the whole packet, from its IP header on.
    Complete(Vec<u8>),
    /// Not a fragment, or one that cannot be part of a packet.
    Invalid,
}

/// Reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The reassembly time was exceeded.
    Timeout,
    /// The limits on packets or bytes were exceeded.
    Limit,
    /// Fragments overlap with different bytes, or disagree about the end of the packet (RFC 5722).
    Overlap,
}

/// An incomplete packet that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedPacket<T = u64> {
    /// Reason for the drop.
    pub cause: DropReason,
    /// Tag of the fragment that arrived first.
    pub tag: T,
    /// Packet from its IP header up to the first missing byte; `None` if the first fragment is
    /// missing.
    pub contiguous: Option<Vec<u8>>,
    identification: u32,
    fragment_header: FragmentHeader,
}

/// Offsets in the first IPv6 fragment: of the fragment header, and of the field that names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FragmentHeader {
    named_at: usize,
    at: usize,
}

impl<T> DroppedPacket<T> {
    /// Returns the received data as one first fragment, for an ICMP error to the sender. `None` if
    /// the first fragment is missing or the result would be too long.
    pub fn first_fragment(&self) -> Option<Vec<u8>> {
        let mut packet = self.contiguous.clone()?;
        if packet.first()? >> 4 == 4 {
            let mut view = ipv4::Packet::new(packet.as_mut_slice()).ok()?;
            view.set_fragment(MORE_FRAGMENTS);
            view.fill_checksum();
            return Some(packet);
        }
        let FragmentHeader { named_at, at } = self.fragment_header;
        let next_header = core::mem::replace(packet.get_mut(named_at)?, protocol::FRAGMENT);
        let [a, b, c, d] = self.identification.to_be_bytes();
        let place = packet.get(at..)?.len();
        packet.extend([next_header, 0, 0, 1, a, b, c, d]);
        packet[at..].rotate_left(place);
        let length = u16::try_from(packet.len().checked_sub(ipv6::HEADER_LENGTH)?).ok()?;
        ipv6::Packet::new(packet.as_mut_slice()).ok()?.set_payload_length(length);
        Some(packet)
    }
}

/// RFC 791 section 3.1: more fragments follow.
const MORE_FRAGMENTS: u16 = 1 << 13;

/// Reassembles fragments into packets.
///
/// It uses no heap memory until a fragment arrives. If fragments of a packet overlap, it drops the
/// packet and all later fragments of it (RFC 5722 section 4), except for exact duplicates. `T` is a
/// tag: that of the first fragment is returned if the packet is dropped.
#[derive(Clone, Debug)]
pub struct Reassembler<T = u64> {
    bounds: ReassemblyLimits,
    /// Packets by age: numbers increase.
    packets: BTreeMap<u64, Partial<T>>,
    numbers: BTreeMap<Key, u64>,
    next: u64,
    /// Bytes that all packets keep.
    bytes: usize,
}

impl<T: Copy> Default for Reassembler<T> {
    fn default() -> Self {
        Self::new(ReassemblyLimits::default())
    }
}

impl<T: Copy> Reassembler<T> {
    /// Creates a reassembler with these limits.
    pub const fn new(bounds: ReassemblyLimits) -> Self {
        Self { bounds, packets: BTreeMap::new(), numbers: BTreeMap::new(), next: 0, bytes: 0 }
    }

    /// Returns whether it keeps no packets.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the number of incomplete packets, without dropped ones.
    pub fn incomplete_packets(&self) -> usize {
        self.packets.values().filter(|it| !it.is_dropped).count()
    }

    /// Returns the number of bytes that it keeps.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a fragment, from its IP header on. `tag` goes with the packet if this is its first
    /// fragment. Calls `dropped` for each packet that it drops.
    pub fn take(
        &mut self,
        packet: &[u8],
        tag: T,
        now: Instant,
        mut dropped: impl FnMut(DroppedPacket<T>),
    ) -> Taken {
        self.expire(now, &mut dropped);
        let Some(fragment) = Fragment::read(packet).filter(Fragment::is_possible) else {
            return Taken::Invalid;
        };
        let number = *self.numbers.entry(fragment.key).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        let new = || Partial::new(fragment.key, tag, now);
        let partial = self.packets.entry(number).or_insert_with(new);
        let before = partial.memory();
        let agrees = partial.take(&fragment);
        if !agrees {
            dropped(partial.drop_packet(DropReason::Overlap));
        }
        self.bytes = self.bytes + partial.memory() - before;
        if let Some(complete) = partial.complete() {
            self.remove(number);
            return Taken::Complete(complete);
        }
        while self.packets.len() > self.bounds.packets || self.bytes > self.bounds.bytes {
            self.drop_oldest(DropReason::Limit, &mut dropped);
        }
        Taken::Incomplete
    }

    /// Returns when to call [`Self::expire`]; `None` if it keeps no packets.
    pub fn next(&self) -> Option<Instant> {
        self.packets.first_key_value().map(|(_, oldest)| oldest.since + self.bounds.time)
    }

    /// Drops the packets whose time is over.
    pub fn expire(&mut self, now: Instant, mut dropped: impl FnMut(DroppedPacket<T>)) {
        let time = self.bounds.time;
        let is_over = |it: &Partial<T>| now.saturating_since(it.since) >= time;
        while self.packets.first_key_value().is_some_and(|(_, oldest)| is_over(oldest)) {
            self.drop_oldest(DropReason::Timeout, &mut dropped);
        }
    }

    /// Drops all packets.
    pub fn finish(mut self, mut dropped: impl FnMut(DroppedPacket<T>)) {
        while !self.is_empty() {
            self.drop_oldest(DropReason::Timeout, &mut dropped);
        }
    }

    fn drop_oldest(&mut self, cause: DropReason, dropped: &mut impl FnMut(DroppedPacket<T>)) {
        let Some((&number, _)) = self.packets.first_key_value() else { return };
        // A packet that was dropped for an overlap is already reported.
        if let Some(mut partial) = self.remove(number)
            && !partial.is_dropped
        {
            dropped(partial.drop_packet(cause));
        }
    }

    fn remove(&mut self, number: u64) -> Option<Partial<T>> {
        let partial = self.packets.remove(&number)?;
        self.numbers.remove(&partial.key);
        self.bytes -= partial.memory();
        Some(partial)
    }
}

/// An incomplete packet.
#[derive(Clone, Debug)]
struct Partial<T> {
    key: Key,
    tag: T,
    /// Arrival of its first fragment.
    since: Instant,
    /// Header of the first fragment, as in the whole packet except for its length. Empty until that
    /// fragment arrives.
    header: Vec<u8>,
    fragment_header: FragmentHeader,
    /// Data up to the last received byte; holes contain zeros.
    data: Vec<u8>,
    /// Received ranges of the data, in order and not adjacent.
    arrived: Vec<Range<usize>>,
    /// Length of the data, known once the last fragment has arrived.
    length: Option<usize>,
    met_congestion: bool,
    /// Whether the packet is dropped; its later fragments are ignored.
    is_dropped: bool,
}

impl<T: Copy> Partial<T> {
    const fn new(key: Key, tag: T, since: Instant) -> Self {
        Self {
            key,
            tag,
            since,
            header: Vec::new(),
            fragment_header: FragmentHeader { named_at: 0, at: 0 },
            data: Vec::new(),
            arrived: Vec::new(),
            length: None,
            met_congestion: false,
            is_dropped: false,
        }
    }

    /// Returns the bytes that it keeps.
    fn memory(&self) -> usize {
        self.header.len() + self.data.len() + self.arrived.len() * size_of::<Range<usize>>()
    }

    /// Takes a fragment. Returns whether it is consistent with the earlier ones.
    fn take(&mut self, fragment: &Fragment<'_>) -> bool {
        if self.is_dropped {
            return true;
        }
        let (start, end) = (fragment.start, fragment.end());
        let agrees_on_end = match self.length {
            Some(length) if fragment.has_more => end <= length,
            Some(length) => end == length,
            None => fragment.has_more || self.data.len() <= end,
        };
        let place = self.arrived.partition_point(|it| it.end <= start);
        let overlapped = self.arrived.get(place).filter(|it| it.start < end);
        if let Some(known) = overlapped {
            // RFC 8200 section 4.5 allows to ignore exact duplicates, which a network may create.
            let is_repeated = known.start <= start && end <= known.end;
            return agrees_on_end && is_repeated && self.data[start..end] == *fragment.data;
        }
        if !agrees_on_end {
            return false;
        }
        if !fragment.has_more {
            self.length = Some(end);
        }
        if start == 0 {
            fragment.clone_header_into(&mut self.header);
            let (named_at, at) = (fragment.next_header.0, fragment.header.len());
            self.fragment_header = FragmentHeader { named_at, at };
        }
        self.met_congestion |= fragment.is_ce_marked;
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        self.data[start..end].copy_from_slice(fragment.data);
        let closes_before = place > 0 && self.arrived[place - 1].end == start;
        let closes_behind = self.arrived.get(place).is_some_and(|it| it.start == end);
        match (closes_before, closes_behind) {
            (true, true) => {
                self.arrived[place - 1].end = self.arrived[place].end;
                self.arrived.remove(place);
            }
            (true, false) => self.arrived[place - 1].end = end,
            (false, true) => self.arrived[place].start = start,
            (false, false) => self.arrived.insert(place, start..end),
        }
        true
    }

    /// Returns the whole packet if no fragment is missing.
    fn complete(&self) -> Option<Vec<u8>> {
        let is_whole = self.length.is_some() && self.contiguous_length() == self.length;
        is_whole.then(|| self.assemble()).flatten()
    }

    fn drop_packet(&mut self, cause: DropReason) -> DroppedPacket<T> {
        let beginning = self.assemble();
        self.is_dropped = true;
        (self.header, self.data, self.arrived) = Default::default();
        let (tag, identification) = (self.tag, self.key.identification);
        let fragment_header = self.fragment_header;
        DroppedPacket { cause, tag, contiguous: beginning, identification, fragment_header }
    }

    /// Returns the length of the data from its start to the first hole.
    fn contiguous_length(&self) -> Option<usize> {
        self.arrived.first().filter(|it| it.start == 0).map(|it| it.end)
    }

    /// Assembles the packet up to the first hole. `None` if the first fragment is missing, or if
    /// its header has more options than those of the others and makes the packet too long.
    fn assemble(&self) -> Option<Vec<u8>> {
        let length = self.contiguous_length()?;
        let mut packet = self.header.clone();
        packet.extend_from_slice(self.data.get(..length)?);
        // RFC 8200 section 4.5 and RFC 3168 section 5.3: one fragment with CE marks the packet.
        if self.key.source.is_ipv4() {
            let length = u16::try_from(packet.len()).ok()?;
            let mut view = ipv4::Packet::new(packet.as_mut_slice()).ok()?;
            view.set_total_length(length);
            view.set_fragment(0);
            if self.met_congestion {
                view.set_type_of_service(view.type_of_service() | ECN_CE);
            }
            view.fill_checksum();
        } else {
            let length = packet.len().checked_sub(ipv6::HEADER_LENGTH)?;
            let length = u16::try_from(length).ok()?;
            let mut view = ipv6::Packet::new(packet.as_mut_slice()).ok()?;
            view.set_payload_length(length);
            if self.met_congestion {
                view.set_traffic_class(view.traffic_class() | ECN_CE);
            }
        }
        Some(packet)
    }
}

impl Fragment<'_> {
    /// Copies the header of the whole packet, except for its length.
    fn clone_header_into(&self, header: &mut Vec<u8>) {
        header.clear();
        header.extend_from_slice(self.header);
        let (at, kind) = self.next_header;
        if let Some(named) = header.get_mut(at) {
            *named = kind;
        }
    }
}
