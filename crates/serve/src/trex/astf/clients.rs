//! Single clients: switching them, and addresses to ignore.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wirestorm_control::Command;

use super::super::Trex;
use super::super::parameters::{Parameters, done, object_of};
use super::super::rpc::{Answer, RpcError};
use super::StatefulRun;

/// Maximum number of addresses to ignore, of each kind.
const IGNORED_MAX: usize = 1_000;
/// Maximum number of clients in a question.
const CLIENTS_MAX: u64 = 100_000;

/// Returns the ranges of clients in a request, as first and last address.
fn ranges(parameters: &Parameters<'_>) -> Result<Vec<(u32, u32)>, RpcError> {
    let is_range = parameters.flag("is_range")?;
    let items = parameters.array("attr")?.iter().enumerate();
    let range = |(at, item)| {
        let item = object_of(at, item)?;
        match is_range {
            true => Ok((item.u32("client_start_ip")?, item.u32("client_end_ip")?)),
            false => item.u32("client_ip").map(|client| (client, client)),
        }
    };
    items.map(range).collect()
}

/// Returns the active runs.
pub(super) fn runs(trex: &Trex) -> Vec<Arc<StatefulRun>> {
    let state = trex.state();
    state.astf.profiles.values().filter_map(|profile| profile.run.clone()).collect()
}

pub(in super::super) fn enable_disable_client(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    let on = parameters.flag("is_enable")?;
    let address = |bits: u32| IpAddr::V4(Ipv4Addr::from_bits(bits));
    let ranges = ranges(parameters)?;
    let ranges: Vec<_> =
        ranges.into_iter().map(|(first, last)| (address(first), address(last))).collect();
    for run in runs(trex) {
        let command = Command::Clients { ranges: ranges.clone(), on };
        match run.run.handle.command(command) {
            Ok(()) | Err(wirestorm_control::CommandError::Over { .. }) => {}
            Err(error) => return Err(RpcError::execution(error.to_string())),
        }
    }
    done()
}

pub(in super::super) fn get_clients_info_start(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let ranges = ranges(parameters)?;
    let count: u64 =
        ranges.iter().map(|(first, last)| u64::from(last.saturating_sub(*first)) + 1).sum();
    if count > CLIENTS_MAX {
        return Err(RpcError::execution(format!("at most {CLIENTS_MAX} clients in a request")));
    }
    let mut state = trex.state();
    if state.astf.asked_clients.is_some() {
        return Err(RpcError::execution(
            "Getting client info has already started, use get_clients_info_pull to collect the info",
        ));
    }
    let clients = ranges.into_iter().flat_map(|(first, last)| first..=last);
    state.astf.asked_clients = Some(clients.collect());
    Ok(Value::Null)
}

pub(in super::super) fn get_clients_info_pull(trex: &Trex, _: &Parameters<'_>) -> Answer {
    let Some(clients) = trex.state().astf.asked_clients.take() else {
        return Err(RpcError::execution(
            "get_clients_info_start has to be called before get_clients_info_pull",
        ));
    };
    let runs = runs(trex);
    let document = |client: u32| {
        let is_of = |run: &&Arc<StatefulRun>| {
            run.clients.iter().any(|(first, last)| (*first..=*last).contains(&client))
        };
        let Some(run) = runs.iter().find(is_of) else { return json!({"Found": 0}) };
        let address = IpAddr::V4(Ipv4Addr::from_bits(client));
        let is_off = run.run.handle.clients_off().contains(address);
        let mut found = json!({"Found": 1, "state": if is_off { "Inactive" } else { "Active" }});
        if run.tunnels.as_ref().is_some_and(|tunnels| tunnels.has(Ipv4Addr::from_bits(client))) {
            found["tunnel_type"] = "GTP".into();
        }
        found
    };
    let all: Map<String, Value> =
        clients.into_iter().map(|client| (client.to_string(), document(client))).collect();
    Ok(all.into())
}

/// Stores addresses to ignore. `kind`: 0 for MAC addresses, 1 for IPv4 addresses.
fn set_ignored(trex: &Trex, list: &[Value], kind: usize, name: &str) -> Answer {
    if list.len() > IGNORED_MAX {
        return Err(RpcError::execution(format!(
            "The amount of {name} addresses exceeds the maximum size: {IGNORED_MAX}"
        )));
    }
    trex.state().astf.ignored[kind] = list.to_vec();
    Ok(Value::Null)
}

pub(in super::super) fn set_ignored_macs(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    set_ignored(trex, parameters.array("mac_list")?, 0, "MAC")
}

pub(in super::super) fn set_ignored_ips(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    set_ignored(trex, parameters.array("ip_list")?, 1, "IPv4")
}

pub(in super::super) fn get_ignored_macs(trex: &Trex, _: &Parameters<'_>) -> Answer {
    Ok(trex.state().astf.ignored[0].clone().into())
}

pub(in super::super) fn get_ignored_ips(trex: &Trex, _: &Parameters<'_>) -> Answer {
    Ok(trex.state().astf.ignored[1].clone().into())
}

pub(in super::super) fn get_traffic_dist(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let (start, end) = (parameters.text("start_ip")?, parameters.text("end_ip")?);
    let ports = (0..trex.interfaces.len()).step_by(2);
    let all: Map<String, Value> =
        ports.map(|port| (port.to_string(), json!({"0": {"start": start, "end": end}}))).collect();
    Ok(all.into())
}
