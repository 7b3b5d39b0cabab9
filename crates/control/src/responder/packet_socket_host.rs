//! A host on a packet socket: ARP, neighbour discovery and ping for one or more VLANs.

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
use wirestorm_stack::{Host, HostEvent, NeighbourAddress, ProxiedAddresses};
use wirestorm_wire::fragment::{Fragments, Reassembler, Taken, is_fragment};
use wirestorm_wire::packet::{MacAddress, ethernet, ethertype, network_header, vlan};
use wirestorm_wire::prefix::Prefix;

use super::neighbour_changes::{NeighbourChange, NeighbourChanges};

/// Error of a host on an interface.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The name is not a valid interface name.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// The interface does not open.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The packet socket does not open.
    #[error(transparent)]
    Open(#[from] AfPacketError),
    /// The interface failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The interface has no Ethernet address.
    #[error("{0} has no Ethernet address")]
    NoMac(InterfaceName),
    /// No route leads to the destination.
    #[error(
        "{interface}: no route to {destination}: neither it nor a gateway of its family is in a \
         network of {addresses}"
    )]
    NoRoute {
        /// Interface to send on.
        interface: InterfaceName,
        /// Destination address.
        destination: IpAddr,
        /// Addresses of the host.
        addresses: String,
    },
    /// A neighbour does not answer ARP or neighbour discovery.
    #[error(
        "{interface}: {neighbour} did not answer {tries} {protocol} requests; is it up and in the \
         same network?"
    )]
    Unanswered {
        /// Interface to send on.
        interface: InterfaceName,
        /// Address of the neighbour.
        neighbour: IpAddr,
        /// `ARP` or `neighbour discovery`.
        protocol: &'static str,
        /// Number of requests sent.
        tries: u32,
    },
}

/// Number of requests to a neighbour, one each [`REQUEST_INTERVAL`]. RFC 4861 section 10 specifies
/// three requests, one second apart.
pub(crate) const REQUESTS_MAX: u32 = 3;
const REQUEST_INTERVAL: Duration = Duration::from_secs(1);

/// Time without packets from a next hop after which it is probed. RFC 4861 section 10 specifies 30
/// s on average, which is too long for tests of router failover.
const REACHABLE_TIME: Duration = Duration::from_secs(5);
/// Maximum number of next hops probed per second.
const PROBES_PER_SECOND_MAX: u64 = 1_000;

/// Maximum number of peers that are probed.
const PEERS_MAX: usize = 1_024;
/// Number of unanswered probes after which a peer is forgotten.
const PEER_REQUESTS_MAX: u32 = 3 * REQUESTS_MAX;

/// Maximum number of neighbour entries.
const NEIGHBOURS_MAX: usize = 1 << 16;

/// An unanswered request for a neighbour's address.
pub(crate) struct UnansweredRequest<'a> {
    pub(crate) interface: &'a InterfaceName,
    pub(crate) neighbour: IpAddr,
    /// `ARP` or `neighbour discovery`.
    pub(crate) protocol: &'static str,
    /// Number of requests sent so far, one second apart.
    pub(crate) tries: u32,
}

/// Addresses of a host in one VLAN of an interface, or without tags.
#[derive(Clone, Debug, Default)]
pub(crate) struct VlanHostConfig {
    pub(crate) vlan: Option<Vlans>,
    pub(crate) addresses: Vec<Prefix>,
    /// Address ranges of other hosts that this host also answers for.
    pub(crate) proxied: Vec<ProxiedAddresses>,
}

/// State of a host in one VLAN, or without tags.
struct VlanHost {
    host: Host,
    /// Reassembly of pings longer than a frame.
    fragments: Reassembler,
}

/// A next hop or peer that is probed from time to time.
struct ProbedNeighbour {
    /// Source address of the probes.
    source: IpAddr,
    /// Number of probes since its last packet.
    unanswered: u32,
    /// Time of the next probe.
    due: Instant,
    /// Whether it is a peer that announced itself. Peers that stop answering are forgotten.
    is_peer: bool,
}

/// Hosts on a packet socket, each with its own VLAN tags or without.
pub struct PacketSocketHost {
    interface: InterfaceName,
    /// At least one.
    vlan_hosts: Vec<VlanHost>,
    /// Index of the host for each VLAN tag sequence.
    places: BTreeMap<Vec<u8>, usize>,
    receive: OffloadReceive,
    transmit: AfPacketTransmit,
    /// Neighbour cache by host and address. It includes unsolicited announcements, because a
    /// neighbour may announce itself before it answers.
    neighbours: BTreeMap<(usize, IpAddr), MacAddress>,
    /// Next hops and peers that are probed, by host and address.
    watched: BTreeMap<(usize, IpAddr), ProbedNeighbour>,
    /// Time of the next probe.
    next_due: Instant,
    /// Receives changes of neighbours' Ethernet addresses.
    moves: Option<Arc<NeighbourChanges>>,
    /// IP identification of the last fragmented packet.
    identification: u32,
    is_announced: bool,
}

impl PacketSocketHost {
    /// Opens a host without VLAN tags that uses the interface's Ethernet address.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn open(
        interface: &str,
        addresses: Vec<Prefix>,
        gateways: Vec<IpAddr>,
    ) -> Result<Self, HostError> {
        let mut host = Self::open_all(
            interface,
            vec![VlanHostConfig { addresses, ..VlanHostConfig::default() }],
        )?;
        host.vlan_hosts[0].host.gateways = gateways;
        Ok(host)
    }

    /// Opens at least one host, each with different VLAN tags or without.
    ///
    /// # Errors
    /// See [`HostError`].
    pub(crate) fn open_all(
        interface: &str,
        configs: Vec<VlanHostConfig>,
    ) -> Result<Self, HostError> {
        let interface: InterfaceName = interface.parse()?;
        let link = Link::open(&interface)?;
        let mac = link.mac.ok_or_else(|| HostError::NoMac(interface.clone()))?;
        let mut options = AfPacketOptions::new(interface.clone());
        options.filter = neighbour_and_ping_filter();
        options.receive_ring_bytes = 1 << 20;
        options.promiscuous = false;
        // A ring reports frames 1 ms late.
        let receive = OffloadReceive::open_timed(&options)?;
        let transmit = AfPacketTransmit::open(&options)?;
        let vlan_host = |VlanHostConfig { vlan, addresses, proxied }| {
            let tags = vlan.map_or_else(Vec::new, |vlan: Vlans| vlan.tags());
            let host = Host { mac: MacAddress(mac), addresses, proxied, tags, ..Host::default() };
            VlanHost { host, fragments: Reassembler::default() }
        };
        let vlan_hosts: Vec<_> = configs.into_iter().map(vlan_host).collect();
        let tags = vlan_hosts.iter().map(|it| it.host.tags.clone());
        Ok(Self {
            interface,
            places: tags.zip(0..).collect(),
            vlan_hosts,
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

    /// Opens a host with an Ethernet address of its own.
    ///
    /// # Errors
    /// See [`HostError`].
    pub(super) fn open_host(interface: &str, host: Host) -> Result<Self, HostError> {
        let mut opened = Self::open_all(interface, vec![VlanHostConfig::default()])?;
        if opened.host().mac != host.mac {
            let mut options = AfPacketOptions::new(opened.interface.clone());
            options.filter = neighbour_and_ping_filter();
            options.receive_ring_bytes = 1 << 20;
            options.promiscuous = true;
            opened.receive = OffloadReceive::open_timed(&options)?;
        }
        opened.places = BTreeMap::from([(host.tags.clone(), 0)]);
        opened.vlan_hosts[0].host = host;
        Ok(opened)
    }

    /// Returns the first host.
    pub fn host(&self) -> &Host {
        &self.vlan_hosts[0].host
    }

    /// Returns the index of the host in a VLAN, or without tags.
    pub(crate) fn place(&self, vlan: Option<Vlans>) -> Option<usize> {
        self.place_behind(&vlan.map_or_else(Vec::new, |vlan| vlan.tags()))
    }

    /// Returns the index of the host with these VLAN tags.
    pub(crate) fn place_behind(&self, tags: &[u8]) -> Option<usize> {
        self.places.get(tags).copied()
    }

    /// Iterates over the hosts that answer.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.places.values().filter_map(|place| Some(&self.vlan_hosts.get(*place)?.host))
    }

    /// Keeps only the hosts for which `stays` returns true. The others stop answering. Returns
    /// whether any host is left.
    pub(crate) fn keep(&mut self, stays: impl Fn(&Host) -> bool) -> bool {
        let vlan_hosts = &self.vlan_hosts;
        self.places.retain(|_, place| vlan_hosts.get(*place).is_some_and(|it| stays(&it.host)));
        !self.places.is_empty()
    }

    /// Announces its addresses to all neighbours, and its multicast groups to snooping switches.
    ///
    /// # Errors
    /// Fails if the interface fails.
    pub fn announce(&mut self) -> Result<(), PortError> {
        let all = |host: &Host| host.listener_reports().into_iter().chain(host.announcements());
        let frames: Vec<_> = self.hosts().flat_map(all).collect();
        frames.iter().try_for_each(|frame| self.send(frame))?;
        self.is_announced = true;
        Ok(())
    }

    /// Returns whether the host has announced its addresses.
    pub(crate) fn is_announced(&self) -> bool {
        self.is_announced
    }

    /// Sends a frame at once, in fragments if it exceeds the MTU.
    ///
    /// # Errors
    /// Fails if the interface fails.
    pub(super) fn send(&mut self, frame: &[u8]) -> Result<(), PortError> {
        let start = network_header(frame).map_or(ethernet::HEADER_LENGTH, |(start, _)| start);
        // The MTU excludes the first VLAN tag, but includes the second.
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
        // Each frame is flushed at once. The ring has no free frame only if it is full of frames
        // that were withdrawn while the interface was down. The kernel skips those at a flush.
        let free = match self.transmit.take() {
            None => self.transmit.flush().map(|()| self.transmit.take())?,
            free => free,
        };
        // Still no free frame: drop this one. The protocol repeats its request.
        let Some(free) = free else { return Ok(()) };
        self.transmit.frame_mut(&free)[..frame.len()].copy_from_slice(frame);
        self.transmit.send(free, frame.len(), Instant::ZERO);
        // A frame that did not leave now would be too late.
        self.transmit.flush().inspect_err(|_| self.transmit.abort())
    }

    /// Answers requests until `until`. Calls `on_event` with all other events and their arrival
    /// times, until it breaks.
    ///
    /// # Errors
    /// Fails if the interface fails.
    pub fn listen<B>(
        &mut self,
        until: Instant,
        mut on_event: impl FnMut(HostEvent, Instant) -> ControlFlow<B>,
    ) -> Result<Option<B>, PortError> {
        self.listen_with_host(until, |_, event, arrival| on_event(event, arrival))
    }

    /// As [`listen`](Self::listen); also passes the index of the receiving host to `on_event`.
    fn listen_with_host<B>(
        &mut self,
        until: Instant,
        mut on_event: impl FnMut(usize, HostEvent, Instant) -> ControlFlow<B>,
    ) -> Result<Option<B>, PortError> {
        const ROOM: usize = 64;
        let mut batch = Vec::with_capacity(ROOM);
        loop {
            let fetched = self.receive.receive(ROOM, &mut batch)?;
            let mut answers = Vec::new();
            let mut outcome = None;
            for received in batch.drain(..) {
                let frame = self.receive.frame(&received);
                let arrival = received.arrival;
                let frame = &strip_priority_tag(frame);
                let place = self.places.get(&tags(frame)).copied();
                let vlan_host =
                    place.and_then(|place| Some((place, self.vlan_hosts.get_mut(place)?)));
                let event = vlan_host.map(|(place, it)| {
                    (place, it.host.neighbour_of(frame), it.receive(frame, arrival))
                });
                self.receive.release(received);
                let Some((place, advertisement, event)) = event else { continue };
                if let Some(advertisement) = advertisement {
                    self.update_neighbour(place, advertisement);
                }
                match event {
                    HostEvent::Ignored => {}
                    HostEvent::Reply(answer) => answers.push(answer),
                    event if outcome.is_none() => {
                        outcome = on_event(place, event, arrival).break_value();
                    }
                    _ => {}
                }
            }
            answers.iter().try_for_each(|answer| self.send(answer))?;
            if outcome.is_some() || clock::now() >= until {
                return Ok(outcome);
            }
            if fetched == 0 {
                self.receive.wait(until.saturating_since(clock::now()));
            }
        }
    }

    /// Returns the Ethernet address of a neighbour of the first host, if it is in the cache.
    pub(super) fn known(&self, neighbour: IpAddr) -> Option<MacAddress> {
        self.neighbours.get(&(0, neighbour)).copied()
    }

    /// Sends changes of neighbours' Ethernet addresses to `moves` from now on.
    pub(crate) fn report_changes_to(&mut self, moves: &Arc<NeighbourChanges>) {
        self.moves = Some(Arc::clone(moves));
    }

    /// Probes a next hop from time to time, once its Ethernet address is known.
    pub(crate) fn watch(&mut self, place: usize, source: IpAddr, next_hop: IpAddr) {
        self.add_probed((place, next_hop), source, false);
    }

    fn add_probed(&mut self, who: (usize, IpAddr), source: IpAddr, is_peer: bool) {
        let due = clock::now().saturating_add(REACHABLE_TIME);
        self.watched.insert(who, ProbedNeighbour { source, unanswered: 0, due, is_peer });
        self.next_due = self.next_due.min(due);
    }

    /// Probes the next hops that are due. Returns the time of the next probe.
    ///
    /// # Errors
    /// Fails if the interface fails.
    pub(crate) fn probe(&mut self) -> Result<Instant, PortError> {
        let now = clock::now();
        if now < self.next_due {
            return Ok(self.next_due);
        }
        let interval = REQUEST_INTERVAL.max(self.probe_round_time());
        let mut requests = Vec::new();
        self.next_due = Instant::MAX;
        self.watched.retain(|_, it| !it.is_peer || it.unanswered < PEER_REQUESTS_MAX);
        for ((place, next_hop), watched) in &mut self.watched {
            let known = self.neighbours.get(&(*place, *next_hop));
            if watched.due <= now {
                watched.due = now.saturating_add(interval);
                let host = self.vlan_hosts.get(*place).map(|it| &it.host);
                let request = host.and_then(|it| it.solicitation(watched.source, *next_hop));
                if let (Some(known), Some(mut request)) = (known, request) {
                    // RFC 4861 section 7.3.3: a node probes "by sending unicast Neighbor
                    // Solicitations". After that, multicast requests find a neighbour that has
                    // moved.
                    if watched.unanswered < REQUESTS_MAX {
                        request[..6].copy_from_slice(&known.0);
                    }
                    watched.unanswered = watched.unanswered.saturating_add(1);
                    requests.push(request);
                }
            }
            self.next_due = self.next_due.min(watched.due);
        }
        requests.iter().try_for_each(|request| self.send(request))?;
        Ok(self.next_due)
    }

    /// Returns the time that probing all next hops takes at the maximum rate.
    fn probe_round_time(&self) -> Duration {
        Duration::from_secs(self.watched.len() as u64 / PROBES_PER_SECOND_MAX)
    }

    /// Updates the neighbour cache of the host at index `place`.
    fn update_neighbour(&mut self, place: usize, advertisement: NeighbourAddress) {
        let NeighbourAddress { address, mac, overrides } = advertisement;
        let known = self.neighbours.get(&(place, address)).copied();
        if known.is_some_and(|known| known != mac) && !overrides {
            return;
        }
        let reachable = REACHABLE_TIME.max(self.probe_round_time());
        if let Some(watched) = self.watched.get_mut(&(place, address)) {
            watched.unanswered = 0;
            watched.due = clock::now().saturating_add(reachable);
        } else if self.moves.is_some()
            && self.watched.len() < PEERS_MAX
            && let Some(source) = self.vlan_hosts.get(place).and_then(|it| it.source_for(address))
        {
            self.add_probed((place, address), source, true);
        }
        if known.is_some() || self.neighbours.len() < NEIGHBOURS_MAX {
            self.neighbours.insert((place, address), mac);
        }
        let moved = known.filter(|known| *known != mac);
        if let (Some(from), Some(moves), Some(vlan_host)) =
            (moved, &self.moves, self.vlan_hosts.get(place))
        {
            let still_uses = |((other, _), mac): (&(usize, IpAddr), &MacAddress)| {
                *other == place && *mac == from
            };
            let was_alone = !self.neighbours.iter().any(still_uses);
            let tags = vlan_host.host.tags.clone();
            moves.add(NeighbourChange { tags, address, from, to: mac, was_alone });
        }
    }

    /// Returns the host's source address for a destination, and the Ethernet address of the next
    /// hop.
    ///
    /// # Errors
    /// Fails if there is no route, or the neighbour does not answer.
    pub fn resolve(&mut self, destination: IpAddr) -> Result<(IpAddr, MacAddress), HostError> {
        self.resolve_while(destination, |request| request.tries < REQUESTS_MAX)
    }

    /// As [`Self::resolve`], but repeats unanswered requests as long as `goes_on` returns true.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub(crate) fn resolve_while(
        &mut self,
        destination: IpAddr,
        goes_on: impl FnMut(&UnansweredRequest<'_>) -> bool,
    ) -> Result<(IpAddr, MacAddress), HostError> {
        let host = self.host();
        let route = host.route(destination).ok_or_else(|| self.no_route(destination))?;
        if host.owns(route.next_hop) {
            return Ok((route.source, host.mac));
        }
        let mac = self.resolve_from(0, route.source, route.next_hop, goes_on)?;
        Ok((route.source, mac))
    }

    fn no_route(&self, destination: IpAddr) -> HostError {
        let interface = self.interface.clone();
        HostError::NoRoute { interface, destination, addresses: addresses(self.host()) }
    }

    /// Resolves a neighbour from `source`, an address of the host at index `place`. Repeats
    /// unanswered requests as long as `goes_on` returns true.
    ///
    /// # Errors
    /// Fails if the address families differ, or the neighbour does not answer.
    pub(crate) fn resolve_from(
        &mut self,
        place: usize,
        source: IpAddr,
        neighbour: IpAddr,
        mut goes_on: impl FnMut(&UnansweredRequest<'_>) -> bool,
    ) -> Result<MacAddress, HostError> {
        let host = self.vlan_hosts.get(place).map(|it| &it.host);
        let request = host.and_then(|host| host.solicitation(source, neighbour));
        let request = request.ok_or_else(|| self.no_route(neighbour))?;
        // Process the frames that have arrived meanwhile: the answer may be among them.
        self.listen(clock::now(), |_, _| ControlFlow::<()>::Continue(()))?;
        if let Some(mac) = self.neighbours.get(&(place, neighbour)) {
            return Ok(*mac);
        }
        let protocol = if neighbour.is_ipv4() { "ARP" } else { "neighbour discovery" };
        let mut tries = 0;
        loop {
            tries += 1;
            self.send(&request)?;
            let until = clock::now().saturating_add(REQUEST_INTERVAL);
            let mac = self.listen_with_host(until, |from, event, _| match event {
                HostEvent::Neighbour { address, mac } if from == place && address == neighbour => {
                    ControlFlow::Break(mac)
                }
                _ => ControlFlow::Continue(()),
            })?;
            if let Some(mac) = mac {
                return Ok(mac);
            }
            let interface = &self.interface;
            if !goes_on(&UnansweredRequest { interface, neighbour, protocol, tries }) {
                let interface = interface.clone();
                return Err(HostError::Unanswered { interface, neighbour, protocol, tries });
            }
        }
    }
}

impl VlanHost {
    /// Returns the source address for requests to a neighbour: one in its network, or any proxied
    /// address of its family if the host knows no network.
    fn source_for(&self, neighbour: IpAddr) -> Option<IpAddr> {
        let within = self.host.addresses.iter().find(|prefix| prefix.contains(neighbour));
        let proxied = self.host.proxied.iter().map(|it| it.range.first);
        let mut proxied = proxied.filter(|it| it.is_ipv4() == neighbour.is_ipv4());
        within.map(|prefix| prefix.address).or_else(|| proxied.next())
    }

    /// Processes a frame, or the packet that its fragment completes.
    fn receive(&mut self, frame: &[u8], now: Instant) -> HostEvent {
        let start = ethernet::HEADER_LENGTH + self.host.tags.len();
        let (link, packet) = frame.split_at_checked(start).unwrap_or_default();
        if !is_fragment(packet) {
            return self.host.handle_frame(frame);
        }
        match self.fragments.take(packet, 0, now, |_| {}) {
            Taken::Complete(packet) => self.host.handle_frame(&[link, &packet].concat()),
            Taken::Incomplete | Taken::Invalid => HostEvent::Ignored,
        }
    }
}

/// Offset of VLAN tags in a frame, after both Ethernet addresses.
const TAG_OFFSET: usize = 12;

/// Removes a priority tag: a tag of VLAN 0, which is no VLAN (IEEE 802.1Q section 6.9).
fn strip_priority_tag(frame: &[u8]) -> Cow<'_, [u8]> {
    match frame.split_at_checked(TAG_OFFSET) {
        Some((addresses, [0x81, 0x00, high, 0, behind @ ..])) if high & IDENTIFIER == 0 => {
            [addresses, behind].concat().into()
        }
        _ => frame.into(),
    }
}

/// Bits of the VLAN identifier in the first byte after the tag's type.
const IDENTIFIER: u8 = 0x0f;

/// Returns at most two VLAN tags of a frame, without priority and drop eligibility (IEEE 802.1Q
/// section 9.6).
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
    let texts: Vec<_> =
        named.map(|prefix| format!("{}/{}", prefix.address, prefix.length)).collect();
    match host.addresses.len().saturating_sub(NAMED_MAX) {
        _ if texts.is_empty() => "the host, which has no address".into(),
        0 => texts.join(", "),
        more => format!("{} and {more} more", texts.join(", ")),
    }
}

/// Returns a BPF filter that accepts ARP, ICMP and ICMPv6, so that other traffic costs nothing. The
/// kernel removes the first VLAN tag before the filter runs, but leaves the second.
fn neighbour_and_ping_filter() -> Vec<FilterInstruction> {
    let begins_with_tag = [
        (0x28, 0, 0, 12),      // ldh [12]            the Ethernet type
        (0x15, 0, 13, 0x8100), // jeq a tag           else skip the tagged part
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
            (0x15, 9, 0, 0x0806),      // jeq ARP             accept
            (0x15, 0, 2, 0x0800),      // jeq IPv4
            (0x30, 0, 0, tag + 23),    // ldb [23]            its protocol
            (0x15, 6, 7, 1),           // jeq ICMP            accept, else drop
            (0x15, 0, 6, 0x86dd),      // jeq IPv6            else drop
            (0x30, 0, 0, tag + 20),    // ldb [20]            its next header
            (0x15, 3, 0, 58),          // jeq ICMPv6          accept
            (0x15, 0, 3, 44),          // jeq a fragment      else drop
            (0x30, 0, 0, tag + 54),    // ldb [54]            its next header
            (0x15, 0, 1, 58),          // jeq ICMPv6          else drop
            (0x06, 0, 0, 0x0004_0000), // ret 262,144         accept
            (0x06, 0, 0, 0),           // ret 0               drop
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
    fn host_announces_itself_after_a_long_outage() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let prefix = Prefix { address: "10.0.9.1".parse().unwrap(), length: 24 };
        let mut host = PacketSocketHost::open(&lab.a.port(), vec![prefix], Vec::new()).unwrap();
        let frames = host.transmit.capabilities().frames;
        lab.a.set_up(false).unwrap();
        // Announce more often than there are frames; each one is withdrawn.
        for _ in 0..frames + 10 {
            assert!(matches!(host.announce(), Err(PortError::Down { .. })));
        }
        lab.a.set_up(true).unwrap();
        let options = CaptureOptions { filter: "arp".into(), ..CaptureOptions::default() };
        let capture = lab.b.capture_with(&options).unwrap();
        host.announce().unwrap();
        let captured = capture.finish(1).unwrap();
        let announced = host.host().announcements();
        assert_eq!(captured.frames().collect::<Vec<_>>(), announced);
    }

    #[test]
    fn priority_tagged_frames_belong_to_no_vlan() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let prefix = |last: u8| vec![Prefix { address: [10, 0, 9, last].into(), length: 24 }];
        let mut host = PacketSocketHost::open(&lab.a.port(), prefix(1), Vec::new()).unwrap();
        let mut asking = PacketSocketHost::open(&lab.b.port(), prefix(2), Vec::new()).unwrap();
        let filter = format!("arp and ether src {}", MacAddress(lab.a.mac()));
        let options = CaptureOptions { filter, ..CaptureOptions::default() };
        let capture = lab.b.capture_with(&options).unwrap();
        // ARP requests for 10.0.9.1: in VLAN 7 (no answer) and with priority 5 (answer).
        let question = |tag: [u8; 4]| {
            let asks = [0, 1, 8, 0, 6, 4, 0, 1];
            let addresses = [&[0xff; 6][..], &lab.b.mac()].concat();
            let sender = [&lab.b.mac()[..], &[10, 0, 9, 2]].concat();
            [&addresses[..], &tag, &[8, 6], &asks, &sender, &[0; 6], &[10, 0, 9, 1]].concat()
        };
        asking.send(&question([0x81, 0, 0, 7])).unwrap();
        asking.send(&question([0x81, 0, 0xa0, 0])).unwrap();
        let until = clock::now().saturating_add(Duration::from_millis(300));
        let nothing = host.listen(until, |_, _| ControlFlow::<()>::Continue(())).unwrap();
        assert_eq!(nothing, None);
        let captured = capture.finish(1).unwrap();
        let answers: Vec<_> = captured.frames().collect();
        assert_eq!(answers.len(), 1);
        assert_eq!((&answers[0][..6], &answers[0][12..14]), (&lab.b.mac()[..], &[8, 6][..]));
    }

    /// Uses a Linux bridge as a switch with multicast snooping (RFC 4541 section 3).
    #[test]
    fn multicast_groups_are_reported_to_snooping_switches() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let switch = lab.b.namespace();
        let port = format!("link set {} master switch", lab.b.interface());
        let new = "link add switch type bridge mcast_snooping 1";
        switch.ip(&[new, &port, "link set switch up"]).unwrap();
        let addresses = ["2001:db8::1:2", "2001:db8::1:3"];
        let prefix = |address: &str| Prefix { address: address.parse().unwrap(), length: 64 };
        let addresses = addresses.map(prefix).to_vec();
        let mut host = PacketSocketHost::open(&lab.a.port(), addresses, Vec::new()).unwrap();
        host.announce().unwrap();
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
    fn route_error_lists_the_first_addresses() {
        let prefix = |last: u8| Prefix { address: [10, 0, 0, last].into(), length: 24 };
        let host = |count| Host { addresses: (1..=count).map(prefix).collect(), ..Host::default() };
        assert_eq!(addresses(&host(0)), "the host, which has no address");
        assert_eq!(addresses(&host(2)), "10.0.0.1/24, 10.0.0.2/24");
        assert_eq!(
            addresses(&host(200)),
            "10.0.0.1/24, 10.0.0.2/24, 10.0.0.3/24, 10.0.0.4/24 and 196 more"
        );
    }
}
