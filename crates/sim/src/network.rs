//! Endpoints of clients and servers in virtual time, over wires that bring every frame to its
//! other end a while later.

use std::collections::VecDeque;

use wirestorm_base::port::{PortError, Receive, ReceiveCounters, Transmit, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::impairment::{Impaired, ImpairmentCounters};
use wirestorm_model::impairment::Impairment;
use wirestorm_stack::endpoint::{Endpoint, EndpointOptions, FollowOptions};
use wirestorm_wire::packet::MacAddress;

use crate::memory::{MemoryReceive, MemoryTransmit, WireOptions, wire};

/// The longest frame of these wires, in bytes without FCS: datagrams of 9 KB with their headers.
pub const FRAME_LENGTH_MAX: usize = 9_238;

/// How an endpoint takes part.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Its Ethernet address: frames to it are brought here, others to all others.
    pub mac: MacAddress,
    /// What it does.
    pub endpoint: EndpointOptions,
    /// What is done to frames that it sends, drawn from the endpoint's seed; `None`: nothing.
    pub impairment: Option<Impairment>,
    /// Which of its flows are followed.
    pub followed: FollowOptions,
}

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkOptions {
    /// How long a frame is on its way.
    pub delay: Duration,
    /// No flow is made this long after the start or later.
    pub duration: Duration,
    /// How long flows that are there then may take to end.
    pub drain_timeout: Duration,
}

/// A frame that leaves an endpoint, or arrives there.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Which endpoint, by its place.
    pub node: usize,
    /// When, from the start on.
    pub at: Instant,
    /// Its bytes without FCS.
    pub frame: &'a [u8],
}

/// What became of an endpoint.
#[derive(Debug)]
pub struct Ended {
    /// It, with what it counted.
    pub endpoint: Endpoint,
    /// What became of frames that it was to send, where they are impaired.
    pub impairment: Option<ImpairmentCounters>,
    /// What left it.
    pub transmitted: TransmitCounters,
    /// What arrived.
    pub received: ReceiveCounters,
}

/// Frames between two looks at a wire, at most.
const FRAMES: usize = 256;

/// Where there is nothing to wait for, time goes on in such steps.
const STEP: Duration = Duration::from_micros(1);

/// Lets endpoints talk until they have nothing more to do, or no more time. `look` is shown each
/// endpoint, by its place, before the time goes on, with the time that comes; `see` every frame
/// where it leaves and where it arrives, in the order of their times. Returns the endpoints, and
/// how much time has passed. The same endpoints always say the same.
///
/// # Errors
/// The ports', of which wires in memory have none, and those of `see`.
pub fn run(
    nodes: Vec<NodeOptions>,
    options: &NetworkOptions,
    mut look: impl FnMut(usize, Instant, &Endpoint),
    mut see: impl FnMut(Seen<'_>) -> Result<(), PortError>,
) -> Result<(Vec<Ended>, Duration), PortError> {
    let macs: Vec<MacAddress> = nodes.iter().map(|node| node.mac).collect();
    let mut nodes: Vec<Node> = nodes.into_iter().map(Node::new).collect();
    let mut now = Instant::ZERO;
    // Until when flows that are still there may end.
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
    let ended = nodes.into_iter().map(|node| Ended {
        endpoint: node.endpoint,
        impairment: node.transmit.counters(),
        transmitted: node.transmit.transmitted(),
        received: node.receive.received(),
    });
    Ok((ended.collect(), now.saturating_since(Instant::ZERO)))
}

/// Whom a frame is brought to.
fn receivers(frame: &[u8], from: usize, macs: &[MacAddress]) -> Vec<usize> {
    let destination = frame.first_chunk().map(|bytes| MacAddress(*bytes));
    match macs.iter().position(|mac| Some(*mac) == destination) {
        Some(place) => vec![place],
        None => (0..macs.len()).filter(|place| *place != from).collect(),
    }
}

struct Node {
    endpoint: Endpoint,
    /// Its end of the wire out, and the other one.
    transmit: Impaired<MemoryTransmit>,
    out: MemoryReceive,
    /// The far end of the wire in, and its own.
    into: MemoryTransmit,
    receive: MemoryReceive,
    /// Frames that left.
    left: VecDeque<Vec<u8>>,
    /// Frames on their way to it, in the order of their times.
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

    /// When there is something to do.
    fn next(&self) -> Option<Instant> {
        let arrival = self.coming.front().map(|(at, _)| *at);
        self.endpoint.next().into_iter().chain(arrival).chain(self.transmit.next()).min()
    }

    /// Whether nothing more happens to it that it does not hear of first.
    fn is_done(&self) -> bool {
        let is_silent = self.coming.is_empty() && self.transmit.next().is_none();
        is_silent && self.endpoint.is_done()
    }

    /// Takes what has arrived, does what is due and sends what is to be sent, until there is
    /// nothing more of it.
    fn breathe(
        &mut self,
        place: usize,
        now: Instant,
        see: &mut impl FnMut(Seen<'_>) -> Result<(), PortError>,
    ) -> Result<(), PortError> {
        self.transmit.advance(now);
        loop {
            while self.coming.front().is_some_and(|(at, _)| *at <= now) {
                let Some(frame) = self.into.take() else { break };
                let Some((_, bytes)) = self.coming.pop_front() else { break };
                see(Seen { node: place, at: now, frame: &bytes })?;
                // Both wires take the same lengths.
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
                see(Seen { node: place, at: now, frame: &bytes })?;
                self.left.push_back(bytes);
            }
            if arrived == 0 && left == 0 {
                return Ok(());
            }
        }
    }
}
