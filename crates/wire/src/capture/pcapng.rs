//! Decoder of pcapng, draft-ietf-opsawg-pcapng.

use alloc::vec::Vec;

use wirestorm_base::time::{Instant, NANOSECONDS_PER_SECOND};

use super::record::{RecordHeader, Step};
use super::{
    BLOCK_LENGTH_MAX, ByteOrder, CaptureError, INTERFACES_MAX, LinkType, Magic, RECORD_LENGTH_MAX,
};

/// Block types that the decoder reads; it skips all others.
pub(super) mod block {
    pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
    /// Packet block, the predecessor of the enhanced packet block; obsolete since 2009.
    pub(crate) const PACKET: u32 = 2;
    pub(crate) const SIMPLE_PACKET: u32 = 3;
    pub(crate) const INTERFACE_STATISTICS: u32 = 5;
    pub(crate) const ENHANCED_PACKET: u32 = 6;
}

/// Offsets from the start of a block, behind its type and length.
mod field {
    pub(super) mod section {
        pub(in super::super) const BYTE_ORDER: usize = 8;
        pub(in super::super) const VERSION_MAJOR: usize = 12;
        pub(in super::super) const VERSION_MINOR: usize = 14;
    }
    pub(super) mod interface {
        pub(in super::super) const LINK_TYPE: usize = 8;
        pub(in super::super) const SNAP_LENGTH: usize = 12;
        pub(in super::super) const OPTIONS: usize = 16;
    }
    /// Enhanced and obsolete packet blocks differ only in the width of the interface number.
    pub(super) mod packet {
        pub(in super::super) const INTERFACE: usize = 8;
        pub(in super::super) const TIMESTAMP_HIGH: usize = 12;
        pub(in super::super) const TIMESTAMP_LOW: usize = 16;
        pub(in super::super) const CAPTURED_LENGTH: usize = 20;
        pub(in super::super) const ORIGINAL_LENGTH: usize = 24;
        pub(in super::super) const DATA: usize = 28;
    }
    pub(super) mod simple_packet {
        pub(in super::super) const ORIGINAL_LENGTH: usize = 8;
        pub(in super::super) const DATA: usize = 12;
    }
}

/// Options of an interface description that the decoder reads.
pub(super) mod option {
    pub(crate) const END: u16 = 0;
    pub(crate) const NAME: u16 = 2;
    pub(crate) const TIMESTAMP_RESOLUTION: u16 = 9;
    pub(crate) const FCS_LENGTH: u16 = 13;
    pub(crate) const TIMESTAMP_OFFSET: u16 = 14;
}

pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Type, length and trailing length.
const BLOCK_LENGTH_MIN: u32 = 12;
/// Trailing length.
const TRAILER_LENGTH: u32 = 4;

/// An interface of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Link type of its frames.
    pub link_type: LinkType,
    /// Longest record in bytes; zero means no limit. Records may exceed it, see
    /// [`Decoder`](super::Decoder).
    pub snap_length: u32,
    /// Bytes of frame check sequence at the end of every frame; zero if there is none or it is
    /// unknown.
    pub fcs_length: u8,
    unit: Unit,
    /// Offset of every timestamp, in nanoseconds.
    offset: i64,
}

/// Unit of an interface's timestamps, in the form that is cheapest to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// A number of nanoseconds.
    Nanoseconds(u64),
    /// A fraction of a nanosecond, by its denominator.
    PartOfNanosecond(u64),
    /// 2 to the power of minus this, in seconds.
    BinaryFraction(u8),
}

/// With greater exponents, a 64-bit count would wrap within a second.
const DECIMAL_EXPONENT_MAX: u8 = 19;
const BINARY_EXPONENT_MAX: u8 = 63;

impl Interface {
    /// Creates an interface with timestamps in microseconds, the default of pcapng.
    pub(super) const fn new(link_type: LinkType, snap_length: u32, fcs_length: u8) -> Self {
        Self { link_type, snap_length, fcs_length, unit: Unit::Nanoseconds(1_000), offset: 0 }
    }

    /// Converts a timestamp to an instant; saturates at the limits of the type.
    #[inline]
    fn instant(&self, count: u64) -> Instant {
        let nanoseconds = match self.unit {
            Unit::Nanoseconds(nanoseconds) => count.saturating_mul(nanoseconds),
            Unit::PartOfNanosecond(parts) => count / parts,
            Unit::BinaryFraction(exponent) => {
                let nanoseconds =
                    (u128::from(count) * u128::from(NANOSECONDS_PER_SECOND)) >> exponent;
                u64::try_from(nanoseconds).unwrap_or(u64::MAX)
            }
        };
        Instant::from_nanos(nanoseconds.saturating_add_signed(self.offset))
    }
}

/// A pcapng file at a block boundary or inside a block that is being skipped.
#[derive(Clone, Debug)]
pub(super) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    skipping: Option<Skipping>,
}

/// A block that is skipped piece by piece, so that it need not fit into the caller's buffer.
#[derive(Clone, Copy, Debug)]
struct Skipping {
    block: Block,
    consumed: u32,
}

/// Header of a block, and its position.
#[derive(Clone, Copy, Debug)]
struct Block {
    kind: u32,
    length: u32,
    order: ByteOrder,
    /// Offset in the file.
    offset: u64,
    /// Number of records before it.
    records: u64,
}

impl Pcapng {
    pub(super) const fn new() -> Self {
        Self { order: ByteOrder::Little, interfaces: Vec::new(), skipping: None }
    }

    pub(super) const fn order(&self) -> ByteOrder {
        self.order
    }

    pub(super) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Returns the enhanced packet at the start of `input` and the end of its block. `None` unless
    /// it is valid and complete.
    #[inline]
    pub(super) fn record(&self, input: &[u8]) -> Option<(RecordHeader, usize)> {
        use field::packet;
        let header: &[u8; packet::DATA] = input.first_chunk()?;
        let word = |at: usize| {
            let word = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            match self.order {
                ByteOrder::Little => u32::from_le_bytes(word),
                ByteOrder::Big => u32::from_be_bytes(word),
            }
        };
        let (length, captured_length) = (word(4), word(packet::CAPTURED_LENGTH));
        let original_length = word(packet::ORIGINAL_LENGTH);
        let block = input.get(..length as usize)?;
        let trailing = block.len().checked_sub(TRAILER_LENGTH as usize)?;
        let frame = packet::DATA as u32 + TRAILER_LENGTH;
        let sane = word(0) == block::ENHANCED_PACKET
            && self.skipping.is_none()
            && length.is_multiple_of(4)
            && length <= BLOCK_LENGTH_MAX
            && captured_length <= original_length.min(RECORD_LENGTH_MAX)
            && captured_length <= length.checked_sub(frame)?
            && self.order.u32_at(block, trailing) == Some(length);
        let interface = self.interfaces.get(word(packet::INTERFACE) as usize).filter(|_| sane)?;
        let count =
            u64::from(word(packet::TIMESTAMP_HIGH)) << 32 | u64::from(word(packet::TIMESTAMP_LOW));
        let record = RecordHeader {
            timestamp: interface.instant(count),
            captured_length,
            original_length,
            link_type: interface.link_type,
            interface: word(packet::INTERFACE),
        };
        Some((record, block.len()))
    }

    /// Offset of the data in an enhanced packet block.
    pub(super) const PACKET_DATA: usize = field::packet::DATA;

    pub(super) fn step(
        &mut self,
        input: &[u8],
        end_of_input: bool,
        offset: u64,
        records: u64,
    ) -> Result<Step, CaptureError> {
        if let Some(skipping) = self.skipping {
            return self.skip(skipping, input, end_of_input);
        }
        if input.is_empty() && end_of_input {
            return Ok(Step::End);
        }
        if input.len() < BLOCK_LENGTH_MIN as usize {
            if !end_of_input {
                return Ok(Step::NeedMore { at_least: BLOCK_LENGTH_MIN as usize });
            }
            return Err(CaptureError::TruncatedBlock {
                offset,
                block_type: self.order.u32_at(input, 0).unwrap_or_default(),
                packets: records,
                found: input.len() as u64,
                expected: u64::from(BLOCK_LENGTH_MIN),
            });
        }
        let block = self.block(input, offset, records)?;
        if !block.is_read() {
            return self.skip(Skipping { block, consumed: 0 }, input, end_of_input);
        }
        let Some(bytes) = input.get(..block.length as usize) else {
            if !end_of_input {
                return Ok(Step::NeedMore { at_least: block.length as usize });
            }
            return Err(block.truncated(input.len() as u64));
        };
        block.check_trailer(bytes)?;
        self.read(&block, bytes)
    }

    /// Reads the header of a block; `input` holds at least 12 bytes.
    fn block(&self, input: &[u8], offset: u64, records: u64) -> Result<Block, CaptureError> {
        let mut order = self.order;
        // The type of a section header is the same in both byte orders.
        let kind = order.u32_at(input, 0).unwrap_or_default();
        if kind == block::SECTION_HEADER {
            let at = field::section::BYTE_ORDER;
            order = match ByteOrder::Little.u32_at(input, at).unwrap_or_default() {
                BYTE_ORDER_MAGIC => ByteOrder::Little,
                other if other.swap_bytes() == BYTE_ORDER_MAGIC => ByteOrder::Big,
                other => {
                    let magic = Magic(other.to_le_bytes());
                    return Err(CaptureError::BadByteOrder { offset, magic });
                }
            };
        }
        let length = order.u32_at(input, 4).unwrap_or_default();
        let block = Block { kind, length, order, offset, records };
        let minimum = block.length_min();
        if !length.is_multiple_of(4) || !(minimum..=BLOCK_LENGTH_MAX).contains(&length) {
            let packets = records;
            let block_type = kind;
            return Err(CaptureError::BadBlockLength {
                offset,
                block_type,
                packets,
                length,
                minimum,
            });
        }
        Ok(block)
    }

    /// Skips the available part of a block and checks its trailing length.
    fn skip(
        &mut self,
        skipping: Skipping,
        input: &[u8],
        end_of_input: bool,
    ) -> Result<Step, CaptureError> {
        let Skipping { block, consumed } = skipping;
        let rest = (block.length - consumed) as usize;
        if let Some(bytes) = input.get(..rest) {
            block.check_trailer(bytes)?;
            self.skipping = None;
            return Ok(Step::Skipped { consumed: rest });
        }
        if end_of_input {
            return Err(block.truncated(u64::from(consumed) + input.len() as u64));
        }
        // The trailing length is read as a whole, so do not consume a part of it.
        let now = input.len().min(rest - TRAILER_LENGTH as usize);
        if now == 0 {
            return Ok(Step::NeedMore { at_least: rest });
        }
        self.skipping = Some(Skipping { block, consumed: consumed + now as u32 });
        Ok(Step::Skipped { consumed: now })
    }

    /// Reads a complete block of a type that the decoder reads.
    fn read(&mut self, block: &Block, bytes: &[u8]) -> Result<Step, CaptureError> {
        let consumed = bytes.len();
        match block.kind {
            block::SECTION_HEADER => self.begin_section(block, bytes)?,
            block::INTERFACE_DESCRIPTION => self.describe_interface(block, bytes)?,
            block::SIMPLE_PACKET => {
                let (record, data) = self.simple_packet(block, bytes)?;
                return Ok(Step::Record { record, data, consumed });
            }
            _ => {
                let (record, data) = self.packet(block, bytes)?;
                return Ok(Step::Record { record, data, consumed });
            }
        }
        Ok(Step::Skipped { consumed })
    }

    fn begin_section(&mut self, block: &Block, bytes: &[u8]) -> Result<(), CaptureError> {
        let half = |at| block.order.u16_at(bytes, at).unwrap_or_default();
        let major = half(field::section::VERSION_MAJOR);
        let minor = half(field::section::VERSION_MINOR);
        // Section 4.1: "Some pcapng file writers have used a minor version of 2, but the file
        // format did not change incompatibly".
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(CaptureError::UnsupportedVersion {
                format: "pcapng",
                offset: block.offset,
                major,
                minor,
                expected: "1.0",
            });
        }
        self.order = block.order;
        self.interfaces.clear();
        Ok(())
    }

    fn describe_interface(&mut self, block: &Block, bytes: &[u8]) -> Result<(), CaptureError> {
        if self.interfaces.len() >= INTERFACES_MAX {
            return Err(CaptureError::TooManyInterfaces { offset: block.offset });
        }
        let order = block.order;
        let link_type = order.u16_at(bytes, field::interface::LINK_TYPE).unwrap_or_default();
        let snap_length = order.u32_at(bytes, field::interface::SNAP_LENGTH).unwrap_or_default();
        let mut interface = Interface::new(LinkType(u32::from(link_type)), snap_length, 0);
        let number = self.interfaces.len() as u32;
        let body_end = bytes.len() - TRAILER_LENGTH as usize;
        let mut rest = bytes.get(field::interface::OPTIONS..body_end).unwrap_or_default();
        // Each iteration removes at least four bytes from `rest`.
        while let (Some(code), Some(length)) = (order.u16_at(rest, 0), order.u16_at(rest, 2)) {
            if code == option::END {
                break;
            }
            let bad = |expected| CaptureError::BadOption {
                offset: block.offset,
                interface: number,
                code,
                length,
                expected,
            };
            // A later option might set the time unit, so a broken list is an error.
            let value = rest
                .get(4..4 + usize::from(length))
                .ok_or_else(|| bad("to end inside its block"))?;
            match code {
                option::TIMESTAMP_RESOLUTION => {
                    let [resolution] = value else { return Err(bad("1")) };
                    interface.unit = unit(*resolution, block.offset, number)?;
                }
                option::TIMESTAMP_OFFSET => {
                    let seconds = order.u64_at(value, 0).filter(|_| value.len() == 8);
                    let seconds = seconds.ok_or_else(|| bad("8"))? as i64;
                    interface.offset = seconds.saturating_mul(NANOSECONDS_PER_SECOND as i64);
                }
                option::FCS_LENGTH => {
                    let [fcs_length] = value else { return Err(bad("1")) };
                    // The draft's text specifies bits, its example bytes, and writers use both.
                    interface.fcs_length =
                        if *fcs_length >= 16 { fcs_length / 8 } else { *fcs_length };
                }
                _ => {}
            }
            let padded = 4 + usize::from(length).next_multiple_of(4);
            rest = rest.get(padded..).unwrap_or_default();
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Reads an enhanced packet block or its obsolete predecessor.
    fn packet(
        &self,
        block: &Block,
        bytes: &[u8],
    ) -> Result<(RecordHeader, core::ops::Range<usize>), CaptureError> {
        use field::packet;
        let word = |at| block.order.u32_at(bytes, at).unwrap_or_default();
        let number = if block.kind == block::ENHANCED_PACKET {
            word(packet::INTERFACE)
        } else {
            u32::from(block.order.u16_at(bytes, packet::INTERFACE).unwrap_or_default())
        };
        let interface = self.interface(block, number)?;
        let count =
            u64::from(word(packet::TIMESTAMP_HIGH)) << 32 | u64::from(word(packet::TIMESTAMP_LOW));
        let record = RecordHeader {
            timestamp: interface.instant(count),
            captured_length: word(packet::CAPTURED_LENGTH),
            // Some writers give an original length below the captured length.
            original_length: word(packet::ORIGINAL_LENGTH).max(word(packet::CAPTURED_LENGTH)),
            link_type: interface.link_type,
            interface: number,
        };
        block.check_record(&record, packet::DATA as u32)?;
        Ok((record, packet::DATA..packet::DATA + record.captured_length as usize))
    }

    /// Reads a simple packet block, which has no time and belongs to the first interface. It has no
    /// captured length: that is the original length, limited by the snap length.
    fn simple_packet(
        &self,
        block: &Block,
        bytes: &[u8],
    ) -> Result<(RecordHeader, core::ops::Range<usize>), CaptureError> {
        use field::simple_packet;
        let interface = self.interface(block, 0)?;
        let original =
            block.order.u32_at(bytes, simple_packet::ORIGINAL_LENGTH).unwrap_or_default();
        let captured = match interface.snap_length {
            0 => original,
            snap_length => original.min(snap_length),
        };
        let record = RecordHeader {
            timestamp: Instant::ZERO,
            captured_length: captured,
            original_length: original,
            link_type: interface.link_type,
            interface: 0,
        };
        block.check_record(&record, simple_packet::DATA as u32)?;
        Ok((record, simple_packet::DATA..simple_packet::DATA + captured as usize))
    }

    fn interface(&self, block: &Block, number: u32) -> Result<&Interface, CaptureError> {
        self.interfaces.get(number as usize).ok_or_else(|| block.unknown_interface(self, number))
    }
}

impl Block {
    /// Returns whether the decoder reads blocks of this type.
    const fn is_read(&self) -> bool {
        matches!(
            self.kind,
            block::SECTION_HEADER
                | block::INTERFACE_DESCRIPTION
                | block::PACKET
                | block::SIMPLE_PACKET
                | block::ENHANCED_PACKET
        )
    }

    /// Returns the length of the fixed fields with type and lengths.
    const fn length_min(&self) -> u32 {
        match self.kind {
            block::SECTION_HEADER => 28,
            block::INTERFACE_DESCRIPTION => 20,
            block::PACKET | block::ENHANCED_PACKET => 32,
            block::SIMPLE_PACKET => 16,
            _ => BLOCK_LENGTH_MIN,
        }
    }

    /// Checks the trailing length; `bytes` is the rest of the block.
    fn check_trailer(&self, bytes: &[u8]) -> Result<(), CaptureError> {
        let at = bytes.len().saturating_sub(TRAILER_LENGTH as usize);
        match self.order.u32_at(bytes, at).unwrap_or_default() {
            trailing if trailing == self.length => Ok(()),
            trailing => Err(CaptureError::TrailingLengthMismatch {
                offset: self.offset,
                block_type: self.kind,
                packets: self.records,
                length: self.length,
                trailing,
            }),
        }
    }

    /// Checks that a packet is valid and that its data at offset `data` fits the block.
    fn check_record(&self, record: &RecordHeader, data: u32) -> Result<(), CaptureError> {
        let (packet, offset) = (self.records + 1, self.offset);
        let captured = record.captured_length;
        if captured > RECORD_LENGTH_MAX {
            return Err(CaptureError::RecordTooLong { packet, offset, length: captured });
        }
        let room = self.length - data - TRAILER_LENGTH;
        if captured > room {
            return Err(CaptureError::RecordExceedsBlock { packet, offset, captured, room });
        }
        Ok(())
    }

    #[cold]
    fn unknown_interface(&self, file: &Pcapng, interface: u32) -> CaptureError {
        let (packet, offset) = (self.records + 1, self.offset);
        match file.interfaces.len() as u32 {
            0 => CaptureError::PacketBeforeInterface { packet, offset },
            described => CaptureError::UnknownInterface { packet, offset, interface, described },
        }
    }

    /// Returns the error for a file that ends `found` bytes into this block.
    #[cold]
    fn truncated(&self, found: u64) -> CaptureError {
        let expected = u64::from(self.length);
        match self.kind {
            block::PACKET | block::SIMPLE_PACKET | block::ENHANCED_PACKET => {
                CaptureError::TruncatedRecord {
                    packet: self.records + 1,
                    offset: self.offset,
                    found,
                    expected,
                }
            }
            _ => CaptureError::TruncatedBlock {
                offset: self.offset,
                block_type: self.kind,
                packets: self.records,
                found,
                expected,
            },
        }
    }
}

/// Returns the unit of an `if_tsresol` option. The highest bit selects base 2 or 10, the others are
/// the negative exponent.
fn unit(option: u8, offset: u64, interface: u32) -> Result<Unit, CaptureError> {
    let exponent = option & 0x7f;
    let (base, maximum) =
        if option & 0x80 == 0 { (10, DECIMAL_EXPONENT_MAX) } else { (2, BINARY_EXPONENT_MAX) };
    if exponent > maximum {
        return Err(CaptureError::UnsupportedResolution {
            offset,
            interface,
            base,
            exponent,
            maximum,
        });
    }
    Ok(match (base, exponent) {
        (2, _) => Unit::BinaryFraction(exponent),
        (_, 0..=9) => Unit::Nanoseconds(10_u64.pow(u32::from(9 - exponent))),
        _ => Unit::PartOfNanosecond(10_u64.pow(u32::from(exponent - 9))),
    })
}
