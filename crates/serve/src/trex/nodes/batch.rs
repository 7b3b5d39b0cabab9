//! The commands of a batch.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};
use wirestorm_control::wire::packet::MacAddress;

use super::super::parameters::{Parameters, object_of};
use super::super::rpc::{Answer, RpcError};
use super::filter::{Tag, Tags};
use super::node::{Home, Ipv4, Ipv6, PortNodes};

/// TPIDs of one tag, and of the outer of two: IEEE 802.1Q and 802.1ad.
const TPID: u16 = 0x8100;
const OUTER_TPID: u16 = 0x88a8;
const VLANS_MAX: usize = 2;
const MTUS: std::ops::RangeInclusive<u32> = 68..=9_238;

/// Runs a command; its result is null if it has none.
pub(super) fn run_command(nodes: &mut PortNodes, command: &Value) -> Answer {
    let command = object_of(0, command)?;
    let method = command.text("method")?;
    let none = serde_json::Map::new();
    let parameters = match command.find("params") {
        Some(_) => command.object("params")?,
        None => Parameters(&none),
    };
    let parameters = &parameters;
    match method {
        "add_node" => add_node(nodes, parameters),
        "add_shared_ns" => nodes.add_shared_namespace().map(Value::from).map_err(failed),
        "remove_node" => done(nodes.remove(mac(parameters)?)),
        "remove_shared_ns" => done(nodes.remove_shared_namespace(parameters.text("shared_ns")?)),
        "remove_all" => done(nodes.remove_all()),
        "set_vlans" => set_vlans(nodes, parameters),
        "set_ipv4" => set_ipv4(nodes, parameters),
        "clear_ipv4" => done(nodes.set_ipv4(mac(parameters)?, None)),
        "set_ipv6" => set_ipv6(nodes, parameters),
        "set_dg" => {
            let gateway = address(parameters, "dg")?;
            done(nodes.set_gateway(parameters.text("shared_ns")?, gateway))
        }
        "set_mtu" => {
            let mtu = parameters.u32("mtu")?;
            if !MTUS.contains(&mtu) {
                let (least, most) = (MTUS.start(), MTUS.end());
                let text = format!("mtu: found {mtu}, expected {least} to {most}");
                return Err(RpcError::parameters(text));
            }
            done(nodes.set_mtu(mac(parameters)?, mtu))
        }
        "set_vlan_filter" => {
            let mask = parameters.byte_or("filter_mask", 0)?;
            done(nodes.set_filter(mac(parameters)?, mask))
        }
        // Without an effect in TRex too.
        "set_filter" | "get_commands" => Ok(Value::Null),
        "get_nodes" => {
            let only_bird = parameters.flag_or("only_bird", false)?;
            Ok(json!({"nodes": nodes.macs(only_bird)}))
        }
        "get_nodes_info" => {
            let macs = parameters.array("macs")?.iter();
            let document = |mac: &Value| nodes.document(parse_mac(mac.as_str().unwrap_or(""))?);
            let documents = macs.map(document).collect::<Result<Vec<_>, _>>()?;
            Ok(json!({"nodes": documents}))
        }
        "counters_clear" => {
            nodes.counters().clear();
            Ok(Value::Null)
        }
        "counters_get_meta" => Ok(nodes.counters().descriptions()),
        "counters_get_value" => Ok(nodes.counters().values(parameters.flag("zeros")?)),
        _ => Err(RpcError::execution(format!("Method {method} not registered"))),
    }
}

fn failed(error: String) -> RpcError {
    RpcError::execution(error)
}

fn done(outcome: Result<(), String>) -> Answer {
    outcome.map(|()| Value::Null).map_err(failed)
}

fn parse_mac(text: &str) -> Result<MacAddress, RpcError> {
    text.parse().map_err(|_| RpcError::parameters(format!("wrong mac format: '{text}'")))
}

fn mac(parameters: &Parameters<'_>) -> Result<MacAddress, RpcError> {
    parse_mac(parameters.text("mac")?)
}

fn address<T: std::str::FromStr>(parameters: &Parameters<'_>, name: &str) -> Result<T, RpcError> {
    let text = parameters.text(name)?;
    text.parse().map_err(|_| RpcError::parameters(format!("{name}: invalid address '{text}'")))
}

fn prefix_length(parameters: &Parameters<'_>, most: u8) -> Result<u8, RpcError> {
    let length = parameters.byte_or("subnet", 0)?;
    match (1..=most).contains(&length) {
        true => Ok(length),
        false => Err(RpcError::parameters(format!("subnet: {length} is not valid!"))),
    }
}

fn add_node(nodes: &mut PortNodes, parameters: &Parameters<'_>) -> Answer {
    let mac = mac(parameters)?;
    let home = match (parameters.flag_or("is_bird", false)?, parameters.text_or("shared_ns", "")?) {
        (false, "") => Home::Own,
        (true, "") => Home::Bird,
        (false, name) => Home::Shared(name.to_owned()),
        (true, _) => {
            let text = "Cannot add node with bird option and shared namespace!";
            return Err(RpcError::execution(text));
        }
    };
    done(nodes.add(mac, home))
}

fn set_vlans(nodes: &mut PortNodes, parameters: &Parameters<'_>) -> Answer {
    let mac = mac(parameters)?;
    let vlans = parameters.u16s("vlans")?;
    if vlans.len() > VLANS_MAX {
        let found = vlans.len();
        let text = format!("Maximal number of stacked VLANs is {VLANS_MAX}, got: {found}");
        return Err(RpcError::parameters(text));
    }
    if let Some(wrong) = vlans.iter().find(|vlan| !(1..=4_095).contains(*vlan)) {
        return Err(RpcError::parameters(format!("invalid VLAN tag: '{wrong}'")));
    }
    let tpids = match parameters.find("tpids") {
        Some(_) => parameters.u16s("tpids")?,
        None => Vec::new(),
    };
    if !tpids.is_empty() && tpids.len() != vlans.len() {
        let text = "mismatch between size of vlan tags and tpids";
        return Err(RpcError::parameters(text));
    }
    let defaults: &[u16] = if vlans.len() == 2 { &[OUTER_TPID, TPID] } else { &[TPID] };
    let used = if tpids.is_empty() { defaults } else { &tpids };
    let tags = vlans.iter().zip(used).map(|(vlan, tpid)| Tag { tpid: *tpid, vlan: *vlan });
    done(nodes.set_tags(mac, Tags(tags.collect())))
}

fn set_ipv4(nodes: &mut PortNodes, parameters: &Parameters<'_>) -> Answer {
    let mac = mac(parameters)?;
    let address: Ipv4Addr = address(parameters, "ipv4")?;
    let ipv4 = match parameters.flag_or("shared_ns", false)? {
        true => Ipv4::Network { address, length: prefix_length(parameters, 32)? },
        false => Ipv4::Host { address, gateway: self::address(parameters, "dg")? },
    };
    done(nodes.set_ipv4(mac, Some(ipv4)))
}

fn set_ipv6(nodes: &mut PortNodes, parameters: &Parameters<'_>) -> Answer {
    let mac = mac(parameters)?;
    if !parameters.flag("enable")? {
        return done(nodes.set_ipv6(mac, None));
    }
    let is_shared = parameters.flag_or("shared_ns", false)?;
    let address: Option<Ipv6Addr> = match parameters.text_or("src_ipv6", "")? {
        "" => None,
        _ => Some(address(parameters, "src_ipv6")?),
    };
    let length = match (is_shared, address) {
        (true, Some(_)) => prefix_length(parameters, 128)?,
        (true, None) => 0,
        (false, _) => 128,
    };
    done(nodes.set_ipv6(mac, Some(Ipv6 { address, length, is_shared })))
}
