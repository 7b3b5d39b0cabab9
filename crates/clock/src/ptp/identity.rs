//! Identities of PTP clocks and ports.

use std::fmt;

use serde::Serialize;
use wirestorm_base::bytes::Reader;

/// Identity of a PTP clock: 8 bytes, usually an EUI-64 (7.5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockIdentity(pub [u8; 8]);

/// Identity of a port of a PTP clock (7.5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PortIdentity {
    /// The clock.
    pub clock: ClockIdentity,
    /// Port number, from 1.
    pub port: u16,
}

impl ClockIdentity {
    /// Builds the identity from a MAC address, as linuxptp does.
    pub const fn from_mac([a, b, c, d, e, f]: [u8; 6]) -> Self {
        Self([a, b, c, 0xff, 0xfe, d, e, f])
    }
}

impl PortIdentity {
    /// Length of an encoded identity in bytes.
    pub(crate) const BYTES: usize = 10;
    /// All ports of all clocks, the target of a signaling message to an unknown port.
    pub const ALL: Self = Self { clock: ClockIdentity([0xff; 8]), port: 0xffff };

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { clock: ClockIdentity(reader.array()?), port: reader.u16()? })
    }

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.clock.0);
        bytes.extend(self.port.to_be_bytes());
    }
}

impl fmt::Display for ClockIdentity {
    /// Formats as pmc of linuxptp does: `025753.fffe.000000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}.{d:02x}{e:02x}.{g:02x}{h:02x}{i:02x}")
    }
}

impl Serialize for ClockIdentity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for PortIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.clock, self.port)
    }
}
