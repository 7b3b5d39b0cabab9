//! Packet groups: flow statistics and latency.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use wirestorm_control::result::MeasuredReport;

use super::counters::{Counted, FCS};
use super::parameters::Parameters;
use super::rpc::{Answer, RpcError};
use super::transmission::{FlowCounts, Transmission};
use super::{Trex, hdr_histogram};

/// Maximum number of groups in a request.
const QUERY_MAX: usize = 1_152;
/// Maximum number of groups that keep counters without streams.
const KEPT_MAX: usize = 10_000;

/// Returns the packet group of a stream, and whether its latency is measured.
pub(super) fn group_of(stream: &Value) -> Option<(u32, bool)> {
    let statistics = &stream["flow_stats"];
    if statistics["enabled"] != true {
        return None;
    }
    let is_latency = match statistics["rule_type"].as_str()? {
        "stats" => false,
        "latency" => true,
        _ => return None,
    };
    Some((u32::try_from(statistics["stream_id"].as_u64()?).ok()?, is_latency))
}

/// Counters of a packet group: those of ended runs.
#[derive(Default)]
struct Group {
    is_latency: bool,
    /// Number of streams that name it.
    streams: usize,
    /// Changes when the counters restart at zero.
    version: u64,
    /// Frames and bytes by port.
    sent: BTreeMap<usize, [u64; 2]>,
    received: BTreeMap<usize, [u64; 2]>,
    /// Last measurement, with the number of lost frames.
    measured: Option<(MeasuredReport, u64)>,
}

/// Packet groups by number.
#[derive(Default)]
pub(super) struct Groups {
    groups: BTreeMap<u32, Group>,
    versions: u64,
}

impl Groups {
    /// Checks that a stream may join a group: one of latency has one stream.
    pub(super) fn check(&self, group: u32, is_latency: bool) -> Result<(), RpcError> {
        let Some(known) = self.groups.get(&group).filter(|group| group.streams > 0) else {
            return Ok(());
        };
        match known.is_latency || is_latency {
            true if known.is_latency == is_latency => Err(RpcError::execution(
                "For payload rules: Can't have two streams with same pg_id, or same stream on \
                 more than one port",
            )),
            true => Err(RpcError::execution(format!("packet group id {group} already exists"))),
            false => Ok(()),
        }
    }

    /// Returns whether a stream names the group.
    fn is_added(&self, group: u32) -> bool {
        self.groups.get(&group).is_some_and(|group| group.streams > 0)
    }

    /// Adds a stream to a group. The counters of a group without streams restart at zero.
    pub(super) fn add(&mut self, group: u32, is_latency: bool) {
        if !self.is_added(group) {
            let unused = self.groups.iter().filter(|(_, group)| group.streams == 0);
            let unused: Vec<u32> = unused.map(|(group, _)| *group).collect();
            for old in unused.iter().take((unused.len() + 1).saturating_sub(KEPT_MAX)) {
                self.groups.remove(old);
            }
            self.versions += 1;
            let version = self.versions;
            self.groups.insert(group, Group { is_latency, version, ..Group::default() });
        }
        if let Some(group) = self.groups.get_mut(&group) {
            group.streams += 1;
        }
    }

    /// Removes a stream from its group.
    pub(super) fn remove(&mut self, group: Option<(u32, bool)>) {
        let group = group.and_then(|(group, _)| self.groups.get_mut(&group));
        if let Some(group) = group {
            group.streams = group.streams.saturating_sub(1);
        }
    }

    /// Adds the counters of a run that has ended on a port.
    pub(super) fn record(&mut self, port: usize, run: &Transmission) {
        for (member, counts) in run.members.iter().zip(run.counts()) {
            let Some(group) = self.groups.get_mut(&member.group) else { continue };
            add(group.sent.entry(port).or_default(), counts.sent);
            if let Some(receiver) = run.receiver {
                add(group.received.entry(receiver).or_default(), counts.received);
            }
            if member.is_latency {
                group.measured = run.measured(member.flow).or(group.measured.take());
            }
        }
    }
}

fn add(total: &mut [u64; 2], counts: [u64; 2]) {
    for (total, count) in total.iter_mut().zip(counts) {
        *total += count;
    }
}

pub(super) fn get_active_pgids(trex: &Trex, _: &Parameters<'_>) -> Answer {
    let state = trex.state();
    let of_kind = |is_latency: bool| -> Vec<u32> {
        let groups = state.groups.groups.iter();
        let used = groups.filter(|(_, it)| it.streams > 0 && it.is_latency == is_latency);
        used.map(|(group, _)| *group).collect()
    };
    Ok(json!({"ids": {"flow_stats": of_kind(false), "latency": of_kind(true)}}))
}

/// Counters of a group with those of its active runs.
struct Found {
    group: u32,
    version: u64,
    is_latency: bool,
    sent: BTreeMap<usize, [u64; 2]>,
    received: BTreeMap<usize, [u64; 2]>,
    /// Whether a run sends it.
    is_active: bool,
    /// Active run with the flow that measures, else the last measurement.
    live: Option<(Arc<Transmission>, usize)>,
    last: Option<(MeasuredReport, u64)>,
}

impl Trex {
    /// Returns the counters of groups; of all active ones if `chosen` is empty.
    fn group_counters(&self, chosen: &BTreeSet<u32>) -> Result<Vec<Found>, RpcError> {
        let state = self.state();
        let is_chosen = |(number, group): &(&u32, &Group)| match chosen.is_empty() {
            true => group.streams > 0,
            false => chosen.contains(number),
        };
        let groups = state.groups.groups.iter().filter(is_chosen);
        let mut found: BTreeMap<u32, Found> = groups
            .map(|(number, group)| {
                let found = Found {
                    group: *number,
                    version: group.version,
                    is_latency: group.is_latency,
                    sent: group.sent.clone(),
                    received: group.received.clone(),
                    is_active: false,
                    live: None,
                    last: group.measured.clone(),
                };
                (*number, found)
            })
            .collect();
        if found.len() > QUERY_MAX {
            let active = found.len();
            return Err(RpcError::execution(format!(
                "Asking information for all packet group IDs. There are currently {active} active \
                 IDs . Max allowed is {QUERY_MAX}. Need to limit query size."
            )));
        }
        for (number, port) in state.ports.iter().enumerate() {
            for run in port.runs().filter(|run| !run.members.is_empty()) {
                for (member, counts) in run.members.iter().zip(run.counts()) {
                    let Some(group) = found.get_mut(&member.group) else { continue };
                    let FlowCounts { sent, received } = counts;
                    add(group.sent.entry(number).or_default(), sent);
                    if let Some(receiver) = run.receiver {
                        add(group.received.entry(receiver).or_default(), received);
                    }
                    group.is_active = true;
                    if member.is_latency {
                        group.live = Some((Arc::clone(run), member.flow));
                    }
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Notes the counters of the groups that are being sent, for their rates.
    pub(super) fn sample_groups(&self) {
        let chosen: BTreeSet<u32> = {
            let state = self.state();
            let runs = state.ports.iter().flat_map(|port| port.runs());
            runs.flat_map(|run| run.members.iter().map(|member| member.group)).collect()
        };
        if chosen.is_empty() || chosen.len() > QUERY_MAX {
            return;
        }
        for group in self.group_counters(&chosen).into_iter().flatten() {
            self.group_document(&group);
        }
    }

    fn group_document(&self, found: &Found) -> Value {
        let now = Instant::now();
        let mut state = self.state();
        let mut document = Map::new();
        let directions = [("t", &found.sent, false), ("r", &found.received, true)];
        for (letter, counters, is_received) in directions {
            let mut columns = [Map::new(), Map::new(), Map::new(), Map::new()];
            for port in 0..self.interfaces.len() {
                let [frames, bytes] = counters.get(&port).copied().unwrap_or_default();
                let bytes = bytes + FCS * frames;
                let key =
                    |is_bytes| Counted::Group { group: found.group, port, is_received, is_bytes };
                let pps = state.rates.note(key(false), frames as f64, now);
                let bps = state.rates.note(key(true), bytes as f64, now) * 8.0;
                let [pps, bps] = if found.is_active { [pps, bps] } else { [0.0; 2] };
                let values: [Value; 4] = [frames.into(), bytes.into(), rounded(pps), rounded(bps)];
                for (column, value) in columns.iter_mut().zip(values) {
                    column.insert(port.to_string(), value);
                }
            }
            for (name, column) in ["p", "b", "ps", "bs"].into_iter().zip(columns) {
                let name = format!("{letter}{name}");
                document.insert(name, Value::Object(column));
            }
        }
        Value::Object(document)
    }
}

fn rounded(rate: f64) -> Value {
    ((rate * 100.0).round() / 100.0).into()
}

pub(super) fn get_pgid_stats(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let chosen = parameters.u32s("pgids")?;
    if chosen.len() > QUERY_MAX {
        return Err(RpcError::execution(format!(
            "Asking information for too many packet group IDs. Max allowed is {QUERY_MAX}"
        )));
    }
    let (mut flows, mut versions) = (Map::new(), Map::new());
    let mut latency = Map::new();
    latency.insert("g".to_owned(), json!({"bad_hdr": 0, "old_flow": 0}));
    for found in trex.group_counters(&chosen.into_iter().collect())? {
        let name = found.group.to_string();
        flows.insert(name.clone(), trex.group_document(&found));
        versions.insert(name.clone(), found.version.into());
        if found.is_latency {
            // Asking a receiver takes some time, so no lock is held here.
            let live = found.live.as_ref().and_then(|(run, flow)| run.measured(*flow));
            let measured = live.or(found.last);
            latency.insert(name, latency_document(measured.as_ref()));
        }
    }
    let or_null = |map: Map<String, Value>| match map.is_empty() {
        true => Value::Null,
        false => Value::Object(map),
    };
    Ok(json!({
        "flow_stats": or_null(flows), "latency": latency, "ver_id": or_null(versions),
    }))
}

/// Returns delays in microseconds and errors.
fn latency_document(measured: Option<&(MeasuredReport, u64)>) -> Value {
    let Some((measured, lost)) = measured else {
        return json!({
            "lat": {
                "total_max": 0, "total_min": 0, "last_max": 0, "average": 0.0, "jit": 0,
                "histogram": {}, "hdrh": hdr_histogram::encode(&[]),
            },
            "er": {},
        });
    };
    let delay = &measured.delay;
    let microseconds = |ns: Option<i64>| ns.unwrap_or_default().max(0) / 1_000;
    let last_max = measured
        .series
        .as_ref()
        .and_then(|series| series.delay_max_ns.iter().rev().flatten().next().copied());
    let mut histogram: BTreeMap<u64, u64> = BTreeMap::new();
    for (start_ns, count) in &delay.buckets {
        let us = u64::try_from(*start_ns).unwrap_or_default() / 1_000;
        let scale = 10_u64.pow(us.checked_ilog10().unwrap_or_default().max(1));
        *histogram.entry(us / scale * scale).or_default() += count;
    }
    let histogram: Map<String, Value> =
        histogram.into_iter().map(|(key, count)| (key.to_string(), count.into())).collect();
    let behind = measured.reordered + measured.too_late;
    let errors = [
        ("drp", *lost),
        ("ooo", behind),
        ("dup", measured.duplicated),
        ("sth", measured.gaps),
        ("stl", behind + measured.duplicated),
    ];
    let errors: Map<String, Value> = errors
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect();
    json!({
        "lat": {
            "total_max": microseconds(delay.max_ns),
            "total_min": microseconds(delay.min_ns),
            "last_max": microseconds(last_max),
            "average": delay.mean_ns.unwrap_or_default() / 1e3,
            "jit": measured.jitter_ns / 1_000,
            "histogram": histogram,
            "hdrh": hdr_histogram::encode(&delay.buckets),
        },
        "er": errors,
    })
}
