//! Decodes a capture in pieces and indexes each record for the workers.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use wirestorm_base::time::Duration;
use wirestorm_wire::capture::link::{LinkError, ethernet_conversion};
use wirestorm_wire::capture::{CaptureError, Decoder, LinkType, RecordHeader, Step};
use wirestorm_wire::dissect::{Class, Dissection, dissect};

use crate::sides::{CacheError, CacheFile, Side, Sides, SidesOptions};

use super::chunk::{Chunk, Record, RecordFlags};
use super::flow_table::{FlowState, FlowTable};

/// Options of an indexer.
#[derive(Clone, Debug)]
pub struct IndexerOptions {
    /// Number of workers that share the flows, at least 1.
    pub workers: u16,
    /// Whether to count flows.
    pub flows: bool,
    /// Idle time after which the same key is a new flow; `None` for never.
    pub flow_expiry: Option<Duration>,
    /// Limit on the table of flows.
    pub flows_max: usize,
    /// Source of each record's side.
    pub sides: SideSource,
    /// Whether frames will be edited, which requires their header offsets.
    pub needs_offsets: bool,
    /// Records to send, by their numbers in each file from 1; `None` sends all.
    pub only: Option<Vec<RangeInclusive<u64>>>,
    /// Records not to send.
    pub except: Vec<RangeInclusive<u64>>,
}

/// Source of each record's side.
#[derive(Clone, Debug, Default)]
pub enum SideSource {
    /// All records belong to the primary side.
    #[default]
    One,
    /// A tcpprep cache file, by packet number; it may also exclude packets.
    Cache(CacheFile),
    /// Rules, packet by packet.
    Rules(SidesOptions),
    /// The interface in the capture: the first is the primary side, all others the secondary.
    Interface,
}

/// Errors of a capture. Records before the error are indexed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The file is damaged or has another format.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The tcpprep cache file belongs to another capture.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A record cannot be converted to an Ethernet frame.
    #[error("packet {packet}: {source}")]
    Link {
        /// Number of the packet in the file, from 1.
        packet: u64,
        /// Cause.
        source: LinkError,
    },
}

/// Progress of an indexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// Bytes of the chunk that are indexed; the rest belongs to the next chunk.
    pub consumed: usize,
    /// Minimum size of the next chunk for further progress, including the rest.
    pub at_least: usize,
    /// Whether the capture has ended.
    pub ended: bool,
}

/// Indexes files one after the other, and again in the next pass.
#[derive(Debug)]
pub struct Indexer {
    options: IndexerOptions,
    decoder: Decoder,
    flows: FlowTable,
    sides: Option<Sides>,
    file: u32,
    /// Number of records of this file so far.
    records: u64,
}

impl Indexer {
    /// Creates an indexer before its first file.
    pub fn new(options: IndexerOptions) -> Self {
        let flows = FlowTable::new(options.flow_expiry, options.flows_max);
        let sides = match &options.sides {
            SideSource::Rules(rules) => Some(Sides::new(rules.clone())),
            _ => None,
        };
        Self { options, decoder: Decoder::new(), flows, sides, file: 0, records: 0 }
    }

    /// Starts a pass over all files: every flow is new again.
    pub fn start_pass(&mut self) {
        self.flows.clear();
        if let Some(sides) = &mut self.sides {
            sides.clear();
        }
    }

    /// Starts a file.
    pub fn start_file(&mut self, file: u32) {
        self.decoder = Decoder::new();
        self.file = file;
        self.records = 0;
    }

    /// Indexes the complete records in the first `filled` bytes of the chunk. The chunk starts at
    /// the end of the bytes consumed last.
    ///
    /// # Errors
    /// Returns an error at the first invalid record; those before it are in the chunk.
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

    /// Returns the number of packets of flows that did not fit into the table.
    pub fn flows_overflowed(&self) -> u64 {
        self.flows.overflowed()
    }

    /// Returns the number of packets whose side was guessed because the table of conversations was
    /// full.
    pub fn sides_overflowed(&self) -> u64 {
        self.sides.as_ref().map_or(0, Sides::overflowed)
    }

    /// Returns the number of bytes of the file that were consumed.
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
                // Count a record that cannot be converted. A link type that can never be converted
                // is an error.
                Err(LinkError::Truncated { .. } | LinkError::UnknownProtocol { .. }) => {
                    record.flags =
                        record.flags.with(RecordFlags::FILTERED).with(RecordFlags::INVALID);
                    return Ok(record);
                }
                Err(source) => {
                    return Err(IndexError::Link { packet: self.records, source });
                }
            }
        }
        if self.is_filtered(self.records) {
            record.flags = record.flags.with(RecordFlags::FILTERED);
            return Ok(record);
        }
        let options = &self.options;
        let by_content = options.flows || options.workers > 1 || options.needs_offsets;
        if by_content || self.sides.is_some() {
            let dissection = dissect(header.link_type, data);
            // Dissection offsets include the stripped header, record offsets do not.
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

    fn is_filtered(&self, number: u64) -> bool {
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
                FlowState::First => flags.with(RecordFlags::NEW_FLOW),
                FlowState::FirstAfterExpiry => {
                    flags.with(RecordFlags::NEW_FLOW).with(RecordFlags::AFTER_EXPIRY)
                }
                FlowState::Again | FlowState::Unknown => flags,
            };
        }
        record.flags = flags;
    }
}
