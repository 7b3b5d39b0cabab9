//! A field of a header.

use super::Space;

/// A field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in plans and messages.
    pub name: &'static str,
    /// Where it begins, in bits from the start of the header, all optional fields being present.
    pub bit_offset: usize,
    /// Its size; 0 for bytes in any number, which then are the last field.
    pub bits: usize,
    /// How its value is written.
    pub kind: Kind,
    /// What it holds when nothing was said of it, and its role does not say either.
    pub default: u128,
    /// What it is filled in with.
    pub role: Role,
    /// When it is there.
    pub presence: Presence,
}

/// How the value of a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Uint,
    /// An address of Ethernet.
    Mac,
    /// An address of IPv4.
    Ipv4,
    /// An address of IPv6.
    Ipv6,
    /// Bytes.
    Bytes,
}

/// What a field is filled in with when nothing was said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its default.
    Plain,
    /// Nothing: it is another word for bits that other fields have.
    View,
    /// The length of its header, in units, less so many of them.
    HeaderLength {
        /// Bytes of a unit.
        unit: usize,
        /// Units that do not count.
        less: usize,
    },
    /// The bytes from this one of the header to the end of the packet.
    LengthToEnd {
        /// The first byte that counts.
        from: usize,
    },
    /// The number of items, less so many.
    ItemCount {
        /// Items that do not count.
        less: usize,
    },
    /// A checksum.
    Checksum(Covered),
    /// The number of the header that follows.
    NextProtocol(Space),
    /// Nothing: it is the number of this header, and stands in the header before.
    OwnNumber(Space),
    /// 1 unless a header of the same layout follows.
    IsLast,
    /// 1 where one of these fields, or items, was given.
    Flag(&'static [&'static str]),
}

/// What a checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered {
    /// Its header.
    Header,
    /// Its header and all behind it.
    Packet,
    /// Its header, all behind it, and a pseudo header of the IP header before.
    PacketAndAddresses {
        /// Whether a sum of zero is written as all ones.
        never_zero: bool,
    },
    /// Its header and all behind it, by CRC-32C.
    Crc32c,
}

/// When a field is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Always,
    /// When one of these fields was given.
    Given(&'static [&'static str]),
    /// When one of these fields is not 0.
    Flagged(&'static [&'static str]),
}

impl Field {
    const fn new(name: &'static str, bit_offset: usize, bits: usize, kind: Kind) -> Self {
        let (role, presence) = (Role::Plain, Presence::Always);
        Self { name, bit_offset, bits, kind, default: 0, role, presence }
    }

    pub(super) const fn default(mut self, value: u128) -> Self {
        self.default = value;
        self
    }

    pub(super) const fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    pub(super) const fn view(self) -> Self {
        self.role(Role::View)
    }

    pub(super) const fn given(mut self, fields: &'static [&'static str]) -> Self {
        self.presence = Presence::Given(fields);
        self
    }

    pub(super) const fn flagged(mut self, fields: &'static [&'static str]) -> Self {
        self.presence = Presence::Flagged(fields);
        self
    }
}

pub(super) const fn uint(name: &'static str, bit_offset: usize, bits: usize) -> Field {
    Field::new(name, bit_offset, bits, Kind::Uint)
}

pub(super) const fn mac(name: &'static str, bit_offset: usize) -> Field {
    Field::new(name, bit_offset, 48, Kind::Mac)
}

pub(super) const fn ipv4(name: &'static str, bit_offset: usize) -> Field {
    Field::new(name, bit_offset, 32, Kind::Ipv4)
}

pub(super) const fn ipv6(name: &'static str, bit_offset: usize) -> Field {
    Field::new(name, bit_offset, 128, Kind::Ipv6)
}

pub(super) const fn bytes(name: &'static str, bit_offset: usize) -> Field {
    Field::new(name, bit_offset, 0, Kind::Bytes)
}

pub(super) const fn checksum(name: &'static str, bit_offset: usize, covered: Covered) -> Field {
    uint(name, bit_offset, 16).role(Role::Checksum(covered))
}

/// The length of an option in bytes, its first two included.
pub(super) const fn option_length(bit_offset: usize) -> Field {
    uint("length", bit_offset, 8).role(Role::HeaderLength { unit: 1, less: 0 })
}
