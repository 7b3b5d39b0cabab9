//! A run of a port's streams, and what it counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::trex::LowerOptions;
use wirestorm_control::result::{MeasuredReport, RunResult, TagReport};
use wirestorm_control::{RunState, Snapshot};

use super::port::Sent;
use super::tagged::TaggedFlow;
use crate::server::HostedRun;

/// A stream of a packet group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Index of its flow in the plan.
    pub(super) flow: usize,
    /// Number of the packet group.
    pub(super) group: u32,
    pub(super) is_latency: bool,
}

/// Frames and bytes of a flow, without FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowCounts {
    pub(super) sent: [u64; 2],
    pub(super) received: [u64; 2],
}

/// A run of a port's streams.
pub(super) struct Transmission {
    pub(super) run: Arc<HostedRun>,
    /// User and session.
    pub(super) owner: String,
    /// Port that receives the measured flows.
    pub(super) receiver: Option<usize>,
    interface: String,
    /// Enabled streams, by ID.
    pub(super) streams: BTreeMap<u32, Arc<Value>>,
    /// Index of the flow of each stream.
    pub(super) flows: BTreeMap<u32, usize>,
    pub(super) members: Vec<Member>,
    /// Flows in tagged packet groups.
    pub(super) tagged: Mutex<Vec<TaggedFlow>>,
    /// Options with the multiplier at the start.
    pub(super) options: LowerOptions,
    /// Current multiplier, and bits per second at layer 1 with it.
    rate: Mutex<(Multiplier, f64)>,
    /// Whether pausing is impossible.
    pub(super) has_end: bool,
    pub(super) is_paused: AtomicBool,
    pub(super) is_stopped: AtomicBool,
}

/// A run that has begun.
pub(super) struct Begun {
    pub(super) run: Arc<HostedRun>,
    pub(super) owner: String,
    pub(super) receiver: Option<usize>,
    pub(super) streams: BTreeMap<u32, Arc<Value>>,
    pub(super) flows: BTreeMap<u32, usize>,
    pub(super) members: Vec<Member>,
    pub(super) tagged: Vec<TaggedFlow>,
    pub(super) options: LowerOptions,
    pub(super) bits_l1: f64,
    pub(super) has_end: bool,
}

impl Transmission {
    pub(super) fn new(interface: String, begun: Begun) -> Self {
        let Begun { run, owner, receiver, streams, flows, members, .. } = begun;
        let Begun { tagged, options, bits_l1, has_end, .. } = begun;
        Self {
            run,
            owner,
            receiver,
            interface,
            streams,
            flows,
            members,
            tagged: Mutex::new(tagged),
            options,
            rate: Mutex::new((options.multiplier, bits_l1)),
            has_end,
            is_paused: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Stops the run; returns at once.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.run.stop(None);
    }

    pub(super) fn multiplier(&self) -> Multiplier {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn bits_l1(&self) -> f64 {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    pub(super) fn set_rate(&self, multiplier: Multiplier, bits_l1: f64) {
        *self.rate.lock().unwrap_or_else(PoisonError::into_inner) = (multiplier, bits_l1);
    }

    /// Returns whether the run has ended. Its result exists then, or its error.
    pub(super) fn is_over(&self) -> bool {
        self.run.handle.outcome().is_some()
    }

    fn result(&self) -> Option<Arc<RunResult>> {
        self.run.result()
    }

    fn snapshot(&self) -> Option<Arc<Snapshot>> {
        let has_begun = |state: RunState| state >= RunState::Running;
        self.run.handle.latest().filter(|it| it.state.is_some_and(has_begun))
    }

    /// Returns what the run has sent.
    pub(super) fn sent(&self) -> Sent {
        let live = self.snapshot().and_then(|snapshot| {
            let port = snapshot.ports.iter().find(|port| port.interface == self.interface)?;
            let counters = &port.transmitted;
            let (frames, bytes) = (counters.sent, counters.sent_bytes);
            Some(Sent { frames, bytes, failed: counters.failed })
        });
        let last = self.result().and_then(|result| {
            let port = result.ports.iter().find(|port| port.interface == self.interface)?;
            let tx = port.tx.as_ref()?;
            Some(Sent { frames: tx.packets, bytes: tx.bytes, failed: tx.failed })
        });
        last.or(live).unwrap_or_default()
    }

    /// Returns the counters of each member, in their order.
    pub(super) fn counts(&self) -> Vec<FlowCounts> {
        self.flow_counts(self.members.iter().map(|member| member.flow))
    }

    /// Returns the counters of flows, in their order.
    pub(super) fn flow_counts(&self, flows: impl Iterator<Item = usize>) -> Vec<FlowCounts> {
        let result = self.result();
        let snapshot = self.snapshot();
        let sent_share = snapshot.as_ref().map_or(0.0, |it| sent_share(it, &self.interface));
        let live = |flow: usize| {
            let flow = snapshot.as_ref()?.flows.get(flow)?;
            let received = flow.received.unwrap_or_default();
            let sent = [flow.sent.frames, flow.sent.bytes];
            Some(FlowCounts {
                sent: sent.map(|count| (count as f64 * sent_share).round() as u64),
                received: [received.frames + received.duplicated, received.bytes],
            })
        };
        let share = result.as_ref().map_or(0.0, |result| unsent_share(result, &self.interface));
        let last = |flow: usize| {
            let flow = result.as_ref()?.flows.get(flow)?;
            let unsent = (last_lost(flow) as f64 * share).round() as u64;
            let frames = flow.packets.saturating_sub(unsent);
            let bytes = u128::from(flow.bytes) * u128::from(frames);
            let bytes = u64::try_from(bytes / u128::from(flow.packets.max(1))).unwrap_or(0);
            let received = flow.measured.first();
            let received =
                received.map_or([0; 2], |it| [it.received + it.duplicated, it.received_bytes]);
            Some(FlowCounts { sent: [frames, bytes], received })
        };
        flows.map(|flow| last(flow).or_else(|| live(flow)).unwrap_or_default()).collect()
    }

    /// Returns the counters of flows by VLAN tag, in their order. Asks the receiver once while the
    /// run continues.
    pub(super) fn tags(&self, flows: &[usize]) -> Vec<Vec<TagReport>> {
        let Some(result) = self.result() else {
            return self.run.handle.tags(flows).unwrap_or_else(|| vec![Vec::new(); flows.len()]);
        };
        let tags = |flow: &usize| {
            let measured = result.flows.get(*flow).and_then(|flow| flow.measured.first());
            measured.map_or_else(Vec::new, |measured| measured.tags.clone())
        };
        flows.iter().map(tags).collect()
    }

    /// Returns the measurement of a flow, with the frames that are lost. Asks the receiver while the
    /// run continues.
    pub(super) fn measured(&self, flow: usize) -> Option<(MeasuredReport, u64)> {
        if let Some(result) = self.result() {
            let share = unsent_share(&result, &self.interface);
            let flow = result.flows.get(flow)?;
            let unsent = (last_lost(flow) as f64 * share).round() as u64;
            let lost = flow.lost.unwrap_or_default().saturating_sub(unsent);
            return Some((flow.measured.first()?.clone(), lost));
        }
        let measured = self.run.handle.measured(flow)?.into_iter().next()?;
        let lost = measured.missing;
        Some((measured, lost))
    }
}

/// Returns the part of the generated frames that a port has sent. The others wait for their times of
/// departure; a port does not count its flows.
fn sent_share(snapshot: &Snapshot, interface: &str) -> f64 {
    let generated: u64 = snapshot.flows.iter().map(|flow| flow.sent.frames).sum();
    let port = snapshot.ports.iter().find(|port| port.interface == interface);
    let sent = port.map_or(0, |port| port.transmitted.sent);
    (sent as f64 / generated.max(1) as f64).min(1.0)
}

/// Returns the frames of a flow behind the last received one that are lost.
fn last_lost(flow: &wirestorm_control::result::FlowReport) -> u64 {
    let missing = flow.measured.first().map_or(0, |measured| measured.missing);
    flow.lost.unwrap_or_default().saturating_sub(missing)
}

/// Returns the part of the frames behind the last received ones that a stopped port did not send. A
/// port does not report their flows.
fn unsent_share(result: &RunResult, interface: &str) -> f64 {
    let port = result.ports.iter().find(|port| port.interface == interface);
    let unsent = port.and_then(|port| port.tx.as_ref()).map_or(0, |tx| tx.unsent);
    let behind: u64 = result.flows.iter().map(last_lost).sum();
    (unsent as f64 / behind.max(1) as f64).min(1.0)
}
