//! Addresses that a port shares with the kernel.

use std::net::IpAddr;

use wirestorm_io::link::{self, Link, LinkAddress};
use wirestorm_io::namespace::InterfaceName;
use wirestorm_model::address_range::AddressRange;
use wirestorm_plan::emulation::EmulationPlan;

/// Returns a warning if the kernel has an address of a port, its clients or its servers on the same
/// interface. With packet sockets the kernel also receives the frames, and resets connections that
/// it does not know.
pub(in crate::emulation) fn warning(
    plan: &EmulationPlan,
    port: usize,
    interface: &InterfaceName,
    link: &Link,
) -> Option<String> {
    // Without the kernel's addresses there is no warning.
    let addresses = link::addresses(&interface.namespace).unwrap_or_default();
    let on_it = addresses.iter().filter(|it| it.index == link.index);
    let shared: Vec<&LinkAddress> =
        on_it.filter(|it| uses_address(plan, port, it.address)).collect();
    let first = shared.first()?;
    let command =
        format!("ip addr del {}/{} dev {}", first.address, first.length, interface.name());
    let more = match shared.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    Some(format!(
        "{interface}: {}{more} belongs to port {:?} and to the kernel, which resets connections \
         that it does not know, unless AF_XDP carries the frames; remove it from the kernel: {}",
        first.address,
        plan.ports[port].name,
        interface.namespace.command(&command)
    ))
}

/// Whether a port, its clients or its servers have this address.
fn uses_address(plan: &EmulationPlan, port: usize, address: IpAddr) -> bool {
    let clients = plan.templates.iter().filter_map(|it| it.client.as_ref());
    let clients = clients.filter(|it| it.transmit == port).filter_map(|it| it.addresses);
    let servers = plan.templates.iter().filter_map(|it| it.server.as_ref());
    let servers = servers.filter(|it| it.transmit == port).filter_map(|it| it.addresses);
    plan.ports[port].addresses.iter().any(|prefix| prefix.address == address)
        || clients.chain(servers).any(|range| has(&range, address))
}

fn has(range: &AddressRange, address: IpAddr) -> bool {
    let place = match (range.first, address) {
        (IpAddr::V4(first), IpAddr::V4(address)) => {
            address.to_bits().checked_sub(first.to_bits()).map(u128::from)
        }
        (IpAddr::V6(first), IpAddr::V6(address)) => address.to_bits().checked_sub(first.to_bits()),
        _ => None,
    };
    place.is_some_and(|place| place < range.count.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_contains_only_its_addresses() {
        let range = |first: &str| AddressRange { first: first.parse().unwrap(), count: 3 };
        let is_in = |first, address: &str| has(&range(first), address.parse().unwrap());
        assert!(is_in("10.0.0.1", "10.0.0.1") && is_in("10.0.0.1", "10.0.0.3"));
        assert!(!is_in("10.0.0.1", "10.0.0.0") && !is_in("10.0.0.1", "10.0.0.4"));
        assert!(is_in("fd00::1", "fd00::3") && !is_in("fd00::1", "fd00::4"));
        assert!(!is_in("10.0.0.1", "fd00::1"));
    }
}
