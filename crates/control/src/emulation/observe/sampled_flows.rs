//! Sampled flows: their state when they start, at the end of each interval, and when they end.

use std::net::{IpAddr, SocketAddr};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_stack::endpoint::{Endpoint, FlowDetails, SampleOptions, TrackedFlow};
use wirestorm_stack::tcp::connection::State;
use wirestorm_stack::tcp::details::Details;

use super::owner::TemplateOwner;
use crate::result::{FlowSample, SampledFlow};

/// Selection of the sampled flows of each port. A flow matches if it meets all conditions. When a
/// sampled flow ends, another one takes its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowChoice {
    /// Maximum number of flows sampled at a time.
    pub count: usize,
    /// Name of the template; `None` for any.
    pub template: Option<String>,
    /// Address at either end; `None` for any.
    pub address: Option<IpAddr>,
    /// Port at either end; `None` for any.
    pub port: Option<u16>,
}

impl FlowChoice {
    /// Upper bound of [`Self::count`].
    pub const COUNT_MAX: usize = 1_000;

    /// Returns the selection for an endpoint. `owners` has the owner of each template.
    pub(in crate::emulation) fn options(&self, owners: &[TemplateOwner]) -> SampleOptions {
        let is_asked_for =
            |owner: &TemplateOwner| self.template.as_ref().is_none_or(|name| *name == owner.name);
        let places = owners.iter().enumerate();
        let templates = places.filter(|(_, owner)| is_asked_for(owner)).map(|(place, _)| place);
        SampleOptions {
            count: self.count,
            templates: templates.collect(),
            address: self.address,
            port: self.port,
        }
    }
}

/// Samples of the sampled flows of a port.
#[derive(Clone, Debug)]
pub(in crate::emulation) struct SampledFlows {
    start: Instant,
    /// Maximum number of samples of a flow.
    samples_max: usize,
    flows: Vec<SampledFlowState>,
    /// Time of the next counter update; [`Instant::MAX`] if no flows are sampled.
    due: Instant,
}

#[derive(Clone, Debug)]
struct SampledFlowState {
    followed: TrackedFlow,
    samples: Vec<FlowSample>,
    last: Option<Details>,
    sums: Sums,
}

/// Sums of counters that the connection itself has only modulo 2^8 or 2^32.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    retransmitted: u64,
    out_of_order: u64,
    acknowledged_bytes: u64,
    received_bytes: u64,
}

impl SampledFlows {
    /// Interval of counter updates. A connection counts its retransmissions modulo 256.
    const COUNT_INTERVAL: Duration = Duration::from_millis(1);
    /// Minimum interval per sampled flow, which bounds the CPU time for many flows.
    const COUNT_INTERVAL_PER_FLOW: Duration = Duration::from_micros(10);

    /// Starts without flows. `samples_max` is even.
    pub(in crate::emulation) fn new(
        choice: &FlowChoice,
        start: Instant,
        samples_max: usize,
    ) -> Self {
        let due = if choice.count > 0 { start } else { Instant::MAX };
        Self { start, samples_max, flows: Vec::new(), due }
    }

    /// Updates the counters if they are due. Adds a sample at the end of an interval.
    #[inline]
    pub(in crate::emulation) fn update(
        &mut self,
        now: Instant,
        endpoint: &Endpoint,
        is_end_of_interval: bool,
    ) {
        if is_end_of_interval || now >= self.due {
            self.update_all(now, endpoint, is_end_of_interval);
        }
    }

    fn update_all(&mut self, now: Instant, endpoint: &Endpoint, is_end_of_interval: bool) {
        let followed = endpoint.followed();
        let seconds = |at: Instant| at.saturating_since(self.start).as_secs_f64();
        self.flows.retain(|flow| followed.iter().any(|it| it.number == flow.followed.number));
        for followed in followed {
            let known = self.flows.iter().position(|it| it.followed.number == followed.number);
            let place = known.unwrap_or_else(|| {
                let (at, first) = &followed.first;
                let mut flow = SampledFlowState::new(*followed);
                flow.count(first);
                flow.note(seconds(*at), self.samples_max);
                self.flows.push(flow);
                self.flows.len() - 1
            });
            let flow = &mut self.flows[place];
            match (&flow.followed.last, &followed.last) {
                // The last sample is already there.
                (Some(_), _) if known.is_some() => {}
                (_, Some((at, last))) => {
                    flow.count(last);
                    flow.note(seconds(*at), self.samples_max);
                }
                (_, None) => {
                    if let Some(found) = endpoint.flow(&followed.first.1.key, now) {
                        flow.count(&found);
                        if is_end_of_interval {
                            flow.note(seconds(now), self.samples_max);
                        }
                    }
                }
            }
            flow.followed = *followed;
        }
        if self.due < Instant::MAX {
            let each = Self::COUNT_INTERVAL_PER_FLOW.as_nanos() * self.flows.len() as u64;
            let pause = Self::COUNT_INTERVAL.max(Duration::from_nanos(each));
            self.due = now.saturating_add(pause);
        }
    }

    /// Returns the reports of the sampled flows. `owners` has the owner of each template.
    pub(in crate::emulation) fn reports(&self, owners: &[TemplateOwner]) -> Vec<SampledFlow> {
        self.flows.iter().map(|flow| flow.report(owners, self.start, &flow.samples)).collect()
    }

    /// As [`Self::reports`], but with only the last sample of each flow.
    pub(in crate::emulation) fn reports_now(&self, owners: &[TemplateOwner]) -> Vec<SampledFlow> {
        let last = |flow: &SampledFlowState| {
            let samples = flow.samples.last().map(std::slice::from_ref).unwrap_or_default();
            flow.report(owners, self.start, samples)
        };
        self.flows.iter().map(last).collect()
    }
}

impl SampledFlowState {
    fn new(followed: TrackedFlow) -> Self {
        Self { followed, samples: Vec::new(), last: None, sums: Sums::default() }
    }

    /// Adds the changes of the counters since the last update.
    fn count(&mut self, found: &FlowDetails) {
        let Some(now) = found.tcp else { return };
        let before = self.last.as_ref();
        let since =
            |now: u32, before: Option<u32>| u64::from(now.wrapping_sub(before.unwrap_or(0)));
        let repeats = now.repeats.wrapping_sub(before.map_or(0, |it| it.repeats));
        let out_of_order = now.out_of_order.wrapping_sub(before.map_or(0, |it| it.out_of_order));
        let sums = &mut self.sums;
        sums.retransmitted += u64::from(repeats);
        sums.out_of_order += u64::from(out_of_order);
        sums.acknowledged_bytes += since(now.acknowledged, before.map(|it| it.acknowledged));
        sums.received_bytes += since(now.received, before.map(|it| it.received));
        self.last = Some(now);
    }

    /// Adds a sample of the state at the last counter update. If there are `samples_max` samples,
    /// every second one is dropped first.
    fn note(&mut self, at_s: f64, samples_max: usize) {
        let Some(now) = self.last else { return };
        if self.samples.len() >= samples_max {
            // Keep the first sample, which has the start of the flow.
            let mut is_second = true;
            self.samples.retain(|_| {
                is_second = !is_second;
                !is_second
            });
        }
        let Sums { retransmitted, out_of_order, acknowledged_bytes, received_bytes } = self.sums;
        self.samples.push(FlowSample {
            at_s,
            state: state_name(now.state).into(),
            mss: now.segment_size,
            cwnd: now.congestion_window,
            ssthresh: Some(now.slow_start_threshold).filter(|it| *it != u32::MAX),
            send_window: now.send_window,
            receive_window: now.receive_window,
            send_window_scale: now.window_scales.map(|it| it.0),
            receive_window_scale: now.window_scales.map(|it| it.1),
            timestamps: now.timestamps,
            sack: now.sack,
            ecn: now.ecn,
            idle_ms: now.idle_ms,
            bytes_in_flight: now.bytes_in_flight,
            unsent: now.unsent,
            rtt_us: now.round_trip_us,
            rttvar_us: now.variation_us,
            rtt_min_us: now.min_rtt_us,
            rto_us: now.timeout_us,
            retransmitted,
            out_of_order,
            acknowledged_bytes,
            received_bytes,
        });
    }

    fn report(
        &self,
        owners: &[TemplateOwner],
        start: Instant,
        samples: &[FlowSample],
    ) -> SampledFlow {
        let TrackedFlow { template, first: (at, first), last, .. } = &self.followed;
        let owner = owners.get(*template);
        let end = |(address, port)| SocketAddr::new(address, port).to_string();
        SampledFlow {
            template: owner.map(|it| it.name.clone()).unwrap_or_default(),
            side: owner.map_or("", |it| it.side).into(),
            transport: if first.tcp.is_some() { "tcp" } else { "udp" }.into(),
            local: end(first.local),
            remote: end(first.peer),
            start_s: at.saturating_sub(first.age).saturating_since(start).as_secs_f64(),
            ended: last.is_some(),
            samples: samples.to_vec(),
        }
    }
}

/// Returns the state name of RFC 9293 section 3.3.2.
const fn state_name(state: State) -> &'static str {
    match state {
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECEIVED",
        State::Established => "ESTABLISHED",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
        State::Closed => "CLOSED",
    }
}
