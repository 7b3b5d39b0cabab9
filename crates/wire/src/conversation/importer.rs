//! The conversations of a capture, packet by packet.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::error::{BoundError, ConversationError};
use super::flow::{Flow, Taken};
use super::{Conversation, packet};
use crate::capture::RecordHeader;
use crate::flow::FlowKey;

/// How much is kept of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Flows.
    pub flows: usize,
    /// Bytes, of all flows.
    pub bytes: usize,
    /// Segments of one flow that wait for one before them.
    pub segments: usize,
}

impl Default for Bounds {
    /// 4,096 flows with 256 MiB, 65,536 segments that wait.
    fn default() -> Self {
        Self { flows: 4_096, bytes: 256 << 20, segments: 65_536 }
    }
}

/// Takes the packets of a capture, in their order.
#[derive(Debug)]
pub struct Importer {
    bounds: Bounds,
    flows: Vec<Flow>,
    /// The newest flow between two ends.
    newest: BTreeMap<FlowKey, usize>,
    /// Bytes that were kept.
    bytes: usize,
    packets: u64,
    others: u64,
}

/// What was found in a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Each flow in the order of their first packets, or what is wrong with it.
    pub flows: Vec<Result<Conversation, ConversationError>>,
    /// Packets that are neither TCP nor UDP over IP.
    pub others: u64,
}

impl Importer {
    /// Of a capture of which no more than this is kept.
    pub const fn new(bounds: Bounds) -> Self {
        Self { bounds, flows: Vec::new(), newest: BTreeMap::new(), bytes: 0, packets: 0, others: 0 }
    }

    /// Takes the next packet.
    ///
    /// # Errors
    /// Where there is more than may be kept.
    pub fn take(&mut self, record: &RecordHeader, data: &[u8]) -> Result<(), BoundError> {
        self.packets += 1;
        let number = self.packets;
        let Some(packet) = packet::read(record.link_type, data) else {
            self.others += 1;
            return Ok(());
        };
        if data.len() > self.bounds.bytes.saturating_sub(self.bytes) {
            return Err(BoundError::Bytes { packet: number, most: self.bounds.bytes });
        }
        let conversation = packet.key.conversation();
        let newest = self.newest.get(&conversation).and_then(|&index| self.flows.get_mut(index));
        if let Some(flow) = newest {
            let before = flow.kept();
            if flow.take(&packet, number, record.timestamp) == Taken::Yes {
                self.bytes = self.bytes + flow.kept() - before;
                let most = self.bounds.segments;
                return match flow.early() {
                    waiting if waiting > most => Err(BoundError::Segments { packet: number, most }),
                    _ => Ok(()),
                };
            }
        }
        if self.flows.len() == self.bounds.flows {
            return Err(BoundError::Flows { packet: number, most: self.bounds.flows });
        }
        let mut flow = Flow::new(packet.key, number);
        flow.take(&packet, number, record.timestamp);
        self.bytes += flow.kept();
        self.newest.insert(conversation, self.flows.len());
        self.flows.push(flow);
        Ok(())
    }

    /// What all packets came to.
    pub fn finish(self) -> Imported {
        let flows = self.flows.into_iter().map(Flow::finish).collect();
        Imported { flows, others: self.others }
    }
}
