//! Importer of the conversations in a capture.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wirestorm_base::time::Instant;

use super::Conversation;
use super::error::{ConversationError, LimitError};
use super::flow::{Flow, PacketRelation};
use super::gaps::{Clock, Gaps};
use super::packet::{self, Damage, Packet, ParsedFrame};
use crate::capture::{LinkType, RecordHeader};
use crate::flow::FlowKey;
use crate::fragment::{self, DroppedPacket, Reassembler};

/// Limits of the memory for a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportLimits {
    /// Number of flows.
    pub flows: usize,
    /// Bytes of all flows.
    pub bytes: usize,
    /// Out-of-order segments of one flow.
    pub segments: usize,
}

impl Default for ImportLimits {
    /// 4,096 flows, 256 MiB and 65,536 out-of-order segments.
    fn default() -> Self {
        Self { flows: 4_096, bytes: 256 << 20, segments: 65_536 }
    }
}

/// Imports the packets of a capture, in order.
#[derive(Debug)]
pub struct Importer {
    bounds: ImportLimits,
    clock: Clock,
    flows: Vec<Flow>,
    /// Newest flow between two ends, as an index of `flows`.
    newest: BTreeMap<FlowKey, usize>,
    fragments: Reassembler,
    /// Bytes kept by all flows.
    bytes: usize,
    packets: u64,
    other_packets: u64,
}

/// Result of the import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Flows in the order of their first packets, each with its conversation or an error.
    pub flows: Vec<Result<Conversation, ConversationError>>,
    /// Packets other than TCP and UDP over IP, and incomplete packets whose fragment with the ports
    /// is missing.
    pub others: u64,
}

impl Importer {
    /// Creates an importer with these limits and the capture's own timing.
    pub const fn new(bounds: ImportLimits) -> Self {
        Self::with_gaps(bounds, Gaps::AsCaptured)
    }

    /// Creates an importer with these limits and other gaps between packets. Packets of other
    /// protocols than TCP and UDP take no time then.
    pub const fn with_gaps(bounds: ImportLimits, gaps: Gaps) -> Self {
        Self {
            bounds,
            clock: Clock::new(gaps),
            flows: Vec::new(),
            newest: BTreeMap::new(),
            fragments: Reassembler::new(fragment::ReassemblyLimits::DEFAULT),
            bytes: 0,
            packets: 0,
            other_packets: 0,
        }
    }

    /// Imports the next packet.
    ///
    /// # Errors
    /// If the capture exceeds a limit.
    pub fn take(&mut self, record: &RecordHeader, data: &[u8]) -> Result<(), LimitError> {
        self.packets += 1;
        let number = self.packets;
        match packet::read(record.link_type, data) {
            Some(ParsedFrame::Packet(packet)) => {
                let now = self.clock.next(record.timestamp, Some(packet.key.source()));
                self.add(&packet, number, now, data.len())
            }
            Some(ParsedFrame::Fragment { bytes, key }) => {
                let source = key.map(|it| it.source());
                let now = self.clock.next(record.timestamp, source);
                self.take_fragment(bytes, key, number, now)
            }
            None => {
                self.other_packets += 1;
                Ok(())
            }
        }
    }

    /// Imports a fragment; `key` is known for the fragment that has the ports.
    fn take_fragment(
        &mut self,
        fragment: &[u8],
        key: Option<FlowKey>,
        number: u64,
        now: Instant,
    ) -> Result<(), LimitError> {
        let mut lost = Vec::new();
        let taken = self.fragments.take(fragment, number, now, |it| lost.push(it));
        lost.into_iter().try_for_each(|it| self.drop_incomplete(&it, now))?;
        match taken {
            fragment::Taken::Incomplete => return Ok(()),
            fragment::Taken::Complete(reassembled) => {
                if let Some(ParsedFrame::Packet(packet)) = packet::read(LinkType::RAW, &reassembled)
                {
                    return self.add(&packet, number, now, reassembled.len());
                }
            }
            fragment::Taken::Invalid => {
                if let Some(key) = key {
                    let packet = Packet { key, body: Err(Damage::Fragment) };
                    return self.add(&packet, number, now, fragment.len());
                }
            }
        }
        self.other_packets += 1;
        Ok(())
    }

    /// Handles an IP packet whose fragments are incomplete.
    fn drop_incomplete(&mut self, lost: &DroppedPacket, now: Instant) -> Result<(), LimitError> {
        let beginning = lost.contiguous.as_deref().unwrap_or_default();
        let Some(ParsedFrame::Packet(packet)) = packet::read(LinkType::RAW, beginning) else {
            self.other_packets += 1;
            return Ok(());
        };
        let packet = Packet { body: Err(Damage::Fragment), ..packet };
        self.add(&packet, lost.tag, now, beginning.len())
    }

    /// Imports a packet of `length` bytes in the capture.
    fn add(
        &mut self,
        packet: &Packet<'_>,
        number: u64,
        now: Instant,
        length: usize,
    ) -> Result<(), LimitError> {
        if length > self.bounds.bytes.saturating_sub(self.bytes) {
            return Err(LimitError::Bytes { packet: number, most: self.bounds.bytes });
        }
        let conversation = packet.key.conversation();
        let newest = self.newest.get(&conversation).and_then(|&index| self.flows.get_mut(index));
        if let Some(flow) = newest {
            let before = flow.memory();
            if flow.take(packet, number, now) == PacketRelation::SameFlow {
                self.bytes = self.bytes + flow.memory() - before;
                let most = self.bounds.segments;
                return match flow.early() {
                    waiting if waiting > most => Err(LimitError::Segments { packet: number, most }),
                    _ => Ok(()),
                };
            }
        }
        if self.flows.len() == self.bounds.flows {
            return Err(LimitError::Flows { packet: number, limit: self.bounds.flows });
        }
        let mut flow = Flow::new(packet.key, number);
        flow.take(packet, number, now);
        self.bytes += flow.memory();
        self.newest.insert(conversation, self.flows.len());
        self.flows.push(flow);
        Ok(())
    }

    /// Returns the conversations of all packets.
    pub fn finish(mut self) -> Imported {
        let mut lost = Vec::new();
        core::mem::take(&mut self.fragments).finish(|it| lost.push(it));
        for it in lost {
            // A packet beyond the limits belongs to no flow that is kept.
            if self.drop_incomplete(&it, Instant::ZERO).is_err() {
                self.other_packets += 1;
            }
        }
        let flows = self.flows.into_iter().map(Flow::finish).collect();
        Imported { flows, others: self.other_packets }
    }
}
