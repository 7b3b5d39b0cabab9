//! Flags of a device, in the kernel's bit order.

/// A set of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags(pub(super) u32);

/// A flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Ipv6,
    SourceRandom,
    DestinationRandom,
    SizeRandom,
    SourcePortRandom,
    DestinationPortRandom,
    UdpChecksum,
    NoTimestamp,
    MplsRandom,
    QueueRandom,
    QueueCpu,
    FlowsInSequence,
    Ipsec,
    SourceMacRandom,
    DestinationMacRandom,
    VlanRandom,
    ServiceVlanRandom,
    Node,
    Shared,
}

/// All flags with their names.
pub(super) const FLAGS: [(Flag, &str); 19] = [
    (Flag::Ipv6, "IPV6"),
    (Flag::SourceRandom, "IPSRC_RND"),
    (Flag::DestinationRandom, "IPDST_RND"),
    (Flag::SizeRandom, "TXSIZE_RND"),
    (Flag::SourcePortRandom, "UDPSRC_RND"),
    (Flag::DestinationPortRandom, "UDPDST_RND"),
    (Flag::UdpChecksum, "UDPCSUM"),
    (Flag::NoTimestamp, "NO_TIMESTAMP"),
    (Flag::MplsRandom, "MPLS_RND"),
    (Flag::QueueRandom, "QUEUE_MAP_RND"),
    (Flag::QueueCpu, "QUEUE_MAP_CPU"),
    (Flag::FlowsInSequence, "FLOW_SEQ"),
    (Flag::Ipsec, "IPSEC"),
    (Flag::SourceMacRandom, "MACSRC_RND"),
    (Flag::DestinationMacRandom, "MACDST_RND"),
    (Flag::VlanRandom, "VID_RND"),
    (Flag::ServiceVlanRandom, "SVID_RND"),
    (Flag::Node, "NODE"),
    (Flag::Shared, "SHARED"),
];

impl Flags {
    pub(super) fn has(self, flag: Flag) -> bool {
        self.0 & flag.bit() != 0
    }

    pub(super) fn set(&mut self, flag: Flag, to: bool) {
        if to {
            self.0 |= flag.bit();
        } else {
            self.0 &= !flag.bit();
        }
    }
}

impl Flag {
    pub(super) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Parses a flag and its new state: `IPSRC_RND`, `!IPSRC_RND`.
    pub(super) fn parse(word: &str) -> Option<(Self, bool)> {
        let (name, to) = match word.strip_prefix('!') {
            Some(name) => (name, false),
            None => (word, true),
        };
        let (flag, to) = match name {
            // FLOW_RND is the opposite of FLOW_SEQ.
            "FLOW_RND" => (Self::FlowsInSequence, !to),
            // The documentation's name of NODE; the kernel does not accept it.
            "NODE_ALLOC" => (Self::Node, to),
            _ => (FLAGS.iter().find(|(_, known)| *known == name)?.0, to),
        };
        // Only IPv6 addresses set this flag.
        (flag != Self::Ipv6 || !to).then_some((flag, to))
    }
}

/// Returns the names of all flags, separated by commas.
pub(super) fn flag_names() -> String {
    FLAGS.map(|(_, name)| name).join(", ")
}
