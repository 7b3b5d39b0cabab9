//! Flows that programs start and wait for, and connections to ports where programs listen.
//!
//! ```text
//! ExecTemplate  -> request -> flow starts -------------------------> flow is over -> go_on
//! StartTemplate -> request -> flow starts -> go_on; AwaitTemplate -> flow is over -> go_on
//! Listen -> request -> port -> connection arrives -> is held --\
//! AcceptTemplate -> request ----------------------------------> gets a template -> ...
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_base::port::Transmit;

use super::connections::FlowFlags;
use super::events::{Event, FlowSlot, PendingRequest};
use super::load::{Origin, Starts};
use super::template::{Role, Template};
use super::transports::Transports;
use crate::frame::Packet;
use crate::program::{FlowRequest, Ports, Run};
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;
use crate::tcp::receive::SegmentOutcome;
use crate::tcp::segment::Segment;

/// Address of a listener: the peer, our address and our port.
type Listening = (IpAddr, IpAddr, u16);

/// Connection that a program listens for.
#[derive(Clone, Copy, Debug)]
struct ExpectedConnection {
    at: Listening,
    state: ExpectedState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedState {
    /// The connection has not arrived. The template, if the program waits to accept it.
    Open(Option<u16>),
    /// The connection in this slot has arrived and is held.
    Arrived(u32),
    /// The connection ended before the program accepted it.
    Gone,
}

/// Connection that is held until a program accepts it.
#[derive(Debug)]
struct HeldConnection {
    /// Flow that listens for it.
    listener: FlowSlot,
    /// TCP counters of its received segments.
    counted: TcpCounters,
}

/// Parents, children and listeners among the flows.
#[derive(Debug)]
pub(super) struct FlowRequests {
    children: BTreeMap<FlowSlot, FlowSlot>,
    parents: BTreeMap<FlowSlot, Parent>,
    /// Listening flows.
    listening: BTreeMap<Listening, FlowSlot>,
    expected: BTreeMap<FlowSlot, ExpectedConnection>,
    /// Held connections by slot.
    held: BTreeMap<u32, HeldConnection>,
    /// Offset of the next search for a free port.
    port: u16,
    /// For each template whose program listens, the template of its held connections.
    holders: BTreeMap<u16, u16>,
    /// Groups of template indices, for programs that start a flow of a group.
    groups: Vec<Vec<usize>>,
}

/// Flow that requested another one.
#[derive(Clone, Copy, Debug)]
struct Parent {
    place: FlowSlot,
    /// Whether it waits for the child now.
    waits: bool,
    /// Whether it owns the child: a failure of the child fails it, and its own end resets the
    /// child.
    owns: bool,
}

/// Consequences of the end of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct EndEffects {
    /// Flow that requested it.
    parent: Option<Parent>,
    /// Connections that it owned, to be reset.
    left: [Option<u32>; 2],
}

impl FlowRequests {
    pub(super) const fn new(holders: BTreeMap<u16, u16>, groups: Vec<Vec<usize>>) -> Self {
        Self {
            children: BTreeMap::new(),
            parents: BTreeMap::new(),
            listening: BTreeMap::new(),
            expected: BTreeMap::new(),
            held: BTreeMap::new(),
            port: 0,
            holders,
            groups,
        }
    }

    /// Whether no flow waits for another.
    fn is_empty(&self) -> bool {
        self.parents.is_empty() && self.expected.is_empty()
    }

    /// Returns the counters of received segments of a held connection, or `None` for others.
    pub(super) fn counted(&mut self, place: u32) -> Option<&mut TcpCounters> {
        self.held.get_mut(&place).map(|it| &mut it.counted)
    }

    /// Registers a flow as the child of another. An earlier child becomes independent.
    fn begin(&mut self, child: FlowSlot, parent: Parent) {
        if let Some(before) = self.children.insert(parent.place, child) {
            self.parents.remove(&before);
        }
        self.parents.insert(child, parent);
    }

    /// Whether another flow requested this one.
    fn is_requested(&self, flow: FlowSlot) -> bool {
        self.parents.contains_key(&flow)
    }

    /// Makes a flow wait for its child. Returns whether it has one.
    fn wait(&mut self, parent: FlowSlot) -> bool {
        let child = self.children.get(&parent).and_then(|child| self.parents.get_mut(child));
        if let Some(child) = child {
            child.waits = true;
            return true;
        }
        false
    }

    /// Handles the end of a program. Returns the connections that it owned.
    #[cold]
    fn end_program(&mut self, flow: FlowSlot) -> [Option<u32>; 2] {
        let child = self.children.remove(&flow);
        let parent = child.and_then(|child| self.parents.remove(&child));
        let owned = child.filter(|_| parent.is_some_and(|it| it.owns));
        let owned = owned.and_then(|child| match child {
            FlowSlot::Tcp(place) => Some(place),
            // A UDP child ends by its idle timeout.
            FlowSlot::Udp(_) => None,
        });
        [owned, self.forget(flow)]
    }

    /// Handles the end of a flow.
    #[cold]
    fn end(&mut self, flow: FlowSlot) -> EndEffects {
        let left = self.end_program(flow);
        if let FlowSlot::Tcp(place) = flow
            && let Some(HeldConnection { listener, .. }) = self.held.remove(&place)
            && let Some(expected) = self.expected.get_mut(&listener)
        {
            expected.state = ExpectedState::Gone;
        }
        let parent = self.parents.remove(&flow);
        if let Some(parent) = parent {
            self.children.remove(&parent.place);
        }
        EndEffects { parent, left }
    }

    /// Moves the relations of a flow to its replacement.
    fn replace(&mut self, old: FlowSlot, new: FlowSlot) {
        if let Some(parent) = self.parents.remove(&old) {
            self.children.insert(parent.place, new);
            self.parents.insert(new, parent);
        }
        if let Some(child) = self.children.remove(&old) {
            self.children.insert(new, child);
            if let Some(parent) = self.parents.get_mut(&child) {
                parent.place = new;
            }
        }
    }

    /// Stops listening for a flow. Returns the connection that is held for it.
    fn forget(&mut self, flow: FlowSlot) -> Option<u32> {
        let expected = self.expected.remove(&flow)?;
        match expected.state {
            ExpectedState::Open(_) => {
                self.listening.remove(&expected.at);
                None
            }
            ExpectedState::Arrived(place) => {
                self.held.remove(&place);
                Some(place)
            }
            ExpectedState::Gone => None,
        }
    }
}

/// Bytes of a held connection that are buffered for a session. No peer sends more in a handshake
/// without an answer. One that does has no session, or one that fails.
const BUFFERED_MAX: u64 = 64 << 10;

/// Ports tried for a program that listens.
const PORTS_MAX: u32 = 64;

impl FlowRequests {
    /// Handles the pending requests of programs.
    #[cold]
    pub(super) fn execute(&mut self, on: &mut Transports, now: Now, transmit: &mut impl Transmit) {
        // Requests made meanwhile wait for the next iteration.
        for _ in 0..on.common.requested.len() {
            let Some(request) = on.common.requested.pop_front() else { break };
            if on.key(request.parent) != Some(request.key) {
                continue;
            }
            match request.kind {
                FlowRequest::Flow { group, ports } => {
                    self.start_requested(on, &request, group, ports, now, transmit)
                }
                FlowRequest::End => {
                    if !self.wait(request.parent) {
                        on.go_on(request.parent, false);
                    }
                }
                FlowRequest::Port { first, last } => self.listen(on, &request, first, last),
                FlowRequest::Arrival { group } => self.take(on, &request, group, now),
                FlowRequest::Session => self.start_session(on, &request, now),
                FlowRequest::Reconnection => self.reconnect(on, &request, now, transmit),
            }
            self.update_are_awaited(on);
        }
    }

    /// Starts the session of a flow whose program has reached `StartSession`.
    fn start_session(&mut self, on: &mut Transports, request: &PendingRequest, now: Now) {
        let FlowSlot::Tcp(place) = request.parent else { return };
        let Some((flow, pending)) = on.connections.flows.get_with_queue(place) else { return };
        let sessions = on.common.templates[usize::from(flow.template)].template.sessions.as_ref();
        let session = sessions.map(|it| it.begin(flow.key.destination(), flow.key.source()));
        flow.run.start_session(session, now);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Continues a program over a new connection of the same client to the same server. Closes the
    /// old connection.
    fn reconnect(
        &mut self,
        on: &mut Transports,
        request: &PendingRequest,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        let FlowSlot::Tcp(old) = request.parent else { return };
        // A key is from the peer to us.
        let server = Some((request.key.source(), request.key.source_port()));
        let origin = Origin { client: request.key.destination(), port: None, server };
        let Some(FlowSlot::Tcp(new)) = on.open(usize::from(request.template), Some(origin), now)
        else {
            return on.go_on(request.parent, true);
        };
        let state = &mut on.common.templates[usize::from(request.template)];
        state.tally.flows.reconnected += 1;
        let Some(flow) = on.connections.flows.get_mut(new) else { return };
        let ends = state.ends(&flow.key);
        let fresh = core::mem::replace(&mut flow.run, Run::new(on.common.buffers.nothing()));
        let Some((flow, pending)) = on.connections.flows.get_with_queue(old) else { return };
        let run = flow.run.leave(ends, fresh);
        flow.run.close(&mut flow.connection, &mut state.tally.tcp);
        flow.marks.set(FlowFlags::REPLACED);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(old);
        }
        if let Some(flow) = on.connections.flows.get_mut(new) {
            flow.run = run;
        }
        self.replace(request.parent, FlowSlot::Tcp(new));
        self.serve(FlowSlot::Tcp(new), on, now, transmit);
    }

    /// Starts a flow of a template of `group`, or of the same template.
    fn start_requested(
        &mut self,
        on: &mut Transports,
        request: &PendingRequest,
        group: Option<u16>,
        ports: Option<Ports>,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        let PendingRequest { parent, key, template, .. } = *request;
        let is_client = |it: &Template| matches!(it.role, Role::Client { .. });
        let selected = match group {
            None => Some(usize::from(template)),
            Some(group) => self.draw(on, group, is_client),
        };
        // A key is from the peer to us.
        let server = ports.map(|ports| (key.source(), ports.server));
        let port = ports.and_then(|ports| ports.client);
        let origin = Origin { client: key.destination(), port, server };
        let Some(child) = selected.and_then(|it| on.open(it, Some(origin), now)) else {
            return on.go_on(parent, true);
        };
        let flows = &mut on.common.templates[usize::from(template)].tally.flows;
        flows.flows_total += 1;
        flows.flows_other += u64::from(selected != Some(usize::from(template)));
        let (owns, waits) = (ports.is_some(), ports.is_none());
        self.begin(child, Parent { place: parent, waits, owns });
        self.update_are_awaited(on);
        if owns {
            on.go_on(parent, false);
        }
        self.serve(child, on, now, transmit);
    }

    /// Returns a random template of a group among those that satisfy `is_eligible`.
    fn draw(
        &mut self,
        on: &mut Transports,
        group: u16,
        is_eligible: impl Fn(&Template) -> bool,
    ) -> Option<usize> {
        let group = self.groups.get(usize::from(group))?;
        let templates = &on.common.templates;
        let fits = |it: &&usize| templates.get(**it).is_some_and(|it| is_eligible(&it.template));
        let count = group.iter().filter(fits).count();
        if count == 0 {
            return None;
        }
        group.iter().filter(fits).nth(on.common.random.below(count as u32) as usize).copied()
    }

    /// Assigns a port to a program that listens.
    fn listen(&mut self, on: &mut Transports, request: &PendingRequest, first: u16, last: u16) {
        let (peer, local) = (request.key.source(), request.key.destination());
        // Drop the connection of an earlier `Listen`.
        if let Some(held) = self.forget(request.parent) {
            on.connections.abort(held, &mut on.common);
        }
        let ports = u32::from(last.saturating_sub(first)) + 1;
        let start = u32::from(self.port);
        self.port = self.port.wrapping_add(1);
        let tried = (0..ports.min(PORTS_MAX)).map(|step| first + ((start + step) % ports) as u16);
        let is_free = |port: &u16| {
            let key = request.key.with_ports(request.key.source_port(), *port);
            !self.listening.contains_key(&(peer, local, *port))
                && on.common.servers.at(&key).is_none()
        };
        let port = { tried }.find(is_free);
        if let Some(port) = port {
            let at = (peer, local, port);
            self.listening.insert(at, request.parent);
            let expected = ExpectedConnection { at, state: ExpectedState::Open(None) };
            self.expected.insert(request.parent, expected);
        }
        let FlowSlot::Tcp(place) = request.parent else { return };
        let Some((flow, pending)) = on.connections.flows.get_with_queue(place) else { return };
        let state = &on.common.templates[usize::from(flow.template)];
        flow.run.listens_at(port, &state.template.program);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Assigns a template of `group` to the connection that a program listens for, now or on its
    /// arrival.
    fn take(
        &mut self,
        on: &mut Transports,
        request: &PendingRequest,
        group: Option<u16>,
        now: Now,
    ) {
        let parent = request.parent;
        let is_simple =
            |it: &Template| matches!(it.role, Role::Accepted) && it.program.contents().is_none();
        let template = group.and_then(|group| self.draw(on, group, is_simple));
        let expected = self.expected.get_mut(&parent);
        let (Some(template), Some(expected)) = (template, expected) else {
            return on.go_on(parent, true);
        };
        let template = template as u16;
        match expected.state {
            ExpectedState::Open(_) => expected.state = ExpectedState::Open(Some(template)),
            ExpectedState::Arrived(child) => {
                let held = self.held.remove(&child);
                self.expected.remove(&parent);
                self.move_to(
                    on,
                    child,
                    template,
                    held.map(|it| it.counted).unwrap_or_default(),
                    now,
                );
                self.begin_accepted_child(on, request.template, parent, child);
            }
            ExpectedState::Gone => {
                self.expected.remove(&parent);
                on.go_on(parent, true);
            }
        }
    }

    /// Makes an accepted connection the child of the flow that listened for it.
    fn begin_accepted_child(
        &mut self,
        on: &mut Transports,
        template: u16,
        parent: FlowSlot,
        child: u32,
    ) {
        let flows = &mut on.common.templates[usize::from(template)].tally.flows;
        flows.flows_total += 1;
        flows.flows_other += 1;
        let waiting = Parent { place: parent, waits: true, owns: true };
        self.begin(FlowSlot::Tcp(child), waiting);
        self.update_are_awaited(on);
        if let FlowSlot::Tcp(parent) = parent
            && let Some(flow) = on.connections.flows.get_mut(parent)
        {
            flow.run.note_arrival();
        }
    }

    /// Moves a held connection and its counters of received segments to a template. The counters of
    /// sent segments stay with the holder.
    fn move_to(
        &mut self,
        on: &mut Transports,
        place: u32,
        template: u16,
        mut counted: TcpCounters,
        now: Now,
    ) {
        let Some((flow, pending)) = on.connections.flows.get_with_queue(place) else { return };
        counted.accepts += 1;
        let tally = &mut on.common.templates[usize::from(flow.template)].tally;
        tally.flows.active -= 1;
        tally.tcp.take_off(&counted);
        flow.template = template;
        let session = on.common.templates[usize::from(template)].session(&flow.key);
        flow.run.begin_accepted(session, now);
        let tally = &mut on.common.templates[usize::from(template)].tally;
        tally.flows.note_begin();
        tally.tcp.merge(&counted);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
        if on.common.followed.has_room() {
            on.connections.follow(place, now, &mut on.common);
        }
    }

    /// Handles a SYN to a port where a program listens. Returns whether one does.
    #[cold]
    pub(super) fn accept_expected(
        &mut self,
        on: &mut Transports,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        now: Now,
        transmit: &mut impl Transmit,
    ) -> bool {
        let key = &packet.key;
        let at = (key.source(), key.destination(), key.destination_port());
        let Some(parent) = self.listening.get(&at).copied() else { return false };
        let FlowSlot::Tcp(listener) = parent else { return false };
        let Some(owner) = on.connections.flows.get(listener).map(|it| it.template) else {
            return false;
        };
        let Some(expected) = self.expected.get(&parent).copied() else { return false };
        let accept_template = match expected.state {
            ExpectedState::Open(template) => template,
            ExpectedState::Arrived(_) | ExpectedState::Gone => None,
        };
        // Until it is accepted, the connection has the holder template of its listener.
        let Some(template) = accept_template.or_else(|| self.holders.get(&owner).copied()) else {
            return false;
        };
        let Some(place) = on.connections.accept(packet, segment, template, now, &mut on.common)
        else {
            return true;
        };
        self.listening.remove(&at);
        if accept_template.is_some() {
            self.expected.remove(&parent);
            self.begin_accepted_child(on, owner, parent, place);
        } else {
            let expected = ExpectedConnection { state: ExpectedState::Arrived(place), ..expected };
            self.expected.insert(parent, expected);
            self.update_are_awaited(on);
            // Count the SYN.
            let counted = TcpCounters { rcvtotal: 1, ..TcpCounters::default() };
            let held = HeldConnection { listener: parent, counted };
            self.held.insert(place, held);
            // The template, and with it a session, is unknown: keep the first bytes for a session.
            let has_sessions =
                |it: &Template| matches!(it.role, Role::Accepted) && it.sessions.is_some();
            let gathers = on.common.templates.iter().any(|it| has_sessions(&it.template));
            let gathering = gathers.then(|| on.common.templates[usize::from(owner)].gathering(key));
            if let Some(flow) = on.connections.flows.get_mut(place) {
                match gathering {
                    Some(gathering) => flow.run.buffer_received(gathering),
                    None => flow.run.hold(),
                }
            }
        }
        self.serve(FlowSlot::Tcp(place), on, now, transmit);
        true
    }

    /// Runs the program of a flow and sends its data, then continues the flows that wait for it.
    #[inline]
    pub(super) fn serve(
        &mut self,
        place: FlowSlot,
        on: &mut Transports,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        match place {
            FlowSlot::Tcp(place) => on.connections.serve(place, now, transmit, &mut on.common),
            FlowSlot::Udp(place) => {
                let next = on.datagrams.serve(place, now, transmit, &mut on.common);
                if let Some(next) = next {
                    self.settle(on);
                    on.datagrams.start_successor(next, now, &mut on.common);
                }
            }
        }
        self.settle(on);
    }

    /// Continues the flows that wait for the recorded events.
    #[inline]
    pub(super) fn settle(&mut self, on: &mut Transports) {
        if !on.common.events.is_empty() {
            self.settle_all(on);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_all(&mut self, on: &mut Transports) {
        for event in core::mem::take(&mut on.common.events) {
            match event {
                Event::Gone { place, has_failed } => self.end_flow(place, has_failed, on),
                Event::Served { place, is_over } => self.note_served(place, is_over, on),
            }
        }
        self.update_are_awaited(on);
    }

    /// Handles the service of a connection. `is_over`: it entered TIME-WAIT. Both sides have closed
    /// then, so it is over for its parent.
    fn note_served(&mut self, place: u32, is_over: bool, on: &mut Transports) {
        let Some(flow) = on.connections.flows.get(place) else { return };
        let has_failed = flow.run.has_program_failed() || flow.run.has_failed();
        if flow.run.is_over() {
            // Connections that the program owned are over as well.
            for left in self.end_program(FlowSlot::Tcp(place)).into_iter().flatten() {
                on.connections.abort(left, &mut on.common);
            }
        }
        if is_over && self.is_requested(FlowSlot::Tcp(place)) {
            self.end_flow(FlowSlot::Tcp(place), has_failed, on);
        }
    }

    /// Reports the end of a flow to its parent, and resets the connections that it owned.
    fn end_flow(&mut self, place: FlowSlot, has_failed: bool, on: &mut Transports) {
        let EndEffects { parent, left } = self.end(place);
        match parent {
            Some(Parent { place, owns: true, .. }) if has_failed => on.fail_with(place),
            Some(Parent { place, waits: true, .. }) => on.go_on(place, has_failed),
            _ => {}
        }
        for left in left.into_iter().flatten() {
            on.connections.abort(left, &mut on.common);
        }
    }

    fn update_are_awaited(&self, on: &mut Transports) {
        on.common.are_awaited = !self.is_empty();
    }

    /// Passes a segment to a held connection. Its counters and data are for the program that
    /// accepts it.
    pub(super) fn arrive_held(
        &mut self,
        place: u32,
        segment: &Segment<'_>,
        data: &[u8],
        now: Now,
        on: &mut Transports,
        starts: &mut Starts,
    ) -> SegmentOutcome {
        let holder = on.connections.flows.get(place).map_or(0, |it| usize::from(it.template));
        let before = on.common.templates[holder].tally.tcp;
        let arrival = on.connections.arrive(place, segment, data, now, &mut on.common, starts);
        let mut since = on.common.templates[holder].tally.tcp;
        since.take_off(&before);
        if let Some(counted) = self.counted(place) {
            counted.merge(&since);
        }
        if let Some(flow) = on.connections.flows.get_mut(place)
            && flow.run.buffered_bytes() > BUFFERED_MAX
        {
            flow.run.stop_buffering();
        }
        arrival
    }
}
