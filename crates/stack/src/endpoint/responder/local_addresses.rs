//! MAC and IP addresses of an endpoint. An Ethernet may also deliver frames for other hosts.

use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;
use wirestorm_wire::prefix::Prefix;

use crate::frame::is_unicast_address;
use wirestorm_model::address_range::AddressRange;

/// Largest MAC address as a number.
const NUMBER_MAX: u64 = (1 << 48) - 1;

/// MAC and IP addresses of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::endpoint) struct LocalAddresses {
    /// Ranges of own MAC addresses as numbers, first and last, sorted. Empty: all unicast
    /// addresses.
    pub(super) macs: Vec<(u64, u64)>,
    /// Addresses besides those of clients and servers, with their networks.
    pub(super) addresses: Vec<Prefix>,
    /// Whether packets come from other hosts, which is assumed if the interface has a MAC address.
    /// The loopback interface has none.
    pub(super) is_on_wire: bool,
    /// Host addresses that are valid although they are group addresses.
    pub(super) hosts: Vec<AddressRange>,
}

impl LocalAddresses {
    /// Creates the ranges from first addresses and their numbers, modulo 2^48.
    pub(super) fn new(macs: impl IntoIterator<Item = (u64, u32)>, addresses: Vec<Prefix>) -> Self {
        let mut ranges = Vec::new();
        for (first, count) in macs {
            let last = first + u64::from(count.max(1) - 1);
            ranges.push((first, last.min(NUMBER_MAX)));
            if last > NUMBER_MAX {
                ranges.push((0, last & NUMBER_MAX));
            }
        }
        ranges.sort_unstable();
        ranges.dedup_by(|next, before| {
            let touches = next.0 <= before.1 + 1;
            if touches {
                before.1 = before.1.max(next.1);
            }
            touches
        });
        Self { macs: ranges, addresses, ..Self::default() }
    }

    /// Whether a frame with this start is for the endpoint. Frames for groups never are, and are
    /// never answered (RFC 1122 section 3.2.2). The lowest bit of the first byte marks groups (IEEE
    /// 802.3 section 3.2.3).
    pub(in crate::endpoint) fn take(&self, frame: &[u8]) -> bool {
        let Some(destination) = frame.first_chunk() else { return false };
        let number = number(destination);
        let behind = self.macs.partition_point(|(first, _)| *first <= number);
        let is_own = behind.checked_sub(1).is_some_and(|place| number <= self.macs[place].1);
        destination[0] & 1 == 0 && (is_own || self.macs.is_empty())
    }

    /// Whether the addresses and ports of a packet are valid.
    ///
    /// RFC 9293 section 3.9.2.3: "An incoming SYN with an invalid source address MUST be ignored
    /// either by TCP or by the IP layer", and "A TCP implementation MUST silently discard an
    /// incoming SYN segment that is addressed to a broadcast or multicast address". The second rule
    /// applies to all segments. RFC 1122 section 4.1.3.6: "A UDP datagram received with an invalid
    /// IP source address (e.g., a broadcast or multicast address) must be discarded by UDP or by
    /// the IP layer". RFC 768, of the source port: "If not used, a value of zero is inserted." No
    /// answer could reach it.
    pub(super) fn are_valid(&self, key: &FlowKey) -> bool {
        let (source, destination) = (key.source(), key.destination());
        // The answer to a datagram for a group would have the group as its source.
        let is_to_host =
            self.is_host(destination) || key.protocol() == protocol::UDP && !self.is_on_wire;
        let is_from_itself = source == destination
            && (self.is_on_wire || key.source_port() == key.destination_port());
        // RFC 1122 section 3.2.1.3: loopback addresses "MUST NOT appear outside a host".
        let is_within_host = self.is_on_wire && (source.is_loopback() || destination.is_loopback());
        let is_from_nobody = key.protocol() == protocol::UDP && key.source_port() == 0;
        let is_from_host = self.is_host(source) && !is_from_nobody;
        is_from_host && is_to_host && !is_from_itself && !is_within_host
    }

    /// Whether an address may be a host's. Without a wire, group addresses may be: no other host
    /// exists.
    fn is_host(&self, address: IpAddr) -> bool {
        let is_broadcast = self.addresses.iter().any(|prefix| prefix.is_broadcast(address));
        is_unicast_address(address) && !is_broadcast
            || address.is_multicast() && !self.is_on_wire
            || self.hosts.iter().any(|range| range.contains(address))
    }
}

/// Converts a MAC address to a number.
pub(in crate::endpoint) fn number(mac: &[u8; 6]) -> u64 {
    mac.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::frame::octets;

    #[test]
    fn addresses_of_no_host_are_invalid() {
        let key = |source: &str, destination: &str, protocol, port| {
            let [a, b] = [source, destination].map(|it| it.parse::<IpAddr>().unwrap());
            let key = match (a, b) {
                (IpAddr::V4(a), IpAddr::V4(b)) => FlowKey::ipv4(a.octets(), b.octets(), protocol),
                (a, b) => FlowKey::ipv6(octets(a), octets(b), protocol),
            };
            key.with_ports(port, 80)
        };
        let first = "ff03::1".parse().unwrap();
        let hosts = vec![AddressRange { first, count: 2 }];
        let addresses = vec![Prefix { address: "10.0.9.1".parse().unwrap(), length: 24 }];
        let local_addresses = |is_on_wire| LocalAddresses {
            is_on_wire,
            hosts: hosts.clone(),
            addresses: addresses.clone(),
            ..LocalAddresses::default()
        };
        // Expected validity: TCP and UDP on a wire, TCP and UDP without one.
        let cases = [
            ("10.0.0.1", "10.0.0.2", [true; 4]),
            ("2001:db8::1", "2001:db8::2", [true; 4]),
            ("224.0.0.1", "10.0.0.2", [false, false, true, true]),
            ("255.255.255.255", "10.0.0.2", [false; 4]),
            ("0.0.0.0", "10.0.0.2", [false; 4]),
            ("ff02::1", "2001:db8::2", [false, false, true, true]),
            // These are listed as hosts.
            ("ff03::1", "ff03::2", [true; 4]),
            ("ff03::1", "ff03::3", [false, false, true, true]),
            ("::", "2001:db8::2", [false; 4]),
            ("10.0.0.1", "255.255.255.255", [false, false, false, true]),
            // Broadcasts of its own network, and of others, which it does not know.
            ("10.0.9.2", "10.0.9.255", [false, false, false, true]),
            ("10.0.9.255", "10.0.9.1", [false; 4]),
            ("10.0.8.255", "10.0.10.255", [true; 4]),
            ("10.0.0.1", "239.1.2.3", [false, false, true, true]),
            ("2001:db8::1", "ff02::1", [false, false, true, true]),
            ("127.0.0.1", "10.0.0.2", [false, false, true, true]),
            ("::1", "2001:db8::2", [false, false, true, true]),
            ("10.0.0.1", "127.0.0.2", [false, false, true, true]),
            ("10.0.0.2", "10.0.0.2", [false, false, true, true]),
        ];
        for (source, destination, expected) in cases {
            let found = [true, false].map(|is_on_wire| {
                let local_addresses = local_addresses(is_on_wire);
                [protocol::TCP, protocol::UDP]
                    .map(|it| local_addresses.are_valid(&key(source, destination, it, 1_024)))
            });
            assert_eq!(found.as_flattened(), expected, "{source} to {destination}");
        }
        // From the same port as the destination port.
        let key = |source| key(source, "10.0.0.2", protocol::TCP, 80);
        assert!(!local_addresses(false).are_valid(&key("10.0.0.2")));
        assert!(local_addresses(true).are_valid(&key("10.0.0.1")));
    }

    #[test]
    fn mac_ranges_wrap_and_merge() {
        let macs = [(NUMBER_MAX - 3, 8), (0x0200_0000_0010, 4), (0x0200_0000_0014, 1), (8, 0)];
        let local_addresses = LocalAddresses::new(macs, Vec::new());
        let takes = |number: u64| local_addresses.take(&number.to_be_bytes()[2..]);
        for number in [0, 2, 8, 0x0200_0000_0010, 0x0200_0000_0014] {
            assert!(takes(number), "{number:x}");
        }
        for other in [4, 7, 9, 0x0200_0000_000f, 0x0200_0000_0015] {
            assert!(!takes(other), "{other:x}");
        }
        assert!(!takes(NUMBER_MAX), "a group address");
        assert_eq!(local_addresses.macs.len(), 4);
        assert!(!local_addresses.take(&[2; 5]), "cut short");
        let all = LocalAddresses::default();
        assert!(all.take(&[2; 6]) && !all.take(&[3; 6]));
    }
}
