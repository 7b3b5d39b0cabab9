//! Counters of clients and servers under TRex's names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use wirestorm_control::Detail;
use wirestorm_control::result::PortReport;

use super::super::counters::Counted;
use super::super::parameters::Parameters;
use super::super::rpc::{Answer, RpcError};
use super::super::{State, Trex};
use super::table::{COUNTERS, description};
use super::{StatefulRun, profile_name};

/// Maximum number of template groups in a request.
const GROUPS_MAX: usize = 10;
/// Causes of fragments that were not reassembled.
const FRAGMENTS_LOST: [&str; 3] =
    ["fragments_incomplete", "fragments_overlapping", "fragments_no_room"];
/// Names of the two sides.
const SIDES: [&str; 2] = ["client", "server"];

/// Counters by TRex's name.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    fn increase(&mut self, name: String, value: u64) {
        if value > 0 {
            *self.0.entry(name).or_default() += value;
        }
    }

    /// Returns whether a flow has been established: TCP connections, and UDP flows with an answer.
    pub(super) fn has_established(&self) -> bool {
        ["tcps_connects", "udps_rcvpkt"].into_iter().any(|name| self.get(name) > 0)
    }

    /// Adds other counters.
    pub(super) fn add(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            self.increase(name.clone(), *value);
        }
    }
}

/// Counters of a side of a port, or of a template.
struct Side {
    flows: BTreeMap<String, u64>,
    groups: [(&'static str, BTreeMap<String, u64>); 3],
    is_client: bool,
}

/// Adds the counters of sides. `is_over`: the run has ended, so that its open connections were
/// dropped. As in TRex, these are no errors and count only in `tcps_testdrops`.
fn total(sides: impl Iterator<Item = Side>, is_over: bool) -> Counts {
    let mut counts = Counts::default();
    let mut waiting = 0;
    for Side { flows, groups, is_client } in sides {
        for (prefix, counters) in groups {
            for (name, value) in counters {
                counts.increase(format!("{prefix}_{name}"), value);
            }
        }
        let flow = |name: &str| flows.get(name).copied().unwrap_or_default();
        let without_flow = if is_client { "err_cwf" } else { "err_no_syn" };
        let found = [
            ("m_active_flows", flow("active")),
            ("flows_total", flow("flows_total")),
            ("flows_other", flow("flows_other")),
            ("err_flow_overflow", flow("flow_table_full")),
            ("err_c_tuple_err", flow("no_free_tuple")),
            ("err_c_nf_throttled", flow("late")),
            (without_flow, flow("no_flow")),
            ("err_no_template", flow("no_template")),
            ("err_defer_no_template", flow("no_match")),
            ("err_fragments_ipv4_drop", FRAGMENTS_LOST.into_iter().map(flow).sum()),
            ("err_l4_cs", flow("malformed")),
            ("err_no_tcp_udp", flow("other_protocol")),
        ];
        for (name, value) in found {
            counts.increase(name.to_owned(), value);
        }
        waiting += flow("time_wait") + flow("waiting");
    }
    let open = |begin: &str, counts: &Counts, prefix: &str| {
        let begun = counts.get(begin) + counts.get(&format!("{prefix}_accepts"));
        begun.saturating_sub(counts.get(&format!("{prefix}_closed")))
    };
    let tcp = open("tcps_connattempt", &counts, "tcps");
    let udp = open("udps_connects", &counts, "udps");
    if is_over {
        counts.0.remove("m_active_flows");
    }
    let begun = counts.get("tcps_connattempt") + counts.get("tcps_accepts");
    let unanswered =
        begun.saturating_sub(counts.get("tcps_connects") + counts.get("tcps_conndrops"));
    let established = counts.get("m_active_flows").saturating_sub(unanswered + waiting);
    counts.increase("m_est_flows".to_owned(), established);
    if is_over {
        counts.increase("tcps_testdrops".to_owned(), tcp.saturating_sub(waiting));
        counts.increase("tcps_closed".to_owned(), tcp);
        counts.increase("udps_closed".to_owned(), udp);
    }
    counts
}

fn owned<'a>(
    counters: impl IntoIterator<Item = (&'a std::borrow::Cow<'static, str>, &'a u64)>,
) -> BTreeMap<String, u64> {
    counters.into_iter().map(|(name, value)| (name.to_string(), *value)).collect()
}

fn of_port(port: &PortReport) -> Option<Side> {
    let connections = port.connections.as_ref()?;
    let flows = serde_json::to_value(connections.flows).ok()?;
    let flows = flows.as_object()?.iter();
    Some(Side {
        flows: flows.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect(),
        groups: [
            ("tcps", owned(&connections.tcp)),
            ("udps", owned(&connections.udp)),
            ("user_counter", owned(&connections.counters)),
        ],
        is_client: port.name.starts_with("clients"),
    })
}

/// Returns the reports of the ports of a run, and whether it has ended.
pub(super) fn reports(run: &StatefulRun, detail: Detail) -> (Vec<PortReport>, bool) {
    if run.run.handle.outcome().is_none()
        && let Some(reports) = run.run.handle.port_reports(detail)
    {
        return (reports, false);
    }
    match run.run.result() {
        Some(result) => (result.ports.clone(), true),
        None => (Vec::new(), true),
    }
}

/// Returns the counters of the clients and servers of a run, or of one of its template groups. Asks
/// the workers while the run continues.
pub(super) fn counts_of(run: &StatefulRun, group: Option<&str>) -> [Counts; 2] {
    let Some(group) = group else {
        let (reports, is_over) = reports(run, Detail::Port);
        let side = |is_client: bool| {
            let sides = reports.iter().filter_map(of_port);
            total(sides.filter(|side| side.is_client == is_client), is_over)
        };
        return [side(true), side(false)];
    };
    let (reports, is_over) = reports(run, Detail::Templates);
    let side = |is_client: bool| {
        let templates = reports.iter().flat_map(|port| &port.templates);
        let chosen = templates.filter(|template| {
            template.group.as_deref() == Some(group) && (template.side == SIDES[0]) == is_client
        });
        let sides = chosen.map(|template| Side {
            flows: owned(&template.flows),
            groups: [
                ("tcps", owned(&template.tcp)),
                ("udps", owned(&template.udp)),
                ("user_counter", owned(&template.counters)),
            ],
            is_client,
        });
        total(sides, is_over)
    };
    [side(true), side(false)]
}

/// Adds the rates of a side, in the units of TRex.
fn add_rates(state: &mut State, number: u32, is_server: bool, counts: &Counts, into: &mut Rated) {
    let now = Instant::now();
    let mut rate = |which: u8, names: &[&str]| {
        let value: u64 = names.iter().map(|name| counts.get(name)).sum();
        state.rates.note(Counted::Stateful { number, is_server, which }, value as f64, now)
    };
    let acked = rate(0, &["tcps_rcvackbyte", "udps_sndbyte"]);
    let sent = rate(1, &["tcps_sndbyte_ok", "tcps_sndrexmitbyte", "udps_sndbyte"]);
    let received = rate(2, &["tcps_rcvbyte", "udps_rcvbyte"]);
    let sent_packets = rate(3, &["tcps_sndtotal", "udps_sndpkt"]);
    let received_packets = rate(4, &["tcps_rcvtotal", "udps_rcvpkt"]);
    let rates = [8.0 * acked, 8.0 * sent, 8.0 * received, sent_packets, received_packets];
    for (total, rate) in into.iter_mut().zip(rates) {
        *total += rate;
    }
}

/// Bit rates acknowledged, sent and received; packet rates sent and received.
type Rated = [f64; 5];

/// Returns counters by their numbers.
fn section(counts: &Counts, rates: Rated) -> Value {
    let [acked, sent, received, sent_packets, received_packets] = rates;
    let packets = sent_packets + received_packets;
    let quotient = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
    let mut section = Map::new();
    for (number, described) in COUNTERS.iter().enumerate().filter(|(_, it)| it.is_real) {
        let value: Value = match described.name {
            "m_tx_bw_l7_r" => acked.into(),
            "m_tx_bw_l7_total_r" => sent.into(),
            "m_rx_bw_l7_r" => received.into(),
            "m_tx_pps_r" => sent_packets.into(),
            "m_rx_pps_r" => received_packets.into(),
            "m_avg_size" => quotient((sent + received) / 8.0, packets).into(),
            "m_tx_ratio" => quotient(100.0 * acked, sent).into(),
            name => counts.get(name).into(),
        };
        if described.shows_zero || value != json!(0) {
            section.insert(number.to_string(), value);
        }
    }
    section.into()
}

fn values(epoch: u64, counts: &[Counts; 2], rates: [Rated; 2]) -> Value {
    json!({
        "name": "counter vals",
        "epoch": epoch,
        "client": section(&counts[0], rates[0]),
        "server": section(&counts[1], rates[1]),
    })
}

impl Trex {
    /// Notes the counters of the active runs, for the rates that clients ask for later.
    pub(in super::super) fn sample_profiles(&self) {
        let runs: Vec<Arc<StatefulRun>> = {
            let state = self.state();
            state.astf.profiles.values().filter_map(|profile| profile.run.clone()).collect()
        };
        for run in runs {
            let counts = counts_of(&run, None);
            let mut state = self.state();
            for (at, counts) in counts.iter().enumerate() {
                add_rates(&mut state, run.number, at == 1, counts, &mut Rated::default());
            }
        }
    }
}

pub(in super::super) fn get_counter_desc(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.state().astf.profile(profile_name(parameters)?)?;
    let data: Vec<Value> =
        COUNTERS.iter().enumerate().map(|(number, it)| description(number, it)).collect();
    Ok(json!({"name": "counter desc", "data": data}))
}

pub(in super::super) fn get_counter_values(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let name = profile_name(parameters)?;
    let (run, last, epoch) = {
        let state = trex.state();
        let profile = state.astf.profile(name)?;
        (profile.run.clone(), profile.counts.clone(), profile.epoch)
    };
    let Some(run) = run else {
        return Ok(values(epoch, &last.unwrap_or_default(), Default::default()));
    };
    // Asking the workers takes some time, so no lock is held here.
    let counts = counts_of(&run, None);
    let mut rates = [Rated::default(); 2];
    let mut state = trex.state();
    for (at, rates) in rates.iter_mut().enumerate() {
        add_rates(&mut state, run.number, at == 1, &counts[at], rates);
    }
    Ok(values(epoch, &counts, rates))
}

pub(in super::super) fn get_total_counter_values(trex: &Trex, _: &Parameters<'_>) -> Answer {
    let (runs, mut counts, epoch) = {
        let state = trex.state();
        let runs: Vec<Arc<StatefulRun>> =
            state.astf.profiles.values().filter_map(|profile| profile.run.clone()).collect();
        (runs, state.astf.ended.clone(), state.astf.epoch)
    };
    let mut rates = [Rated::default(); 2];
    for run in runs {
        let of_run = counts_of(&run, None);
        let mut state = trex.state();
        for at in 0..2 {
            add_rates(&mut state, run.number, at == 1, &of_run[at], &mut rates[at]);
            counts[at].add(&of_run[at]);
        }
    }
    Ok(values(epoch, &counts, rates))
}

pub(in super::super) fn get_tg_names(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let state = trex.state();
    let profile = state.astf.profile(profile_name(parameters)?)?;
    if parameters.flag("initialized")? && parameters.u64("epoch")? == profile.epoch {
        return Ok(json!({"epoch": profile.epoch}));
    }
    let none: [Value; 0] = [];
    let described: Map<String, Value> =
        (0..=profile.groups.len()).map(|number| (number.to_string(), json!(none))).collect();
    Ok(json!({
        "epoch": profile.epoch, "tg_names": &*profile.groups, "tg_addon_desc": described,
    }))
}

pub(in super::super) fn get_tg_id_stats(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let numbers = parameters.u32s("tg_ids")?;
    if numbers.len() > GROUPS_MAX {
        return Err(RpcError::execution(format!(
            "Trying to get statistics for too many TGs. Max allowed is {GROUPS_MAX}"
        )));
    }
    let (run, groups, epoch) = {
        let state = trex.state();
        let profile = state.astf.profile(profile_name(parameters)?)?;
        (profile.last.clone(), Arc::clone(&profile.groups), profile.epoch)
    };
    if parameters.u64("epoch")? != epoch {
        return Ok(json!({"epoch": epoch}));
    }
    let mut document = Map::new();
    document.insert("epoch".to_owned(), epoch.into());
    for number in numbers {
        let Some(index) = number.checked_sub(1) else {
            return Err(RpcError::execution("Invalid TG ID = 0"));
        };
        let Some(name) = groups.get(index as usize) else {
            let most = groups.len();
            return Err(RpcError::execution(format!(
                "TG ID is too big. Max value is {most}. Received {number}"
            )));
        };
        let counts = run.as_ref().map(|run| counts_of(run, Some(name))).unwrap_or_default();
        let mut of_group = values(epoch, &counts, Default::default());
        of_group["name"] = format!("counters per TGID: {number}").into();
        document.insert(number.to_string(), of_group);
    }
    Ok(document.into())
}
