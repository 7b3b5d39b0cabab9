//! Decoder of capture files in any supported format.

use super::erf::Erf;
use super::format::{Kind, recognise};
use super::pcap::{self, Pcap};
use super::pcapng::Pcapng;
use super::record::Step;
use super::{ByteOrder, CaptureError, Interface, Magic, Resolution};

/// The format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap.
    Pcap {
        /// Byte order of numbers.
        order: ByteOrder,
        /// Unit of the timestamps.
        resolution: Resolution,
    },
    /// pcapng, with the byte order of the current section.
    Pcapng {
        /// Byte order of numbers.
        order: ByteOrder,
    },
    /// ERF, the record format of Endace's capture cards.
    Erf,
}

/// An incremental decoder of pcap, pcapng and ERF that copies nothing.
///
/// ```
/// use wirestorm_wire::capture::{Decoder, LinkType, PcapWriter, Step};
///
/// let file = PcapWriter::new(LinkType::EN10MB).header();
/// let mut decoder = Decoder::new();
/// let mut rest = &file[..];
/// loop {
///     match decoder.step(rest, true)? {
///         Step::Record { record, data, consumed } => {
///             println!("{} bytes of {}", rest[data].len(), record.original_length);
///             rest = &rest[consumed..];
///         }
///         Step::Skipped { consumed } => rest = &rest[consumed..],
///         Step::NeedMore { .. } => unreachable!("all of the input is there"),
///         Step::End => break,
///     }
/// }
/// # Ok::<(), wirestorm_wire::capture::CaptureError>(())
/// ```
///
/// The decoder tolerates deviations that files of common tools have:
///
/// * a captured length above the original length, which then counts for both
/// * a captured length above the file's snap length, up to
///   [`RECORD_LENGTH_MAX`](super::RECORD_LENGTH_MAX)
/// * a fraction of a second above one second
/// * time that goes backwards
/// * records without bytes
/// * reserved fields that are not zero
///
/// Lengths in the file never control allocations. The decoder allocates only a few words for each
/// interface of a pcapng section.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    state: State,
    /// Bytes consumed so far.
    position: u64,
    /// Records delivered so far.
    records: u64,
}

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    Start,
    Pcap(Pcap),
    Pcapng(Pcapng),
    Erf(Erf),
}

impl Decoder {
    /// Creates a decoder at the start of a file of unknown format.
    pub const fn new() -> Self {
        Self { state: State::Start, position: 0, records: 0 }
    }

    /// Decodes the start of `input`, which begins at the first byte that no earlier step consumed.
    /// `end_of_input` means that the file has no bytes behind `input`.
    ///
    /// With `end_of_input` the result is never [`Step::NeedMore`]. Records and errors do not depend
    /// on how the file is split into inputs. After an error the decoder does not advance.
    ///
    /// # Errors
    /// [`CaptureError`], with the packet number and the offset in the file.
    #[inline]
    pub fn step(&mut self, input: &[u8], end_of_input: bool) -> Result<Step, CaptureError> {
        // Nearly every step is a complete, valid packet, so that case is inlined into the caller.
        // The rest, including the diagnosis of errors, is behind a call.
        let (record, start, end, consumed) = match &self.state {
            State::Pcap(pcap) => match pcap.record(input) {
                Some((record, end)) => (record, pcap::RECORD_HEADER_LENGTH, end, end),
                None => return self.step_slowly(input, end_of_input),
            },
            State::Pcapng(pcapng) => match pcapng.record(input) {
                Some((record, consumed)) => {
                    let end = Pcapng::PACKET_DATA + record.captured_length as usize;
                    (record, Pcapng::PACKET_DATA, end, consumed)
                }
                None => return self.step_slowly(input, end_of_input),
            },
            State::Start | State::Erf(_) => return self.step_slowly(input, end_of_input),
        };
        self.position += consumed as u64;
        self.records += 1;
        Ok(Step::Record { record, data: start..end, consumed })
    }

    /// Returns the bytes consumed so far, the file offset of the next input. It may be inside a
    /// pcapng block that is being skipped.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of records delivered so far, which is the number of the last one, from 1.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Returns the format; `None` until a step consumes input.
    pub const fn format(&self) -> Option<Format> {
        match &self.state {
            State::Start => None,
            State::Pcap(pcap) => {
                Some(Format::Pcap { order: pcap.order, resolution: pcap.resolution })
            }
            State::Pcapng(pcapng) => Some(Format::Pcapng { order: pcapng.order() }),
            State::Erf(_) => Some(Format::Erf),
        }
    }

    /// Returns the interfaces that the current section has described so far, by number. A pcap or
    /// ERF file has one.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.state {
            State::Start => &[],
            State::Pcap(pcap) => core::slice::from_ref(&pcap.interface),
            State::Pcapng(pcapng) => pcapng.interfaces(),
            State::Erf(erf) => core::slice::from_ref(&erf.interface),
        }
    }

    #[inline(never)]
    fn step_slowly(&mut self, input: &[u8], end_of_input: bool) -> Result<Step, CaptureError> {
        let step = match &mut self.state {
            State::Start => self.start(input, end_of_input)?,
            State::Pcap(pcap) => {
                pcap.step_slow_path(input, end_of_input, self.position, self.records)?
            }
            State::Pcapng(pcapng) => {
                pcapng.step(input, end_of_input, self.position, self.records)?
            }
            State::Erf(erf) => erf.step(input, end_of_input, self.position, self.records)?,
        };
        match &step {
            Step::Record { consumed, .. } => {
                self.position += *consumed as u64;
                self.records += 1;
            }
            Step::Skipped { consumed } => self.position += *consumed as u64,
            Step::NeedMore { .. } | Step::End => {}
        }
        Ok(step)
    }

    /// Detects the format. Waits for the length of pcap's file header, since no format has a
    /// shorter header.
    fn start(&mut self, input: &[u8], end_of_input: bool) -> Result<Step, CaptureError> {
        if input.len() < pcap::FILE_HEADER_LENGTH && !end_of_input {
            return Ok(Step::NeedMore { at_least: pcap::FILE_HEADER_LENGTH });
        }
        if input.is_empty() {
            return Err(CaptureError::Empty);
        }
        let mut magic = [0; 4];
        for (byte, found) in magic.iter_mut().zip(input) {
            *byte = *found;
        }
        let magic = Magic(magic);
        match recognise(input) {
            Kind::Pcap { order, resolution, records } => {
                let Some(header) = input.first_chunk() else {
                    return Err(CaptureError::TruncatedFileHeader {
                        found: input.len() as u64,
                        expected: pcap::FILE_HEADER_LENGTH as u64,
                    });
                };
                self.state = State::Pcap(Pcap::new(header, order, resolution, records)?);
                Ok(Step::Skipped { consumed: header.len() })
            }
            Kind::Pcapng => {
                let mut pcapng = Pcapng::new();
                let step = pcapng.step(input, end_of_input, self.position, self.records)?;
                if matches!(step, Step::Skipped { .. }) {
                    self.state = State::Pcapng(pcapng);
                }
                Ok(step)
            }
            Kind::Erf => {
                let erf = Erf::new();
                let step = erf.step(input, end_of_input, self.position, self.records)?;
                self.state = State::Erf(erf);
                Ok(step)
            }
            Kind::Unsupported { name, remedy } => {
                Err(CaptureError::UnsupportedFormat { name, magic, remedy })
            }
            Kind::Unknown => Err(CaptureError::UnknownMagic { magic }),
        }
    }
}
