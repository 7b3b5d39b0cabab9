//! Commands about the server, and the state of its ports.

use std::fs;

use serde_json::{Map, Value, json};
use wirestorm_control::machine;

use super::capture_port::CapturePort;
use super::captures::RxQueue;
use super::events::Event;
use super::parameters::{Parameters, done};
use super::port::PortState;
use super::rpc::{Answer, RpcError};
use super::{Trex, TrexMode, commands, now_s};

/// Version of TRex whose protocol the server speaks.
const VERSION: &str = "v3.08";
/// Maximum number of packet groups that the server reports.
const GROUPS_MAX: u32 = 1_023;

/// Returns the version of the API in a mode: major, minor.
const fn api_version(mode: TrexMode) -> (i64, i64) {
    match mode {
        TrexMode::Stl => (5, 1),
        TrexMode::Astf => (2, 3),
    }
}

fn check_version(trex: &Trex, name: &str, major: i64, minor: i64) -> Result<(), RpcError> {
    let own = trex.mode.name();
    if name != own {
        return Err(RpcError::execution(format!(
            "RPC configuration mismatch - server RPC configuration: '{own}', client RPC \
             configuration: '{name}'"
        )));
    }
    let (own_major, own_minor) = api_version(trex.mode);
    let versions = format!(
        "(API type '{own}': - server: '{own_major}.{own_minor}', client: '{major}.{minor}')"
    );
    if major < own_major {
        let text = format!("RPC version mismatch: a newer client version is required\n{versions}");
        return Err(RpcError::execution(text));
    }
    if major > own_major || minor > own_minor {
        return Err(RpcError::execution(format!(
            "Version mismatch: your client version is too new to be supported by the \
             server\n{versions}"
        )));
    }
    Ok(())
}

pub(super) fn api_sync(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let versions = parameters.array("api_vers")?;
    let [version] = versions else {
        return Err(RpcError::parameters("'api_vers' should be a list of size 1"));
    };
    let version = super::parameters::object_of(0, version)?;
    check_version(trex, "STL", version.int("major")?, version.int("minor")?)?;
    Ok(json!({"api_vers": [{"type": version.text("type")?, "api_h": trex.api_handler}]}))
}

pub(super) fn api_sync_v2(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let name = parameters.text("name")?;
    check_version(trex, name, parameters.int("major")?, parameters.int("minor")?)?;
    Ok(json!({"api_h": trex.api_handler}))
}

pub(super) fn ping(_: &Trex, _: &Parameters<'_>) -> Answer {
    Ok(json!({"ts": now_s()}))
}

pub(super) fn get_version(trex: &Trex, _: &Parameters<'_>) -> Answer {
    Ok(json!({
        "version": VERSION,
        "build_date": "Nov  5 2025",
        "build_time": "15:55:45",
        "built_by": concat!("wirestorm ", env!("CARGO_PKG_VERSION")),
        "mode": trex.mode.name(),
    }))
}

pub(super) fn get_supported_cmds(trex: &Trex, _: &Parameters<'_>) -> Answer {
    Ok(commands::names(trex.mode).into_iter().collect())
}

pub(super) fn publish_now(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    parameters.u32("key")?;
    parameters.flag("baseline")?;
    trex.wake();
    done()
}

pub(super) fn get_async_events(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let session = parameters.u32("session_id")?;
    Ok(json!({"data": trex.state().sessions.take(session)}))
}

pub(super) fn get_global_cfg(_: &Trex, _: &Parameters<'_>) -> Answer {
    Ok(json!({"sched_max_stretch": 0.0, "process_at_cp": false, "do_mbuf_cache": false}))
}

pub(super) fn set_global_cfg(_: &Trex, _: &Parameters<'_>) -> Answer {
    Err(RpcError::execution("the configuration of this server is fixed"))
}

pub(super) fn get_system_info(trex: &Trex, _: &Parameters<'_>) -> Answer {
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut caps = vec!["flow_stats", "latency", "rx_bytes"];
    if trex.mode == TrexMode::Stl {
        caps.push("tpg");
    }
    let ports: Vec<Value> = trex
        .interfaces
        .iter()
        .enumerate()
        .map(|(number, interface)| {
            let facts = interface.facts();
            json!({
                "index": number,
                // A name that TRex's clients know.
                "driver": "net_af_packet",
                "description": interface.name.to_string(),
                "pci_addr": "N/A",
                "numa": -1,
                "hw_mac": facts.mac.to_string(),
                "stack": "legacy",
                "rx": {"caps": caps, "counters": GROUPS_MAX},
                "is_fc_supported": false,
                "is_led_supported": false,
                "is_link_supported": false,
                "is_prom_supported": true,
                "is_vxlan_supported": false,
                "is_ieee1588_supported": false,
                "is_virtual": facts.is_virtual,
                "supp_speeds": [(facts.speed.per_second() / 1e6) as u64],
                "cores": [number / 2],
            })
        })
        .collect();
    Ok(json!({
        "hostname": hostname.trim(),
        "uptime": started(trex),
        "dp_core_count": trex.interfaces.len().div_ceil(2),
        "dp_core_count_per_port": 1,
        "core_type": machine::MachineRecord::read().cpu_model,
        "is_multiqueue_mode": true,
        "advanced_per_stream_stats": true,
        "port_count": ports.len(),
        "ports": ports,
    }))
}

/// Returns the start of the server as free text.
fn started(trex: &Trex) -> String {
    let seconds = trex.started_unix_ns / 1_000_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Civil date from days since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02} UTC", second % 60)
}

pub(super) fn get_port_status(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let number = trex.port_id(parameters)?;
    let profile = parameters.text_or("profile_id", "")?;
    let owner = trex.lessee(number).unwrap_or_default();
    let state = trex.state();
    let port = &state.ports[number];
    let ids = port.profiles.values().flat_map(|profile| profile.streams.last_key_value());
    let mut attributes = trex.attributes(number, port);
    attributes["layer_cfg"] = trex.layers(number, port);
    attributes["vlan"] = json!({"tags": port.layers.vlans});
    let inactive = || json!({"is_active": false});
    let capture_port = CapturePort::document(port.capture_port.as_ref());
    let mut status = json!({
        "owner": owner,
        "state": port.state().name(),
        "service": port.is_service,
        "service_filtered": port.is_filtered,
        "profile_count": port.profiles.len(),
        "max_stream_id": ids.map(|(id, _)| *id).max().unwrap_or(0),
        "attr": attributes,
        "rx_info": {
            "latency": inactive(),
            "queue": RxQueue::document(port.rx_queue.as_ref()),
            "stack": inactive(),
            "grat_arp": inactive(),
            "capture_port": capture_port,
            "capwap_proxy": inactive(),
        },
    });
    match profile {
        "" => {}
        "*" => {
            let states = port.profiles.iter();
            let states: Map<String, Value> =
                states.map(|(name, it)| (name.clone(), it.state().name().into())).collect();
            status["state_profile"] = states.into();
        }
        name => {
            let found = port.profiles.get(name).map_or(PortState::Idle, |it| it.state());
            status["state_profile"] = found.name().into();
        }
    }
    Ok(status)
}

pub(super) fn shutdown(_: &Trex, parameters: &Parameters<'_>) -> Answer {
    parameters.text("user")?;
    parameters.flag("force")?;
    Err(RpcError::execution(
        "this server also serves others: its administrator ends the process `wirestorm serve`",
    ))
}

impl Trex {
    /// Publishes links that changed.
    pub(super) fn publish_links(&self) {
        for (number, interface) in self.interfaces.iter().enumerate() {
            let facts = interface.facts();
            let link = (facts.is_up, facts.speed.per_second() as u64);
            let mut state = self.state();
            let before = state.ports[number].published_link.replace(link);
            if before.is_some_and(|before| before != link) {
                let attributes = self.attributes(number, &state.ports[number]);
                self.publish(&mut state, [Event::PortAttributes { port: number, attributes }]);
            }
        }
    }
}
