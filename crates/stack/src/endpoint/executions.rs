//! Flows that programs ask for, and wait for: those that they have made, and those that come to
//! where they listen.
//!
//! ```text
//! ExecTemplate -> asked -> a flow is made ----------------------------> it is over -> go_on
//! StartTemplate -> asked -> a flow is made -> go_on; AwaitTemplate ---> it is over -> go_on
//! Listen -> asked -> a port -> a connection comes -> it is held --\
//! AcceptTemplate -> asked ----------------------------------------> it is of a template -> ...
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_base::port::Transmit;

use super::connections::FlowMarks;
use super::events::{Asked, Event, Place};
use super::load::{Origin, Starts};
use super::template::{Role, Template};
use super::transports::Transports;
use crate::frame::Packet;
use crate::program::{Ports, Run, Wish};
use crate::tcp::arrival::Arrival;
use crate::tcp::connection::Now;
use crate::tcp::counters::TcpCounters;
use crate::tcp::segment::Segment;

/// Where a program listens: for this peer, at this address and port.
type Listening = (IpAddr, IpAddr, u16);

/// The connection for which a program listens.
#[derive(Clone, Copy, Debug)]
struct Expected {
    at: Listening,
    state: Expectation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expectation {
    /// It has not come; where the program waits for it, as one of this template.
    Open(Option<u16>),
    /// It has, and is held.
    Came(u32),
    /// It was over before anybody wanted it.
    Gone,
}

/// A connection that is held.
#[derive(Debug)]
struct Held {
    /// Who has listened for it.
    listener: Place,
    /// What was counted of what has arrived.
    counted: TcpCounters,
}

/// Who has asked, and who waits for whom.
#[derive(Debug)]
pub(super) struct Executions {
    children: BTreeMap<Place, Place>,
    parents: BTreeMap<Place, Parent>,
    /// Who listens.
    listening: BTreeMap<Listening, Place>,
    expected: BTreeMap<Place, Expected>,
    /// Connections that are held.
    held: BTreeMap<u32, Held>,
    /// Where a free port is looked for.
    port: u16,
    /// For templates whose programs listen: those of connections that came and are held.
    holders: BTreeMap<u16, u16>,
    /// Groups of templates that programs ask for flows of, by their places.
    groups: Vec<Vec<usize>>,
}

/// Who has asked for a flow.
#[derive(Clone, Copy, Debug)]
struct Parent {
    place: Place,
    /// Whether it waits now.
    waits: bool,
    /// Whether the flow belongs to it: they fail together.
    owns: bool,
}

/// What follows of the end of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Ended {
    /// Who has asked for it.
    parent: Option<Parent>,
    /// Connections that were its own, and that nobody wants now.
    left: [Option<u32>; 2],
}

impl Executions {
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

    /// Whether nobody waits for anybody.
    fn is_empty(&self) -> bool {
        self.parents.is_empty() && self.expected.is_empty()
    }

    /// What is counted of what arrives of a connection that is held for who listens; `None` of
    /// others.
    pub(super) fn counted(&mut self, place: u32) -> Option<&mut TcpCounters> {
        self.held.get_mut(&place).map(|it| &mut it.counted)
    }

    /// A flow has asked for another one. One that it has asked for before goes on by itself.
    fn begin(&mut self, child: Place, parent: Parent) {
        if let Some(before) = self.children.insert(parent.place, child) {
            self.parents.remove(&before);
        }
        self.parents.insert(child, parent);
    }

    /// Whether another flow has asked for this one.
    fn is_asked_for(&self, flow: Place) -> bool {
        self.parents.contains_key(&flow)
    }

    /// A flow waits for the one that belongs to it. Returns whether there is any.
    fn wait(&mut self, parent: Place) -> bool {
        let child = self.children.get(&parent).and_then(|child| self.parents.get_mut(child));
        if let Some(child) = child {
            child.waits = true;
            return true;
        }
        false
    }

    /// The program of a flow is over. Returns the connections that were its own.
    #[cold]
    fn end_program(&mut self, flow: Place) -> [Option<u32>; 2] {
        let child = self.children.remove(&flow);
        let parent = child.and_then(|child| self.parents.remove(&child));
        let owned = child.filter(|_| parent.is_some_and(|it| it.owns));
        let owned = owned.and_then(|child| match child {
            Place::Tcp(place) => Some(place),
            // For want of traffic it ends by itself.
            Place::Udp(_) => None,
        });
        [owned, self.forget(flow)]
    }

    /// A flow is over.
    #[cold]
    fn end(&mut self, flow: Place) -> Ended {
        let left = self.end_program(flow);
        if let Place::Tcp(place) = flow
            && let Some(Held { listener, .. }) = self.held.remove(&place)
            && let Some(expected) = self.expected.get_mut(&listener)
        {
            expected.state = Expectation::Gone;
        }
        let parent = self.parents.remove(&flow);
        if let Some(parent) = parent {
            self.children.remove(&parent.place);
        }
        Ended { parent, left }
    }

    /// A program goes on in another flow, and so does all that it has to do with others.
    fn replace(&mut self, old: Place, new: Place) {
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

    /// A flow listens no more. Returns the connection that is held for it.
    fn forget(&mut self, flow: Place) -> Option<u32> {
        let expected = self.expected.remove(&flow)?;
        match expected.state {
            Expectation::Open(_) => {
                self.listening.remove(&expected.at);
                None
            }
            Expectation::Came(place) => {
                self.held.remove(&place);
                Some(place)
            }
            Expectation::Gone => None,
        }
    }
}

/// Bytes of a connection that are buffered for a session until it is accepted. No peer sends more in
/// a handshake without an answer; one that does has no session, or one that fails.
const GATHERED_MAX: u64 = 64 << 10;

/// Ports that are looked at for a program that listens.
const PORTS_MAX: u32 = 64;

impl Executions {
    /// Does what programs have asked for.
    #[cold]
    pub(super) fn execute(&mut self, on: &mut Transports, now: Now, transmit: &mut impl Transmit) {
        // What these ask for has its turn in the next breath.
        for _ in 0..on.common.asked.len() {
            let Some(asked) = on.common.asked.pop_front() else { break };
            if on.key(asked.parent) != Some(asked.key) {
                continue;
            }
            match asked.wish {
                Wish::Flow { group, ports } => {
                    self.make_asked(on, &asked, group, ports, now, transmit)
                }
                Wish::End => {
                    if !self.wait(asked.parent) {
                        on.go_on(asked.parent, false);
                    }
                }
                Wish::Port { first, last } => self.listen(on, &asked, first, last),
                Wish::Arrival { group } => self.take(on, &asked, group, now),
                Wish::Session => self.start_session(on, &asked, now),
                Wish::Reconnection => self.reconnect(on, &asked, now, transmit),
            }
            self.tell_whether_any_waits(on);
        }
    }

    /// Begins the session of a flow whose program has come to where it does.
    fn start_session(&mut self, on: &mut Transports, asked: &Asked, now: Now) {
        let Place::Tcp(place) = asked.parent else { return };
        let Some((flow, pending)) = on.connections.flows.get_with_queue(place) else { return };
        let sessions = on.common.templates[usize::from(flow.template)].template.sessions.as_ref();
        let session = sessions.map(|it| it.begin(flow.key.destination(), flow.key.source()));
        flow.run.start_session(session, now);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Lets a program go on over a new connection of the same client to the same server. What is left
    /// of the old one closes.
    fn reconnect(
        &mut self,
        on: &mut Transports,
        asked: &Asked,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        let Place::Tcp(old) = asked.parent else { return };
        // A key is from the peer to us.
        let server = Some((asked.key.source(), asked.key.source_port()));
        let origin = Origin { client: asked.key.destination(), port: None, server };
        let Some(Place::Tcp(new)) = on.open(usize::from(asked.template), Some(origin), now) else {
            return on.go_on(asked.parent, true);
        };
        let state = &mut on.common.templates[usize::from(asked.template)];
        state.tally.flows.reconnected += 1;
        let Some(flow) = on.connections.flows.get_mut(new) else { return };
        let ends = state.ends(&flow.key);
        let fresh = core::mem::replace(&mut flow.run, Run::new(on.common.buffers.nothing()));
        let Some((flow, pending)) = on.connections.flows.get_with_queue(old) else { return };
        let run = flow.run.leave(ends, fresh);
        flow.run.close(&mut flow.connection, &mut state.tally.tcp);
        flow.marks.set(FlowMarks::REPLACED);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(old);
        }
        if let Some(flow) = on.connections.flows.get_mut(new) {
            flow.run = run;
        }
        self.replace(asked.parent, Place::Tcp(new));
        self.serve(Place::Tcp(new), on, now, transmit);
    }

    /// Makes a flow of a template of a group, or of the same one.
    fn make_asked(
        &mut self,
        on: &mut Transports,
        asked: &Asked,
        group: Option<u16>,
        ports: Option<Ports>,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        let Asked { parent, key, template, .. } = *asked;
        let is_client = |it: &Template| matches!(it.role, Role::Client { .. });
        let wanted = match group {
            None => Some(usize::from(template)),
            Some(group) => self.draw(on, group, is_client),
        };
        // A key is from the peer to us.
        let server = ports.map(|ports| (key.source(), ports.server));
        let port = ports.and_then(|ports| ports.client);
        let origin = Origin { client: key.destination(), port, server };
        let Some(child) = wanted.and_then(|it| on.open(it, Some(origin), now)) else {
            return on.go_on(parent, true);
        };
        let flows = &mut on.common.templates[usize::from(template)].tally.flows;
        flows.flows_total += 1;
        flows.flows_other += u64::from(wanted != Some(usize::from(template)));
        let (owns, waits) = (ports.is_some(), ports.is_none());
        self.begin(child, Parent { place: parent, waits, owns });
        self.tell_whether_any_waits(on);
        if owns {
            on.go_on(parent, false);
        }
        self.serve(child, on, now, transmit);
    }

    /// Any of the templates of a group that are so.
    fn draw(
        &mut self,
        on: &mut Transports,
        group: u16,
        is_wanted: impl Fn(&Template) -> bool,
    ) -> Option<usize> {
        let group = self.groups.get(usize::from(group))?;
        let templates = &on.common.templates;
        let fits = |it: &&usize| templates.get(**it).is_some_and(|it| is_wanted(&it.template));
        let count = group.iter().filter(fits).count();
        if count == 0 {
            return None;
        }
        group.iter().filter(fits).nth(on.common.random.below(count as u32) as usize).copied()
    }

    /// Gives a program a port to listen at.
    fn listen(&mut self, on: &mut Transports, asked: &Asked, first: u16, last: u16) {
        let (peer, own) = (asked.key.source(), asked.key.destination());
        // What it listened for before is not wanted any more.
        if let Some(held) = self.forget(asked.parent) {
            on.connections.abort(held, &mut on.common);
        }
        let ports = u32::from(last.saturating_sub(first)) + 1;
        let start = u32::from(self.port);
        self.port = self.port.wrapping_add(1);
        let tried = (0..ports.min(PORTS_MAX)).map(|step| first + ((start + step) % ports) as u16);
        let is_free = |port: &u16| {
            let key = asked.key.with_ports(asked.key.source_port(), *port);
            !self.listening.contains_key(&(peer, own, *port))
                && on.common.servers.at(&key).is_none()
        };
        let port = { tried }.find(is_free);
        if let Some(port) = port {
            let at = (peer, own, port);
            self.listening.insert(at, asked.parent);
            let expected = Expected { at, state: Expectation::Open(None) };
            self.expected.insert(asked.parent, expected);
        }
        let Place::Tcp(place) = asked.parent else { return };
        let Some((flow, pending)) = on.connections.flows.get_with_queue(place) else { return };
        let state = &on.common.templates[usize::from(flow.template)];
        flow.run.listens_at(port, &state.template.program);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Makes the connection that a program listens for one of a template of a group, now or when
    /// it comes.
    fn take(&mut self, on: &mut Transports, asked: &Asked, group: Option<u16>, now: Now) {
        let parent = asked.parent;
        let is_simple =
            |it: &Template| matches!(it.role, Role::Accepted) && it.program.contents().is_none();
        let template = group.and_then(|group| self.draw(on, group, is_simple));
        let expected = self.expected.get_mut(&parent);
        let (Some(template), Some(expected)) = (template, expected) else {
            return on.go_on(parent, true);
        };
        let template = template as u16;
        match expected.state {
            Expectation::Open(_) => expected.state = Expectation::Open(Some(template)),
            Expectation::Came(child) => {
                let held = self.held.remove(&child);
                self.expected.remove(&parent);
                self.move_to(
                    on,
                    child,
                    template,
                    held.map(|it| it.counted).unwrap_or_default(),
                    now,
                );
                self.begin_taken(on, asked.template, parent, child);
            }
            Expectation::Gone => {
                self.expected.remove(&parent);
                on.go_on(parent, true);
            }
        }
    }

    /// A program that has listened waits for the end of a connection.
    fn begin_taken(&mut self, on: &mut Transports, template: u16, parent: Place, child: u32) {
        let flows = &mut on.common.templates[usize::from(template)].tally.flows;
        flows.flows_total += 1;
        flows.flows_other += 1;
        let waiting = Parent { place: parent, waits: true, owns: true };
        self.begin(Place::Tcp(child), waiting);
        self.tell_whether_any_waits(on);
        if let Place::Tcp(parent) = parent
            && let Some(flow) = on.connections.flows.get_mut(parent)
        {
            flow.run.note_arrival();
        }
    }

    /// A connection that is held becomes one of a template, and what was counted of what has
    /// arrived goes with it. What was counted of what it has sent stays where it was.
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

    /// A SYN has come to where a program listens. Returns whether it has.
    #[cold]
    pub(super) fn hear_expected(
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
        let Place::Tcp(listener) = parent else { return false };
        let Some(owner) = on.connections.flows.get(listener).map(|it| it.template) else {
            return false;
        };
        let Some(expected) = self.expected.get(&parent).copied() else { return false };
        let wanted = match expected.state {
            Expectation::Open(template) => template,
            Expectation::Came(_) | Expectation::Gone => None,
        };
        // As long as nobody wants it, it is as those who listen for it are.
        let Some(template) = wanted.or_else(|| self.holders.get(&owner).copied()) else {
            return false;
        };
        let Some(place) = on.connections.accept(packet, segment, template, now, &mut on.common)
        else {
            return true;
        };
        self.listening.remove(&at);
        if wanted.is_some() {
            self.expected.remove(&parent);
            self.begin_taken(on, owner, parent, place);
        } else {
            let expected = Expected { state: Expectation::Came(place), ..expected };
            self.expected.insert(parent, expected);
            self.tell_whether_any_waits(on);
            // Its SYN.
            let counted = TcpCounters { rcvtotal: 1, ..TcpCounters::default() };
            let held = Held { listener: parent, counted };
            self.held.insert(place, held);
            // Whether it will have a session is not known yet; what comes first would be its.
            let has_sessions =
                |it: &Template| matches!(it.role, Role::Accepted) && it.sessions.is_some();
            let gathers = on.common.templates.iter().any(|it| has_sessions(&it.template));
            let gathering = gathers.then(|| on.common.templates[usize::from(owner)].gathering(key));
            if let Some(flow) = on.connections.flows.get_mut(place) {
                match gathering {
                    Some(gathering) => flow.run.gather(gathering),
                    None => flow.run.hold(),
                }
            }
        }
        self.serve(Place::Tcp(place), on, now, transmit);
        true
    }

    /// Lets a flow go on with its program and send what it has; then those that wait for it.
    #[inline]
    pub(super) fn serve(
        &mut self,
        place: Place,
        on: &mut Transports,
        now: Now,
        transmit: &mut impl Transmit,
    ) {
        match place {
            Place::Tcp(place) => on.connections.serve(place, now, transmit, &mut on.common),
            Place::Udp(place) => {
                let next = on.datagrams.serve(place, now, transmit, &mut on.common);
                if let Some(next) = next {
                    self.settle(on);
                    on.datagrams.begin_next(next, now, &mut on.common);
                }
            }
        }
        self.settle(on);
    }

    /// Lets those go on that have waited for what has become of flows.
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
        self.tell_whether_any_waits(on);
    }

    /// A connection has been served. `is_over`: it is in TIME-WAIT now, which is over for who has
    /// asked for it, as both sides have closed.
    fn note_served(&mut self, place: u32, is_over: bool, on: &mut Transports) {
        let Some(flow) = on.connections.flows.get(place) else { return };
        let has_failed = flow.run.has_program_failed() || flow.run.has_failed();
        if flow.run.is_over() {
            // What was its own is over as well.
            for left in self.end_program(Place::Tcp(place)).into_iter().flatten() {
                on.connections.abort(left, &mut on.common);
            }
        }
        if is_over && self.is_asked_for(Place::Tcp(place)) {
            self.end_flow(Place::Tcp(place), has_failed, on);
        }
    }

    /// A flow is over for others.
    fn end_flow(&mut self, place: Place, has_failed: bool, on: &mut Transports) {
        let Ended { parent, left } = self.end(place);
        match parent {
            Some(Parent { place, owns: true, .. }) if has_failed => on.fail_with(place),
            Some(Parent { place, waits: true, .. }) => on.go_on(place, has_failed),
            _ => {}
        }
        for left in left.into_iter().flatten() {
            on.connections.abort(left, &mut on.common);
        }
    }

    fn tell_whether_any_waits(&self, on: &mut Transports) {
        on.common.are_awaited = !self.is_empty();
    }

    /// A segment reaches a connection that is held until somebody accepts it: what it brings is for
    /// the program that it will have.
    pub(super) fn arrive_held(
        &mut self,
        place: u32,
        segment: &Segment<'_>,
        data: &[u8],
        now: Now,
        on: &mut Transports,
        starts: &mut Starts,
    ) -> Arrival {
        let holder = on.connections.flows.get(place).map_or(0, |it| usize::from(it.template));
        let before = on.common.templates[holder].tally.tcp;
        let arrival = on.connections.arrive(place, segment, data, now, &mut on.common, starts);
        let mut since = on.common.templates[holder].tally.tcp;
        since.take_off(&before);
        if let Some(counted) = self.counted(place) {
            counted.merge(&since);
        }
        if let Some(flow) = on.connections.flows.get_mut(place)
            && flow.run.gathered() > GATHERED_MAX
        {
            flow.run.stop_gathering();
        }
        arrival
    }
}
