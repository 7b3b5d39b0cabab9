//! The groups that a user has enabled, and what their runs count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};
use wirestorm_control::model::stream::Stream;
use wirestorm_control::result::TagReport;

use super::counters::{Growth, Received, Window};
use super::table::{Tag, TagTable};
use crate::trex::Trex;
use crate::trex::counters::FCS;
use crate::trex::rpc::RpcError;
use crate::trex::transmission::Transmission;

/// Returns the tagged packet group of a stream.
pub(in crate::trex) fn tagged_group_of(stream: &Value) -> Option<u32> {
    let statistics = &stream["flow_stats"];
    let is_tagged = statistics["enabled"] == true && statistics["rule_type"] == "tpg";
    u32::try_from(statistics["stream_id"].as_u64()?).ok().filter(|_| is_tagged)
}

/// A flow of a run whose frames count by their tags.
#[derive(Debug)]
pub(in crate::trex) struct TaggedFlow {
    /// Index in the plan.
    flow: usize,
    group: u32,
    is_multicast: bool,
    /// What the groups have counted of the run: frames and bytes sent, and windows by tag.
    sent: [u64; 2],
    windows: BTreeMap<Option<Tag>, Window>,
}

/// Returns the flows of streams in tagged packet groups.
pub(in crate::trex) fn tagged_flows(
    lowered: &[Stream],
    streams: &BTreeMap<u32, Arc<Value>>,
) -> Vec<TaggedFlow> {
    let tagged = |(flow, stream): (usize, &Stream)| {
        let document = streams.get(&stream.name.parse().ok()?)?;
        Some(TaggedFlow {
            flow,
            group: tagged_group_of(document)?,
            is_multicast: stream.template.first().is_some_and(|byte| byte & 1 != 0),
            sent: [0; 2],
            windows: BTreeMap::new(),
        })
    };
    lowered.iter().enumerate().filter_map(tagged).collect()
}

/// Counters of a flow so far.
struct Reading {
    /// Index among the tagged flows of the run.
    place: usize,
    sent: [u64; 2],
    tags: Vec<TagReport>,
}

/// Steps that TRex's clients wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// TRex has the memory for the receiving ports.
    Prepared,
    Enabled,
    Disabled,
}

impl Stage {
    /// Returns TRex's number of the state.
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Prepared => 2,
            Self::Enabled => 3,
            Self::Disabled => 5,
        }
    }
}

/// What a port sent of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    counts: [u64; 2],
    /// Number of the first frame of the next run.
    base: u64,
}

/// Groups of a user.
#[derive(Debug)]
pub(super) struct TaggedGroups {
    pub(super) user: String,
    pub(super) stage: Stage,
    pub(super) ports: Vec<usize>,
    pub(super) rx_ports: Vec<usize>,
    /// Number of groups.
    pub(super) count: u32,
    pub(super) table: TagTable,
    received: BTreeMap<usize, Received>,
    /// By port and group.
    sent: BTreeMap<(usize, u32), Sent>,
}

impl TaggedGroups {
    pub(super) fn new(
        user: &str,
        ports: Vec<usize>,
        rx_ports: Vec<usize>,
        count: u32,
        table: TagTable,
    ) -> Self {
        Self {
            user: user.to_owned(),
            stage: Stage::Prepared,
            received: rx_ports.iter().map(|port| (*port, Received::default())).collect(),
            ports,
            rx_ports,
            count,
            table,
            sent: BTreeMap::new(),
        }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.stage == Stage::Enabled
    }

    /// Returns what a receiving port counted; `None` for a port that does not count.
    pub(super) fn received(&mut self, port: usize) -> Option<&mut Received> {
        self.received.get_mut(&port)
    }

    pub(super) fn sent(&self, port: usize, group: u32) -> Value {
        let sent = self.sent.get(&(port, group)).copied().unwrap_or_default();
        let [frames, bytes] = sent.counts;
        json!({"pkts": frames, "bytes": bytes + FCS * frames})
    }

    pub(super) fn clear_sent(&mut self, port: usize, group: u32) {
        if let Some(sent) = self.sent.get_mut(&(port, group)) {
            sent.counts = [0; 2];
        }
    }

    /// Clears all counters. The runs go on with the numbers of their frames.
    fn restart(&mut self) {
        self.received.values_mut().for_each(Received::restart);
        self.sent.values_mut().for_each(|sent| sent.counts = [0; 2]);
    }

    /// Adds what a run counted since the last reading.
    fn note(&mut self, port: usize, run: &Transmission, readings: &[Reading], is_over: bool) {
        let mut flows = run.tagged.lock().unwrap_or_else(PoisonError::into_inner);
        for reading in readings {
            let Some(flow) = flows.get_mut(reading.place) else { continue };
            if flow.group >= self.count {
                continue;
            }
            let sent = self.sent.entry((port, flow.group)).or_default();
            let counts = sent.counts.iter_mut().zip(&mut flow.sent);
            for ((count, before), now) in counts.zip(reading.sent) {
                // Counts of a run that continues are estimates with several flows.
                let now = if is_over { now } else { now.max(*before) };
                *count = (*count + now).saturating_sub(*before);
                *before = now;
            }
            let base = sent.base;
            let mut next = base + reading.sent[0];
            if let Some(received) = run.receiver.and_then(|port| self.received.get_mut(&port)) {
                for report in &reading.tags {
                    let tag = Tag::of(&report.vlans);
                    let before = flow.windows.entry(tag).or_default();
                    let (now, is_multicast) = (Window::of(report), flow.is_multicast);
                    let growth = Growth { before: *before, now, base, is_multicast };
                    if growth.has_frames() {
                        received.add(&self.table, flow.group, tag, &growth);
                        *before = growth.now;
                    }
                    next = next.max(growth.next_expected());
                }
            }
            if is_over {
                sent.base = next;
            }
        }
    }
}

/// Groups by user, and the streams in groups.
#[derive(Debug, Default)]
pub(in crate::trex) struct Tagged {
    pub(super) of_users: BTreeMap<String, TaggedGroups>,
    /// Ports with the groups of their streams.
    streams: BTreeSet<(usize, u32)>,
}

impl Tagged {
    /// Returns whether groups of a port are enabled.
    pub(in crate::trex) fn has_port(&self, port: usize) -> bool {
        self.of_port(port).is_some()
    }

    /// Returns the enabled groups of a port.
    pub(super) fn of_port(&self, port: usize) -> Option<&TaggedGroups> {
        self.of_users.values().find(|groups| groups.is_enabled() && groups.ports.contains(&port))
    }

    pub(super) fn of_port_mut(&mut self, port: usize) -> Option<&mut TaggedGroups> {
        let mut groups = self.of_users.values_mut();
        groups.find(|groups| groups.is_enabled() && groups.ports.contains(&port))
    }

    /// Checks that a stream of a port may join a group: each has one stream of a port.
    pub(in crate::trex) fn check(&self, port: usize, group: u32) -> Result<(), RpcError> {
        let Some(groups) = self.of_port(port) else {
            let text = "Trying to add a TPG stream but TPG isn't enabled in this port.";
            return Err(RpcError::execution(text));
        };
        if group >= groups.count {
            let most = i64::from(groups.count) - 1;
            return Err(RpcError::execution(format!(
                "Invalid tpgid {group}. The maximal tpgid allowed for this port is {most}"
            )));
        }
        match self.streams.contains(&(port, group)) {
            true => Err(RpcError::execution(format!(
                "Tagged Packet Group ID {group} already in use. Can't use the same id for two \
                 streams."
            ))),
            false => Ok(()),
        }
    }

    pub(in crate::trex) fn add(&mut self, port: usize, group: u32) {
        self.streams.insert((port, group));
    }

    pub(in crate::trex) fn remove(&mut self, port: usize, stream: &Value) {
        if let Some(group) = tagged_group_of(stream) {
            self.streams.remove(&(port, group));
        }
    }

    /// Ends the groups of a port, except those of this user.
    pub(in crate::trex) fn end_of_others(&mut self, port: usize, user: Option<&str>) {
        self.of_users.retain(|owner, it| Some(owner.as_str()) == user || !it.ports.contains(&port));
    }

    /// Adds what a run that has ended counted.
    pub(in crate::trex) fn record(&mut self, port: usize, run: &Transmission) {
        if let Some(groups) = self.of_port_mut(port) {
            groups.note(port, run, &readings(run, &(0..=u32::MAX)), true);
        }
    }
}

/// Reads the counters of flows. Asks the receiver while the run continues.
fn readings(run: &Transmission, groups: &RangeInclusive<u32>) -> Vec<Reading> {
    let (places, flows): (Vec<usize>, Vec<usize>) = {
        let flows = run.tagged.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = flows.iter().enumerate().filter(|(_, flow)| groups.contains(&flow.group));
        chosen.map(|(place, flow)| (place, flow.flow)).unzip()
    };
    if flows.is_empty() {
        return Vec::new();
    }
    // What was received before what was sent: a group receives no more than it sends.
    let tags = run.tags(&flows);
    let counts = run.flow_counts(flows.into_iter());
    let both = places.into_iter().zip(counts).zip(tags);
    both.map(|((place, counts), tags)| Reading { place, sent: counts.sent, tags }).collect()
}

impl Trex {
    /// Adds what the active runs have counted to their groups.
    pub(super) fn collect_tagged(&self, groups: &RangeInclusive<u32>) {
        let runs: Vec<(usize, Arc<Transmission>)> = {
            let state = self.state();
            let ports = state.ports.iter().enumerate();
            ports
                .flat_map(|(number, port)| port.runs().map(move |it| (number, it.clone())))
                .collect()
        };
        for (port, run) in runs {
            // Asking a receiver takes some time, so no lock of the state is held here.
            let readings = readings(&run, groups);
            if readings.is_empty() {
                continue;
            }
            let mut state = self.state();
            // The counters of a run that has ended meanwhile are recorded.
            if !state.ports[port].runs().any(|active| Arc::ptr_eq(active, &run)) {
                continue;
            }
            if let Some(groups) = state.tagged.of_port_mut(port) {
                groups.note(port, &run, &readings, false);
            }
        }
    }

    /// Enables the prepared groups of a user: earlier frames of active runs do not count.
    pub(super) fn begin_tagged(&self, user: &str) -> bool {
        let is_prepared = |groups: &mut TaggedGroups| {
            let is_prepared = groups.stage == Stage::Prepared;
            if is_prepared {
                groups.stage = Stage::Enabled;
            }
            is_prepared
        };
        if !self.state().tagged.of_users.get_mut(user).is_some_and(is_prepared) {
            return false;
        }
        self.collect_tagged(&(0..=u32::MAX));
        if let Some(groups) = self.state().tagged.of_users.get_mut(user) {
            groups.restart();
        }
        true
    }
}
