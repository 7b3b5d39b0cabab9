//! New addresses in every pass, so that each pass brings new flows.
//!
//! Pass n lowers the smaller address of a packet by n and raises the larger by n. Both directions
//! of a conversation change alike. The sum of the two addresses stays, so the IP, TCP and UDP
//! checksums stay valid. (RFC 1071: the checksum is a sum of 16-bit words modulo 2^16 - 1.) In IPv6
//! addresses the low 32 bits change.

use core::net::{IpAddr, Ipv6Addr};

use wirestorm_wire::flow::FlowKey;

/// Fields that change from pass to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniqueFields {
    /// The addresses.
    Addresses,
    /// The addresses and the larger of the two TCP or UDP ports, which is the ephemeral one.
    AddressesAndPorts,
}

/// Fields to change, and how many passes share the same addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unique {
    /// Fields that change.
    pub what: UniqueFields,
    /// Number of passes with the same addresses, in thousandths, at least 1,000. With 1,000 the
    /// addresses change on every pass; with 1,500 after two passes and one pass alternately.
    pub passes_milli: u64,
}

impl Unique {
    /// Returns the iteration n of a pass, both counted from 0; it never decreases.
    pub const fn iteration(&self, pass: u64) -> u64 {
        (pass as u128 * 1_000 / self.passes_milli as u128) as u64
    }

    /// Returns the key of a captured flow in iteration `n`. Ports stay as captured.
    pub fn key_in_iteration(&self, key: FlowKey, n: u64) -> FlowKey {
        let (source, destination) = (key.source(), key.destination());
        let (from, to) = addresses_in_iteration(low_bits(source), low_bits(destination), n as u32);
        let moved = match (source, destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => FlowKey::ipv6(
                with_low_bits(source, from),
                with_low_bits(destination, to),
                key.protocol(),
            ),
            _ => FlowKey::ipv4(from.to_be_bytes(), to.to_be_bytes(), key.protocol()),
        };
        moved.with_ports(key.source_port(), key.destination_port()).with_vlan(key.vlan())
    }
}

/// Returns the part of an address that changes.
fn low_bits(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => address.to_bits() as u32,
    }
}

fn with_low_bits(address: Ipv6Addr, low: u32) -> [u8; 16] {
    (address.to_bits() >> 32 << 32 | u128::from(low)).to_be_bytes()
}

/// Returns the addresses of a packet in iteration `n`: (source, destination).
#[inline]
pub(super) const fn addresses_in_iteration(source: u32, destination: u32, n: u32) -> (u32, u32) {
    if destination > source {
        let (destination, source) = spread_addresses(destination, source, n);
        (source, destination)
    } else {
        spread_addresses(source, destination, n)
    }
}

/// Returns `larger + n` and `smaller - n`; their sum stays the same modulo 2^16 - 1.
const fn spread_addresses(larger: u32, smaller: u32, n: u32) -> (u32, u32) {
    let (up, up_wrapped) = larger.overflowing_add(n);
    let (down, down_wrapped) = smaller.overflowing_sub(n);
    // A wrap changes the sum by 2^32, which is 1 modulo 2^16 - 1. Two wraps cancel out.
    match (up_wrapped, down_wrapped) {
        (true, false) => (up.wrapping_add(1), down),
        (false, true) => (up, down.wrapping_sub(1)),
        _ => (up, down),
    }
}

/// Returns an ephemeral port in iteration `n`, moved within 1024 to 65535; lower ports stay.
#[inline]
pub(super) const fn port_in_iteration(port: u16, n: u64) -> u16 {
    const FIRST: u64 = 1024;
    const PORTS: u64 = 65_536 - FIRST;
    if (port as u64) < FIRST {
        return port;
    }
    (FIRST + (port as u64 - FIRST + n % PORTS) % PORTS) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u32 = 0x0a00_0001;
    const B: u32 = 0xc0a8_0102;

    fn folded_sum(a: u32, b: u32) -> u32 {
        ((u64::from(a) + u64::from(b)) % 0xffff) as u32
    }

    #[test]
    fn both_directions_of_a_conversation_change_alike() {
        assert_eq!(addresses_in_iteration(A, B, 7), (A - 7, B + 7));
        assert_eq!(addresses_in_iteration(B, A, 7), (B + 7, A - 7));
    }

    #[test]
    fn key_of_a_flow_follows_its_addresses() {
        let unique = Unique { what: UniqueFields::Addresses, passes_milli: 1_000 };
        let ipv4 = FlowKey::ipv4([10, 0, 0, 1], [192, 168, 1, 2], 6).with_ports(1_024, 80);
        let moved = FlowKey::ipv4([9, 255, 255, 254], [192, 168, 1, 5], 6).with_ports(1_024, 80);
        assert_eq!(unique.key_in_iteration(ipv4, 3), moved);
        let ipv6 = |low: u8, high: u8| {
            let address = |last: u8| {
                let mut address = [0x20; 16];
                address[12..].copy_from_slice(&[0, 0, 0, last]);
                address
            };
            FlowKey::ipv6(address(low), address(high), 17).with_ports(53, 53)
        };
        assert_eq!(unique.key_in_iteration(ipv6(9, 20), 4), ipv6(5, 24));
    }

    #[test]
    fn first_pass_keeps_the_captured_addresses() {
        assert_eq!(addresses_in_iteration(A, B, 0), (A, B));
    }

    #[test]
    fn sum_modulo_65535_stays_across_wraps() {
        for (source, destination) in [(A, B), (3, u32::MAX - 3), (0, 0), (5, 900), (1, u32::MAX)] {
            for n in [1, 2, 4, 1_000, 0x8000_0000, u32::MAX] {
                let (moved_source, moved_destination) =
                    addresses_in_iteration(source, destination, n);
                assert_eq!(
                    folded_sum(source, destination),
                    folded_sum(moved_source, moved_destination),
                    "{source:#x} {destination:#x} {n}"
                );
            }
        }
    }

    #[test]
    fn iterations_follow_the_passes_and_never_decrease() {
        let every = |passes_milli| {
            let unique = Unique { what: UniqueFields::Addresses, passes_milli };
            (0..7).map(move |pass| unique.iteration(pass))
        };
        assert!(every(1_000).eq([0, 1, 2, 3, 4, 5, 6]));
        assert!(every(2_000).eq([0, 0, 1, 1, 2, 2, 3]));
        assert!(every(1_500).eq([0, 0, 1, 2, 2, 3, 4]));
    }

    #[test]
    fn ephemeral_ports_stay_ephemeral_and_system_ports_stay() {
        assert_eq!(port_in_iteration(80, 5), 80);
        assert_eq!(port_in_iteration(40_000, 5), 40_005);
        assert_eq!(port_in_iteration(65_535, 1), 1_024);
        assert_eq!(port_in_iteration(1_024, 64_512), 1_024);
    }
}
