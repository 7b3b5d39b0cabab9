//! Information elements: identifiers of the fields of records.
//!
//! NetFlow v9 field types up to 127 are the IPFIX elements of the same number (RFC 7012 section 4).

use core::fmt;

/// Enterprise of elements that describe the reverse direction of a biflow (RFC 5103 section 6.1).
pub const REVERSE_ENTERPRISE: u32 = 29_305;

/// Stands for the enterprise of scope fields of NetFlow v9 (RFC 3954 section 6.1), whose numbers are
/// not those of elements. No enterprise has this number.
pub const V9_SCOPE: u32 = u32::MAX;

/// An information element: an enterprise and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId {
    /// IANA private enterprise number; 0 for the elements that IANA registers, and for NetFlow.
    pub enterprise: u32,
    /// Number within the enterprise: up to 32,767 for IPFIX, up to 65,535 for NetFlow v9.
    pub number: u16,
}

impl FieldId {
    /// An element that IANA registers, or a field type of NetFlow v9.
    pub const fn iana(number: u16) -> Self {
        Self { enterprise: 0, number }
    }

    /// The reverse direction of an element that IANA registers.
    pub const fn reverse(number: u16) -> Self {
        Self { enterprise: REVERSE_ENTERPRISE, number }
    }
}

impl fmt::Display for FieldId {
    /// Formats as `8`, or as `29305/2` with an enterprise.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.enterprise {
            0 => write!(f, "{}", self.number),
            enterprise => write!(f, "{enterprise}/{}", self.number),
        }
    }
}

macro_rules! elements {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        $(
            #[doc = $text]
            pub const $name: FieldId = FieldId::iana($number);
        )*
    };
}

elements! {
    OCTET_DELTA_COUNT = 1, "Bytes since the previous record of the flow.";
    PACKET_DELTA_COUNT = 2, "Packets since the previous record of the flow.";
    PROTOCOL = 4, "Protocol of IP's payload.";
    TYPE_OF_SERVICE = 5, "Type of service of IPv4, traffic class of IPv6.";
    TCP_FLAGS = 6, "TCP flags of all packets, ORed.";
    SOURCE_PORT = 7, "Source port.";
    SOURCE_IPV4 = 8, "IPv4 source address.";
    SOURCE_PREFIX_LENGTH = 9, "Bits of the IPv4 source prefix.";
    INPUT_INTERFACE = 10, "Index of the interface that received the flow.";
    DESTINATION_PORT = 11, "Destination port.";
    DESTINATION_IPV4 = 12, "IPv4 destination address.";
    DESTINATION_PREFIX_LENGTH = 13, "Bits of the IPv4 destination prefix.";
    OUTPUT_INTERFACE = 14, "Index of the interface that sent the flow.";
    NEXT_HOP_IPV4 = 15, "IPv4 address of the next hop.";
    SOURCE_AS = 16, "Autonomous system of the source.";
    DESTINATION_AS = 17, "Autonomous system of the destination.";
    LAST_SWITCHED = 21, "Uptime in milliseconds at the last packet.";
    FIRST_SWITCHED = 22, "Uptime in milliseconds at the first packet.";
    POST_OCTET_DELTA_COUNT = 23, "Bytes that left the device.";
    POST_PACKET_DELTA_COUNT = 24, "Packets that left the device.";
    SOURCE_IPV6 = 27, "IPv6 source address.";
    DESTINATION_IPV6 = 28, "IPv6 destination address.";
    ICMP_TYPE_CODE_IPV4 = 32, "ICMP type times 256 plus code.";
    SAMPLING_INTERVAL = 34, "One of this many packets is sampled.";
    SAMPLING_ALGORITHM = 35, "1 for deterministic, 2 for random sampling.";
    EXPORTED_MESSAGES = 41, "Export packets that the exporter sent.";
    EXPORTED_FLOWS = 42, "Flow records that the exporter sent.";
    SAMPLER_ID = 48, "Identifier of a sampler.";
    SAMPLER_RANDOM_INTERVAL = 50, "One of this many packets is sampled at random.";
    VLAN = 58, "VLAN identifier of received frames.";
    IP_VERSION = 60, "IP version: 4 or 6.";
    FLOW_DIRECTION = 61, "0 for ingress, 1 for egress.";
    INTERFACE_NAME = 82, "Short name of an interface.";
    OCTET_TOTAL_COUNT = 85, "Bytes since the start of the flow.";
    PACKET_TOTAL_COUNT = 86, "Packets since the start of the flow.";
    FLOW_END_REASON = 136, "1 idle timeout, 2 active timeout, 3 end of flow, 4 forced end, 5 lack of resources.";
    ICMP_TYPE_CODE_IPV6 = 139, "ICMPv6 type times 256 plus code.";
    LINE_CARD = 141, "Identifier of a line card.";
    OBSERVATION_DOMAIN = 149, "Observation domain.";
    FLOW_START_SECONDS = 150, "Start in seconds since 1970.";
    FLOW_END_SECONDS = 151, "End in seconds since 1970.";
    FLOW_START_MILLISECONDS = 152, "Start in milliseconds since 1970.";
    FLOW_END_MILLISECONDS = 153, "End in milliseconds since 1970.";
    FLOW_START_MICROSECONDS = 154, "Start in NTP format (RFC 7011 section 6.1.9).";
    FLOW_END_MICROSECONDS = 155, "End in NTP format (RFC 7011 section 6.1.9).";
    FLOW_START_NANOSECONDS = 156, "Start in NTP format (RFC 7011 section 6.1.10).";
    FLOW_END_NANOSECONDS = 157, "End in NTP format (RFC 7011 section 6.1.10).";
    FLOW_START_DELTA_MICROSECONDS = 158, "Start in microseconds before the export time.";
    FLOW_END_DELTA_MICROSECONDS = 159, "End in microseconds before the export time.";
    SYSTEM_INIT_MILLISECONDS = 160, "Boot of the exporter in milliseconds since 1970.";
    FLOW_DURATION_MILLISECONDS = 161, "Duration in milliseconds.";
    FLOW_DURATION_MICROSECONDS = 162, "Duration in microseconds.";
    ICMP_TYPE_IPV4 = 176, "ICMP type.";
    ICMP_CODE_IPV4 = 177, "ICMP code.";
    ICMP_TYPE_IPV6 = 178, "ICMPv6 type.";
    ICMP_CODE_IPV6 = 179, "ICMPv6 code.";
    UDP_SOURCE_PORT = 180, "UDP source port.";
    UDP_DESTINATION_PORT = 181, "UDP destination port.";
    TCP_SOURCE_PORT = 182, "TCP source port.";
    TCP_DESTINATION_PORT = 183, "TCP destination port.";
    DSCP = 195, "Differentiated services code point.";
    PADDING = 210, "Padding, without meaning.";
    INITIATOR_OCTETS = 231, "Bytes from the flow's initiator.";
    RESPONDER_OCTETS = 232, "Bytes from the flow's responder.";
    BIFLOW_DIRECTION = 239, "How the direction of a biflow was assigned (RFC 5103 section 6.3).";
    DOT1Q_VLAN = 243, "VLAN identifier of the outermost tag.";
    INITIATOR_PACKETS = 298, "Packets from the flow's initiator.";
    RESPONDER_PACKETS = 299, "Packets from the flow's responder.";
    SELECTOR = 302, "Identifier of a selector of sampled packets.";
    SAMPLING_PACKET_INTERVAL = 305, "Packets that are sampled one after another.";
    SAMPLING_PACKET_SPACE = 306, "Packets between two sampled intervals.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn an_element_shows_its_enterprise_unless_it_is_ianas() {
        assert_eq!(SOURCE_IPV4.to_string(), "8");
        assert_eq!(FieldId::reverse(2).to_string(), "29305/2");
    }
}
