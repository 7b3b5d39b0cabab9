//! What flows of one kind do.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::{ethernet, ipv4, ipv6, protocol, tcp};

use super::counters::Tally;
use super::links::ClientLinks;
use super::listen::Listen;
use super::load::{AddressSet, Arrivals, Off, Tuples};
use crate::content::{DatagramSession, Session, Sessions};
use crate::program::{Ends, Own, Program};
use crate::random::Random;
use wirestorm_model::ip::IpSettings;
use wirestorm_model::tcp::Settings;

/// What flows of one kind do.
#[derive(Clone, Debug)]
pub struct Template {
    /// What they say.
    pub program: Program,
    /// What carries it.
    pub transport: Transport,
    /// IP settings of the client.
    pub ip: IpSettings,
    /// What stands between programs and connections, such as TLS; `None`: nothing does. Programs
    /// begin once their session is open, but for those that say where it begins, by
    /// [`Instruction::StartSession`](crate::program::Instruction::StartSession). Connections of TCP
    /// have them, but those that a template is chosen for by their first bytes;
    /// flows of UDP have those over datagrams ([`Sessions::begin_datagrams`]).
    pub sessions: Option<Arc<dyn Sessions>>,
    /// Whether peers' programs reset connections, so that a reset is no failure.
    pub meets_resets: bool,
    /// Who they are.
    pub role: Role,
}

/// Whether flows of a template are made or waited for.
#[derive(Clone, Debug)]
pub enum Role {
    /// They are made, between these.
    Client {
        /// Between whom.
        tuples: Tuples,
        /// What is below IP.
        link: ClientLinks,
        /// When they are made.
        load: Load,
        /// Over how long a rate, a number of users or of flows that are held grows from 0 to what
        /// it is; other loads have it all at once.
        ramp: Duration,
        /// How many in all; `None`: without end.
        limit: Option<u64>,
    },
    /// They are waited for.
    Server {
        /// Where.
        listen: Listen,
    },
    /// They come to where programs listen, by [`Instruction::Listen`], which take them, by
    /// [`Instruction::AcceptTemplate`]; where their program has nothing that is about bytes of
    /// single flows.
    ///
    /// [`Instruction::Listen`]: crate::program::Instruction::Listen
    /// [`Instruction::AcceptTemplate`]: crate::program::Instruction::AcceptTemplate
    Accepted,
}

/// What carries what flows say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Connections of TCP that behave so.
    Tcp(Settings),
    /// Datagrams of UDP. The program's first one begins a flow; it ends with the program, or for
    /// want of traffic.
    Udp,
}

impl Template {
    /// Whether it matters which bytes arrive, and not only how many: sessions read them, programs
    /// may, and the first ones may decide whose a flow is.
    pub fn looks_at_data(&self) -> bool {
        let is_listed = match &self.role {
            Role::Server { listen } => !listen.first_bytes.is_empty(),
            Role::Client { .. } | Role::Accepted => false,
        };
        is_listed || self.sessions.is_some() || self.program.contents().is_some()
    }
}

impl Template {
    /// What a connection of it does as long as nothing is known of its data, which is looked at as
    /// it comes.
    pub(super) fn waiting_for_data(&self) -> Self {
        let program = Program::waiting();
        Self { program, sessions: None, ..self.clone() }
    }
}

impl Transport {
    /// Its number in IP headers.
    pub(super) const fn protocol(&self) -> u8 {
        match self {
            Self::Tcp(_) => protocol::TCP,
            Self::Udp => protocol::UDP,
        }
    }
}

/// A template, and how far an endpoint is with it.
#[derive(Debug)]
pub(super) struct TemplateState {
    pub(super) template: Template,
    /// How TCP behaves over IPv4 and over IPv6, whose longer header leaves less room.
    settings: [Settings; 2],
    pub(super) arrivals: Arrivals,
    /// How many tuples were used.
    pub(super) used: u64,
    /// Of the ports that clients connect from, the place of the first flow's.
    pub(super) first_port: u32,
    /// Clients that make no flows now; `None`: all do.
    pub(super) off: Option<Off>,
    pub(super) tally: Tally,
}

impl TemplateState {
    pub(super) fn new(
        template: Template,
        frame_length_max: usize,
        now: Instant,
        random: Random,
    ) -> Self {
        let (load, ramp, limit) = match template.role {
            Role::Client { load, ramp, limit, .. } => (load, ramp, limit),
            Role::Server { .. } | Role::Accepted => (Load::OnDemand, Duration::ZERO, None),
        };
        let tcp = match &template.transport {
            Transport::Tcp(settings) => *settings,
            Transport::Udp => Settings::default(),
        };
        let excess = match &template.role {
            Role::Client { link, .. } => link.excess(),
            Role::Server { .. } | Role::Accepted => 0,
        };
        let stamped = template.program.stamp().map(|_| Box::default());
        let tally = Tally { stamped, ..Tally::new() };
        Self {
            settings: fitting(&tcp, frame_length_max.saturating_sub(excess)),
            template,
            arrivals: Arrivals::new(load, ramp, limit, now, random),
            used: 0,
            first_port: 0,
            off: None,
            tally,
        }
    }

    /// Whether so many SYNs are not answered yet that a load which holds flows waits: as with slow
    /// start, each answer is followed by two more.
    #[inline]
    pub(super) fn waits_for_answers(&self) -> bool {
        const FIRST: u64 = 512;
        let tcp = &self.tally.tcp;
        let decided = tcp.connects + tcp.conndrops;
        self.arrivals.is_closed_loop()
            && tcp.connattempt.saturating_sub(decided) >= FIRST + tcp.connects
    }

    /// Clients begin at any of their ports.
    pub(super) fn draw_first_port(&mut self, random: &mut Random) {
        if let Role::Client { tuples, .. } = &self.template.role {
            let (first, last) = (tuples.client_ports.start(), tuples.client_ports.end());
            self.first_port = random.below(u32::from(last.saturating_sub(*first)) + 1);
        }
    }

    /// From now on the clients in a set make no flows, and all others do.
    pub(super) fn switch_off(&mut self, set: &AddressSet) {
        let Role::Client { tuples, .. } = &self.template.role else { return };
        self.off = Off::of(&tuples.clients, set);
        let is_on = |off| tuples.on_from(self.used, off).is_some();
        self.arrivals.set_off(!self.off.as_ref().is_none_or(is_on));
    }

    /// What a new flow has of its own, where its program asks for that.
    #[inline]
    pub(super) fn own(&mut self, key: &FlowKey) -> Option<Own> {
        let messages = self.template.program.contents()?.messages;
        let listens = self.template.program.keeps();
        Some(Own::new(self.ends(key), self.tally.findings.next_flow(), listens, messages))
    }

    /// What keeps the bytes of a flow of which nobody knows yet whose they are.
    #[cold]
    pub(super) fn gathering(&self, key: &FlowKey) -> Own {
        Own::new(self.ends(key), 0, true, 0)
    }

    pub(super) fn ends(&self, key: &FlowKey) -> Ends {
        // A key is from the peer to us.
        let peer = (key.source(), key.source_port());
        let us = (key.destination(), key.destination_port());
        match self.template.role {
            Role::Client { .. } => Ends { client: us, server: peer },
            Role::Server { .. } | Role::Accepted => Ends { client: peer, server: us },
        }
    }

    /// What stands between a new flow's program and its connection from the beginning.
    #[inline]
    pub(super) fn session(&self, key: &FlowKey) -> Option<Box<dyn Session>> {
        let sessions = self.template.sessions.as_ref()?;
        (!self.template.program.starts_session())
            .then(|| sessions.begin(key.destination(), key.source()))
    }

    /// What stands between the program of a new flow of UDP and its datagrams.
    #[inline]
    pub(super) fn datagram_session(&self, key: &FlowKey) -> Option<Box<dyn DatagramSession>> {
        self.template.sessions.as_ref()?.begin_datagrams(key.destination(), key.source())
    }

    /// How TCP behaves in a flow.
    #[inline]
    pub(super) fn settings(&self, key: &FlowKey) -> &Settings {
        &self.settings[usize::from(key.version() == 6)]
    }

    /// How TCP behaves in a flow, and what is counted of it.
    #[inline]
    pub(super) fn tcp(&mut self, key: &FlowKey) -> (&Template, &Settings, &mut Tally) {
        (&self.template, &self.settings[usize::from(key.version() == 6)], &mut self.tally)
    }
}

/// Appends for each of the first so many templates whose program listens one of connections that
/// came to there and are held; returns which is whose.
pub(super) fn holders(templates: &mut Vec<Template>, count: usize) -> BTreeMap<u16, u16> {
    let mut holders = BTreeMap::new();
    for place in 0..count {
        let template = &templates[place];
        if template.program.listens() {
            let holder = Template { role: Role::Accepted, ..template.waiting_for_data() };
            holders.insert(place as u16, templates.len() as u16);
            templates.push(holder);
        }
    }
    holders
}

/// Bytes of data of a segment, options included, for which a frame has room behind an IP header of so
/// many bytes.
pub(super) fn room(frame_length_max: usize, ip: usize) -> u16 {
    let headers = ethernet::HEADER_LENGTH + ip + tcp::HEADER_LENGTH_MIN;
    u16::try_from(frame_length_max.saturating_sub(headers)).unwrap_or(u16::MAX)
}

/// Settings with segments that fit a frame over IPv4, and over IPv6.
fn fitting(settings: &Settings, frame_length_max: usize) -> [Settings; 2] {
    let fit = |ip: usize| {
        let maximum_segment_size = settings.maximum_segment_size.min(room(frame_length_max, ip));
        Settings { maximum_segment_size, ..*settings }
    };
    // RFC 9293 section 3.7.1: 1280 bytes, which every path over IPv6 carries, less the headers.
    let default_segment_size = 1_220;
    let over_ipv6 = Settings { default_segment_size, ..fit(ipv6::HEADER_LENGTH) };
    [fit(ipv4::HEADER_LENGTH_MIN), over_ipv6]
}
