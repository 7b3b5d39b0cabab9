//! GTP-U tunnels of clients: the tunnel mode and its topology.
//!
//! ```text
//! activate_tunnel_mode ─> topology: ranges of clients with their tunnels ─┐
//!                         latency clients of the pairs of ports           v
//! update_tunnel_client ─────────────────────> running profiles: tunnels of their ports
//! ```
//!
//! The ports of clients encapsulate; in loopback mode also those of servers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use wirestorm_control::model::tunnel::ClientTunnels;
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_control::plan::trex::stateful;
use wirestorm_control::result::TunnelsReport;
use wirestorm_control::tunnel::TunnelTable;
use wirestorm_control::{Command, CommandError, Detail};

use super::super::Trex;
use super::super::parameters::{Parameters, done, object_of};
use super::super::rpc::{Answer, RpcError};
use super::clients::runs;
use super::counters::reports;
use super::table::{Described, counter, description, error};
use super::{ProfileState, StatefulRun, profile_name};

/// TRex's number of GTP-U, its only type of tunnels.
const GTPU: u32 = 1;
/// Maximum length of a topology in bytes, and maximum number of its ranges.
const TEXT_BYTES_MAX: usize = 16 << 20;
const CONTEXTS_MAX: usize = 10_000;
/// Topology without tunnels.
const EMPTY: &str = r#"{"tunnels": [], "latency": []}"#;
const INACTIVE: &str = "Tunnel mode has to be activated in order to use Tunnel Topology";

/// The counters of tunnels, in the order of their numbers.
const COUNTERS: [Described; 15] = [
    counter("m_tunnel_encapsulated", "num of encapsulated pkts"),
    counter("m_tunnel_decapsulated", "num of decapsulated pkts"),
    error("m_err_tunnel_drops", "num of pkts drop"),
    error("m_err_tunnel_no_context", "num of pkts without ctx"),
    error("m_err_tunnel_dir", "wrong pkt direction"),
    error("m_err_pkt_null", "num of null pkts"),
    error("m_err_buf_addr_null", "num of pkts with null buf addr"),
    error("m_err_l3_hdr", "num of pkts with wrong l3 hdr"),
    error("m_err_headroom", "num of pkts with small headroom"),
    error("m_err_l4_hdr", "num of pkts with wrong l4 hdr"),
    error("m_err_buf_len", "num of pkts with small buf len"),
    error("m_err_dst_port", "num of pkts with wrong destination port"),
    error("m_err_gtpu_type", "num of pkts with wrong gtpu type"),
    error("m_err_data_len", "num of pkts with small data len"),
    error("m_encapsulated_hdr", "num of pkts with wrong encapsulated hdr"),
];

/// Clients with consecutive addresses and their tunnels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Context {
    tunnels: ClientTunnels,
    /// Whether the clients work from the start on.
    is_active: bool,
}

/// The tunnel mode of the server.
#[derive(Debug, Default)]
pub(super) struct Tunnels {
    is_active: bool,
    /// Whether the ports of servers encapsulate too.
    is_loopback: bool,
    /// Changes when the mode is activated or deactivated.
    epoch: u64,
    topology: Topology,
}

/// Topology of tunnels.
#[derive(Debug, Default)]
struct Topology {
    /// Fragments that have arrived, or the whole text.
    text: String,
    /// MD5 digest of the text, from the client.
    hash: Option<String>,
    is_loaded: bool,
    contexts: Arc<[Context]>,
    /// Addresses of the client and the server of the latency traffic, by the port of the client.
    latency: BTreeMap<usize, [Ipv4Addr; 2]>,
}

/// Tunnels of a running profile.
pub(super) struct RunTunnels {
    /// Whether the frames have room for outer headers of IPv6.
    has_room_for_ipv6: bool,
    /// Networks whose addresses end with the IPv4 address of a client.
    networks: BTreeSet<Ipv6Addr>,
    table: Mutex<TunnelTable>,
}

/// Tunnels of the latency traffic.
#[derive(Clone, Debug)]
pub(super) struct LatencyTunnels {
    table: Arc<TunnelTable>,
    is_loopback: bool,
    /// Addresses of clients and servers by the port of the client.
    pub(super) routes: BTreeMap<usize, [Ipv4Addr; 2]>,
}

impl LatencyTunnels {
    /// Returns the tunnels of a port; `None` if its packets are in none.
    pub(super) fn of(&self, port: usize) -> Option<Arc<TunnelTable>> {
        (port.is_multiple_of(2) || self.is_loopback).then(|| Arc::clone(&self.table))
    }
}

impl Topology {
    /// Reads the whole text. `ports`: number of the ports.
    fn load(&mut self, ports: usize) -> Result<(), RpcError> {
        let document: Value =
            serde_json::from_str(&self.text).map_err(|error| wrong(error.to_string()))?;
        let document = document.as_object().ok_or_else(|| wrong("found no object"))?;
        let document = Parameters(document);
        let (tunnels, latency) = (document.array("tunnels")?, document.array("latency")?);
        if tunnels.len() > CONTEXTS_MAX {
            return Err(wrong(format!("at most {CONTEXTS_MAX} tunnel contexts")));
        }
        let contexts = tunnels.iter().enumerate().map(|(at, item)| context(&object_of(at, item)?));
        let mut contexts = contexts.collect::<Result<Vec<_>, _>>()?;
        contexts.sort_unstable_by_key(|it| it.tunnels.first);
        for pair in contexts.windows(2) {
            let [before, after] = [pair[0].tunnels, pair[1].tunnels];
            if before.last >= after.first {
                return Err(wrong(format!(
                    "Tunnel context ranges intersect: {}-{} {}-{}",
                    before.first, before.last, after.first, after.last
                )));
            }
        }
        let pairs = ports / 2;
        if !latency.is_empty() && latency.len() != pairs {
            return Err(wrong(format!(
                "There should be one latency client per dual port: found {}, expected {pairs}",
                latency.len()
            )));
        }
        let table: TunnelTable = contexts.iter().map(|it| &it.tunnels).collect();
        for (at, item) in latency.iter().enumerate() {
            let item = object_of(at, item)?;
            let port = item.u32("client_port_id")? as usize;
            if !port.is_multiple_of(2) || port >= ports {
                return Err(wrong(format!(
                    "client_port_id: found {port}, expected an even number below {ports}"
                )));
            }
            let route: [Ipv4Addr; 2] = [address(&item, "client_ip")?, address(&item, "server_ip")?];
            if table.of(route[0].into()).is_none() {
                let client = route[0];
                return Err(wrong(format!("no tunnel context for the client_ip: {client}")));
            }
            if self.latency.insert(port, route).is_some() {
                return Err(wrong(format!("at least two instances of the port: {port}")));
            }
        }
        self.contexts = contexts.into();
        self.is_loaded = true;
        Ok(())
    }
}

fn wrong(what: impl std::fmt::Display) -> RpcError {
    RpcError::execution(format!("Tunnel Topology parsing error: {what}"))
}

fn address<T: std::str::FromStr>(item: &Parameters<'_>, name: &str) -> Result<T, RpcError> {
    let text = item.text(name)?;
    text.parse().map_err(|_| wrong(format!("invalid {name}: '{text}'")))
}

/// Returns the tunnel ends of an item; they have the IP version of the item.
fn ends(item: &Parameters<'_>, names: [&str; 2]) -> Result<[IpAddr; 2], RpcError> {
    let [from, to] = match item.u32("version")? {
        4 => names.map(|name| address::<Ipv4Addr>(item, name).map(IpAddr::V4)),
        6 => names.map(|name| address::<Ipv6Addr>(item, name).map(IpAddr::V6)),
        version => return Err(wrong(format!("version: found {version}, expected 4 or 6"))),
    };
    Ok([from?, to?])
}

fn context(item: &Parameters<'_>) -> Result<Context, RpcError> {
    let (first, last): (Ipv4Addr, Ipv4Addr) =
        (address(item, "src_start")?, address(item, "src_end")?);
    if first > last {
        return Err(wrong(format!("src_start {first} is behind src_end {last}")));
    }
    let kind = item.u32("tunnel_type")?;
    if kind != GTPU {
        return Err(wrong(format!("tunnel_type: found {kind}, expected {GTPU}, which is GTP-U")));
    }
    let [from, to] = ends(item, ["src_ip", "dst_ip"])?;
    let tunnels = ClientTunnels {
        first: first.into(),
        last: last.into(),
        teid: item.u32("initial_teid")?,
        teid_step: item.u32("teid_jump")?,
        from,
        to,
        source_port: NonZeroU16::new(item.u16("sport")?),
    };
    Ok(Context { tunnels, is_active: item.flag("activate")? })
}

/// Adds the tunnels of the IPv6 addresses that end with the IPv4 addresses of clients.
fn with_networks(tunnels: &[ClientTunnels], networks: &BTreeSet<Ipv6Addr>) -> Vec<ClientTunnels> {
    let in_networks = tunnels.iter().flat_map(|tunnels| {
        networks.iter().filter_map(|network| {
            let (IpAddr::V4(first), IpAddr::V4(last)) = (tunnels.first, tunnels.last) else {
                return None;
            };
            let inside = |address| stateful::in_network(*network, address).into();
            Some(ClientTunnels { first: inside(first), last: inside(last), ..*tunnels })
        })
    });
    tunnels.iter().copied().chain(in_networks).collect()
}

impl Tunnels {
    /// Gives the ports of a plan their tunnels; `None` without tunnel mode.
    pub(super) fn apply(&self, plan: &mut EmulationPlan) -> Option<RunTunnels> {
        if !self.is_active {
            return None;
        }
        let clients = plan.templates.iter().filter_map(|it| it.client.as_ref()?.addresses);
        let networks: BTreeSet<Ipv6Addr> = clients
            .filter_map(|clients| match clients.first {
                IpAddr::V4(_) => None,
                IpAddr::V6(first) => Some(stateful::in_network(first, Ipv4Addr::UNSPECIFIED)),
            })
            .collect();
        let tunnels: Vec<_> = self.topology.contexts.iter().map(|it| it.tunnels).collect();
        let tunnels = with_networks(&tunnels, &networks);
        let has_ipv6 = tunnels.iter().any(|tunnels| tunnels.from.is_ipv6());
        for (number, port) in plan.ports.iter_mut().enumerate() {
            if number.is_multiple_of(2) || self.is_loopback {
                port.tunnels = Some(tunnels.clone());
            }
        }
        Some(RunTunnels {
            // Ports without tunnels at the start have room for both.
            has_room_for_ipv6: tunnels.is_empty() || has_ipv6,
            networks,
            table: Mutex::new(tunnels.iter().collect()),
        })
    }

    /// Returns the clients that do not work from the start on, as first and last address.
    pub(super) fn inactive(&self, tunnels: &RunTunnels) -> Vec<(IpAddr, IpAddr)> {
        let inactive = self.topology.contexts.iter().filter(|it| !it.is_active);
        let inactive: Vec<_> = inactive.map(|it| it.tunnels).collect();
        let inactive = with_networks(&inactive, &tunnels.networks).into_iter();
        inactive.map(|tunnels| (tunnels.first, tunnels.last)).collect()
    }

    /// Returns whether the topology has clients for latency traffic.
    pub(super) fn has_latency_clients(&self) -> bool {
        !self.topology.latency.is_empty()
    }

    /// Returns the tunnels of latency traffic; `None` without tunnel mode.
    ///
    /// # Errors
    /// The topology has no clients for latency traffic.
    pub(super) fn of_latency(&self) -> Result<Option<LatencyTunnels>, String> {
        const PREFIX: &str = "In Tunnel mode with latency the tunnel_topology must be loaded";
        match &self.topology {
            _ if !self.is_active => Ok(None),
            Topology { is_loaded: false, .. } => Err(PREFIX.to_owned()),
            Topology { latency, .. } if latency.is_empty() => {
                Err(format!("{PREFIX} with latency clients"))
            }
            Topology { contexts, latency, .. } => Ok(Some(LatencyTunnels {
                table: Arc::new(contexts.iter().map(|it| &it.tunnels).collect()),
                is_loopback: self.is_loopback,
                routes: latency.clone(),
            })),
        }
    }
}

impl RunTunnels {
    /// Returns whether a client has a tunnel.
    pub(super) fn has(&self, client: Ipv4Addr) -> bool {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.of(client.into()).is_some()
    }

    /// Changes tunnels of a run.
    fn change(&self, run: &StatefulRun, tunnels: &[ClientTunnels]) -> Result<(), RpcError> {
        if !self.has_room_for_ipv6 && tunnels.iter().any(|it| it.to.is_ipv6()) {
            return Err(RpcError::execution(
                "tunnels over IPv6 need 20 bytes more than those of the topology: start the \
                 profile with a topology that has a tunnel over IPv6, or without one",
            ));
        }
        let tunnels = with_networks(tunnels, &self.networks);
        match run.run.handle.command(Command::Tunnels(tunnels.clone())) {
            Ok(()) => {
                let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
                tunnels.iter().for_each(|tunnels| table.insert(tunnels));
                Ok(())
            }
            Err(CommandError::Over { .. }) => Ok(()),
            Err(error) => Err(RpcError::execution(error.to_string())),
        }
    }
}

pub(in super::super) fn is_tunnel_supported(_: &Trex, parameters: &Parameters<'_>) -> Answer {
    let kind = parameters.u32("tunnel_type")?;
    if kind == GTPU {
        return Ok(json!({"is_tunnel_supported": true}));
    }
    let text = format!("Tunnel is not supported: type {kind}, expected {GTPU}, which is GTP-U");
    Ok(json!({"is_tunnel_supported": false, "error_msg": text}))
}

pub(in super::super) fn activate_tunnel_mode(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let kind = parameters.u32("tunnel_type")?;
    let is_loopback = parameters.flag("loopback")?;
    let is_active = parameters.flag("activate")?;
    let mut state = trex.state();
    if state.astf_state() != ProfileState::Idle {
        return Err(RpcError::execution("The server state should be IDLE"));
    }
    let tunnels = &mut state.astf.tunnels;
    let problem = match (tunnels.is_active, is_active) {
        (true, true) => Some("The tunnel mode have been already activated"),
        (false, false) => Some("The tunnel mode is already off"),
        (false, true) if kind != GTPU => {
            Some("The tunnel handler is null on tunnel mode: tunnel type is not supported")
        }
        _ => None,
    };
    if let Some(problem) = problem {
        return Err(RpcError::execution(problem));
    }
    *tunnels = Tunnels {
        is_active,
        is_loopback: is_loopback && is_active,
        epoch: tunnels.epoch + 1,
        topology: Topology::default(),
    };
    done()
}

pub(in super::super) fn update_tunnel_client(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let kind = parameters.u32("tunnel_type")?;
    if !trex.state().astf.tunnels.is_active {
        return Err(RpcError::execution("The tunnel mode needs to be activated"));
    }
    if kind != GTPU {
        return Err(RpcError::execution("tunnel type is not supported"));
    }
    let one = |(at, item)| {
        let item = object_of(at, item)?;
        let [from, to] = ends(&item, ["sip", "dip"])?;
        let client = Ipv4Addr::from_bits(item.u32("client_ip")?).into();
        Ok(ClientTunnels {
            first: client,
            last: client,
            teid: item.u32("teid")?,
            teid_step: 0,
            from,
            to,
            source_port: NonZeroU16::new(item.u16("sport")?),
        })
    };
    let items = parameters.array("attr")?.iter().enumerate();
    let tunnels = items.map(one).collect::<Result<Vec<_>, RpcError>>()?;
    for run in runs(trex) {
        if let Some(of_run) = &run.tunnels {
            of_run.change(&run, &tunnels)?;
        }
    }
    done()
}

fn check_active(tunnels: &Tunnels) -> Result<(), RpcError> {
    if tunnels.is_active { Ok(()) } else { Err(RpcError::execution(INACTIVE)) }
}

pub(in super::super) fn tunnel_topo_get(trex: &Trex, _: &Parameters<'_>) -> Answer {
    let tunnels = &trex.state().astf.tunnels;
    check_active(tunnels)?;
    let topology = &tunnels.topology;
    let text = if topology.is_loaded { topology.text.as_str() } else { EMPTY };
    Ok(json!({"tunnel_topo_data": text}))
}

pub(in super::super) fn tunnel_topo_clear(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    let tunnels = &mut trex.state().astf.tunnels;
    check_active(tunnels)?;
    tunnels.topology = Topology::default();
    done()
}

pub(in super::super) fn tunnel_topo_fragment(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    let is_first = parameters.flag_or("frag_first", false)?;
    let is_last = parameters.flag_or("frag_last", false)?;
    let tunnels = &mut trex.state().astf.tunnels;
    check_active(tunnels)?;
    let topology = &mut tunnels.topology;
    if is_first {
        let hash = match is_last {
            true => None,
            false => Some(parameters.text("md5")?.to_owned()),
        };
        if hash.is_some() && topology.hash == hash && topology.is_loaded {
            return Ok(json!({"matches_loaded": true}));
        }
        *topology = Topology { hash, ..Topology::default() };
    }
    let fragment = parameters.text("fragment")?;
    if topology.is_loaded {
        return Err(wrong("a fragment without a first one"));
    }
    if topology.text.len() + fragment.len() > TEXT_BYTES_MAX {
        *topology = Topology::default();
        return Err(wrong(format!("the topology is longer than {TEXT_BYTES_MAX} bytes")));
    }
    topology.text.push_str(fragment);
    if is_last && let Err(error) = topology.load(trex.interfaces.len()) {
        *topology = Topology::default();
        return Err(error);
    }
    done()
}

pub(in super::super) fn get_dynamic_counter_desc(trex: &Trex, _: &Parameters<'_>) -> Answer {
    let (is_active, epoch) = epoch(trex);
    let counters = COUNTERS.iter().filter(|_| is_active).enumerate();
    let data: Vec<Value> = counters.map(|(number, it)| description(number, it)).collect();
    Ok(json!({"name": "counter desc", "data": data, "epoch": epoch}))
}

pub(in super::super) fn get_dynamic_counter_values(
    trex: &Trex,
    parameters: &Parameters<'_>,
) -> Answer {
    dynamic_counters(trex, parameters, Some(profile_name(parameters)?))
}

pub(in super::super) fn get_total_dynamic_counter_values(
    trex: &Trex,
    parameters: &Parameters<'_>,
) -> Answer {
    dynamic_counters(trex, parameters, None)
}

fn epoch(trex: &Trex) -> (bool, u64) {
    let tunnels = &trex.state().astf.tunnels;
    (tunnels.is_active, tunnels.epoch)
}

/// Returns the counters of the tunnels of a profile, or of all.
fn dynamic_counters(trex: &Trex, parameters: &Parameters<'_>, profile: Option<&str>) -> Answer {
    let (is_active, epoch) = epoch(trex);
    if parameters.u64("epoch")? != epoch {
        return Ok(json!({"epoch_err": 1}));
    }
    let runs: Vec<Arc<StatefulRun>> = {
        let state = trex.state();
        let profiles = state.astf.profiles.iter();
        let profiles = profiles.filter(|(name, _)| profile.is_none_or(|it| it == name.as_str()));
        profiles.filter_map(|(_, profile)| profile.last.clone()).filter(|_| is_active).collect()
    };
    let mut sums = [[0; COUNTERS.len()]; 2];
    for run in runs.iter().filter(|run| run.tunnels.is_some()) {
        for port in reports(run, Detail::Port).0 {
            let side = usize::from(!port.name.starts_with("clients"));
            let values = port.tunnels.map(|report| values(&report)).unwrap_or_default();
            sums[side].iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
    let section = |sums: &[u64]| -> Value {
        let counted = sums.iter().enumerate().filter(|(_, value)| **value > 0);
        counted.map(|(number, value)| (number.to_string(), json!(value))).collect()
    };
    let [clients, servers] = sums.map(|sums| section(&sums));
    Ok(json!({"name": "counter vals", "epoch": epoch, "client": clients, "server": servers}))
}

/// Returns the counters of a port in the order of [`COUNTERS`].
fn values(report: &TunnelsReport) -> [u64; COUNTERS.len()] {
    [
        report.encapsulated,
        report.decapsulated,
        report.dropped,
        report.no_tunnel,
        0,
        0,
        0,
        report.bad_ip,
        report.too_long,
        report.bad_checksum,
        0,
        report.other_port,
        report.other_message,
        report.truncated,
        report.not_udp + report.fragments + report.inner_not_ip + report.not_ecn_capable,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunnel(first: &str, last: &str) -> Value {
        json!({
            "src_start": first, "src_end": last, "initial_teid": 7, "teid_jump": 2, "sport": 0,
            "version": 4, "tunnel_type": 1, "src_ip": "1.1.1.11", "dst_ip": "12.2.2.2",
            "activate": true,
        })
    }

    fn latency(port: u32, client: &str) -> Value {
        json!({"client_port_id": port, "client_ip": client, "server_ip": "48.0.0.1"})
    }

    fn loaded(tunnels: &Value, latency: &Value) -> Result<Topology, String> {
        let text = json!({"tunnels": tunnels, "latency": latency}).to_string();
        let mut topology = Topology { text, ..Topology::default() };
        topology.load(2).map(|()| topology).map_err(|error| error.text().to_owned())
    }

    #[test]
    fn contexts_become_tunnels_of_both_families() {
        let mut six = tunnel("16.0.0.10", "16.0.0.10");
        six["version"] = 6.into();
        (six["src_ip"], six["dst_ip"]) = ("2001:db8::1".into(), "2001:db8::2".into());
        let topology =
            loaded(&json!([six, tunnel("16.0.0.1", "16.0.0.9")]), &json!([latency(0, "16.0.0.9")]));
        let topology = topology.unwrap();
        let [four, six] = [topology.contexts[0].tunnels, topology.contexts[1].tunnels];
        assert_eq!((four.teid, four.teid_step, four.source_port), (7, 2, None));
        assert_eq!(six.to.to_string(), "2001:db8::2");
        let network: Ipv6Addr = "2001:db8:1::".parse().unwrap();
        let all = with_networks(&[four], &BTreeSet::from([network]));
        assert_eq!(all[1].first.to_string(), "2001:db8:1::1000:1");
        let tunnels = Tunnels { is_active: true, topology, ..Tunnels::default() };
        let of_latency = tunnels.of_latency().unwrap().unwrap();
        assert!(of_latency.of(0).is_some() && of_latency.of(1).is_none());
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let (first, last) = ("16.0.0.1", "16.0.0.9");
        let changed = |name: &str, value: Value| {
            let mut tunnel = tunnel(first, last);
            tunnel[name] = value;
            json!([tunnel])
        };
        let one = json!([tunnel(first, last)]);
        let cases = [
            (json!([tunnel(last, first)]), json!([]), "16.0.0.9 is behind src_end 16.0.0.1"),
            (json!([tunnel(first, last), tunnel(last, last)]), json!([]), "ranges intersect"),
            (changed("version", 5.into()), json!([]), "found 5, expected 4 or 6"),
            (changed("version", 6.into()), json!([]), "invalid src_ip: '1.1.1.11'"),
            (changed("tunnel_type", 2.into()), json!([]), "tunnel_type: found 2"),
            (changed("sport", 65_536.into()), json!([]), "'sport' has size bigger"),
            (one.clone(), json!([latency(1, first)]), "found 1, expected an even number"),
            (one.clone(), json!([latency(0, "16.0.0.10")]), "client_ip: 16.0.0.10"),
            (one, json!([latency(0, first), latency(0, first)]), "found 2, expected 1"),
            (json!({}), json!([]), "'tunnels'"),
        ];
        for (tunnels, latency, expected) in cases {
            let error = loaded(&tunnels, &latency).unwrap_err();
            assert!(error.contains(expected), "{error}: {expected}");
        }
    }
}
