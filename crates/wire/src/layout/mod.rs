//! Layouts of headers: which field stands where, as tables.
//!
//! A table is the picture of a header, to be compared with the source that its file names. It
//! says where a field is, what it holds when nothing was said of it, and what it is filled in
//! with. [`assemble`](crate::assemble) makes frames from them; plans take the names of headers
//! and fields from here. Names are Open Traffic Generator's where it has the header.
//!
//! What a header carries beside its fields (options, segments, records) are items: headers of
//! their own, with layouts of their own.

pub mod arp;
pub mod custom;
pub mod ethernet;
mod field;
pub mod gre;
pub mod gtp;
pub mod icmp;
pub mod icmpv6;
pub mod igmp;
pub mod ipv4;
pub mod ipv6;
pub mod mpls;
pub mod ppp;
pub mod sctp;
pub mod tcp;
mod text;
pub mod udp;
pub mod vlan;
pub mod vxlan;

pub use field::{Covered, Field, Kind, Presence, Role};
pub use text::{ParseValueError, Shown};

/// A header, or an item of one.
#[derive(Debug)]
pub struct Layout {
    /// Its name in plans and messages.
    pub name: &'static str,
    /// What it is, and the source of the table.
    pub description: &'static str,
    /// Its fields in the order of their bits, each followed by other views of the same bits.
    pub fields: &'static [Field],
    /// What stands behind its fields.
    pub items: Items,
    /// Its length is a multiple of so many bytes; at least 1.
    pub align: usize,
    /// What makes up for it where the length is not.
    pub padding: Padding,
    /// By which numbers a header before it says that it follows.
    pub numbers: &'static [Number],
}

/// What stands behind the fields of a header: any number of these, in any order.
#[derive(Debug)]
pub struct Items {
    /// What they are called together; empty where there are none.
    pub name: &'static str,
    /// The layouts that are possible.
    pub layouts: &'static [&'static Layout],
}

/// What a header is filled up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Zeros, which are part of the header.
    Zeros,
    /// Zeros, which the header's own length does not count.
    UncountedZeros,
    /// The padding options of IPv6 (RFC 8200 section 4.2).
    Ipv6Options,
}

/// The number by which a header is announced in one number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Where the number means this header.
    pub space: Space,
    /// The number.
    pub number: u16,
    /// The number where another header of the same layout follows this one.
    pub outer: u16,
}

/// A space of numbers that mean protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Types of Ethernet frames; GRE uses them too.
    EtherType,
    /// IPv4's protocols, IPv6's next headers.
    IpProtocol,
    /// PPP's protocols (RFC 1661 section 2).
    PppProtocol,
    /// UDP's destination ports.
    UdpPort,
}

impl Layout {
    /// A layout without items and numbers.
    const fn new(name: &'static str, description: &'static str, fields: &'static [Field]) -> Self {
        Self {
            name,
            description,
            fields,
            items: Items { name: "", layouts: &[] },
            align: 1,
            padding: Padding::Zeros,
            numbers: &[],
        }
    }

    const fn items(mut self, name: &'static str, layouts: &'static [&'static Self]) -> Self {
        self.items = Items { name, layouts };
        self
    }

    const fn align(mut self, bytes: usize, padding: Padding) -> Self {
        self.align = bytes;
        self.padding = padding;
        self
    }

    const fn numbers(mut self, numbers: &'static [Number]) -> Self {
        self.numbers = numbers;
        self
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The item's layout of this name.
    pub fn item(&self, name: &str) -> Option<&'static Self> {
        self.items.layouts.iter().copied().find(|layout| layout.name == name)
    }

    /// Whether this is the same layout.
    pub fn is(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }

    /// The number that announces this header in `space`, where one does.
    pub fn number(&self, space: Space) -> Option<Number> {
        self.numbers.iter().copied().find(|number| number.space == space)
    }
}

impl Number {
    const fn new(space: Space, number: u16) -> Self {
        Self { space, number, outer: number }
    }
}

/// The layouts of all headers.
pub fn all() -> &'static [&'static Layout] {
    static ALL: [&Layout; 32] = [
        &ethernet::ETHERNET,
        &vlan::VLAN,
        &mpls::MPLS,
        &arp::ARP,
        &ipv4::IPV4,
        &ipv6::IPV6,
        &ipv6::HOP_BY_HOP,
        &ipv6::DESTINATION_OPTIONS,
        &ipv6::ROUTING,
        &ipv6::FRAGMENT,
        &icmp::ICMP,
        &icmpv6::ICMPV6,
        &icmpv6::ROUTER_SOLICITATION,
        &icmpv6::ROUTER_ADVERTISEMENT,
        &icmpv6::NEIGHBOR_SOLICITATION,
        &icmpv6::NEIGHBOR_ADVERTISEMENT,
        &icmpv6::REDIRECT,
        &igmp::IGMPV1,
        &igmp::IGMPV2,
        &igmp::IGMPV3_QUERY,
        &igmp::IGMPV3_REPORT,
        &udp::UDP,
        &tcp::TCP,
        &sctp::SCTP,
        &sctp::DATA,
        &gre::GRE,
        &vxlan::VXLAN,
        &gtp::GTPV1,
        &ppp::PPPOE,
        &ppp::PPPOE_DISCOVERY,
        &ppp::PPP,
        &custom::CUSTOM,
    ];
    &ALL
}

/// The layout of the header of this name.
pub fn find(name: &str) -> Option<&'static Layout> {
    all().iter().copied().find(|layout| layout.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    /// All layouts, those of items too.
    fn every() -> Vec<&'static Layout> {
        let mut layouts = all().to_vec();
        let mut next = 0;
        while let Some(layout) = layouts.get(next) {
            layouts.extend(layout.items.layouts);
            next += 1;
        }
        layouts
    }

    #[test]
    fn fields_cover_their_header_without_gaps() {
        for layout in every() {
            let mut end = 0;
            for field in layout.fields {
                match field.role {
                    Role::View => {
                        assert!(field.bit_offset + field.bits <= end, "{}", field.name);
                        assert_eq!(field.presence, Presence::Always);
                    }
                    Role::OwnNumber(_) => assert_eq!(end, 0),
                    _ => {
                        assert_eq!(field.bit_offset, end, "{}.{}", layout.name, field.name);
                        end += field.bits;
                    }
                }
            }
            assert_eq!(end % 8, 0, "{} has {end} bits", layout.name);
        }
    }

    #[test]
    fn fields_fit_what_they_hold() {
        for layout in every() {
            for field in layout.fields {
                let name = (layout.name, field.name);
                let bits = match field.kind {
                    Kind::Uint => 1..=64,
                    Kind::Mac => 48..=48,
                    Kind::Ipv4 => 32..=32,
                    Kind::Ipv6 => 128..=128,
                    Kind::Bytes => 0..=0,
                };
                assert!(bits.contains(&field.bits), "{name:?}");
                assert_eq!(
                    field.default.checked_shr(field.bits as u32).unwrap_or(0),
                    0,
                    "{name:?}"
                );
                let is_word = field.bits == 16 && field.bit_offset % 8 == 0;
                match field.role {
                    Role::LengthToEnd { .. } => assert!(is_word, "{name:?}"),
                    Role::Checksum(Covered::Crc32c) => assert_eq!(field.bits, 32),
                    Role::Checksum(_) => assert!(is_word && field.bit_offset % 16 == 0, "{name:?}"),
                    _ => {}
                }
                let others = match (field.presence, field.role) {
                    (Presence::Given(names) | Presence::Flagged(names), _) => names,
                    (_, Role::Flag(names)) => names,
                    _ => &[],
                };
                for other in others {
                    let is_known = layout.field(other).is_some() || *other == layout.items.name;
                    assert!(is_known, "{name:?} names {other}");
                }
            }
            // Only the last field has no size of its own.
            let before = layout.fields.split_last().map_or(&[][..], |(_, before)| before);
            assert!(before.iter().all(|field| field.bits > 0), "{}", layout.name);
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        let names: BTreeSet<_> = all().iter().map(|layout| layout.name).collect();
        assert_eq!(names.len(), all().len());
        assert!(find("ipv4").is_some_and(|layout| layout.is(&ipv4::IPV4)));
        assert!(find("ipv5").is_none());
        for layout in every() {
            let mut names: BTreeSet<_> = layout.fields.iter().map(|field| field.name).collect();
            names.insert(layout.items.name);
            assert_eq!(names.len(), layout.fields.len() + 1, "{}", layout.name);
            let items: BTreeSet<_> = layout.items.layouts.iter().map(|item| item.name).collect();
            assert_eq!(items.len(), layout.items.layouts.len(), "{}", layout.name);
            assert_eq!(layout.items.layouts.is_empty(), layout.items.name.is_empty());
        }
    }
}
