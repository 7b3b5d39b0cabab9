//! Messages of PTP version 2: reading and writing (clause 13).

mod announce;
mod header;
mod management;
mod tlv;

#[cfg(test)]
pub(super) mod tests;

use wirestorm_base::bytes::Reader;

use crate::ptp::identity::PortIdentity;
use crate::ptp::time::PtpTime;

pub use announce::Announce;
pub use header::{Flags, Header, MessageType};
pub use management::{Management, ManagementAction, ManagementId};
pub use tlv::{TLVS_MAX, Tlv};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The header.
    pub header: Header,
    /// The rest.
    pub body: Body,
}

/// The part of a message that depends on its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Properties of the grandmaster.
    Announce(Announce),
    /// Sync: a message whose departure and arrival are stamped.
    Sync {
        /// Departure; of two-step masters an estimate that receivers ignore.
        origin: PtpTime,
    },
    /// Follow_Up: the departure of the Sync with the same number.
    FollowUp {
        /// Departure of the Sync.
        origin: PtpTime,
    },
    /// Delay_Req: a message of the slave whose departure and arrival are stamped.
    DelayReq {
        /// Zero, or an estimate of the departure.
        origin: PtpTime,
    },
    /// Delay_Resp: the arrival of a Delay_Req.
    DelayResp {
        /// Arrival of the request.
        receive: PtpTime,
        /// Sender of the request.
        requesting: PortIdentity,
    },
    /// Signaling: unicast negotiation.
    Signaling {
        /// Receiver, or [`PortIdentity::ALL`].
        target: PortIdentity,
        /// Known extensions.
        tlvs: Vec<Tlv>,
    },
    /// Management: a request for a data set, or its answer.
    Management(Management),
    /// A message of another type, which the state machines ignore.
    Other(MessageType),
}

/// Reason why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The message ends early.
    #[error("PTP message of {length} bytes: expected at least {expected}")]
    Short {
        /// Length in bytes.
        length: usize,
        /// Least length in bytes.
        expected: usize,
    },
    /// The header contradicts the length of the packet.
    #[error("PTP message of {length} bytes: its header states {stated}")]
    Length {
        /// Length in bytes.
        length: usize,
        /// `messageLength`.
        stated: usize,
    },
    /// Another version of the protocol.
    #[error("PTP version {0}: expected 2")]
    Version(u8),
    /// Another profile of the protocol.
    #[error("PTP message with sdoId {0:#x}: expected 0")]
    SdoId(u16),
    /// A field has an impossible value.
    #[error("PTP message with a time of a second or more in its nanoseconds")]
    Time,
    /// A bad extension.
    #[error("PTP message with an extension that ends early, or more than {TLVS_MAX} of them")]
    Tlv,
}

impl Message {
    /// Reads a message. Bytes behind its stated length are padding.
    ///
    /// # Errors
    /// See [`MessageError`].
    pub fn read(bytes: &[u8]) -> Result<Self, MessageError> {
        let (kind, header, mut reader) = Header::read(bytes)?;
        let least = Body::bytes_min(kind);
        if reader.rest().len() < least {
            let expected = Header::BYTES + least;
            return Err(MessageError::Short { length: bytes.len(), expected });
        }
        let body = Body::read(kind, &mut reader)?;
        Ok(Self { header, body })
    }

    /// Writes the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(64);
        self.body.write(&mut body);
        let mut bytes = Vec::with_capacity(Header::BYTES + body.len());
        self.header.write(self.body.kind(), body.len(), &mut bytes);
        bytes.extend(body);
        bytes
    }
}

impl Body {
    /// Returns the type of the message.
    pub const fn kind(&self) -> MessageType {
        match self {
            Self::Announce(_) => MessageType::Announce,
            Self::Sync { .. } => MessageType::Sync,
            Self::FollowUp { .. } => MessageType::FollowUp,
            Self::DelayReq { .. } => MessageType::DelayReq,
            Self::DelayResp { .. } => MessageType::DelayResp,
            Self::Signaling { .. } => MessageType::Signaling,
            Self::Management(_) => MessageType::Management,
            Self::Other(kind) => *kind,
        }
    }

    /// Returns the least length of a body in bytes.
    const fn bytes_min(kind: MessageType) -> usize {
        match kind {
            MessageType::Sync | MessageType::DelayReq | MessageType::FollowUp => PtpTime::BYTES,
            MessageType::DelayResp => PtpTime::BYTES + PortIdentity::BYTES,
            MessageType::Announce => Announce::BYTES,
            MessageType::Signaling => PortIdentity::BYTES,
            MessageType::Management => Management::BYTES_MIN,
            _ => 0,
        }
    }

    fn read(kind: MessageType, reader: &mut Reader<'_>) -> Result<Self, MessageError> {
        // The length was checked, so a missing value is one out of range.
        let time = |reader: &mut Reader<'_>| PtpTime::read(reader).ok_or(MessageError::Time);
        Ok(match kind {
            MessageType::Sync => Self::Sync { origin: time(reader)? },
            MessageType::DelayReq => Self::DelayReq { origin: time(reader)? },
            MessageType::FollowUp => Self::FollowUp { origin: time(reader)? },
            MessageType::DelayResp => Self::DelayResp {
                receive: time(reader)?,
                requesting: PortIdentity::read(reader).ok_or(MessageError::Time)?,
            },
            MessageType::Announce => {
                Self::Announce(Announce::read(reader).ok_or(MessageError::Time)?)
            }
            MessageType::Signaling => Self::Signaling {
                target: PortIdentity::read(reader).ok_or(MessageError::Tlv)?,
                tlvs: Tlv::read_all(reader)?,
            },
            MessageType::Management => {
                Self::Management(Management::read(reader).ok_or(MessageError::Tlv)?)
            }
            other => Self::Other(other),
        })
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Announce(announce) => announce.write(bytes),
            Self::Sync { origin } | Self::FollowUp { origin } | Self::DelayReq { origin } => {
                origin.write(bytes);
            }
            Self::DelayResp { receive, requesting } => {
                receive.write(bytes);
                requesting.write(bytes);
            }
            Self::Signaling { target, tlvs } => {
                target.write(bytes);
                tlvs.iter().for_each(|tlv| tlv.write(bytes));
            }
            Self::Management(management) => management.write(bytes),
            Self::Other(_) => {}
        }
    }
}
