//! Templates: the common properties of flows.

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
use super::load::{AddressSet, Arrivals, SwitchedOff, Tuples};
use crate::content::{DatagramSession, Session, SessionFactory};
use crate::program::{Ends, FlowPayload, Program};
use wirestorm_base::random::Random;
use wirestorm_model::ip::IpSettings;
use wirestorm_model::tcp::Settings;

/// Common properties of flows.
#[derive(Clone, Debug)]
pub struct Template {
    /// Program of the flows.
    pub program: Program,
    /// Transport protocol of the flows.
    pub transport: Transport,
    /// IP settings of sent packets.
    pub ip: IpSettings,
    /// Sessions between programs and connections, such as TLS; `None`: none. Programs start once
    /// their session is open, except those with
    /// [`Instruction::StartSession`](crate::program::Instruction::StartSession). TCP connections
    /// whose template depends on their first bytes have none. UDP flows have sessions over
    /// datagrams ([`SessionFactory::begin_datagrams`]).
    pub sessions: Option<Arc<dyn SessionFactory>>,
    /// Whether programs of the peers reset connections, so that a reset is no failure.
    pub expects_resets: bool,
    /// Role of the endpoint in the flows.
    pub role: Role,
}

/// Role of the endpoint in the flows of a template.
#[derive(Clone, Debug)]
pub enum Role {
    /// The endpoint starts the flows.
    Client {
        /// Addresses and ports of the flows.
        tuples: Tuples,
        /// Link headers of the frames.
        link: ClientLinks,
        /// Load: when flows start.
        load: Load,
        /// Time in which a rate, or a number of users or held flows, grows from 0 to its value.
        /// Other loads start with their full value.
        ramp: Duration,
        /// Total number of flows; `None`: unlimited.
        limit: Option<u64>,
    },
    /// Peers start the flows.
    Server {
        /// Addresses, port and first bytes of the server.
        listen: Listen,
    },
    /// Peers start connections to ports where programs listen ([`Instruction::Listen`]), and
    /// programs accept them ([`Instruction::AcceptTemplate`]). The program of the template has no
    /// payload instructions.
    ///
    /// [`Instruction::Listen`]: crate::program::Instruction::Listen
    /// [`Instruction::AcceptTemplate`]: crate::program::Instruction::AcceptTemplate
    Accepted,
}

/// Transport protocol of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP connections with these settings.
    Tcp(Settings),
    /// UDP datagrams. The first datagram of the program starts a flow. The flow ends with the
    /// program or by its idle timeout.
    Udp,
}

impl Template {
    /// Whether the content of received data matters, and not only its length. Sessions read it,
    /// programs may, and first bytes may select the server.
    pub fn examines_data(&self) -> bool {
        let is_listed = match &self.role {
            Role::Server { listen } => !listen.first_bytes.is_empty(),
            Role::Client { .. } | Role::Accepted => false,
        };
        is_listed || self.sessions.is_some() || self.program.contents().is_some()
    }
}

impl Template {
    /// Returns the template of connections until their first data has arrived.
    pub(super) fn waiting_for_data(&self) -> Self {
        let program = Program::waiting();
        Self { program, sessions: None, ..self.clone() }
    }
}

impl Transport {
    /// Returns the protocol number in IP headers.
    pub(super) const fn protocol(&self) -> u8 {
        match self {
            Self::Tcp(_) => protocol::TCP,
            Self::Udp => protocol::UDP,
        }
    }
}

/// Template and its state in an endpoint.
#[derive(Debug)]
pub(super) struct TemplateState {
    pub(super) template: Template,
    /// TCP settings over IPv4, and over IPv6, whose longer header leaves less room.
    settings: [Settings; 2],
    pub(super) arrivals: Arrivals,
    /// Number of tuples used.
    pub(super) used: u64,
    /// Offset of the first flow's port among the client ports.
    pub(super) first_port: u32,
    /// Clients that are switched off; `None`: none.
    pub(super) off: Option<SwitchedOff>,
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

    /// Whether a closed loop waits because too many SYNs are unanswered. Like in slow start, each
    /// answer permits two more.
    #[inline]
    pub(super) fn waits_for_answers(&self) -> bool {
        const FIRST: u64 = 512;
        let tcp = &self.tally.tcp;
        let decided = tcp.connects + tcp.conndrops;
        self.arrivals.is_closed_loop()
            && tcp.connattempt.saturating_sub(decided) >= FIRST + tcp.connects
    }

    /// Draws the first client port at random.
    pub(super) fn randomize_first_port(&mut self, random: &mut Random) {
        if let Role::Client { tuples, .. } = &self.template.role {
            let (first, last) = (tuples.client_ports.start(), tuples.client_ports.end());
            self.first_port = random.below(u32::from(last.saturating_sub(*first)) + 1);
        }
    }

    /// Switches off the clients in a set, and switches on all others.
    pub(super) fn switch_off(&mut self, set: &AddressSet) {
        let Role::Client { tuples, .. } = &self.template.role else { return };
        self.off = SwitchedOff::of(&tuples.clients, set);
        let is_on = |off| tuples.next_switched_on(self.used, off).is_some();
        self.arrivals.set_off(!self.off.as_ref().is_none_or(is_on));
    }

    /// Creates the per-flow payload state of a new flow, if its program needs one.
    #[inline]
    pub(super) fn payload(&mut self, key: &FlowKey) -> Option<FlowPayload> {
        let messages = self.template.program.contents()?.messages;
        let listens = self.template.program.keeps();
        Some(FlowPayload::new(self.ends(key), self.tally.findings.next_flow(), listens, messages))
    }

    /// Creates the state that buffers the bytes of a flow without a known template.
    #[cold]
    pub(super) fn gathering(&self, key: &FlowKey) -> FlowPayload {
        FlowPayload::new(self.ends(key), 0, true, 0)
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

    /// Creates the session of a new TCP flow, unless its program starts it later.
    #[inline]
    pub(super) fn session(&self, key: &FlowKey) -> Option<Box<dyn Session>> {
        let sessions = self.template.sessions.as_ref()?;
        (!self.template.program.starts_session())
            .then(|| sessions.begin(key.destination(), key.source()))
    }

    /// Creates the session of a new UDP flow, if any.
    #[inline]
    pub(super) fn datagram_session(&self, key: &FlowKey) -> Option<Box<dyn DatagramSession>> {
        self.template.sessions.as_ref()?.begin_datagrams(key.destination(), key.source())
    }

    /// Returns the TCP settings of a flow.
    #[inline]
    pub(super) fn settings(&self, key: &FlowKey) -> &Settings {
        &self.settings[usize::from(key.version() == 6)]
    }

    /// Returns the template, the TCP settings of a flow, and the counters.
    #[inline]
    pub(super) fn tcp(&mut self, key: &FlowKey) -> (&Template, &Settings, &mut Tally) {
        (&self.template, &self.settings[usize::from(key.version() == 6)], &mut self.tally)
    }
}

/// Appends a template of held connections for each of the first `count` templates whose program
/// listens. Returns the new indices by those of the listeners.
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

/// Returns the bytes of data and TCP options that fit a frame after an IP header of `ip` bytes.
pub(super) fn room(frame_length_max: usize, ip: usize) -> u16 {
    let headers = ethernet::HEADER_LENGTH + ip + tcp::HEADER_LENGTH_MIN;
    u16::try_from(frame_length_max.saturating_sub(headers)).unwrap_or(u16::MAX)
}

/// Returns settings with segments that fit a frame, for IPv4 and IPv6.
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
