//! Interfaces of emulated devices, and their addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

use super::ports::{LagSettings, Names};
use super::problems::{ConfigError, Problems, unsupported};
use crate::proto::device_ipv4_gateway_mac::choice::Enum as Gateway4;
use crate::proto::device_ipv6_gateway_mac::choice::Enum as Gateway6;
use crate::proto::ethernet_connection::choice::Enum as Connection;
use crate::proto::{Config, Device, DeviceEthernet, DeviceIpv4, DeviceIpv6, DeviceVlan};

/// An Ethernet interface of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of the device.
    pub device: String,
    /// Name of the interface.
    pub name: String,
    /// Index of the port; the first member of a link aggregation group. The device answers at all.
    pub port: usize,
    /// Index of the link aggregation group.
    pub lag: Option<usize>,
    /// Ethernet address.
    pub mac: MacAddress,
    /// MTU in bytes.
    pub mtu: u32,
    /// VLAN tags of its frames, outer first.
    pub vlans: Vec<VlanTag>,
    /// IP addresses. The interface answers ARP, neighbour discovery and pings for them.
    pub addresses: Vec<InterfaceAddress>,
}

/// A VLAN tag of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Ethernet type of the tag.
    pub tpid: u16,
    /// Priority, 0 to 7.
    pub priority: u8,
    /// VLAN ID, 0 to 4095.
    pub id: u16,
}

/// An IP address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Name in the configuration.
    pub name: String,
    /// The address with the length of its network's prefix.
    pub prefix: Prefix,
    /// Next hop to other networks.
    pub gateway: IpAddr,
    /// Ethernet address of the gateway; `None` if it must be resolved.
    pub gateway_mac: Option<MacAddress>,
}

/// What a flow names as its source or destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// Index of the interface.
    pub(super) interface: usize,
    /// Index of the address; `None` for the Ethernet interface itself.
    pub(super) address: Option<usize>,
}

/// All interfaces, and what flows can name.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    pub(super) list: Vec<Interface>,
    pub(super) endpoints: BTreeMap<String, Endpoint>,
}

/// Reads the devices.
pub(super) fn read(
    config: &Config,
    ports: &Names,
    lags: (&[LagSettings], &Names),
    problems: &mut Problems,
) -> Interfaces {
    let mut interfaces = Interfaces::default();
    for (index, device) in config.devices.iter().enumerate() {
        let path = format!("devices[{index}]");
        refuse_protocols(device, &path, problems);
        for (index, ethernet) in device.ethernets.iter().enumerate() {
            let path = format!("{path}.ethernets[{index}]");
            let reader = Reader { path: &path, ports, lags };
            let outcome = reader.interface(device, ethernet, &mut interfaces, problems);
            problems.take(outcome);
        }
    }
    interfaces
}

/// Reports the protocols of a device: their packets would be missing.
fn refuse_protocols(device: &Device, path: &str, problems: &mut Problems) {
    let protocols = [
        ("isis", device.isis.is_some()),
        ("bgp", device.bgp.is_some()),
        ("vxlan", device.vxlan.is_some()),
        ("rsvp", device.rsvp.is_some()),
        ("dhcp_server", device.dhcp_server.is_some()),
        ("ospfv2", device.ospfv2.is_some()),
        ("ospfv3", device.ospfv3.is_some()),
        ("macsec", device.macsec.is_some()),
        ("rocev2", device.rocev2.is_some()),
        ("bmp", device.bmp.is_some()),
        ("ipv4_loopbacks", !device.ipv4_loopbacks.is_empty()),
        ("ipv6_loopbacks", !device.ipv6_loopbacks.is_empty()),
    ];
    for (name, _) in protocols.iter().filter(|(_, is_set)| *is_set) {
        problems.error(unsupported(format!("{path}.{name}")));
    }
}

struct Reader<'a> {
    path: &'a str,
    ports: &'a Names,
    lags: (&'a [LagSettings], &'a Names),
}

impl Reader<'_> {
    fn interface(
        &self,
        device: &Device,
        ethernet: &DeviceEthernet,
        interfaces: &mut Interfaces,
        problems: &mut Problems,
    ) -> Result<(), ConfigError> {
        let path = self.path;
        if !ethernet.dhcpv4_interfaces.is_empty() || !ethernet.dhcpv6_interfaces.is_empty() {
            problems.error(unsupported(format!("{path}.dhcp_interfaces")));
        }
        let (port, lag) = self.connection(ethernet)?;
        let mut addresses = Vec::new();
        for (index, address) in ethernet.ipv4_addresses.iter().enumerate() {
            let path = format!("{path}.ipv4_addresses[{index}]");
            addresses.extend(problems.take(ipv4(address, &path)));
        }
        for (index, address) in ethernet.ipv6_addresses.iter().enumerate() {
            let path = format!("{path}.ipv6_addresses[{index}]");
            addresses.extend(problems.take(ipv6(address, &path)));
        }
        let mac = match &ethernet.mac {
            Some(mac) => parse(mac, "an Ethernet address", || format!("{path}.mac"))?,
            None => generated_mac(interfaces.list.len()),
        };
        let mut vlans = Vec::with_capacity(ethernet.vlans.len());
        for (index, vlan) in ethernet.vlans.iter().enumerate() {
            vlans.push(tag(vlan, &format!("{path}.vlans[{index}]"))?);
        }
        let interface = interfaces.list.len();
        let ethernet_end = Endpoint { interface, address: None };
        let first = Endpoint { interface, address: (!addresses.is_empty()).then_some(0) };
        // Older clients name the device.
        interfaces.endpoints.entry(device.name().to_owned()).or_insert(first);
        let named = addresses.iter().enumerate().map(|(index, address)| {
            (address.name.clone(), Endpoint { interface, address: Some(index) })
        });
        let all = named.chain([(ethernet.name().to_owned(), ethernet_end)]);
        for (name, endpoint) in all.collect::<Vec<_>>() {
            if interfaces.endpoints.insert(name.clone(), endpoint).is_some_and(|old| old != first) {
                let message = format!("found the name {name:?} a second time");
                problems.error(ConfigError::new(path, message));
            }
        }
        interfaces.list.push(Interface {
            device: device.name().to_owned(),
            name: ethernet.name().to_owned(),
            port,
            lag,
            mac,
            mtu: ethernet.mtu.unwrap_or(1500),
            vlans,
            addresses,
        });
        Ok(())
    }

    fn connection(&self, ethernet: &DeviceEthernet) -> Result<(usize, Option<usize>), ConfigError> {
        let path = format!("{}.connection", self.path);
        let nothing = || ConfigError::new(&path, "found nothing, expected port_name or lag_name");
        let connection = ethernet.connection.as_ref().ok_or_else(nothing)?;
        match connection.choice() {
            Connection::PortName => {
                let path = format!("{path}.port_name");
                Ok((self.ports.port(connection.port_name(), path)?, None))
            }
            Connection::LagName => {
                let path = format!("{path}.lag_name");
                let (lags, names) = self.lags;
                let lag = names.find(connection.lag_name(), "LAG", &path)?;
                let first = lags.get(lag).and_then(|lag| lag.ports.first());
                let first =
                    first.ok_or_else(|| ConfigError::new(path, "found a LAG without ports"))?;
                Ok((*first, Some(lag)))
            }
            Connection::Unspecified => Err(nothing()),
            other => Err(unsupported(format!("{path}.{}", other.as_str_name()))),
        }
    }
}

/// Returns a locally administered address for an interface that has none.
fn generated_mac(index: usize) -> MacAddress {
    let [.., high, middle, low] = (index as u32 + 1).to_be_bytes();
    MacAddress([2, 0x57, 0x53, high, middle, low])
}

fn tag(vlan: &DeviceVlan, path: &str) -> Result<VlanTag, ConfigError> {
    let name = vlan.tpid().as_str_name();
    let tpid = match name.strip_prefix('x').map(|digits| u16::from_str_radix(digits, 16)) {
        Some(Ok(tpid)) => tpid,
        _ => 0x8100,
    };
    let (priority, id) = (vlan.priority(), vlan.id.unwrap_or(1));
    match (u8::try_from(priority), u16::try_from(id)) {
        (Ok(priority @ 0..=7), Ok(id @ 0..=4095)) => Ok(VlanTag { tpid, priority, id }),
        _ => {
            let message = format!("found priority {priority} and ID {id}, expected 0-7 and 0-4095");
            Err(ConfigError::new(path, message))
        }
    }
}

fn ipv4(address: &DeviceIpv4, path: &str) -> Result<InterfaceAddress, ConfigError> {
    let gateway_mac = match &address.gateway_mac {
        Some(mac) if mac.choice() == Gateway4::Value => Some(mac.value()),
        _ => None,
    };
    let length = (address.prefix.unwrap_or(24), 32);
    let texts = (address.name(), address.address(), address.gateway());
    interface_address(texts, length, gateway_mac, |address| address.is_ipv4(), path)
}

fn ipv6(address: &DeviceIpv6, path: &str) -> Result<InterfaceAddress, ConfigError> {
    let gateway_mac = match &address.gateway_mac {
        Some(mac) if mac.choice() == Gateway6::Value => Some(mac.value()),
        _ => None,
    };
    let length = (address.prefix.unwrap_or(64), 128);
    let texts = (address.name(), address.address(), address.gateway());
    interface_address(texts, length, gateway_mac, |address| address.is_ipv6(), path)
}

fn interface_address(
    (name, address, gateway): (&str, &str, &str),
    (length, length_max): (u32, u8),
    gateway_mac: Option<&str>,
    is_version: impl Fn(&IpAddr) -> bool,
    path: &str,
) -> Result<InterfaceAddress, ConfigError> {
    let ip = |text: &str, field: &str| {
        let parsed = text.parse::<IpAddr>().ok().filter(&is_version);
        parsed.ok_or_else(|| {
            let version = if length_max == 32 { 4 } else { 6 };
            let message = format!("found {text:?}, expected an IPv{version} address");
            ConfigError::new(format!("{path}.{field}"), message)
        })
    };
    let length = u8::try_from(length).ok().filter(|length| *length <= length_max);
    let length = length.ok_or_else(|| {
        ConfigError::new(format!("{path}.prefix"), format!("expected at most {length_max}"))
    })?;
    let mac =
        |text: &str| parse(text, "an Ethernet address", || format!("{path}.gateway_mac.value"));
    Ok(InterfaceAddress {
        name: name.to_owned(),
        prefix: Prefix { address: ip(address, "address")?, length },
        gateway: ip(gateway, "gateway")?,
        gateway_mac: gateway_mac.map(mac).transpose()?,
    })
}

fn parse<T: std::str::FromStr>(
    text: &str,
    expected: &str,
    path: impl FnOnce() -> String,
) -> Result<T, ConfigError> {
    text.parse()
        .map_err(|_| ConfigError::new(path(), format!("found {text:?}, expected {expected}")))
}
