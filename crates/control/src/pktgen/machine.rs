//! Threads and interfaces that the kernel's pktgen would find on this machine.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wirestorm_io::link::{self, LinkError};
use wirestorm_io::namespace::{InterfaceName, Namespace};
use wirestorm_plan::pktgen::Link;
use wirestorm_wire::packet::MacAddress;

/// Returns the number of pktgen threads: one for each CPU up to the last online CPU.
pub(super) fn threads() -> u32 {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    last_cpu(&online).map_or(1, |last| last.saturating_add(1))
}

/// Returns the last number of a CPU list such as `0-3,8`.
fn last_cpu(list: &str) -> Option<u32> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

/// Returns the interfaces that devices can use: Ethernet and loopback.
pub(super) fn links() -> Result<BTreeMap<String, Link>, LinkError> {
    links_of(&Namespace::Current)
}

/// Returns the interfaces of the namespace of a device such as `netns/lab:veth0@0`.
pub(super) fn links_in_namespace_of(device: &str) -> BTreeMap<String, Link> {
    let interface = device.split('@').next().unwrap_or_default();
    let interface: Option<InterfaceName> = interface.parse().ok();
    interface.and_then(|it| links_of(&it.namespace).ok()).unwrap_or_default()
}

fn links_of(namespace: &Namespace) -> Result<BTreeMap<String, Link>, LinkError> {
    let addresses = link::addresses(namespace)?;
    let mut links = BTreeMap::new();
    for found in link::list(namespace)? {
        if !matches!(found.link_layer, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
            continue;
        }
        let of_link = || addresses.iter().filter(|it| it.index == found.index);
        let ipv4 = of_link().find_map(|it| match it.address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        });
        let is_usable = |it: &&link::LinkAddress| it.is_link_local && !it.is_tentative;
        let ipv6 = of_link().filter(is_usable).find_map(|it| match it.address {
            IpAddr::V6(address) => Some(address),
            IpAddr::V4(_) => None,
        });
        let mac = MacAddress(found.mac.unwrap_or_default());
        let name = match namespace {
            Namespace::Current => found.name,
            other => format!("netns/{other}:{}", found.name),
        };
        links.insert(name, Link { mac, is_up: found.up, ipv4, ipv6 });
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_cpu_comes_from_the_last_range() {
        assert_eq!(last_cpu("0-3,8\n"), Some(8));
        assert_eq!(last_cpu("0-127"), Some(127));
        assert_eq!(last_cpu("0"), Some(0));
        assert_eq!(last_cpu(""), None);
    }
}
