//! Merges two captures of the two sides of a link by time. The output is a pcapng section in memory
//! with the first capture as interface 0 and the second as interface 1.

use std::io::{self, Read};
use std::sync::Arc;

use wirestorm_wire::capture::{Decoder, LinkType, PcapngWriter, RecordHeader, Step};

use super::input::Input;
use super::reader_counters::ReaderCounters;

/// Bytes read from a capture at once.
const READ_BYTES: usize = 1 << 18;

/// Bytes of the merged section produced at once.
const MERGED_BYTES: usize = 1 << 18;

/// Two captures merged by time.
pub(super) struct Pair {
    sides: [Side; 2],
    writer: PcapngWriter,
    /// Merged bytes. Those from `position` on are not read yet.
    merged: Vec<u8>,
    position: usize,
    has_begun: bool,
}

/// One capture, with its next record decoded.
struct Side {
    input: Input,
    /// Counters that record a truncated file.
    counters: Arc<ReaderCounters>,
    reader: Box<dyn Read + Send>,
    decoder: Decoder,
    buffer: Vec<u8>,
    /// Bytes not decoded yet: `buffer[start..filled]`.
    start: usize,
    filled: usize,
    at_end: bool,
    link_type: Option<LinkType>,
    next: Option<(RecordHeader, Vec<u8>)>,
}

impl Pair {
    /// Opens both captures.
    ///
    /// # Errors
    /// Fails if a capture does not open.
    pub(super) fn open(
        [first, second]: [&Input; 2],
        counters: &Arc<ReaderCounters>,
    ) -> Result<Self, super::InputError> {
        Ok(Self {
            sides: [Side::open(first, counters)?, Side::open(second, counters)?],
            writer: PcapngWriter::new(),
            merged: Vec::new(),
            position: 0,
            has_begun: false,
        })
    }

    fn begin(&mut self) -> io::Result<()> {
        self.writer.push_section(&mut self.merged);
        for side in &mut self.sides {
            side.advance()?;
            let link_type = side.link_type.unwrap_or(LinkType::EN10MB);
            self.writer
                .push_interface(&mut self.merged, link_type, 0, "")
                .map_err(io::Error::other)?;
        }
        self.has_begun = true;
        Ok(())
    }

    /// Merges until `merged` holds [`MERGED_BYTES`], or both captures end.
    fn merge(&mut self) -> io::Result<()> {
        self.merged.clear();
        self.position = 0;
        if !self.has_begun {
            self.begin()?;
        }
        while self.merged.len() < MERGED_BYTES {
            let time = |side: &Side| side.next.as_ref().map(|(header, _)| header.timestamp);
            let interface = match (time(&self.sides[0]), time(&self.sides[1])) {
                (None, None) => break,
                (Some(first), Some(second)) => usize::from(second < first),
                (first, _) => usize::from(first.is_none()),
            };
            let side = &mut self.sides[interface];
            if let Some((header, data)) = &side.next {
                self.writer
                    .push_record(
                        &mut self.merged,
                        interface as u32,
                        header.timestamp,
                        header.original_length,
                        data,
                    )
                    .map_err(io::Error::other)?;
            }
            side.advance()?;
        }
        Ok(())
    }
}

impl Read for Pair {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position == self.merged.len() {
            self.merge()?;
        }
        let rest = &self.merged[self.position..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.position += count;
        Ok(count)
    }
}

impl Side {
    fn open(input: &Input, counters: &Arc<ReaderCounters>) -> Result<Self, super::InputError> {
        Ok(Self {
            input: input.clone(),
            counters: Arc::clone(counters),
            reader: input.open()?,
            decoder: Decoder::new(),
            buffer: vec![0; READ_BYTES],
            start: 0,
            filled: 0,
            at_end: false,
            link_type: None,
            next: None,
        })
    }

    /// Decodes the next record.
    fn advance(&mut self) -> io::Result<()> {
        loop {
            let step = self.decoder.step(&self.buffer[self.start..self.filled], self.at_end);
            let step = match step {
                Err(error) if self.counters.record_truncation(&self.input, &error) => Step::End,
                step => step.map_err(|error| self.error(error))?,
            };
            match step {
                Step::Record { record, data, consumed } => {
                    let link_type = *self.link_type.get_or_insert(record.link_type);
                    if link_type != record.link_type {
                        return Err(self.error(format!(
                            "packet {}: link type {}, but {link_type} before; each file of a \
                             pair must have a single link type",
                            self.decoder.records(),
                            record.link_type
                        )));
                    }
                    let mut bytes = self.next.take().map_or_else(Vec::new, |(_, bytes)| bytes);
                    bytes.clear();
                    bytes.extend_from_slice(&self.buffer[self.start..][data]);
                    self.next = Some((record, bytes));
                    self.start += consumed;
                    return Ok(());
                }
                Step::Skipped { consumed } => self.start += consumed,
                Step::NeedMore { at_least } => self.fill(at_least)?,
                Step::End => {
                    self.next = None;
                    return Ok(());
                }
            }
        }
    }

    fn fill(&mut self, at_least: usize) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        if self.buffer.len() < at_least {
            self.buffer.resize(at_least, 0);
        }
        while self.filled < at_least && !self.at_end {
            let count = self.reader.read(&mut self.buffer[self.filled..])?;
            self.at_end = count == 0;
            self.filled += count;
        }
        Ok(())
    }

    fn error(&self, reason: impl std::fmt::Display) -> io::Error {
        io::Error::other(format!("{}: {reason}", self.input))
    }
}
