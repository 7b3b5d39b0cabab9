//! One side of a test: clients that connect, servers that answer, or both, on one port.
//!
//! ```text
//! frames -> dissect -> flow table -> Connection::arrive -> program -> Connection::depart -> frames
//!            time ->   timer wheel -> Connection::expire ----^
//!            load ->   new flow -----------------------------^
//! ```

mod burst;
mod clients;
mod flow;
mod hear;
mod links;
mod load;
mod serve;
mod table;
mod template;
mod times;
mod train;

use alloc::vec::Vec;

use wirestorm_base::port::{FrameId, PortError, Receive, Received, Transmit};
use wirestorm_base::time::Instant;

use self::burst::fill_up;
pub use self::clients::{AddressRange, Tuples};
use self::flow::Flow;
use self::links::Links;
use self::load::Arrivals;
pub use self::load::Load;
use self::table::Flows;
use self::template::TemplateState;
pub use self::template::{Role, Template};
pub use self::times::Times;
use self::train::Train;
pub use crate::frame::{IpSettings, LinkHeader};
use crate::host::Host;
use crate::program::{Buffers, Statistics};
use crate::random::Random;
use crate::tcp::connection::Now;
use crate::tcp::counters::TcpCounters;

/// How an endpoint is made.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// What it does.
    pub templates: Vec<Template>,
    /// What its programs send.
    pub buffers: Buffers,
    /// The longest frame without a tag that its port takes, in bytes without FCS: segments are no
    /// longer than fits it.
    pub frame_length_max: usize,
    /// The most connections at once.
    pub flows_max: usize,
    /// Who it is to its neighbours: for these addresses it answers ARP, neighbour discovery and
    /// pings. Without addresses it answers nobody.
    pub host: Host,
    /// Where initial sequence numbers and delays come from.
    pub seed: u64,
    /// Whether checksums of what arrives are looked at; not needed where the port does.
    pub verifies_checksums: bool,
}

/// What an endpoint counts beside TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Connections now.
    pub active: u64,
    /// The most at once.
    pub active_max: u64,
    /// Connections that could not be made or taken because [`EndpointOptions::flows_max`] were.
    pub overflow: u64,
    /// Connections that could not be made because their tuple was in use.
    pub tuple_in_use: u64,
    /// Segments of no connection.
    pub no_flow: u64,
    /// SYNs to ports that nobody waits at.
    pub no_template: u64,
    /// Segments that did not fit a frame of the port, and were not sent.
    pub too_long: u64,
    /// Packets in parts.
    pub fragments: u64,
    /// Packets that were damaged or cut short.
    pub damaged: u64,
    /// Packets of other protocols.
    pub other_protocol: u64,
    /// Connections that ended because both sides closed them.
    pub closed: u64,
    /// Connections that ended otherwise.
    pub failed: u64,
}

/// One side of a test.
#[derive(Debug)]
pub struct Endpoint {
    templates: Vec<TemplateState>,
    buffers: Buffers,
    flows: Flows<Flow>,
    flows_max: usize,
    links: Links,
    random: Random,
    secret: u64,
    tcp: TcpCounters,
    counters: FlowCounters,
    statistics: Statistics,
    times: Times,
    /// Free frames, within a breath.
    spare: Vec<FrameId>,
    batch: Vec<Received>,
    /// Segments that arrived and of which their connection has not heard yet, within a breath.
    train: Option<Train>,
    due: Vec<u32>,
    verifies_checksums: bool,
    host: Host,
}

/// Frames taken from a port at a time.
const BATCH: usize = 64;

impl Endpoint {
    /// An endpoint whose load begins at a time.
    pub fn new(options: EndpointOptions, now: Instant) -> Self {
        let mut random = Random::new(options.seed);
        let templates = options.templates.into_iter().map(|template| {
            let random = Random::new(random.next());
            TemplateState::new(template, options.frame_length_max, now, random)
        });
        Self {
            templates: templates.collect(),
            buffers: options.buffers,
            flows: Flows::new(now.as_nanos() / 1_000_000),
            flows_max: options.flows_max,
            links: Links::default(),
            secret: random.next(),
            random,
            tcp: TcpCounters::default(),
            counters: FlowCounters::default(),
            statistics: Statistics::default(),
            times: Times::new(),
            spare: Vec::new(),
            batch: Vec::with_capacity(BATCH),
            train: None,
            due: Vec::new(),
            verifies_checksums: options.verifies_checksums,
            host: options.host,
        }
    }

    /// What TCP counted.
    pub const fn tcp(&self) -> &TcpCounters {
        &self.tcp
    }

    /// What was counted of flows.
    pub const fn counters(&self) -> &FlowCounters {
        &self.counters
    }

    /// How long its connections took.
    pub const fn times(&self) -> &Times {
        &self.times
    }

    /// What its programs counted.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Takes what has arrived, does what is due, and sends what is to be sent. Returns how many
    /// frames arrived.
    ///
    /// # Errors
    /// Where a port does not work any more.
    pub fn breathe(
        &mut self,
        now: Instant,
        transmit: &mut impl Transmit,
        receive: &mut impl Receive,
    ) -> Result<usize, PortError> {
        let time = Now::from_micros(now.as_nanos() / 1_000);
        let mut batch = core::mem::take(&mut self.batch);
        let outcome = receive.receive(BATCH, &mut batch);
        for received in batch.drain(..) {
            let frame = receive.frame(&received);
            let verifies = self.verifies_checksums;
            if !self.train.as_mut().is_some_and(|train| train.takes(frame, verifies)) {
                self.hear_train(time);
                self.hear(frame, time, transmit);
            }
            receive.release(received);
        }
        self.hear_train(time);
        self.batch = batch;
        let mut due = core::mem::take(&mut self.due);
        self.flows.wheel.expire(now.as_nanos() / 1_000_000, &mut due);
        for place in due.drain(..) {
            self.call(place, time);
        }
        self.due = due;
        // Each flow once for all that has arrived: so one acknowledgement answers a batch of
        // segments, as with the receive offloads of network interfaces.
        for _ in 0..self.flows.pending.len() {
            // Where no frame is free, none of them can do anything.
            fill_up(&mut self.spare, 1, transmit);
            if self.spare.is_empty() {
                break;
            }
            let Some(place) = self.flows.pending.pop_front() else { break };
            if let Some(flow) = self.flows.get_mut(place) {
                flow.is_pending = false;
                self.serve(place, time, transmit);
            }
        }
        for template in 0..self.templates.len() {
            while self.templates[template].arrivals.take(now) {
                if !self.connect(template, now, transmit) {
                    break;
                }
            }
        }
        for frame in self.spare.drain(..) {
            transmit.release(frame);
        }
        transmit.flush()?;
        outcome
    }

    /// Whether no more connections are to be made, but by [`Self::connect`], and there are none.
    pub fn is_done(&self) -> bool {
        self.flows.is_empty() && self.arrivals().all(Arrivals::is_done)
    }

    /// When it has something to do though nothing arrives; `None`: never. It may be early.
    pub fn next(&self) -> Option<Instant> {
        const TICK_NANOS: u64 = 1_000_000;
        if !self.flows.pending.is_empty() {
            // They wait for a free frame.
            return Some(Instant::ZERO);
        }
        let timer = self.flows.wheel.next_tick();
        let timer = timer.map(|tick| Instant::from_nanos(tick.saturating_mul(TICK_NANOS)));
        self.arrivals().filter_map(Arrivals::next).chain(timer).min()
    }

    /// Makes no more connections but those that [`Self::connect`] asks for; those that are there
    /// go on.
    pub fn stop(&mut self) {
        self.templates.iter_mut().for_each(|it| it.arrivals.stop());
    }

    fn arrivals(&self) -> impl Iterator<Item = &Arrivals> {
        self.templates.iter().map(|it| &it.arrivals)
    }
}
