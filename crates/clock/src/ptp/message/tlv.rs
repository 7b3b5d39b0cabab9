//! Extensions of signaling messages: unicast negotiation (16.1).

use wirestorm_base::bytes::Reader;

use crate::ptp::message::{MessageError, MessageType};

/// Most extensions that a message may have.
pub const TLVS_MAX: usize = 16;

const REQUEST: u16 = 0x0004;
const GRANT: u16 = 0x0005;
const CANCEL: u16 = 0x0006;
const ACKNOWLEDGE_CANCEL: u16 = 0x0007;

/// An extension of a signaling message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tlv {
    /// REQUEST_UNICAST_TRANSMISSION: the sender wants messages of a type.
    Request {
        /// Announce, Sync or Delay_Resp.
        kind: MessageType,
        /// Interval as a power of two in seconds.
        log_interval: i8,
        /// Time for which the sender wants them, in seconds.
        seconds: u32,
    },
    /// GRANT_UNICAST_TRANSMISSION: the answer.
    Grant {
        /// The type of the request.
        kind: MessageType,
        /// Interval as a power of two in seconds.
        log_interval: i8,
        /// Time for which messages are sent, in seconds; 0 refuses the request.
        seconds: u32,
    },
    /// CANCEL_UNICAST_TRANSMISSION: either side ends a grant.
    Cancel {
        /// The type of the grant.
        kind: MessageType,
    },
    /// ACKNOWLEDGE_CANCEL_UNICAST_TRANSMISSION: the answer.
    AcknowledgeCancel {
        /// The type of the grant.
        kind: MessageType,
    },
}

impl Tlv {
    /// Reads the known extensions from a body; unknown ones are passed over.
    pub(super) fn read_all(reader: &mut Reader<'_>) -> Result<Vec<Self>, MessageError> {
        let mut tlvs = Vec::new();
        for _ in 0..TLVS_MAX {
            if reader.rest().is_empty() {
                return Ok(tlvs);
            }
            let mut part = || {
                let kind = reader.u16()?;
                let length = usize::from(reader.u16()?);
                Some((kind, reader.bytes(length)?))
            };
            let (kind, value) = part().ok_or(MessageError::Tlv)?;
            tlvs.extend(Self::read(kind, value)?);
        }
        if reader.rest().is_empty() { Ok(tlvs) } else { Err(MessageError::Tlv) }
    }

    fn read(kind: u16, value: &[u8]) -> Result<Option<Self>, MessageError> {
        let mut reader = Reader::new(value);
        let mut known = || {
            let message = MessageType::from_bits(reader.u8()? >> 4);
            Some(match kind {
                REQUEST | GRANT => {
                    let (log_interval, seconds) = (reader.i8()?, reader.u32()?);
                    if kind == REQUEST {
                        Self::Request { kind: message, log_interval, seconds }
                    } else {
                        Self::Grant { kind: message, log_interval, seconds }
                    }
                }
                CANCEL => Self::Cancel { kind: message },
                _ => Self::AcknowledgeCancel { kind: message },
            })
        };
        match kind {
            REQUEST..=ACKNOWLEDGE_CANCEL => known().map(Some).ok_or(MessageError::Tlv),
            _ => Ok(None),
        }
    }

    pub(super) fn write(self, bytes: &mut Vec<u8>) {
        let mut start = |kind: u16, length: u16, message: MessageType| {
            bytes.extend(kind.to_be_bytes());
            bytes.extend(length.to_be_bytes());
            bytes.push(message.bits() << 4);
        };
        match self {
            Self::Request { kind, log_interval, seconds } => {
                start(REQUEST, 6, kind);
                bytes.extend(log_interval.to_be_bytes());
                bytes.extend(seconds.to_be_bytes());
            }
            Self::Grant { kind, log_interval, seconds } => {
                start(GRANT, 8, kind);
                bytes.extend(log_interval.to_be_bytes());
                bytes.extend(seconds.to_be_bytes());
                // A reserved byte, and "renewal invited": the grant can be renewed.
                bytes.extend([0, 1]);
            }
            Self::Cancel { kind } => {
                start(CANCEL, 2, kind);
                bytes.push(0);
            }
            Self::AcknowledgeCancel { kind } => {
                start(ACKNOWLEDGE_CANCEL, 2, kind);
                bytes.push(0);
            }
        }
    }
}
