//! Tables of header layouts: the offset, size, default and role of each field.
//!
//! A table follows the header diagram of the source that its file names.
//! The crate `wirestorm-model` assembles frames from the tables; plans take the names of headers and
//! fields from here. Names follow the Open Traffic Generator API if it has the header.
//!
//! Options, segments and records of a header are items: headers with layouts of their own.

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

pub use field::{ChecksumCoverage, Field, Presence, Role, ValueKind};
pub use text::{DisplayValue, ParseValueError};

/// A header, or an item of a header.
#[derive(Debug)]
pub struct Layout {
    /// Name in plans and messages.
    pub name: &'static str,
    /// Description with the source of the table.
    pub description: &'static str,
    /// Fields in bit order. Other views of the same bits follow each field.
    pub fields: &'static [Field],
    /// Items behind the fields.
    pub items: Items,
    /// The header length is a multiple of this many bytes; at least 1.
    pub align: usize,
    /// Padding to the alignment.
    pub padding: Padding,
    /// Protocol numbers by which an outer header announces this one.
    pub numbers: &'static [Number],
}

/// Items behind the fields of a header: any number, in any order.
#[derive(Debug)]
pub struct Items {
    /// Common name of the items; empty if the header has none.
    pub name: &'static str,
    /// Layouts that the items can have.
    pub layouts: &'static [&'static Layout],
}

/// Padding of a header to its alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Zeros, which the header's length includes.
    Zeros,
    /// Zeros, which the header's length does not include.
    UncountedZeros,
    /// The padding options of IPv6 (RFC 8200 section 4.2).
    Ipv6Options,
}

/// Number that announces a header in one number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Number space.
    pub space: Space,
    /// The number.
    pub number: u16,
    /// Number to use if another header of the same layout follows this one.
    pub outer: u16,
}

/// A number space of protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Ethernet types; GRE uses them too.
    EtherType,
    /// IPv4 protocols and IPv6 next headers.
    IpProtocol,
    /// PPP protocols (RFC 1661 section 2).
    PppProtocol,
    /// UDP destination ports.
    UdpPort,
}

impl Layout {
    /// Creates a layout without items and numbers.
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

    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the layout of the item with this name.
    pub fn item(&self, name: &str) -> Option<&'static Self> {
        self.items.layouts.iter().copied().find(|layout| layout.name == name)
    }

    /// Returns whether both are the same layout.
    pub fn is(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }

    /// Returns the number that announces this header in `space`, if there is one.
    pub fn number(&self, space: Space) -> Option<Number> {
        self.numbers.iter().copied().find(|number| number.space == space)
    }
}

impl Number {
    const fn new(space: Space, number: u16) -> Self {
        Self { space, number, outer: number }
    }
}

/// Returns the layouts of all headers.
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

/// Returns the layout of the header with this name.
pub fn find(name: &str) -> Option<&'static Layout> {
    all().iter().copied().find(|layout| layout.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    /// Returns all layouts, including those of items.
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
    fn fields_fit_their_kind_and_role() {
        for layout in every() {
            for field in layout.fields {
                let name = (layout.name, field.name);
                let bits = match field.kind {
                    ValueKind::Uint => 1..=64,
                    ValueKind::Mac => 48..=48,
                    ValueKind::Ipv4 => 32..=32,
                    ValueKind::Ipv6 => 128..=128,
                    ValueKind::Bytes => 0..=0,
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
                    Role::Checksum(ChecksumCoverage::Crc32c) => assert_eq!(field.bits, 32),
                    Role::Checksum(_) => assert!(is_word && field.bit_offset % 16 == 0, "{name:?}"),
                    _ => {}
                }
                let others = match (field.presence, field.role) {
                    (Presence::IfSet(names) | Presence::IfFlagSet(names), _) => names,
                    (_, Role::Flag(names)) => names,
                    _ => &[],
                };
                for other in others {
                    let is_known = layout.field(other).is_some() || *other == layout.items.name;
                    assert!(is_known, "{name:?} names {other}");
                }
            }
            // Only the last field may have a variable size.
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
