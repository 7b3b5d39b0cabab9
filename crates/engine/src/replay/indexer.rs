//! Decodes a capture piece by piece and writes down what the workers need to know of each
//! record.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use wirestorm_base::time::Duration;
use wirestorm_wire::capture::link::{LinkError, ethernet_conversion};
use wirestorm_wire::capture::{CaptureError, Decoder, LinkType, RecordHeader, Step};
use wirestorm_wire::dissect::{Class, Dissection, dissect};

use crate::sides::{CacheError, CacheFile, Side, Sides, SidesOptions};

use super::chunk::{Chunk, Record, RecordFlags};
use super::flow_table::{FlowTable, Seen};

/// What is to be found out.
#[derive(Clone, Debug)]
pub struct IndexerOptions {
    /// Workers to split the flows over; 1 or more.
    pub workers: u16,
    /// Whether flows are counted.
    pub flows: bool,
    /// Idle time after which the same key is another flow; `None`: never.
    pub flow_expiry: Option<Duration>,
    /// Flows that are told apart at most.
    pub flows_max: usize,
    /// How the two sides of a conversation are told apart.
    pub sides: SideSource,
    /// Whether frames will be edited, which needs to know where their headers are.
    pub needs_offsets: bool,
    /// The records to be sent, by their numbers in each file from 1; `None`: all.
    pub only: Option<Vec<RangeInclusive<u64>>>,
    /// The records not to be sent.
    pub except: Vec<RangeInclusive<u64>>,
}

/// How records get their side.
#[derive(Clone, Debug, Default)]
pub enum SideSource {
    /// All are of the primary side.
    #[default]
    One,
    /// By the packet's number, as a file of tcpprep says; it also leaves packets out.
    Cache(CacheFile),
    /// By rules, packet by packet.
    Rules(SidesOptions),
    /// By the interface that the capture names: the first is the primary side, all others
    /// are the secondary.
    Interface,
}

/// Why a capture cannot be read on. Records before the fault were indexed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The file is damaged or of another kind.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The file of tcpprep belongs to another capture.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A record cannot become an Ethernet frame.
    #[error("packet {packet}: {source}")]
    Link {
        /// Its number in the file, from 1.
        packet: u64,
        /// Cause.
        source: LinkError,
    },
}

/// How far an indexer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// Bytes of the chunk that are dealt with; the rest belongs to the next chunk.
    pub consumed: usize,
    /// Bytes that the next chunk must hold, the rest included, for the indexer to get further.
    pub at_least: usize,
    /// Whether the capture has ended.
    pub ended: bool,
}

/// Indexes one file after the other, and the same again in the next pass.
#[derive(Debug)]
pub struct Indexer {
    options: IndexerOptions,
    decoder: Decoder,
    flows: FlowTable,
    sides: Option<Sides>,
    file: u32,
    /// Records of this file so far.
    records: u64,
}

impl Indexer {
    /// An indexer before its first file.
    pub fn new(options: IndexerOptions) -> Self {
        let flows = FlowTable::new(options.flow_expiry, options.flows_max);
        let sides = match &options.sides {
            SideSource::Rules(rules) => Some(Sides::new(rules.clone())),
            _ => None,
        };
        Self { options, decoder: Decoder::new(), flows, sides, file: 0, records: 0 }
    }

    /// Begins a pass over all files: every flow is new again.
    pub fn start_pass(&mut self) {
        self.flows.clear();
        if let Some(sides) = &mut self.sides {
            sides.clear();
        }
    }

    /// Begins a file.
    pub fn start_file(&mut self, file: u32) {
        self.decoder = Decoder::new();
        self.file = file;
        self.records = 0;
    }

    /// Indexes the records that lie whole in the first `filled` bytes of the chunk, which
    /// start where the part consumed last ended.
    ///
    /// # Errors
    /// At the first record that makes no sense; those before it are in the chunk.
    pub fn index(
        &mut self,
        chunk: &mut Chunk,
        filled: usize,
        end_of_input: bool,
    ) -> Result<Indexed, IndexError> {
        chunk.file = self.file;
        chunk.first_record = self.records + 1;
        chunk.starts_file = self.records == 0;
        let mut consumed = 0;
        loop {
            let step = self.decoder.step(&chunk.bytes[consumed..filled], end_of_input)?;
            match step {
                Step::Record { record, data, consumed: bytes } => {
                    let offset = consumed + data.start;
                    let data = &chunk.bytes[consumed + data.start..consumed + data.end];
                    self.records += 1;
                    let record = self.record(&record, offset, data)?;
                    chunk.records.push(record);
                    consumed += bytes;
                }
                Step::Skipped { consumed: bytes } => consumed += bytes,
                Step::NeedMore { at_least } => {
                    return Ok(Indexed { consumed, at_least, ended: false });
                }
                Step::End => return Ok(Indexed { consumed, at_least: 0, ended: true }),
            }
        }
    }

    /// Packets whose flow could not be told because the table was full.
    pub fn flows_overflowed(&self) -> u64 {
        self.flows.overflowed()
    }

    /// Packets whose side could only be guessed because the table of conversations was full.
    pub fn sides_overflowed(&self) -> u64 {
        self.sides.as_ref().map_or(0, Sides::overflowed)
    }

    /// Bytes of the file that were consumed.
    pub fn position(&self) -> u64 {
        self.decoder.position()
    }

    fn record(
        &mut self,
        header: &RecordHeader,
        offset: usize,
        data: &[u8],
    ) -> Result<Record, IndexError> {
        let mut record = Record {
            timestamp: header.timestamp,
            offset: offset as u32,
            captured_length: header.captured_length,
            original_length: header.original_length,
            network_offset: 0,
            transport_offset: 0,
            ethertype: 0,
            worker: 0,
            source: 0,
            protocol: 0,
            flags: RecordFlags::empty(),
        };
        if header.link_type != LinkType::EN10MB {
            match ethernet_conversion(header.link_type, data) {
                Ok(conversion) => record.convert(&conversion),
                // One record that cannot be converted is counted; a link type that none can be
                // converted from is the wrong input.
                Err(LinkError::Truncated { .. } | LinkError::UnknownProtocol { .. }) => {
                    record.flags =
                        record.flags.with(RecordFlags::LEFT_OUT).with(RecordFlags::INVALID);
                    return Ok(record);
                }
                Err(source) => {
                    return Err(IndexError::Link { packet: self.records, source });
                }
            }
        }
        if self.is_left_out(self.records) {
            record.flags = record.flags.with(RecordFlags::LEFT_OUT);
            return Ok(record);
        }
        let options = &self.options;
        let by_content = options.flows || options.workers > 1 || options.needs_offsets;
        if by_content || self.sides.is_some() {
            let dissection = dissect(header.link_type, data);
            // The offsets are from the start of a header that is not part of the record any more.
            let stripped = record.offset - offset as u32;
            self.classify(&mut record, &dissection, stripped as u16);
            if let Some(sides) = &mut self.sides {
                record.set_side(sides.decide(header.link_type, data, &dissection));
            }
        }
        match &self.options.sides {
            SideSource::One | SideSource::Rules(_) => {}
            SideSource::Cache(cache) => record.set_side(cache.side(self.records)?),
            SideSource::Interface if header.interface > 0 => record.set_side(Side::Secondary),
            SideSource::Interface => {}
        }
        Ok(record)
    }

    fn is_left_out(&self, number: u64) -> bool {
        let within = |ranges: &[RangeInclusive<u64>]| ranges.iter().any(|r| r.contains(&number));
        self.options.only.as_ref().is_some_and(|only| !within(only)) || within(&self.options.except)
    }

    #[inline]
    fn classify(&mut self, record: &mut Record, dissection: &Dissection, stripped: u16) {
        let key = match &dissection.class {
            Class::NonFlow => return,
            Class::Invalid => {
                record.flags = record.flags.with(RecordFlags::INVALID);
                return;
            }
            Class::Flow(key) => key,
        };
        record.network_offset = dissection.network_offset.saturating_sub(stripped);
        record.transport_offset = dissection.transport_offset.saturating_sub(stripped);
        record.protocol = dissection.protocol;
        let mut flags = record.flags.with(RecordFlags::FLOW);
        if key.version() == 6 {
            flags = flags.with(RecordFlags::IPV6);
        }
        if self.options.workers > 1 {
            record.worker = (key.symmetric_hash64(0) % u64::from(self.options.workers)) as u16;
        }
        if self.options.flows {
            flags = match self.flows.note(key, record.timestamp) {
                Seen::First => flags.with(RecordFlags::NEW_FLOW),
                Seen::FirstSinceExpiry => {
                    flags.with(RecordFlags::NEW_FLOW).with(RecordFlags::AFTER_EXPIRY)
                }
                Seen::Again | Seen::Unknown => flags,
            };
        }
        record.flags = flags;
    }
}
