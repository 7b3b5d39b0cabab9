//! A host on a packet socket.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

use wirestorm_base::port::{PortError, Receive, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::af_packet::{
    AfPacketError, AfPacketOptions, AfPacketTransmit, FilterInstruction, OffloadReceive,
};
use wirestorm_io::clock;
use wirestorm_io::link::{Link, LinkError};
use wirestorm_io::namespace::{InterfaceName, InterfaceNameError};
use wirestorm_plan::emulation::Vlans;
use wirestorm_stack::{Guests, Heard, Host, Told};
use wirestorm_wire::fragment::{Fragments, Reassembler, Taken, is_fragment};
use wirestorm_wire::packet::{MacAddress, ethernet, ethertype, network_header, vlan};
use wirestorm_wire::prefix::Prefix;

use super::moves::{Move, Moves};

/// Why a host does not live on an interface, or does not find another.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No interface is named so.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// The interface does not open.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// No packet socket.
    #[error(transparent)]
    Open(#[from] AfPacketError),
    /// The interface failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The interface has no Ethernet address.
    #[error("{0} has no Ethernet address")]
    NoMac(InterfaceName),
    /// No way leads there.
    #[error(
        "{interface}: no way to {destination}: neither it nor a gateway of its family is in a \
         network of {addresses}"
    )]
    NoRoute {
        /// Interface to send on.
        interface: InterfaceName,
        /// Where to.
        destination: IpAddr,
        /// The host's own addresses.
        addresses: String,
    },
    /// A neighbour does not answer.
    #[error(
        "{interface}: {neighbour} did not tell its Ethernet address, asked {tries} times by \
         {protocol}; is it up, and in the same network?"
    )]
    Silent {
        /// Interface to send on.
        interface: InterfaceName,
        /// Who.
        neighbour: IpAddr,
        /// `ARP` or `neighbour discovery`.
        protocol: &'static str,
        /// How often it was asked.
        tries: u32,
    },
}

/// How often a neighbour is asked, and how long each answer may take: RFC 4861 section 10 has
/// three requests a second apart.
pub(crate) const TRIES: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a next hop of which nothing is heard is asked whether it is there. RFC 4861 section 10
/// has 30 s on average, which is long for those who wait to see a router fail.
const REACHABLE_TIME: Duration = Duration::from_secs(5);
/// So many next hops are asked in a second at most, where there are many.
const ASKED_A_SECOND_MAX: u64 = 1_000;

/// Peers that are asked likewise, at most.
const PEERS_MAX: usize = 1_024;
/// A peer that has not answered so often is gone.
const PEER_TRIES: u32 = 3 * TRIES;

/// Neighbours that are remembered, at most.
const NEIGHBOURS_MAX: usize = 1 << 16;

/// A neighbour that has not answered.
pub(crate) struct Silence<'a> {
    pub(crate) interface: &'a InterfaceName,
    pub(crate) neighbour: IpAddr,
    /// `ARP` or `neighbour discovery`.
    pub(crate) protocol: &'static str,
    /// How often it was asked, a second apart.
    pub(crate) asked: u32,
}

/// Who lives in VLANs of an interface, or without tags.
#[derive(Clone, Debug, Default)]
pub(crate) struct Residence {
    pub(crate) vlan: Option<Vlans>,
    pub(crate) addresses: Vec<Prefix>,
    /// Those of others that are answered for as well.
    pub(crate) guests: Vec<Guests>,
}

/// A host in its VLANs, or without tags.
struct Resident {
    host: Host,
    /// Of pings that are longer than a frame.
    fragments: Reassembler,
}

/// A next hop that is asked from time to time whether it is where it was.
struct Watched {
    /// Who asks.
    source: IpAddr,
    /// How often it was asked since it was heard last.
    asked: u32,
    /// When it is asked next.
    due: Instant,
    /// Whether it is a peer that has told where it is, who is forgotten when it is gone.
    is_peer: bool,
}

/// Hosts with a packet socket of their own, each behind other tags, or none.
pub struct Station {
    interface: InterfaceName,
    /// One at least.
    residents: Vec<Resident>,
    /// Who lives behind which tags.
    places: BTreeMap<Vec<u8>, usize>,
    receive: OffloadReceive,
    transmit: AfPacketTransmit,
    /// What neighbours have told, asked or not: who announces itself may not answer yet.
    neighbours: BTreeMap<(usize, IpAddr), MacAddress>,
    /// Next hops whose moves matter.
    watched: BTreeMap<(usize, IpAddr), Watched>,
    /// When the next one of them is asked.
    next_due: Instant,
    /// Who is told of neighbours that move.
    moves: Option<Arc<Moves>>,
    /// Of the next packet that leaves in fragments.
    identification: u32,
    is_announced: bool,
}

impl Station {
    /// A host on an interface, with the interface's Ethernet address.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn open(
        interface: &str,
        addresses: Vec<Prefix>,
        gateways: Vec<IpAddr>,
    ) -> Result<Self, HostError> {
        let mut station =
            Self::open_all(interface, vec![Residence { addresses, ..Residence::default() }])?;
        station.residents[0].host.gateways = gateways;
        Ok(station)
    }

    /// Hosts in VLANs or without tags, each in others; one at least.
    ///
    /// # Errors
    /// See [`HostError`].
    pub(crate) fn open_all(interface: &str, residences: Vec<Residence>) -> Result<Self, HostError> {
        let interface: InterfaceName = interface.parse()?;
        let link = Link::open(&interface)?;
        let mac = link.mac.ok_or_else(|| HostError::NoMac(interface.clone()))?;
        let mut options = AfPacketOptions::new(interface.clone());
        options.filter = neighbours_and_pings();
        options.receive_ring_bytes = 1 << 20;
        options.promiscuous = false;
        // A ring tells of frames a millisecond late.
        let receive = OffloadReceive::open_timed(&options)?;
        let transmit = AfPacketTransmit::open(&options)?;
        let resident = |Residence { vlan, addresses, guests }| {
            let tags = vlan.map_or_else(Vec::new, |vlan: Vlans| vlan.tags());
            let host = Host { mac: MacAddress(mac), addresses, guests, tags, ..Host::default() };
            Resident { host, fragments: Reassembler::default() }
        };
        let residents: Vec<_> = residences.into_iter().map(resident).collect();
        let tags = residents.iter().map(|it| it.host.tags.clone());
        Ok(Self {
            interface,
            places: tags.zip(0..).collect(),
            residents,
            receive,
            transmit,
            neighbours: BTreeMap::new(),
            watched: BTreeMap::new(),
            next_due: Instant::MAX,
            moves: None,
            identification: 0,
            is_announced: false,
        })
    }

    /// Who it is, or the first of those who live there.
    pub fn host(&self) -> &Host {
        &self.residents[0].host
    }

    /// The place of who lives in VLANs, or without tags.
    pub(crate) fn place(&self, vlan: Option<Vlans>) -> Option<usize> {
        self.place_behind(&vlan.map_or_else(Vec::new, |vlan| vlan.tags()))
    }

    /// The same, by the tags themselves.
    pub(crate) fn place_behind(&self, tags: &[u8]) -> Option<usize> {
        self.places.get(tags).copied()
    }

    /// Who answers.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.places.values().filter_map(|place| Some(&self.residents.get(*place)?.host))
    }

    /// Lets others answer instead of some hosts. Returns whether any is left.
    pub(crate) fn keep(&mut self, stays: impl Fn(&Host) -> bool) -> bool {
        let residents = &self.residents;
        self.places.retain(|_, place| residents.get(*place).is_some_and(|it| stays(&it.host)));
        !self.places.is_empty()
    }

    /// Tells all neighbours where its addresses are, and switches in which groups it is asked for.
    ///
    /// # Errors
    /// Where the interface failed.
    pub fn announce(&mut self) -> Result<(), PortError> {
        let all = |host: &Host| host.listener_reports().into_iter().chain(host.announcements());
        let frames: Vec<_> = self.hosts().flat_map(all).collect();
        frames.iter().try_for_each(|frame| self.send(frame))?;
        self.is_announced = true;
        Ok(())
    }

    /// Whether it has told them.
    pub(crate) fn is_announced(&self) -> bool {
        self.is_announced
    }

    /// Sends a frame now, in fragments where it is too long for the interface.
    ///
    /// # Errors
    /// Where the interface failed.
    pub(super) fn send(&mut self, frame: &[u8]) -> Result<(), PortError> {
        let start = network_header(frame).map_or(ethernet::HEADER_LENGTH, |(start, _)| start);
        // One tag comes on top of the MTU; a second one is within it.
        let on_top = (start - ethernet::HEADER_LENGTH).min(vlan::TAG_LENGTH);
        let longest = self.transmit.capabilities().untagged_length_max + on_top;
        if frame.len() <= longest {
            return self.send_one(frame);
        }
        let (link, packet) = frame.split_at(start);
        let mtu = longest.saturating_sub(link.len());
        self.identification = self.identification.wrapping_add(1);
        let Some(mut fragments) = Fragments::of(packet, mtu, self.identification) else {
            return Ok(());
        };
        let mut piece = frame[..longest].to_vec();
        while let Some(length) = fragments.write_next(&mut piece[link.len()..]) {
            self.send_one(&piece[..link.len() + length])?;
        }
        Ok(())
    }

    fn send_one(&mut self, frame: &[u8]) -> Result<(), PortError> {
        // Frames are few, and each is flushed: there is none where the ring is full of frames that
        // were withdrawn while the interface was down, which the kernel skips now.
        let free = match self.transmit.take() {
            None => self.transmit.flush().map(|()| self.transmit.take())?,
            free => free,
        };
        // The kernel lets go of none: whoever waits for the frame has to ask again.
        let Some(free) = free else { return Ok(()) };
        self.transmit.frame_mut(&free)[..frame.len()].copy_from_slice(frame);
        self.transmit.send(free, frame.len(), Instant::ZERO);
        // What did not leave would be too late.
        self.transmit.flush().inspect_err(|_| self.transmit.abort())
    }

    /// Answers what it is asked until an instant, and shows what else it hears, with the time of
    /// arrival, until it is told that this is enough.
    ///
    /// # Errors
    /// Where the interface failed.
    pub fn listen<B>(
        &mut self,
        until: Instant,
        mut show: impl FnMut(Heard, Instant) -> ControlFlow<B>,
    ) -> Result<Option<B>, PortError> {
        self.listen_as(until, |_, heard, arrival| show(heard, arrival))
    }

    /// The same; shows also the place of who hears it.
    fn listen_as<B>(
        &mut self,
        until: Instant,
        mut show: impl FnMut(usize, Heard, Instant) -> ControlFlow<B>,
    ) -> Result<Option<B>, PortError> {
        const ROOM: usize = 64;
        let mut batch = Vec::with_capacity(ROOM);
        loop {
            let fetched = self.receive.receive(ROOM, &mut batch)?;
            let mut answers = Vec::new();
            let mut enough = None;
            for received in batch.drain(..) {
                let frame = self.receive.frame(&received);
                let arrival = received.arrival;
                let frame = &without_priority_tag(frame);
                let place = self.places.get(&tags(frame)).copied();
                let resident =
                    place.and_then(|place| Some((place, self.residents.get_mut(place)?)));
                let heard = resident
                    .map(|(place, it)| (place, it.host.told_by(frame), it.hear(frame, arrival)));
                self.receive.release(received);
                let Some((place, told, heard)) = heard else { continue };
                told.into_iter().for_each(|told| self.note(place, told));
                match heard {
                    Heard::Nothing => {}
                    Heard::Question(answer) => answers.push(answer),
                    heard if enough.is_none() => enough = show(place, heard, arrival).break_value(),
                    _ => {}
                }
            }
            answers.iter().try_for_each(|answer| self.send(answer))?;
            if enough.is_some() || clock::now() >= until {
                return Ok(enough);
            }
            if fetched == 0 {
                self.receive.wait(until.saturating_since(clock::now()));
            }
        }
    }

    /// Where a neighbour of the first host is, as far as it has told.
    pub(super) fn known(&self, neighbour: IpAddr) -> Option<MacAddress> {
        self.neighbours.get(&(0, neighbour)).copied()
    }

    /// Who is told of neighbours that move from now on.
    pub(crate) fn tell(&mut self, moves: &Arc<Moves>) {
        self.moves = Some(Arc::clone(moves));
    }

    /// Asks a next hop from time to time whether it is where it was, once it is known where.
    pub(crate) fn watch(&mut self, place: usize, source: IpAddr, next_hop: IpAddr) {
        self.watch_for((place, next_hop), source, false);
    }

    fn watch_for(&mut self, who: (usize, IpAddr), source: IpAddr, is_peer: bool) {
        let due = clock::now().saturating_add(REACHABLE_TIME);
        self.watched.insert(who, Watched { source, asked: 0, due, is_peer });
        self.next_due = self.next_due.min(due);
    }

    /// Asks those next hops of which nothing was heard for a while. Returns when the next ones are
    /// due.
    ///
    /// # Errors
    /// Where the interface failed.
    pub(crate) fn probe(&mut self) -> Result<Instant, PortError> {
        let now = clock::now();
        if now < self.next_due {
            return Ok(self.next_due);
        }
        let patience = PATIENCE.max(self.spread());
        let mut questions = Vec::new();
        self.next_due = Instant::MAX;
        self.watched.retain(|_, it| !it.is_peer || it.asked < PEER_TRIES);
        for ((place, next_hop), watched) in &mut self.watched {
            let known = self.neighbours.get(&(*place, *next_hop));
            if watched.due <= now {
                watched.due = now.saturating_add(patience);
                let host = self.residents.get(*place).map(|it| &it.host);
                let question = host.and_then(|it| it.solicitation(watched.source, *next_hop));
                if let (Some(known), Some(mut question)) = (known, question) {
                    // RFC 4861 section 7.3.3: a node probes "by sending unicast Neighbor
                    // Solicitations"; who does not answer so many may be elsewhere.
                    if watched.asked < TRIES {
                        question[..6].copy_from_slice(&known.0);
                    }
                    watched.asked = watched.asked.saturating_add(1);
                    questions.push(question);
                }
            }
            self.next_due = self.next_due.min(watched.due);
        }
        questions.iter().try_for_each(|question| self.send(question))?;
        Ok(self.next_due)
    }

    /// How long it takes to ask all next hops.
    fn spread(&self) -> Duration {
        Duration::from_secs(self.watched.len() as u64 / ASKED_A_SECOND_MAX)
    }

    /// A neighbour has said to the host at a place where it is.
    fn note(&mut self, place: usize, told: Told) {
        let Told { address, mac, overrides } = told;
        let known = self.neighbours.get(&(place, address)).copied();
        if known.is_some_and(|known| known != mac) && !overrides {
            return;
        }
        let reachable = REACHABLE_TIME.max(self.spread());
        if let Some(watched) = self.watched.get_mut(&(place, address)) {
            watched.asked = 0;
            watched.due = clock::now().saturating_add(reachable);
        } else if self.moves.is_some()
            && self.watched.len() < PEERS_MAX
            && let Some(source) = self.residents.get(place).and_then(|it| it.asker(address))
        {
            self.watch_for((place, address), source, true);
        }
        if known.is_some() || self.neighbours.len() < NEIGHBOURS_MAX {
            self.neighbours.insert((place, address), mac);
        }
        let moved = known.filter(|known| *known != mac);
        if let (Some(from), Some(moves), Some(resident)) =
            (moved, &self.moves, self.residents.get(place))
        {
            let is_there = |((other, _), mac): (&(usize, IpAddr), &MacAddress)| {
                *other == place && *mac == from
            };
            let was_alone = !self.neighbours.iter().any(is_there);
            let tags = resident.host.tags.clone();
            moves.add(Move { tags, address, from, to: mac, was_alone });
        }
    }

    /// The Ethernet address that frames to a destination need, and the host's own address in
    /// that network.
    ///
    /// # Errors
    /// Where no way leads there, or the neighbour does not answer.
    pub fn resolve(&mut self, destination: IpAddr) -> Result<(IpAddr, MacAddress), HostError> {
        self.resolve_patiently(destination, |silence| silence.asked < TRIES)
    }

    /// As [`Self::resolve`], for as long as it `goes_on` after a question that was not answered.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn resolve_patiently(
        &mut self,
        destination: IpAddr,
        goes_on: impl FnMut(&Silence<'_>) -> bool,
    ) -> Result<(IpAddr, MacAddress), HostError> {
        let host = self.host();
        let route = host.route(destination).ok_or_else(|| self.no_route(destination))?;
        if host.owns(route.next_hop) {
            return Ok((route.source, host.mac));
        }
        let mac = self.ask(0, route.source, route.next_hop, goes_on)?;
        Ok((route.source, mac))
    }

    fn no_route(&self, destination: IpAddr) -> HostError {
        let interface = self.interface.clone();
        HostError::NoRoute { interface, destination, addresses: addresses(self.host()) }
    }

    /// The Ethernet address of a neighbour, which the host at a place asks from one of its addresses
    /// until it answers, or for as long as this `goes_on`.
    ///
    /// # Errors
    /// Where both are of different families, or the neighbour does not answer.
    pub(crate) fn ask(
        &mut self,
        place: usize,
        source: IpAddr,
        neighbour: IpAddr,
        mut goes_on: impl FnMut(&Silence<'_>) -> bool,
    ) -> Result<MacAddress, HostError> {
        let host = self.residents.get(place).map(|it| &it.host);
        let question = host.and_then(|host| host.solicitation(source, neighbour));
        let question = question.ok_or_else(|| self.no_route(neighbour))?;
        // What has come meanwhile.
        self.listen(clock::now(), |_, _| ControlFlow::<()>::Continue(()))?;
        if let Some(mac) = self.neighbours.get(&(place, neighbour)) {
            return Ok(*mac);
        }
        let protocol = if neighbour.is_ipv4() { "ARP" } else { "neighbour discovery" };
        let mut asked = 0;
        loop {
            asked += 1;
            self.send(&question)?;
            let until = clock::now().saturating_add(PATIENCE);
            let found = self.listen_as(until, |from, heard, _| match heard {
                Heard::Neighbour { address, mac } if from == place && address == neighbour => {
                    ControlFlow::Break(mac)
                }
                _ => ControlFlow::Continue(()),
            })?;
            if let Some(mac) = found {
                return Ok(mac);
            }
            let interface = &self.interface;
            if !goes_on(&Silence { interface, neighbour, protocol, asked }) {
                let interface = interface.clone();
                return Err(HostError::Silent { interface, neighbour, protocol, tries: asked });
            }
        }
    }
}

impl Resident {
    /// The address from which a neighbour is asked: one in its network, or where nobody knows
    /// networks, behind tags, any of its family.
    fn asker(&self, neighbour: IpAddr) -> Option<IpAddr> {
        let within = self.host.addresses.iter().find(|own| own.contains(neighbour));
        let guests = self.host.guests.iter().map(|it| it.range.first);
        let mut guests = guests.filter(|it| it.is_ipv4() == neighbour.is_ipv4());
        within.map(|own| own.address).or_else(|| guests.next())
    }

    /// What a frame is to the host, or the packet of which it has the last fragment that was missing.
    fn hear(&mut self, frame: &[u8], now: Instant) -> Heard {
        let start = ethernet::HEADER_LENGTH + self.host.tags.len();
        let (link, packet) = frame.split_at_checked(start).unwrap_or_default();
        if !is_fragment(packet) {
            return self.host.hear(frame);
        }
        match self.fragments.take(packet, 0, now, |_| {}) {
            Taken::Whole(packet) => self.host.hear(&[link, &packet].concat()),
            Taken::Waits | Taken::Damaged => Heard::Nothing,
        }
    }
}

/// Where tags of VLANs stand: behind both Ethernet addresses.
const TAG_OFFSET: usize = 12;

/// A frame without a tag that says nothing but its priority: one of VLAN 0, which is none (IEEE 802.1Q
/// section 6.9).
fn without_priority_tag(frame: &[u8]) -> Cow<'_, [u8]> {
    match frame.split_at_checked(TAG_OFFSET) {
        Some((addresses, [0x81, 0x00, high, 0, behind @ ..])) if high & IDENTIFIER == 0 => {
            [addresses, behind].concat().into()
        }
        _ => frame.into(),
    }
}

/// The bits of the identifier in the first byte behind a tag's type.
const IDENTIFIER: u8 = 0x0f;

/// The tags of a frame, two at most, without priority and drop eligibility (IEEE 802.1Q section 9.6).
fn tags(frame: &[u8]) -> Vec<u8> {
    const TAGS_MAX: usize = 2;
    let tags = frame.get(TAG_OFFSET..).unwrap_or_default().as_chunks::<4>().0;
    let is_tag = |tag: &&[u8; 4]| {
        matches!(u16::from_be_bytes([tag[0], tag[1]]), ethertype::VLAN | ethertype::SERVICE_VLAN)
    };
    let tags = tags.iter().take(TAGS_MAX).take_while(is_tag);
    tags.flat_map(|[kind_high, kind_low, high, low]| {
        [*kind_high, *kind_low, high & IDENTIFIER, *low]
    })
    .collect()
}

fn addresses(host: &Host) -> String {
    const NAMED_MAX: usize = 4;
    let named = host.addresses.iter().take(NAMED_MAX);
    let texts: Vec<_> = named.map(|own| format!("{}/{}", own.address, own.length)).collect();
    match host.addresses.len().saturating_sub(NAMED_MAX) {
        _ if texts.is_empty() => "its own: it has none".into(),
        0 => texts.join(", "),
        more => format!("{} and {more} more", texts.join(", ")),
    }
}

/// Takes ARP, ICMP and ICMPv6, so that other traffic costs nothing. The kernel takes the first tag of a
/// frame away before it looks, and leaves the second.
fn neighbours_and_pings() -> Vec<FilterInstruction> {
    let begins_with_tag = [
        (0x28, 0, 0, 12),      // ldh [12]            the Ethernet type
        (0x15, 0, 13, 0x8100), // jeq a tag           else behind what is there for it
    ];
    let instruction = |(code, jump_true, jump_false, operand)| FilterInstruction {
        code,
        jump_true,
        jump_false,
        operand,
    };
    let behind = |tag: u32| {
        [
            (0x28, 0, 0, tag + 12),    // ldh [12]            the Ethernet type
            (0x15, 9, 0, 0x0806),      // jeq ARP             take
            (0x15, 0, 2, 0x0800),      // jeq IPv4
            (0x30, 0, 0, tag + 23),    // ldb [23]            its protocol
            (0x15, 6, 7, 1),           // jeq ICMP            take, else leave
            (0x15, 0, 6, 0x86dd),      // jeq IPv6            else leave
            (0x30, 0, 0, tag + 20),    // ldb [20]            its next header
            (0x15, 3, 0, 58),          // jeq ICMPv6          take
            (0x15, 0, 3, 44),          // jeq a fragment      else leave
            (0x30, 0, 0, tag + 54),    // ldb [54]            of what
            (0x15, 0, 1, 58),          // jeq ICMPv6          else leave
            (0x06, 0, 0, 0x0004_0000), // ret 262,144         take
            (0x06, 0, 0, 0),           // ret 0               leave
        ]
    };
    let program = begins_with_tag.into_iter().chain(behind(4)).chain(behind(0));
    program.map(instruction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_testkit::net::{CaptureOptions, Lab};
    use wirestorm_testkit::require::require_root;

    #[test]
    fn it_announces_itself_after_an_outage_however_long() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let own = Prefix { address: "10.0.9.1".parse().unwrap(), length: 24 };
        let mut station = Station::open(&lab.a.port(), vec![own], Vec::new()).unwrap();
        let frames = station.transmit.capabilities().frames;
        lab.a.set_up(false).unwrap();
        // More often than there are frames, each of which is withdrawn.
        for _ in 0..frames + 10 {
            assert!(matches!(station.announce(), Err(PortError::Down { .. })));
        }
        lab.a.set_up(true).unwrap();
        let options = CaptureOptions { filter: "arp".into(), ..CaptureOptions::default() };
        let capture = lab.b.capture_with(&options).unwrap();
        station.announce().unwrap();
        let captured = capture.finish(1).unwrap();
        let announced = station.host().announcements();
        assert_eq!(captured.frames().collect::<Vec<_>>(), announced);
    }

    #[test]
    fn who_says_only_a_priority_is_in_no_vlan() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let own = |last: u8| vec![Prefix { address: [10, 0, 9, last].into(), length: 24 }];
        let mut station = Station::open(&lab.a.port(), own(1), Vec::new()).unwrap();
        let mut asking = Station::open(&lab.b.port(), own(2), Vec::new()).unwrap();
        let filter = format!("arp and ether src {}", MacAddress(lab.a.mac()));
        let options = CaptureOptions { filter, ..CaptureOptions::default() };
        let capture = lab.b.capture_with(&options).unwrap();
        // A question for 10.0.9.1: with priority 5, which is answered, and in VLAN 7.
        let question = |tag: [u8; 4]| {
            let asks = [0, 1, 8, 0, 6, 4, 0, 1];
            let addresses = [&[0xff; 6][..], &lab.b.mac()].concat();
            let sender = [&lab.b.mac()[..], &[10, 0, 9, 2]].concat();
            [&addresses[..], &tag, &[8, 6], &asks, &sender, &[0; 6], &[10, 0, 9, 1]].concat()
        };
        asking.send(&question([0x81, 0, 0, 7])).unwrap();
        asking.send(&question([0x81, 0, 0xa0, 0])).unwrap();
        let until = clock::now().saturating_add(Duration::from_millis(300));
        let nothing = station.listen(until, |_, _| ControlFlow::<()>::Continue(())).unwrap();
        assert_eq!(nothing, None);
        let captured = capture.finish(1).unwrap();
        let answers: Vec<_> = captured.frames().collect();
        assert_eq!(answers.len(), 1);
        assert_eq!((&answers[0][..6], &answers[0][12..14]), (&lab.b.mac()[..], &[8, 6][..]));
    }

    /// Linux as a switch that looks at who listens to which groups (RFC 4541 section 3).
    #[test]
    fn switches_are_told_in_which_groups_it_is_asked_for() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let switch = lab.b.namespace();
        let port = format!("link set {} master switch", lab.b.interface());
        let new = "link add switch type bridge mcast_snooping 1";
        switch.ip(&[new, &port, "link set switch up"]).unwrap();
        let addresses = ["2001:db8::1:2", "2001:db8::1:3"];
        let own = |address: &str| Prefix { address: address.parse().unwrap(), length: 64 };
        let addresses = addresses.map(own).to_vec();
        let mut station = Station::open(&lab.a.port(), addresses, Vec::new()).unwrap();
        station.announce().unwrap();
        let deadline = clock::now().saturating_add(Duration::from_secs(10));
        let expected = ["grp ff02::1:ff01:2", "grp ff02::1:ff01:3"];
        loop {
            let output = switch.command("bridge").args(["mdb", "show"]).output().unwrap();
            let groups = String::from_utf8(output.stdout).unwrap();
            if expected.iter().all(|it| groups.contains(it)) {
                return;
            }
            assert!(clock::now() < deadline, "{groups}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_error_names_the_first_of_many_addresses() {
        let own = |last: u8| Prefix { address: [10, 0, 0, last].into(), length: 24 };
        let host = |count| Host { addresses: (1..=count).map(own).collect(), ..Host::default() };
        assert_eq!(addresses(&host(0)), "its own: it has none");
        assert_eq!(addresses(&host(2)), "10.0.0.1/24, 10.0.0.2/24");
        assert_eq!(
            addresses(&host(200)),
            "10.0.0.1/24, 10.0.0.2/24, 10.0.0.3/24, 10.0.0.4/24 and 196 more"
        );
    }
}
