//! Client and server endpoints in virtual time, connected by wires with a constant delay.

use std::collections::VecDeque;

use wirestorm_base::port::{PortError, Receive, ReceiveCounters, Transmit, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::impairment::{Impaired, ImpairmentCounters};
use wirestorm_model::impairment::Impairment;
use wirestorm_stack::endpoint::{Endpoint, EndpointOptions, SampleOptions};
use wirestorm_wire::packet::MacAddress;

use crate::memory::{MemoryReceive, MemoryTransmit, WireOptions, wire};

/// Longest frame in bytes without FCS: a 9 KB datagram with its headers.
pub const FRAME_LENGTH_MAX: usize = 9_238;

/// Options of one endpoint.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Ethernet address. Frames for an unknown address go to all other endpoints.
    pub mac: MacAddress,
    /// Options of the endpoint itself.
    pub endpoint: EndpointOptions,
    /// Impairment of the frames it sends, seeded with the endpoint's seed; `None` for none.
    pub impairment: Option<Impairment>,
    /// Selection of the flows to follow.
    pub followed: SampleOptions,
}

/// Times of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkOptions {
    /// Delay of each frame between two endpoints.
    pub delay: Duration,
    /// Endpoints start no flow at or after this time since the start.
    pub duration: Duration,
    /// Time after `duration` in which open flows may end.
    pub drain_timeout: Duration,
}

/// Frame that leaves an endpoint or arrives at one.
#[derive(Clone, Copy, Debug)]
pub struct FrameEvent<'a> {
    /// Index of the endpoint.
    pub node: usize,
    /// Time since the start.
    pub at: Instant,
    /// Frame without FCS.
    pub frame: &'a [u8],
}

/// Final state of an endpoint.
#[derive(Debug)]
pub struct NodeResult {
    /// The endpoint with its counters.
    pub endpoint: Endpoint,
    /// Impairment counters, if its frames were impaired.
    pub impairment: Option<ImpairmentCounters>,
    /// Counters of the frames it sent.
    pub transmitted: TransmitCounters,
    /// Counters of the frames it received.
    pub received: ReceiveCounters,
}

/// Buffers of a wire: the maximum number of frames between two polls.
const FRAMES: usize = 256;

/// Smallest step of virtual time.
const STEP: Duration = Duration::from_micros(1);

/// Runs endpoints until they have nothing more to do or the time is up.
///
/// Before each step of time, calls `look` with each endpoint, its index and the next time. Calls
/// `see` for every frame at its departure and at its arrival, in order of time. Returns the
/// endpoints and the elapsed virtual time. Runs are deterministic.
///
/// # Errors
/// Returns errors of the ports, of which wires in memory have none, and errors of `see`.
pub fn run(
    nodes: Vec<NodeOptions>,
    options: &NetworkOptions,
    mut look: impl FnMut(usize, Instant, &Endpoint),
    mut see: impl FnMut(FrameEvent<'_>) -> Result<(), PortError>,
) -> Result<(Vec<NodeResult>, Duration), PortError> {
    let macs: Vec<MacAddress> = nodes.iter().map(|node| node.mac).collect();
    let mut nodes: Vec<Node> = nodes.into_iter().map(Node::new).collect();
    let mut now = Instant::ZERO;
    // Deadline of the flows that are still open; set once `duration` has passed.
    let mut until: Option<Instant> = None;
    loop {
        if now.saturating_since(Instant::ZERO) >= options.duration && until.is_none() {
            nodes.iter_mut().for_each(|node| node.endpoint.stop());
            until = Some(now.saturating_add(options.drain_timeout));
        }
        for place in 0..nodes.len() {
            nodes[place].breathe(place, now, &mut see)?;
            while let Some(frame) = nodes[place].left.pop_front() {
                let arrival = now.saturating_add(options.delay);
                for to in receivers(&frame, place, &macs) {
                    nodes[to].coming.push_back((arrival, frame.clone()));
                }
            }
        }
        let next = nodes.iter().filter_map(Node::next).min();
        let is_done = nodes.iter().all(Node::is_done);
        let Some(next) = next.filter(|_| !is_done) else { break };
        if until.is_some_and(|until| next >= until) {
            break;
        }
        let stop = Instant::ZERO.saturating_add(options.duration);
        let next = if until.is_none() { next.min(stop) } else { next };
        now = next.max(now.saturating_add(STEP));
        for (place, node) in nodes.iter().enumerate() {
            look(place, now, &node.endpoint);
        }
    }
    let ended = nodes.into_iter().map(|node| NodeResult {
        endpoint: node.endpoint,
        impairment: node.transmit.counters(),
        transmitted: node.transmit.transmitted(),
        received: node.receive.received(),
    });
    Ok((ended.collect(), now.saturating_since(Instant::ZERO)))
}

/// Returns the indices of the endpoints that receive a frame.
fn receivers(frame: &[u8], from: usize, macs: &[MacAddress]) -> Vec<usize> {
    let destination = frame.first_chunk().map(|bytes| MacAddress(*bytes));
    match macs.iter().position(|mac| Some(*mac) == destination) {
        Some(place) => vec![place],
        None => (0..macs.len()).filter(|place| *place != from).collect(),
    }
}

struct Node {
    endpoint: Endpoint,
    /// Near and far end of the outgoing wire.
    transmit: Impaired<MemoryTransmit>,
    out: MemoryReceive,
    /// Far and near end of the incoming wire.
    into: MemoryTransmit,
    receive: MemoryReceive,
    /// Frames that left in this iteration.
    left: VecDeque<Vec<u8>>,
    /// Frames in transit to this endpoint, with their arrival times in ascending order.
    coming: VecDeque<(Instant, Vec<u8>)>,
}

impl Node {
    fn new(options: NodeOptions) -> Self {
        let wire_options = WireOptions { frames: FRAMES, frame_length_max: FRAME_LENGTH_MAX };
        let (transmit, out) = wire(wire_options);
        let (into, receive) = wire(wire_options);
        let seed = options.endpoint.seed;
        let mut endpoint = Endpoint::new(options.endpoint, Instant::ZERO);
        endpoint.follow(options.followed);
        Self {
            endpoint,
            transmit: Impaired::new(transmit, options.impairment, seed),
            out,
            into,
            receive,
            left: VecDeque::new(),
            coming: VecDeque::new(),
        }
    }

    /// Returns the time of the next event.
    fn next(&self) -> Option<Instant> {
        let arrival = self.coming.front().map(|(at, _)| *at);
        self.endpoint.next().into_iter().chain(arrival).chain(self.transmit.next()).min()
    }

    /// Returns whether nothing more happens here unless a frame arrives.
    fn is_done(&self) -> bool {
        let is_silent = self.coming.is_empty() && self.transmit.next().is_none();
        is_silent && self.endpoint.is_done()
    }

    /// Receives what has arrived, runs the endpoint and sends, until neither direction has more
    /// frames at `now`.
    fn breathe(
        &mut self,
        place: usize,
        now: Instant,
        see: &mut impl FnMut(FrameEvent<'_>) -> Result<(), PortError>,
    ) -> Result<(), PortError> {
        self.transmit.advance(now);
        loop {
            while self.coming.front().is_some_and(|(at, _)| *at <= now) {
                let Some(frame) = self.into.take() else { break };
                let Some((_, bytes)) = self.coming.pop_front() else { break };
                see(FrameEvent { node: place, at: now, frame: &bytes })?;
                // Both wires have the same maximum length.
                self.into.frame_mut(&frame)[..bytes.len()].copy_from_slice(&bytes);
                self.into.send(frame, bytes.len(), now);
            }
            self.into.flush()?;
            let arrived = self.endpoint.breathe(now, &mut self.transmit, &mut self.receive)?;
            let mut batch = Vec::new();
            let left = self.out.receive(FRAMES, &mut batch)?;
            for received in batch {
                let bytes = self.out.frame(&received).to_vec();
                self.out.release(received);
                see(FrameEvent { node: place, at: now, frame: &bytes })?;
                self.left.push_back(bytes);
            }
            if arrived == 0 && left == 0 {
                return Ok(());
            }
        }
    }
}
