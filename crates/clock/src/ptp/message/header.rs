//! The header that all messages share (13.3).

use wirestorm_base::bytes::Reader;

use crate::ptp::identity::PortIdentity;
use crate::ptp::message::MessageError;
use crate::ptp::time::Correction;

/// Kind of a message (table 36).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the standard's")]
pub enum MessageType {
    Sync,
    DelayReq,
    PdelayReq,
    PdelayResp,
    FollowUp,
    DelayResp,
    PdelayRespFollowUp,
    Announce,
    Signaling,
    Management,
    /// A reserved value.
    Reserved(u8),
}

impl MessageType {
    /// Reads the low four bits.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0xf {
            0x0 => Self::Sync,
            0x1 => Self::DelayReq,
            0x2 => Self::PdelayReq,
            0x3 => Self::PdelayResp,
            0x8 => Self::FollowUp,
            0x9 => Self::DelayResp,
            0xa => Self::PdelayRespFollowUp,
            0xb => Self::Announce,
            0xc => Self::Signaling,
            0xd => Self::Management,
            reserved => Self::Reserved(reserved),
        }
    }

    /// Returns the four bits of the value.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Sync => 0x0,
            Self::DelayReq => 0x1,
            Self::PdelayReq => 0x2,
            Self::PdelayResp => 0x3,
            Self::FollowUp => 0x8,
            Self::DelayResp => 0x9,
            Self::PdelayRespFollowUp => 0xa,
            Self::Announce => 0xb,
            Self::Signaling => 0xc,
            Self::Management => 0xd,
            Self::Reserved(bits) => bits & 0xf,
        }
    }

    /// Returns whether messages of this type have time stamps, and use the event port.
    pub const fn is_event(self) -> bool {
        self.bits() < 8
    }

    /// Returns `controlField`, which only version 1 of the protocol evaluates (table 42).
    const fn control(self) -> u8 {
        match self {
            Self::Sync => 0,
            Self::DelayReq => 1,
            Self::FollowUp => 2,
            Self::DelayResp => 3,
            Self::Management => 4,
            _ => 5,
        }
    }
}

/// Bits of `flagField` (table 37); the first byte is the upper half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// The sender is not the best master of its clock.
    pub const ALTERNATE_MASTER: Self = Self(0x0100);
    /// A Follow_Up with the departure time follows.
    pub const TWO_STEP: Self = Self(0x0200);
    /// The message went to one port.
    pub const UNICAST: Self = Self(0x0400);
    /// `currentUtcOffset` is correct.
    pub const UTC_OFFSET_VALID: Self = Self(0x0004);
    /// The timescale is TAI since 1970; else it is arbitrary.
    pub const PTP_TIMESCALE: Self = Self(0x0008);
    /// The grandmaster's time comes from a primary reference.
    pub const TIME_TRACEABLE: Self = Self(0x0010);

    /// Returns whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Fields of the header that senders choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Domain: only clocks of one domain synchronise to each other.
    pub domain: u8,
    /// Flags.
    pub flags: Flags,
    /// Correction of the times in the message.
    pub correction: Correction,
    /// Sender.
    pub source: PortIdentity,
    /// Number that matches messages to each other.
    pub sequence: u16,
    /// Interval of such messages as a power of two in seconds, or 0x7f.
    pub log_interval: i8,
}

impl Header {
    /// Length of an encoded header in bytes.
    pub(crate) const BYTES: usize = 34;

    /// `versionPTP` 2 with `minorVersionPTP` 1, that of IEEE 1588-2019.
    const VERSION: u8 = 0x12;

    /// Reads a header, and the bytes of the body. Bytes behind `messageLength` are padding.
    pub(super) fn read(bytes: &[u8]) -> Result<(MessageType, Self, Reader<'_>), MessageError> {
        let short = || MessageError::Short { length: bytes.len(), expected: Self::BYTES };
        let mut reader = Reader::new(bytes);
        let kind = reader.u8().ok_or_else(short)?;
        let version = reader.u8().ok_or_else(short)? & 0xf;
        if version != Self::VERSION & 0xf {
            return Err(MessageError::Version(version));
        }
        let length = usize::from(reader.u16().ok_or_else(short)?);
        let mut fields = || {
            let domain = reader.u8()?;
            let minor_sdo = reader.u8()?;
            let flags = Flags(reader.u16()?);
            let correction = Correction(reader.i64()?);
            let _type_specific = reader.u32()?;
            let source = PortIdentity::read(&mut reader)?;
            let sequence = reader.u16()?;
            let _control = reader.u8()?;
            let log_interval = reader.i8()?;
            Some((minor_sdo, Self { domain, flags, correction, source, sequence, log_interval }))
        };
        let (minor_sdo, header) = fields().ok_or_else(short)?;
        // Profiles with another sdoId, such as gPTP (0x100), are other protocols on the same network.
        let sdo = u16::from(kind >> 4) << 8 | u16::from(minor_sdo);
        if sdo != 0 {
            return Err(MessageError::SdoId(sdo));
        }
        let body = length
            .checked_sub(Self::BYTES)
            .and_then(|length| reader.bytes(length))
            .ok_or(MessageError::Length { length: bytes.len(), stated: length })?;
        Ok((MessageType::from_bits(kind), header, Reader::new(body)))
    }

    /// Writes a header; `body` is the length of the rest of the message in bytes.
    pub(super) fn write(&self, kind: MessageType, body: usize, bytes: &mut Vec<u8>) {
        let length = u16::try_from(Self::BYTES + body).unwrap_or(u16::MAX);
        bytes.extend([kind.bits(), Self::VERSION]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([self.domain, 0]);
        bytes.extend(self.flags.0.to_be_bytes());
        bytes.extend(self.correction.0.to_be_bytes());
        bytes.extend([0; 4]);
        self.source.write(bytes);
        bytes.extend(self.sequence.to_be_bytes());
        bytes.push(kind.control());
        bytes.extend(self.log_interval.to_be_bytes());
    }
}
