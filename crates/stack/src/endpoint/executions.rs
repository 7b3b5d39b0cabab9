//! Flows that programs ask for, and wait for: those that they have made, and those that come to
//! where they listen.
//!
//! ```text
//! ExecTemplate -> asked -> a flow is made ----------------------------> it is over -> go_on
//! StartTemplate -> asked -> a flow is made -> go_on; AwaitTemplate ---> it is over -> go_on
//! Listen -> asked -> a port -> a connection comes -> it is held --\
//! AcceptTemplate -> asked ----------------------------------------> it is of a template -> ...
//! ```

use alloc::collections::{BTreeMap, VecDeque};
use core::net::IpAddr;

use wirestorm_base::port::Transmit;
use wirestorm_wire::flow::FlowKey;

use super::Endpoint;
use super::flow::FlowMarks;
use super::serve::Origin;
use super::table::Keyed;
use super::template::{Role, Template};
use crate::frame::Packet;
use crate::program::{Ports, Run, Wish};
use crate::tcp::connection::Now;
use crate::tcp::counters::TcpCounters;
use crate::tcp::segment::Segment;

/// The place of a flow in the table of its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Tcp(u32),
    Udp(u32),
}

/// What a program asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Who asks, as whose key will tell: what is asked for comes a little later.
    pub(super) parent: Place,
    pub(super) key: FlowKey,
    /// The template of who asks.
    pub(super) template: u16,
    pub(super) wish: Wish,
}

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
    /// Who has asked and has nothing yet.
    pub(super) asked: VecDeque<Asked>,
    children: BTreeMap<Place, Place>,
    parents: BTreeMap<Place, Parent>,
    /// Who listens.
    listening: BTreeMap<Listening, Place>,
    expected: BTreeMap<Place, Expected>,
    /// Connections that are held.
    held: BTreeMap<u32, Held>,
    /// Where a free port is looked for.
    port: u16,
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
    pub(super) const fn new() -> Self {
        Self {
            asked: VecDeque::new(),
            children: BTreeMap::new(),
            parents: BTreeMap::new(),
            listening: BTreeMap::new(),
            expected: BTreeMap::new(),
            held: BTreeMap::new(),
            port: 0,
        }
    }

    /// Whether nobody waits for anybody.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
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

/// Ports that are looked at for a program that listens.
const PORTS_MAX: u32 = 64;

impl Endpoint {
    /// Does what programs have asked for.
    #[cold]
    pub(super) fn execute(&mut self, now: Now, transmit: &mut impl Transmit) {
        // What these ask for has its turn in the next breath.
        for _ in 0..self.executions.asked.len() {
            let Some(asked) = self.executions.asked.pop_front() else { break };
            let parent_key = match asked.parent {
                Place::Tcp(place) => self.flows.get(place).map(|it| it.key),
                Place::Udp(place) => self.datagrams.get(place).map(|it| *it.key()),
            };
            if parent_key != Some(asked.key) {
                continue;
            }
            match asked.wish {
                Wish::Flow { group, ports } => self.make_asked(&asked, group, ports, now, transmit),
                Wish::End => {
                    if !self.executions.wait(asked.parent) {
                        self.go_on(asked.parent, false);
                    }
                }
                Wish::Port { first, last } => self.listen(&asked, first, last),
                Wish::Arrival { group } => self.take(&asked, group, now),
                Wish::Session => self.start_session(&asked, now),
                Wish::Reconnection => self.reconnect(&asked, now, transmit),
            }
        }
    }

    /// Begins the session of a flow whose program has come to where it does.
    fn start_session(&mut self, asked: &Asked, now: Now) {
        let Place::Tcp(place) = asked.parent else { return };
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        let sessions = self.templates[usize::from(flow.template)].template.sessions.as_ref();
        let session = sessions.map(|it| it.begin(flow.key.destination(), flow.key.source()));
        flow.run.start_session(session, now);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Lets a program go on over a new connection of the same client to the same server. What is left
    /// of the old one closes.
    fn reconnect(&mut self, asked: &Asked, now: Now, transmit: &mut impl Transmit) {
        let Place::Tcp(old) = asked.parent else { return };
        // A key is from the peer to us.
        let server = Some((asked.key.source(), asked.key.source_port()));
        let origin = Origin { client: asked.key.destination(), port: None, server };
        let Some(Place::Tcp(new)) = self.open(usize::from(asked.template), Some(origin), now)
        else {
            return self.go_on(asked.parent, true);
        };
        let state = &mut self.templates[usize::from(asked.template)];
        state.tally.flows.reconnected += 1;
        let Some(flow) = self.flows.get_mut(new) else { return };
        let ends = state.ends(&flow.key);
        let fresh = core::mem::replace(&mut flow.run, Run::new(self.buffers.nothing()));
        let Some((flow, pending)) = self.flows.get_with_queue(old) else { return };
        let run = flow.run.leave(ends, fresh);
        flow.run.close(&mut flow.connection, &mut state.tally.tcp);
        flow.marks.set(FlowMarks::REPLACED);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(old);
        }
        if let Some(flow) = self.flows.get_mut(new) {
            flow.run = run;
        }
        self.executions.replace(asked.parent, Place::Tcp(new));
        self.serve(new, now, transmit);
    }

    /// Makes a flow of a template of a group, or of the same one.
    fn make_asked(
        &mut self,
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
            Some(group) => self.draw(group, is_client),
        };
        // A key is from the peer to us.
        let server = ports.map(|ports| (key.source(), ports.server));
        let port = ports.and_then(|ports| ports.client);
        let origin = Origin { client: key.destination(), port, server };
        let Some(child) = wanted.and_then(|it| self.open(it, Some(origin), now)) else {
            return self.go_on(parent, true);
        };
        let flows = &mut self.templates[usize::from(template)].tally.flows;
        flows.flows_total += 1;
        flows.flows_other += u64::from(wanted != Some(usize::from(template)));
        let (owns, waits) = (ports.is_some(), ports.is_none());
        self.executions.begin(child, Parent { place: parent, waits, owns });
        if owns {
            self.go_on(parent, false);
        }
        self.serve_at(child, now, transmit);
    }

    /// Any of the templates of a group that are so.
    fn draw(&mut self, group: u16, is_wanted: impl Fn(&Template) -> bool) -> Option<usize> {
        let group = self.groups.get(usize::from(group))?;
        let templates = &self.templates;
        let fits = |it: &&usize| templates.get(**it).is_some_and(|it| is_wanted(&it.template));
        let count = group.iter().filter(fits).count();
        if count == 0 {
            return None;
        }
        group.iter().filter(fits).nth(self.random.below(count as u32) as usize).copied()
    }

    /// Gives a program a port to listen at.
    fn listen(&mut self, asked: &Asked, first: u16, last: u16) {
        let (peer, own) = (asked.key.source(), asked.key.destination());
        // What it listened for before is not wanted any more.
        if let Some(held) = self.executions.forget(asked.parent) {
            self.abort(held);
        }
        let ports = u32::from(last.saturating_sub(first)) + 1;
        let start = u32::from(self.executions.port);
        self.executions.port = self.executions.port.wrapping_add(1);
        let tried = (0..ports.min(PORTS_MAX)).map(|step| first + ((start + step) % ports) as u16);
        let is_free = |port: &u16| {
            let key = asked.key.with_ports(asked.key.source_port(), *port);
            !self.executions.listening.contains_key(&(peer, own, *port))
                && self.servers.at(&key).is_none()
        };
        let port = { tried }.find(is_free);
        if let Some(port) = port {
            let at = (peer, own, port);
            self.executions.listening.insert(at, asked.parent);
            let expected = Expected { at, state: Expectation::Open(None) };
            self.executions.expected.insert(asked.parent, expected);
        }
        let Place::Tcp(place) = asked.parent else { return };
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        let state = &self.templates[usize::from(flow.template)];
        flow.run.listens_at(port, &state.template.program);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }

    /// Makes the connection that a program listens for one of a template of a group, now or when
    /// it comes.
    fn take(&mut self, asked: &Asked, group: Option<u16>, now: Now) {
        let parent = asked.parent;
        let is_simple =
            |it: &Template| matches!(it.role, Role::Accepted) && it.program.contents().is_none();
        let template = group.and_then(|group| self.draw(group, is_simple));
        let expected = self.executions.expected.get_mut(&parent);
        let (Some(template), Some(expected)) = (template, expected) else {
            return self.go_on(parent, true);
        };
        let template = template as u16;
        match expected.state {
            Expectation::Open(_) => expected.state = Expectation::Open(Some(template)),
            Expectation::Came(child) => {
                let held = self.executions.held.remove(&child);
                self.executions.expected.remove(&parent);
                self.move_to(child, template, held.map(|it| it.counted).unwrap_or_default(), now);
                self.begin_taken(asked.template, parent, child);
            }
            Expectation::Gone => {
                self.executions.expected.remove(&parent);
                self.go_on(parent, true);
            }
        }
    }

    /// A program that has listened waits for the end of a connection.
    fn begin_taken(&mut self, template: u16, parent: Place, child: u32) {
        let flows = &mut self.templates[usize::from(template)].tally.flows;
        flows.flows_total += 1;
        flows.flows_other += 1;
        let waiting = Parent { place: parent, waits: true, owns: true };
        self.executions.begin(Place::Tcp(child), waiting);
        if let Place::Tcp(parent) = parent
            && let Some(flow) = self.flows.get_mut(parent)
        {
            flow.run.note_arrival();
        }
    }

    /// A connection that is held becomes one of a template, and what was counted of what has
    /// arrived goes with it. What was counted of what it has sent stays where it was.
    fn move_to(&mut self, place: u32, template: u16, mut counted: TcpCounters, now: Now) {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        counted.accepts += 1;
        let tally = &mut self.templates[usize::from(flow.template)].tally;
        tally.flows.active -= 1;
        tally.tcp.take_off(&counted);
        flow.template = template;
        let session = self.templates[usize::from(template)].session(&flow.key);
        flow.run.begin_accepted(session, now);
        let tally = &mut self.templates[usize::from(template)].tally;
        tally.flows.note_begin();
        tally.tcp.merge(&counted);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
        if self.followed.has_room() {
            self.begin_followed(Place::Tcp(place), now);
        }
    }

    /// A SYN has come to where a program listens. Returns whether it has.
    #[cold]
    pub(super) fn hear_expected(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        now: Now,
        transmit: &mut impl Transmit,
    ) -> bool {
        let key = &packet.key;
        let at = (key.source(), key.destination(), key.destination_port());
        let Some(parent) = self.executions.listening.get(&at).copied() else { return false };
        let Place::Tcp(listener) = parent else { return false };
        let Some(owner) = self.flows.get(listener).map(|it| it.template) else { return false };
        let Some(expected) = self.executions.expected.get(&parent).copied() else { return false };
        let wanted = match expected.state {
            Expectation::Open(template) => template,
            Expectation::Came(_) | Expectation::Gone => None,
        };
        // As long as nobody wants it, it is as those who listen for it are.
        let Some(template) = wanted.or_else(|| self.holders.get(&owner).copied()) else {
            return false;
        };
        let Some(place) = self.accept(packet, segment, template, now) else { return true };
        self.executions.listening.remove(&at);
        if wanted.is_some() {
            self.executions.expected.remove(&parent);
            self.begin_taken(owner, parent, place);
        } else {
            let expected = Expected { state: Expectation::Came(place), ..expected };
            self.executions.expected.insert(parent, expected);
            // Its SYN.
            let counted = TcpCounters { rcvtotal: 1, ..TcpCounters::default() };
            let held = Held { listener: parent, counted };
            self.executions.held.insert(place, held);
            // Whether it will have a session is not known yet; what comes first would be its.
            let has_sessions =
                |it: &Template| matches!(it.role, Role::Accepted) && it.sessions.is_some();
            let gathers = self.templates.iter().any(|it| has_sessions(&it.template));
            let gathering = gathers.then(|| self.templates[usize::from(owner)].gathering(key));
            if let Some(flow) = self.flows.get_mut(place) {
                match gathering {
                    Some(gathering) => flow.run.gather(gathering),
                    None => flow.run.hold(),
                }
            }
        }
        self.serve(place, now, transmit);
        true
    }

    /// What a flow has waited for is over, or does not come.
    #[cold]
    pub(super) fn go_on(&mut self, place: Place, has_failed: bool) {
        match place {
            Place::Tcp(place) => {
                let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
                flow.run.go_on(has_failed);
                if !flow.is_pending {
                    flow.is_pending = true;
                    pending.push_back(place);
                }
            }
            Place::Udp(place) => self.go_on_with_datagrams(place, has_failed),
        }
    }

    /// A flow has been served, and somebody waits for somebody. `is_over`: it is in TIME-WAIT now,
    /// which is over for who has asked for it, as both sides have closed.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&mut self, place: u32, is_over: bool) {
        let Some(flow) = self.flows.get(place) else { return };
        let has_failed = flow.run.has_program_failed() || flow.run.has_failed();
        if flow.run.is_over() {
            self.end_program(place);
        }
        if is_over && self.executions.is_asked_for(Place::Tcp(place)) {
            self.end_execution(Place::Tcp(place), has_failed);
        }
    }

    /// A program is over: what was its own is as well.
    fn end_program(&mut self, place: u32) {
        for left in self.executions.end_program(Place::Tcp(place)).into_iter().flatten() {
            self.abort(left);
        }
    }

    /// A flow has failed that belongs to another one.
    fn fail_with(&mut self, place: Place) {
        match place {
            Place::Tcp(place) => {
                let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
                flow.run.fail_with_other();
                if !flow.is_pending {
                    flow.is_pending = true;
                    pending.push_back(place);
                }
            }
            Place::Udp(place) => self.go_on_with_datagrams(place, true),
        }
    }

    /// A flow is over for others.
    #[cold]
    pub(super) fn end_execution(&mut self, place: Place, has_failed: bool) {
        let Ended { parent, left } = self.executions.end(place);
        match parent {
            Some(Parent { place, owns: true, .. }) if has_failed => self.fail_with(place),
            Some(Parent { place, waits: true, .. }) => self.go_on(place, has_failed),
            _ => {}
        }
        for left in left.into_iter().flatten() {
            self.abort(left);
        }
    }

    /// Resets a connection that nobody wants.
    fn abort(&mut self, place: u32) {
        let Some((flow, pending)) = self.flows.get_with_queue(place) else { return };
        let tally = &mut self.templates[usize::from(flow.template)].tally;
        flow.connection.abort(&mut tally.tcp);
        if !flow.is_pending {
            flow.is_pending = true;
            pending.push_back(place);
        }
    }
}
