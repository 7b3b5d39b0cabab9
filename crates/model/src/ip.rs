//! What can be set of IP, for all flows of a template.

use wirestorm_wire::flow::FlowKey;

/// What IP headers say beside addresses and lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpSettings {
    /// Time to live, or hop limit. Default 64.
    pub hop_limit: u8,
    /// Differentiated services, in the upper six bits. Default 0.
    pub traffic_class: u8,
    /// Whether routers must not fragment packets of IPv4, as Path MTU Discovery wants it (RFC 1191
    /// section 3). Default yes.
    pub dont_fragment: bool,
    /// The identification of packets of IPv4. Those of a datagram in fragments have one that counts
    /// up, whatever is said here. Default zero.
    pub identification: Identification,
    /// The flow label of packets of IPv6. Default zero.
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
    /// The same, in some room, with the traffic class that a program says, where it does.
    #[inline]
    pub fn with_class<'a>(&'a self, class: Option<u8>, room: &'a mut Self) -> &'a Self {
        let Some(traffic_class) = class else { return self };
        *room = Self { traffic_class, ..*self };
        room
    }

    /// How the packets of a flow are identified: those of IPv6 are not.
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

/// Identifications of packets that nobody has fragmented yet.
///
/// RFC 6864 section 4.1: "Originating sources MAY set the IPv4 ID field of atomic datagrams to any
/// value", which are those that must not be fragmented. Of others, section 4.3: sources "MUST NOT
/// repeat IPv4 ID values within one MDL for a given source address/destination address/protocol
/// tuple", for which numbers that count up are best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identification {
    /// 0, as where it means nothing.
    #[default]
    Zero,
    /// One more with each packet of all flows of a port.
    Counting,
    /// Drawn for each packet; where the port cuts long segments, for the first of each, behind
    /// which it counts.
    Random,
}

/// Flow labels (RFC 6437).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowLabel {
    /// Section 2: "A Flow Label of zero is used to indicate packets that have not been labeled."
    #[default]
    Zero,
    /// One that follows from addresses, ports and protocol, so that each flow has its own, as far
    /// as 20 bits tell them apart; never zero.
    OfFlow,
    /// This one; the lower 20 bits count.
    Value(u32),
}

impl FlowLabel {
    const BITS: u32 = 20;

    /// That of packets which answer those with a key.
    #[inline]
    pub fn of(self, key: &FlowKey) -> u32 {
        match self {
            Self::Zero => 0,
            Self::OfFlow => ((key.hash64(0) >> (u64::BITS - Self::BITS)) as u32).max(1),
            Self::Value(label) => label & ((1 << Self::BITS) - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn a_label_has_twenty_bits_and_is_of_the_flow() {
        let key = FlowKey::ipv6([1; 16], [2; 16], 6);
        assert_eq!(
            [FlowLabel::Zero, FlowLabel::Value(u32::MAX)].map(|it| it.of(&key)),
            [0, 0xf_ffff]
        );
        let labels = (1..=1_000).map(|port| FlowLabel::OfFlow.of(&key.with_ports(port, 80)));
        let labels: BTreeSet<u32> = labels.collect();
        assert!(labels.len() > 990 && labels.iter().all(|label| (1..1 << 20).contains(label)));
    }
}
