//! Single flows that are followed: what they are at the end of each interval.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::time::Instant;
use wirestorm_stack::endpoint::{Endpoint, FlowDetails};
use wirestorm_stack::tcp::connection::State;
use wirestorm_stack::tcp::details::Details;

use super::report::Owner;

/// Which flows of each port are followed: so many at a time of those that all of this is true of.
/// When one of them is over, another one takes its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowChoice {
    /// How many, at most.
    pub count: usize,
    /// The name of their template.
    pub template: Option<String>,
    /// An address at either end.
    pub address: Option<IpAddr>,
    /// A port at either end.
    pub port: Option<u16>,
}

impl FlowChoice {
    /// The most flows that can be followed at a time.
    pub const COUNT_MAX: usize = 1_000;

    fn takes(&self, flow: &FlowDetails) -> bool {
        let ends = [flow.own, flow.peer];
        !is_over(flow)
            && self.address.is_none_or(|address| ends.iter().any(|end| end.0 == address))
            && self.port.is_none_or(|port| ends.iter().any(|end| end.1 == port))
    }
}

/// A flow that was followed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowReport {
    /// The name of its template.
    pub template: String,
    /// `client` or `server`.
    pub side: &'static str,
    /// `tcp` or `udp`.
    pub transport: &'static str,
    /// Our address and port.
    pub own: String,
    /// The peer's.
    pub peer: String,
    /// When it began, in seconds from the start of the run.
    pub began_s: f64,
    /// Whether it was gone, or in TIME-WAIT, when it was looked at last.
    pub ended: bool,
    /// Its connection at the end of each interval in which it was there; nothing of UDP.
    pub samples: Vec<FlowSample>,
}

/// A connection at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowSample {
    /// When, in seconds from the start of the run.
    pub at_s: f64,
    /// Its state, as RFC 9293 names it.
    pub state: &'static str,
    /// The longest data of a segment, in bytes.
    pub mss: u16,
    /// The congestion window, in bytes.
    pub cwnd: u32,
    /// Where slow start ends, in bytes; none before the first loss.
    pub ssthresh: Option<u32>,
    /// What the peer has room for, in bytes.
    pub send_window: u32,
    /// What we have room for, in bytes.
    pub receive_window: u32,
    /// By how many bits the peer's windows are shifted; none where windows are not scaled.
    pub send_scale: Option<u8>,
    /// By how many bits ours are.
    pub receive_scale: Option<u8>,
    /// Whether timestamps were agreed upon.
    pub timestamps: bool,
    /// Whether losses are told by SACK.
    pub sack: bool,
    /// Whether ECN was agreed upon.
    pub ecn: bool,
    /// How long ago the peer was heard, in milliseconds; none where keepalive is off and there are
    /// no timestamps.
    pub silent_ms: Option<u32>,
    /// Bytes that the program has handed over and that are not acknowledged.
    pub backlog: u32,
    /// Those of them that were never sent.
    pub unsent: u32,
    /// The smoothed round-trip time in microseconds; none before the first was measured.
    pub rtt_us: Option<u32>,
    /// How much round trips vary, in microseconds.
    pub rttvar_us: Option<u32>,
    /// The least round-trip time in microseconds.
    pub rtt_min_us: Option<u32>,
    /// The retransmission timeout in microseconds.
    pub rto_us: u32,
    /// Segments with data sent again. Of those between two looks 255 are told at most.
    pub retransmitted: u64,
    /// Segments with data that arrived beyond a hole. Of those between two looks 255 are told at
    /// most.
    pub out_of_order: u64,
    /// Bytes that were acknowledged.
    pub acknowledged_bytes: u64,
    /// Bytes that were received in sequence.
    pub received_bytes: u64,
}

/// The flows of a port that are followed.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    choice: FlowChoice,
    /// The templates that they may be of, by their places.
    templates: Vec<usize>,
    start: Instant,
    samples_max: usize,
    flows: Vec<FollowedFlow>,
}

#[derive(Clone, Debug)]
struct FollowedFlow {
    template: usize,
    first: FlowDetails,
    began: Instant,
    has_ended: bool,
    samples: Vec<FlowSample>,
    last: Option<Details>,
}

impl Followed {
    /// Flows of templates of these owners, with so many samples each at most.
    pub(super) fn new(
        choice: &FlowChoice,
        owners: &[Owner],
        start: Instant,
        samples_max: usize,
    ) -> Self {
        let is_asked_for =
            |owner: &Owner| choice.template.as_ref().is_none_or(|name| *name == owner.name);
        let places = owners.iter().enumerate();
        let templates = places.filter(|(_, owner)| is_asked_for(owner)).map(|(place, _)| place);
        let templates = templates.collect();
        Self { choice: choice.clone(), templates, start, samples_max, flows: Vec::new() }
    }

    /// Looks at an endpoint.
    pub(super) fn look(&mut self, now: Instant, endpoint: &Endpoint) {
        if self.choice.count == 0 {
            return;
        }
        let at_s = now.saturating_since(self.start).as_secs_f64();
        for flow in self.flows.iter_mut().filter(|flow| !flow.has_ended) {
            let found = endpoint.flow(&flow.first.key, now).filter(|found| flow.is(found, now));
            match found {
                Some(found) => flow.note(&found, at_s, self.samples_max),
                None => flow.has_ended = true,
            }
        }
        let there = self.flows.iter().filter(|flow| !flow.has_ended).count();
        if there < self.choice.count {
            self.choose(self.choice.count - there, now, at_s, endpoint);
        }
    }

    /// Begins to follow so many more.
    fn choose(&mut self, count: usize, now: Instant, at_s: f64, endpoint: &Endpoint) {
        let known: Vec<_> =
            self.flows.iter().filter(|it| !it.has_ended).map(|it| it.first.key).collect();
        let flows = |template: &usize| {
            let template = *template;
            endpoint.flows(template, now).map(move |found| (template, found))
        };
        let is_new = |(_, found): &(usize, FlowDetails)| {
            self.choice.takes(found) && !known.contains(&found.key)
        };
        let found: Vec<_> =
            self.templates.iter().flat_map(flows).filter(is_new).take(count).collect();
        for (template, found) in found {
            let mut flow = FollowedFlow {
                template,
                first: found,
                began: now.saturating_sub(found.age),
                has_ended: false,
                samples: Vec::new(),
                last: None,
            };
            flow.note(&found, at_s, self.samples_max);
            // Those that are over make room for others.
            let over = self.flows.iter().position(|it| it.has_ended);
            match over.filter(|_| self.flows.len() >= self.choice.count) {
                Some(place) => self.flows[place] = flow,
                None => self.flows.push(flow),
            }
        }
    }

    /// What was found out of each; `owners`: whose the templates are.
    pub(super) fn reports(&self, owners: &[Owner]) -> Vec<FlowReport> {
        self.flows.iter().map(|flow| flow.report(owners, self.start, &flow.samples)).collect()
    }

    /// The same, each with its last sample alone.
    pub(super) fn reports_now(&self, owners: &[Owner]) -> Vec<FlowReport> {
        let last = |flow: &FollowedFlow| {
            let samples = flow.samples.last().map(std::slice::from_ref).unwrap_or_default();
            flow.report(owners, self.start, samples)
        };
        self.flows.iter().map(last).collect()
    }
}

impl FollowedFlow {
    /// Whether it is this flow that was found, and not another one of the same tuple.
    fn is(&self, found: &FlowDetails, now: Instant) -> bool {
        /// Ages are counted modulo 2^32 us.
        const ROUND_US: u64 = 1 << 32;
        let age = now.saturating_since(self.began).as_nanos() / 1_000;
        let apart = (age + ROUND_US - found.age.as_nanos() / 1_000) % ROUND_US;
        apart <= 1 || apart == ROUND_US - 1
    }

    fn note(&mut self, found: &FlowDetails, at_s: f64, samples_max: usize) {
        self.has_ended |= is_over(found);
        let Some(now) = found.tcp else { return };
        if self.samples.len() >= samples_max {
            let mut is_second = true;
            self.samples.retain(|_| {
                is_second = !is_second;
                is_second
            });
        }
        let before = self.samples.last();
        let since =
            |now: u32, before: Option<u32>| u64::from(now.wrapping_sub(before.unwrap_or(0)));
        let repeats = now.repeats.wrapping_sub(self.last.map_or(0, |it| it.repeats));
        let out_of_order = now.out_of_order.wrapping_sub(self.last.map_or(0, |it| it.out_of_order));
        let acknowledged = since(now.acknowledged, self.last.map(|it| it.acknowledged));
        let received = since(now.received, self.last.map(|it| it.received));
        self.samples.push(FlowSample {
            at_s,
            state: state_name(now.state),
            mss: now.segment_size,
            cwnd: now.congestion_window,
            ssthresh: Some(now.slow_start_threshold).filter(|it| *it != u32::MAX),
            send_window: now.send_window,
            receive_window: now.receive_window,
            send_scale: now.window_scales.map(|it| it.0),
            receive_scale: now.window_scales.map(|it| it.1),
            timestamps: now.timestamps,
            sack: now.sack,
            ecn: now.ecn,
            silent_ms: now.silent_ms,
            backlog: now.backlog,
            unsent: now.unsent,
            rtt_us: now.round_trip_us,
            rttvar_us: now.variation_us,
            rtt_min_us: now.least_us,
            rto_us: now.timeout_us,
            retransmitted: before.map_or(0, |it| it.retransmitted) + u64::from(repeats),
            out_of_order: before.map_or(0, |it| it.out_of_order) + u64::from(out_of_order),
            acknowledged_bytes: before.map_or(0, |it| it.acknowledged_bytes) + acknowledged,
            received_bytes: before.map_or(0, |it| it.received_bytes) + received,
        });
        self.last = Some(now);
    }

    fn report(&self, owners: &[Owner], start: Instant, samples: &[FlowSample]) -> FlowReport {
        let owner = owners.get(self.template);
        let end = |(address, port)| SocketAddr::new(address, port).to_string();
        FlowReport {
            template: owner.map(|it| it.name.clone()).unwrap_or_default(),
            side: owner.map_or("", |it| it.side),
            transport: if self.first.tcp.is_some() { "tcp" } else { "udp" },
            own: end(self.first.own),
            peer: end(self.first.peer),
            began_s: self.began.saturating_since(start).as_secs_f64(),
            ended: self.has_ended,
            samples: samples.to_vec(),
        }
    }
}

/// Whether a flow is over for its program: there is nothing to see of it any more.
fn is_over(flow: &FlowDetails) -> bool {
    flow.tcp.is_some_and(|it| it.state == State::TimeWait)
}

/// As RFC 9293 section 3.3.2 has it.
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
