//! IP header settings for all flows of a template.

use wirestorm_wire::flow::FlowKey;

/// Fields of IP headers besides addresses and lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpSettings {
    /// Time to live (IPv4) or hop limit (IPv6). Default 64.
    pub hop_limit: u8,
    /// Traffic class; the upper six bits are the DSCP. Default 0.
    pub traffic_class: u8,
    /// Whether IPv4 packets carry the "don't fragment" bit, as Path MTU Discovery requires (RFC
    /// 1191 section 3). Default true.
    pub dont_fragment: bool,
    /// Identification of IPv4 packets. Fragments of a datagram always use a counter instead.
    /// Default zero.
    pub identification: Identification,
    /// Flow label of IPv6 packets. Default zero.
    pub flow_label: FlowLabel,
}

impl Default for IpSettings {
    fn default() -> Self {
        Self {
            hop_limit: 64,
            traffic_class: 0,
            dont_fragment: true,
            identification: Identification::Zero,
            flow_label: FlowLabel::Zero,
        }
    }
}

impl IpSettings {
    /// Returns these settings with the traffic class `class`, stored in `room`, or `self` if
    /// `class` is `None`.
    #[inline]
    pub fn with_class<'a>(&'a self, class: Option<u8>, room: &'a mut Self) -> &'a Self {
        let Some(traffic_class) = class else { return self };
        *room = Self { traffic_class, ..*self };
        room
    }

    /// Returns how to identify the packets of a flow; IPv6 headers have no identification.
    #[inline]
    pub fn identification_of(&self, key: &FlowKey) -> Identification {
        match self.identification {
            Identification::Counting | Identification::Random if key.version() == 6 => {
                Identification::Zero
            }
            identification => identification,
        }
    }
}

/// Identification of IPv4 packets that no host has fragmented.
///
/// RFC 6864 section 4.1: "Originating sources MAY set the IPv4 ID field of atomic datagrams to any
/// value". Atomic datagrams are those which must not be fragmented. For others, section 4.3:
/// sources "MUST NOT repeat IPv4 ID values within one MDL for a given source
/// address/destination address/protocol tuple". A counter takes longest to repeat a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identification {
    /// Always 0.
    #[default]
    Zero,
    /// A counter that all flows of a port share; each packet adds one.
    Counting,
    /// A random number for each packet. If the port segments a long packet, the first segment gets
    /// the random number and each next one adds one.
    Random,
}

/// Flow labels (RFC 6437).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowLabel {
    /// Section 2: "A Flow Label of zero is used to indicate packets that have not been labeled."
    #[default]
    Zero,
    /// A hash of addresses, ports and protocol. It differs between flows as far as 20 bits allow
    /// and is never zero.
    PerFlow,
    /// This fixed value; only the lower 20 bits are used.
    Value(u32),
}

impl FlowLabel {
    const BITS: u32 = 20;

    /// Returns the label of packets that answer packets with `key`.
    #[inline]
    pub fn of(self, key: &FlowKey) -> u32 {
        match self {
            Self::Zero => 0,
            Self::PerFlow => ((key.hash64(0) >> (u64::BITS - Self::BITS)) as u32).max(1),
            Self::Value(label) => label & ((1 << Self::BITS) - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn flow_label_has_twenty_bits_and_depends_on_the_flow() {
        let key = FlowKey::ipv6([1; 16], [2; 16], 6);
        assert_eq!(
            [FlowLabel::Zero, FlowLabel::Value(u32::MAX)].map(|it| it.of(&key)),
            [0, 0xf_ffff]
        );
        let labels = (1..=1_000).map(|port| FlowLabel::PerFlow.of(&key.with_ports(port, 80)));
        let labels: BTreeSet<u32> = labels.collect();
        assert!(labels.len() > 990 && labels.iter().all(|label| (1..1 << 20).contains(label)));
    }
}
