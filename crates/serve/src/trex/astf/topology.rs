//! Topologies: gateways of clients, with virtual interfaces of their own.
//!
//! ```text
//! vif: port 0, number 2, MAC address, VLAN      source address and VLAN of its gateways' clients
//! gw:  port 0, number 2, first, last, MAC       destination address of these clients' frames
//! ```
//!
//! Gateways of number 0 belong to the port itself.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wirestorm_control::model::address_range::AddressRange;
use wirestorm_control::plan::emulation::{Client, Devices, MplsLabels};
use wirestorm_control::plan::trex::stateful;
use wirestorm_control::wire::packet::MacAddress;

use super::super::Trex;
use super::super::parameters::{Parameters, object_of};
use super::super::port::Layers;
use super::super::rpc::{Answer, RpcError};

/// Maximum length of a topology in bytes, and maximum number of its gateways.
const TEXT_BYTES_MAX: usize = 16 << 20;
const GATEWAYS_MAX: usize = 10_000;
/// VLAN IDs; 0 stands for none.
const VLANS: std::ops::RangeInclusive<u32> = 0..=4_095;

/// A gateway of clients.
#[derive(Clone, Debug, PartialEq)]
struct Gateway {
    port: usize,
    first: Ipv4Addr,
    last: Ipv4Addr,
    destination: MacAddress,
    /// Source address and VLAN of a virtual interface; `None` for those of the port.
    interface: Option<(MacAddress, Option<u16>)>,
}

/// The topology of the server.
#[derive(Debug, Default)]
pub(super) struct Topology {
    /// Fragments that have arrived.
    text: String,
    /// MD5 digest of the text, from the client.
    hash: Option<String>,
    /// Virtual interfaces and gateways as the client sent them.
    vifs: Vec<Value>,
    gws: Vec<Value>,
    gateways: Arc<[Gateway]>,
}

/// Gateways that a profile uses.
#[derive(Clone, Debug, Default)]
pub(super) struct Gateways(Arc<[Gateway]>);

impl Topology {
    pub(super) fn gateways(&self) -> Gateways {
        Gateways(Arc::clone(&self.gateways))
    }

    /// Reads the whole text. `ports`: number of the ports.
    fn load(&mut self, ports: usize) -> Result<(), RpcError> {
        let text = std::mem::take(&mut self.text);
        let wrong = |what: String| RpcError::execution(format!("Topology parsing error: {what}"));
        let document: Value =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let document = document.as_object().ok_or_else(|| wrong("found no object".to_owned()))?;
        let document = Parameters(document);
        let (vifs, gws) = (document.array("vifs")?, document.array("gws")?);
        if vifs.len() > GATEWAYS_MAX || gws.len() > GATEWAYS_MAX {
            return Err(wrong(format!("at most {GATEWAYS_MAX} VIFs and GWs")));
        }
        let port_of = |item: &Parameters<'_>, kind: &str| {
            let port = item.u32("trex_port")? as usize;
            match port < ports {
                true => Ok(port),
                false => Err(wrong(format!("{kind} TRex port is too large: {port}"))),
            }
        };
        let mac = |item: &Parameters<'_>, name: &str| {
            let text = item.text(name)?;
            text.parse::<MacAddress>().map_err(|_| wrong(format!("{name}: invalid MAC: '{text}'")))
        };
        let mut interfaces = BTreeMap::new();
        for (at, vif) in vifs.iter().enumerate() {
            let vif = object_of(at, vif)?;
            let (port, number) = (port_of(&vif, "VIF")?, vif.u32("sub_if")?);
            if number == 0 {
                return Err(wrong("VIF 'sub_if' must be positive".to_owned()));
            }
            let vlan = vif.u32("vlan")?;
            if !VLANS.contains(&vlan) {
                return Err(wrong(format!("VIF 'vlan' is too large: {vlan}")));
            }
            let vlan = u16::try_from(vlan).ok().filter(|vlan| *vlan > 0);
            if interfaces.insert((port, number), (mac(&vif, "src_mac")?, vlan)).is_some() {
                return Err(wrong(format!("Double sub_if: {number}")));
            }
        }
        let mut gateways = Vec::with_capacity(gws.len());
        for (at, gw) in gws.iter().enumerate() {
            let gw = object_of(at, gw)?;
            let (port, number) = (port_of(&gw, "GW")?, gw.u32("sub_if")?);
            if port % 2 == 1 {
                return Err(wrong(format!(
                    "GW must be specified only for 'client' TRex ports, got: {port}"
                )));
            }
            let interface = interfaces.get(&(port, number)).copied();
            if number > 0 && interface.is_none() {
                return Err(wrong(format!("GW has sub_if '{number}' which is missing")));
            }
            let address = |name: &str| {
                let text = gw.text(name)?;
                text.parse().map_err(|_| wrong(format!("{name}: invalid IPv4: '{text}'")))
            };
            let (first, last): (Ipv4Addr, Ipv4Addr) = (address("src_start")?, address("src_end")?);
            if first > last {
                return Err(wrong(format!("GW: src_start {first} is behind src_end {last}")));
            }
            let destination = mac(&gw, "dst_mac")?;
            gateways.push(Gateway { port, first, last, destination, interface });
        }
        (self.vifs, self.gws) = (vifs.to_vec(), gws.to_vec());
        self.gateways = gateways.into();
        Ok(())
    }
}

impl Gateways {
    /// Adds the gateways of a client's port, which precede the VLAN of the port.
    pub(super) fn apply(&self, client: &mut Client, layers: &Layers) {
        let Some(clients) = client.addresses else { return };
        for gateway in self.0.iter().filter(|gateway| gateway.port == client.transmit) {
            let first = match clients.first {
                IpAddr::V4(_) => gateway.first.into(),
                // The last 32 bits of the IPv6 address are the IPv4 address.
                IpAddr::V6(network) => stateful::in_network(network, gateway.first).into(),
            };
            let count = gateway.last.to_bits() - gateway.first.to_bits();
            let vlan = match gateway.interface {
                Some((_, vlan)) => vlan,
                None => layers.vlans.first().copied(),
            };
            client.devices.push(Devices {
                clients: AddressRange { first, count: count.saturating_add(1) },
                stride: 1,
                count: 1,
                vlan: vlan.map(Into::into),
                labels: MplsLabels::default(),
                destination: Some(gateway.destination),
                source: gateway.interface.map(|(source, _)| source),
                next_hop: None,
            });
        }
    }
}

pub(in super::super) fn topo_get(trex: &Trex, _: &Parameters<'_>) -> Answer {
    let state = trex.state();
    let topology = &state.astf.topology;
    let list = |items: &[Value]| match items {
        [] => Value::Null,
        items => items.to_vec().into(),
    };
    Ok(json!({"topo_data": {"vifs": list(&topology.vifs), "gws": list(&topology.gws)}}))
}

pub(in super::super) fn topo_clear(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    trex.state().astf.topology = Topology::default();
    Ok(Value::Null)
}

pub(in super::super) fn topo_fragment(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    let is_first = parameters.flag_or("frag_first", false)?;
    let is_last = parameters.flag_or("frag_last", false)?;
    let mut state = trex.state();
    let topology = &mut state.astf.topology;
    if is_first {
        let hash = match is_last {
            true => None,
            false => Some(parameters.text("md5")?.to_owned()),
        };
        if hash.is_some() && topology.hash == hash && topology.text.is_empty() {
            return Ok(json!({"matches_loaded": true}));
        }
        *topology = Topology { hash, ..Topology::default() };
    }
    let fragment = parameters.text("fragment")?;
    if topology.text.len() + fragment.len() > TEXT_BYTES_MAX {
        *topology = Topology::default();
        return Err(RpcError::execution(format!(
            "the topology is longer than {TEXT_BYTES_MAX} bytes"
        )));
    }
    topology.text.push_str(fragment);
    if is_last && let Err(error) = topology.load(trex.interfaces.len()) {
        *topology = Topology::default();
        return Err(error);
    }
    Ok(Value::Object(Map::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(vifs: &Value, gws: &Value) -> Result<Topology, String> {
        let text = json!({"vifs": vifs, "gws": gws}).to_string();
        let mut topology = Topology { text, ..Topology::default() };
        topology.load(2).map(|()| topology).map_err(|error| error.text().to_owned())
    }

    fn vif(number: u32) -> Value {
        json!({
            "trex_port": 0, "sub_if": number, "src_mac": "02:00:00:00:00:01", "vlan": 30,
            "src_ipv4": "", "src_ipv6": "",
        })
    }

    fn gw(port: u32, number: u32, first: &str, last: &str) -> Value {
        json!({
            "trex_port": port, "sub_if": number, "src_start": first, "src_end": last,
            "dst": "1.1.1.1", "dst_mac": "02:00:00:00:00:02",
        })
    }

    #[test]
    fn clients_of_a_gateway_have_the_addresses_of_its_interface() {
        let gws = json!([gw(0, 2, "16.0.0.1", "16.0.0.9"), gw(0, 0, "16.0.0.10", "16.0.0.10")]);
        let topology = loaded(&json!([vif(2)]), &gws).unwrap();
        let own = MacAddress([2, 0, 0, 0, 0, 1]);
        assert_eq!(topology.gateways[0].interface, Some((own, Some(30))));
        assert_eq!(topology.gateways[1].interface, None);
        assert_eq!(topology.gateways[1].destination, MacAddress([2, 0, 0, 0, 0, 2]));
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let (first, last) = ("16.0.0.1", "16.0.0.9");
        let cases = [
            (json!([vif(2), vif(2)]), json!([]), "Double sub_if: 2"),
            (json!([vif(0)]), json!([]), "'sub_if' must be positive"),
            (json!([]), json!([gw(0, 3, first, last)]), "sub_if '3' which is missing"),
            (json!([]), json!([gw(1, 0, first, last)]), "only for 'client' TRex ports, got: 1"),
            (json!([]), json!([gw(2, 0, first, last)]), "GW TRex port is too large: 2"),
            (json!([]), json!([gw(0, 0, last, first)]), "16.0.0.9 is behind src_end 16.0.0.1"),
            (json!([]), json!([gw(0, 0, "x", last)]), "src_start: invalid IPv4: 'x'"),
            (json!([]), json!([{"trex_port": 0, "sub_if": 0}]), "'src_start' value is null"),
            (json!({}), json!([]), "'vifs'"),
        ];
        for (vifs, gws, expected) in cases {
            let error = loaded(&vifs, &gws).unwrap_err();
            assert!(error.contains(expected), "{error}: {expected}");
        }
    }
}
