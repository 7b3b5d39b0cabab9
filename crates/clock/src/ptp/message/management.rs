//! Management messages: requests for data sets (clause 15).

use wirestorm_base::bytes::Reader;

use crate::ptp::identity::PortIdentity;

const MANAGEMENT: u16 = 0x0001;

/// Action of a management message (table 57).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the standard's")]
pub enum ManagementAction {
    Get,
    Set,
    Response,
    Command,
    Acknowledge,
    /// A reserved value.
    Reserved(u8),
}

/// Name of a data set (table 59; values from 0xc000 belong to linuxptp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagementId(pub u16);

impl ManagementId {
    /// Offset and path delay of a slave.
    pub const CURRENT_DATA_SET: Self = Self(0x2001);
    /// The master that a slave follows.
    pub const PARENT_DATA_SET: Self = Self(0x2002);
    /// Timescale and UTC offset.
    pub const TIME_PROPERTIES_DATA_SET: Self = Self(0x2003);
    /// linuxptp: offset, and whether there is a grandmaster.
    pub const TIME_STATUS_NP: Self = Self(0xc000);
}

/// Body of a management message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Management {
    /// Receiver, or [`PortIdentity::ALL`].
    pub target: PortIdentity,
    /// What to do, or the answer.
    pub action: ManagementAction,
    /// The data set; `None` if the answer is an error.
    pub id: Option<ManagementId>,
    /// Bytes of the data set; empty in a request.
    pub data: Vec<u8>,
}

impl Management {
    /// Least length of an encoded body in bytes: without an extension.
    pub(super) const BYTES_MIN: usize = 14;

    /// Reads a body; `None` if bytes are missing.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let target = PortIdentity::read(reader)?;
        let [_starting_hops, _hops, action, _reserved] = reader.array()?;
        let action = match action & 0xf {
            0 => ManagementAction::Get,
            1 => ManagementAction::Set,
            2 => ManagementAction::Response,
            3 => ManagementAction::Command,
            4 => ManagementAction::Acknowledge,
            reserved => ManagementAction::Reserved(reserved),
        };
        if reader.rest().is_empty() {
            return Some(Self { target, action, id: None, data: Vec::new() });
        }
        let kind = reader.u16()?;
        let length = usize::from(reader.u16()?);
        let mut value = Reader::new(reader.bytes(length)?);
        if kind != MANAGEMENT {
            return Some(Self { target, action, id: None, data: Vec::new() });
        }
        let id = Some(ManagementId(value.u16()?));
        Some(Self { target, action, id, data: value.rest().to_vec() })
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        self.target.write(bytes);
        let action = match self.action {
            ManagementAction::Get => 0,
            ManagementAction::Set => 1,
            ManagementAction::Response => 2,
            ManagementAction::Command => 3,
            ManagementAction::Acknowledge => 4,
            ManagementAction::Reserved(action) => action & 0xf,
        };
        bytes.extend([0, 0, action, 0]);
        if let Some(ManagementId(id)) = self.id {
            bytes.extend(MANAGEMENT.to_be_bytes());
            let length = u16::try_from(self.data.len() + 2).unwrap_or(u16::MAX);
            bytes.extend(length.to_be_bytes());
            bytes.extend(id.to_be_bytes());
            bytes.extend(&self.data);
        }
    }
}
