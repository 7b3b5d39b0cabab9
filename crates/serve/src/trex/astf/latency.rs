//! Latency traffic: ICMP packets between the ports of a pair, beside the profiles.
//!
//! ```text
//! thread `trex-latency` ── port 0, echo requests ──> port 1: delay = kernel's time stamp
//!                       └─ port 1, echo replies  ──> port 0          - time in the packet
//! ```
//!
//! In tunnel mode, the packets are in the tunnels of the topology's latency clients.
//!
//! Packets of other sessions, and answers of hosts to echo requests, are not measured.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use serde_json::{Map, Value, json};
use wirestorm_control::af_packet::{AfPacketOptions, AfPacketTransmit, Direction};
use wirestorm_control::affinity;
use wirestorm_control::base::port::Transmit;
use wirestorm_control::base::time::{Duration, Instant};
use wirestorm_control::clock;
use wirestorm_control::tunnel::{EncapsulatingPort, TunnelTable};
use wirestorm_control::wire::checksum::checksum;
use wirestorm_control::wire::packet::MacAddress;

use super::super::Trex;
use super::super::frame_socket::{Frame, FrameSocket, compiled};
use super::super::interface::Interface;
use super::super::packets::Pushed;
use super::super::parameters::Parameters;
use super::super::port::Layers;
use super::super::rpc::{Answer, RpcError};
use super::LatencyTunnels;

/// Range of rates in packets per second of each port. Other values are replaced by the nearest one.
const RATES: (f64, f64) = (1.0, 100_000.0);
/// Number of frames that a socket holds.
const FRAMES: usize = 64;
/// Longest sleep, which is also the time until the thread notices its end.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// Packets that are later than this are skipped.
const LATE_MAX: Duration = Duration::from_millis(100);
/// Time of a window of the last maximum.
const WINDOW_NS: u64 = 500_000_000;
/// Echo requests and replies, also in VLANs.
const FILTER: &str = "icmp or (vlan and icmp)";
/// ICMP in GTP-U over IPv4 and IPv6, also in VLANs: the protocol of the inner packet is 45 and 65
/// bytes behind the begin of the outer one.
const TUNNEL_FILTER: &str = "(udp dst port 2152 and (ip[45] = 1 or ip6[65] = 1)) or \
     (vlan and udp dst port 2152 and (ip[45] = 1 or ip6[65] = 1))";

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ICMP: u8 = 1;
const TTL: u8 = 127;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];
/// First bytes of the payload.
const MARK: [u8; 4] = *b"wslt";
const ADDRESSES_BYTES: usize = 12;
const IPV4_BYTES: usize = 20;
const ICMP_BYTES: usize = 8;

/// Payload of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    session: u32,
    /// Port that sends it.
    port: u16,
    sequence: u64,
    sent: Instant,
}

impl Probe {
    const BYTES: usize = 26;

    fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&MARK);
        bytes[4..8].copy_from_slice(&self.session.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.port.to_be_bytes());
        bytes[10..18].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[18..].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        bytes
    }

    /// Finds the payload of an ICMP packet in a frame, with any number of VLAN tags.
    fn find(frame: &[u8]) -> Option<Self> {
        let mut rest = frame.get(ADDRESSES_BYTES..)?;
        while rest.starts_with(&ETHERTYPE_VLAN) {
            rest = rest.get(4..)?;
        }
        let packet = rest.strip_prefix(&ETHERTYPE_IPV4)?;
        let header = usize::from(packet.first()? & 0x0f) * 4;
        if header < IPV4_BYTES || *packet.get(9)? != ICMP {
            return None;
        }
        let payload = packet.get(header + ICMP_BYTES..)?.strip_prefix(&MARK)?;
        let (session, payload) = payload.split_first_chunk()?;
        let (port, payload) = payload.split_first_chunk()?;
        let (sequence, payload) = payload.split_first_chunk()?;
        let (sent, _) = payload.split_first_chunk()?;
        Some(Self {
            session: u32::from_be_bytes(*session),
            port: u16::from_be_bytes(*port),
            sequence: u64::from_be_bytes(*sequence),
            sent: Instant::from_nanos(u64::from_be_bytes(*sent)),
        })
    }
}

/// Counters and delays of a port, as TRex counts them.
#[derive(Debug, Default)]
struct Record {
    sent: u64,
    failed: u64,
    received: u64,
    /// Packets that another port sent.
    wrong_port: u64,
    /// Packets whose sequence number is not the expected one.
    sequence_errors: u64,
    next_expected: u64,
    min_ns: Option<u64>,
    max_ns: u64,
    sum_ns: u128,
    last_ns: Option<u64>,
    /// 16 times the jitter in nanoseconds (RFC 3550 section 6.4.1).
    jitter_scaled: u64,
    /// Number of the current window, its maximum, and that of the window before.
    window: (u64, u64, u64),
    below_10_us: u64,
    /// Counts by the first digit of the delay in microseconds.
    histogram: BTreeMap<u64, u64>,
}

impl Record {
    fn note(&mut self, probe: Probe, arrival: Instant) {
        self.received += 1;
        if probe.sequence != self.next_expected {
            self.sequence_errors += 1;
        }
        self.next_expected = self.next_expected.max(probe.sequence.saturating_add(1));
        // A time stamp of the kernel can be earlier than one of this process by some nanoseconds.
        let delay_ns = arrival.saturating_since(probe.sent).as_nanos();
        self.min_ns = Some(self.min_ns.map_or(delay_ns, |min| min.min(delay_ns)));
        self.max_ns = self.max_ns.max(delay_ns);
        self.sum_ns += u128::from(delay_ns);
        if let Some(last) = self.last_ns.replace(delay_ns) {
            let decay = (self.jitter_scaled + 8) >> 4;
            let change = delay_ns.abs_diff(last);
            self.jitter_scaled = self.jitter_scaled.saturating_add(change).saturating_sub(decay);
        }
        let number = arrival.as_nanos() / WINDOW_NS;
        if number != self.window.0 {
            let before = if number == self.window.0 + 1 { self.window.1 } else { 0 };
            self.window = (number, 0, before);
        }
        self.window.1 = self.window.1.max(delay_ns);
        let delay_us = delay_ns / 1_000;
        if delay_us < 10 {
            self.below_10_us += 1;
        } else {
            let scale = 10_u64.pow(delay_us.ilog10());
            *self.histogram.entry(delay_us / scale * scale).or_default() += 1;
        }
    }

    /// Returns the counters, and delays in microseconds.
    fn document(&self) -> Value {
        let us = |ns: u64| ns as f64 / 1e3;
        let mean_ns = self.sum_ns as f64 / self.received.max(1) as f64;
        let histogram = self.histogram.iter();
        let histogram: Vec<Value> =
            histogram.map(|(key, count)| json!({"key": key, "val": count})).collect();
        json!({
            "hist": {
                "min_usec": us(self.min_ns.unwrap_or_default()),
                "max_usec": us(self.max_ns),
                "high_cnt": self.received - self.below_10_us,
                "cnt": self.received,
                "s_avg": mean_ns / 1e3,
                "s_max": us(self.window.1.max(self.window.2)),
                "histogram": histogram,
            },
            "stats": {
                "m_tx_pkt_ok": self.sent,
                "tx_arp": 0,
                "ipv6_n_solic": 0,
                "ignore_bytes": 0,
                "m_tx_pkt_err": self.failed,
                "m_pkt_ok": self.received,
                "m_unsup_prot": 0,
                "m_no_magic": 0,
                "m_no_id": self.wrong_port,
                "m_seq_error": self.sequence_errors,
                "m_l3_cs_err": 0,
                "m_l4_cs_err": 0,
                "m_length_error": 0,
                "m_no_ipv4_option": 0,
                "m_jitter": self.jitter_scaled / 16 / 1_000,
                "m_rx_check": 0,
            },
        })
    }
}

type SharedRecord = Arc<Mutex<Record>>;

fn lock(record: &SharedRecord) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LatencyPlan {
    /// Packets per second of each port.
    pub(super) rate: f64,
    /// Addresses of the first even port, and of its neighbour.
    pub(super) addresses: [Ipv4Addr; 2],
    /// What each further pair adds to the addresses.
    pub(super) offsets: [Ipv4Addr; 2],
    /// Bit mask of the ports that send.
    pub(super) mask: u32,
}

impl LatencyPlan {
    /// Returns the plan of a profile: its first ranges of clients and servers.
    ///
    /// # Errors
    /// The profile has no such ranges.
    pub(super) fn of_profile(profile: &Value, rate: f64) -> Result<Self, String> {
        let ranges = profile["ip_gen_dist_list"].as_array().into_iter().flatten().take(2);
        let mut found = [None; 2];
        for range in ranges {
            let side = match range["dir"].as_str() {
                Some("c") => 0,
                Some("s") => 1,
                _ => continue,
            };
            let address = |name: &str| range[name].as_str()?.parse::<Ipv4Addr>().ok();
            found[side] = address("ip_start").zip(address("ip_offset"));
        }
        let [Some(clients), Some(servers)] = found else {
            return Err("No valid ip range for latency".to_owned());
        };
        Ok(Self {
            rate,
            addresses: [clients.0, servers.0],
            offsets: [clients.1, servers.1],
            mask: u32::MAX,
        })
    }

    fn sends(&self, port: usize) -> bool {
        u32::try_from(port).is_ok_and(|port| self.mask.checked_shr(port).unwrap_or(0) & 1 == 1)
    }

    /// Returns the source and destination of a port.
    fn route(&self, port: usize) -> [Ipv4Addr; 2] {
        let pair = (port / 2) as u32;
        let at = |side: usize| {
            let offset = self.offsets[side].to_bits().wrapping_mul(pair);
            Ipv4Addr::from_bits(self.addresses[side].to_bits().wrapping_add(offset))
        };
        if port.is_multiple_of(2) { [at(0), at(1)] } else { [at(1), at(0)] }
    }
}

/// A port that sends.
struct Sender {
    port: u16,
    socket: EncapsulatingPort<AfPacketTransmit>,
    /// Ethernet header.
    ethernet: Vec<u8>,
    route: [Ipv4Addr; 2],
    next: u64,
    record: SharedRecord,
    pushed: Arc<Pushed>,
}

impl Sender {
    fn open(
        number: usize,
        interface: &Interface,
        layers: &Layers,
        route: [Ipv4Addr; 2],
        record: SharedRecord,
        tunnels: Option<Arc<TunnelTable>>,
    ) -> Result<Self, String> {
        let options = AfPacketOptions {
            frames: FRAMES,
            // Captures see the frames.
            queueing_bypass: false,
            promiscuous: false,
            ..AfPacketOptions::new(interface.name.clone())
        };
        let socket = AfPacketTransmit::open(&options).map_err(|error| error.to_string())?;
        let socket = EncapsulatingPort::new(socket, tunnels);
        let destination = layers.destination.unwrap_or(MacAddress::BROADCAST);
        let mut ethernet = [destination.0, interface.facts().mac.0].concat();
        for vlan in &layers.vlans {
            ethernet.extend(ETHERTYPE_VLAN);
            ethernet.extend(vlan.to_be_bytes());
        }
        ethernet.extend(ETHERTYPE_IPV4);
        let port = u16::try_from(number).unwrap_or(u16::MAX);
        let pushed = Arc::clone(&interface.pushed);
        Ok(Self { port, socket, ethernet, route, next: 0, record, pushed })
    }

    /// Sends a packet with the time at which it leaves.
    fn send(&mut self, session: u32) {
        let sequence = self.next;
        self.next += 1;
        let Some(frame) = self.socket.take() else {
            lock(&self.record).failed += 1;
            return;
        };
        let now = clock::now();
        let probe = Probe { session, port: self.port, sequence, sent: now };
        let bytes = packet(&self.ethernet, self.route, probe);
        let buffer = self.socket.frame_mut(&frame);
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        self.socket.send(frame, length, now);
        self.flush();
    }

    /// Passes the packets to the driver, and counts those that it has sent.
    fn flush(&mut self) {
        let before = self.socket.transmitted();
        // After an error the interface is down; it may come back.
        let has_failed = self.socket.flush().is_err();
        let after = self.socket.transmitted();
        let sent = after.sent - before.sent;
        self.pushed.add(sent, after.sent_bytes - before.sent_bytes);
        let mut record = lock(&self.record);
        record.sent += sent;
        record.failed += after.failed - before.failed + u64::from(has_failed);
    }
}

/// Builds a packet.
fn packet(ethernet: &[u8], [source, destination]: [Ipv4Addr; 2], probe: Probe) -> Vec<u8> {
    let length = IPV4_BYTES + ICMP_BYTES + Probe::BYTES;
    let mut ipv4 = [0_u8; IPV4_BYTES];
    ipv4[0] = 0x45;
    ipv4[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    ipv4[4..6].copy_from_slice(&(probe.sequence as u16).to_be_bytes());
    (ipv4[8], ipv4[9]) = (TTL, ICMP);
    ipv4[12..16].copy_from_slice(&source.octets());
    ipv4[16..].copy_from_slice(&destination.octets());
    let sum = checksum(&ipv4);
    ipv4[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut icmp = [0_u8; ICMP_BYTES + Probe::BYTES];
    icmp[0] = if probe.port.is_multiple_of(2) { ECHO_REQUEST } else { ECHO_REPLY };
    icmp[4..6].copy_from_slice(&probe.port.to_be_bytes());
    icmp[6..8].copy_from_slice(&(probe.sequence as u16).to_be_bytes());
    icmp[ICMP_BYTES..].copy_from_slice(&probe.bytes());
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    [ethernet, &ipv4, &icmp].concat()
}

/// Active latency traffic. Dropping it ends it, and waits for the packets that have arrived.
struct Traffic {
    is_ending: Arc<AtomicBool>,
    interval_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
    /// Closed after the thread has ended.
    _sockets: Vec<FrameSocket>,
}

impl Traffic {
    fn start(
        plan: &LatencyPlan,
        tunnels: Option<&LatencyTunnels>,
        session: u32,
        ports: &[(&Interface, Layers)],
        records: &BTreeMap<usize, SharedRecord>,
    ) -> Result<Self, String> {
        let mut sockets = Vec::new();
        let mut senders = Vec::new();
        for (number, record) in records {
            let Some((interface, layers)) = ports.get(*number) else { continue };
            let own = tunnels.and_then(|tunnels| tunnels.of(*number));
            let is_tunnelled = own.is_some();
            let filter = if is_tunnelled { TUNNEL_FILTER } else { FILTER };
            let filter = compiled(&interface.name, filter)?;
            let peer = number ^ 1;
            let shared = Arc::clone(record);
            let handle = move |frame: Frame<'_>| {
                let found = Probe::find(frame.bytes);
                let Some(probe) = found.filter(|probe| probe.session == session) else { return };
                match usize::from(probe.port) {
                    port if port == peer => lock(&shared).note(probe, frame.time),
                    // The answer of a host to an echo request of this port.
                    port if port == peer ^ 1 => {}
                    _ => lock(&shared).wrong_port += 1,
                }
            };
            let name = &interface.name;
            let open = if is_tunnelled { FrameSocket::open_tunnelled } else { FrameSocket::open };
            sockets.push(open(name, Direction::Arriving, filter, true, handle)?);
            if plan.sends(*number) {
                let route = match tunnels.and_then(|it| it.routes.get(&(number & !1))) {
                    Some([client, server]) if number.is_multiple_of(2) => [*client, *server],
                    Some([client, server]) => [*server, *client],
                    None => plan.route(*number),
                };
                let record = Arc::clone(record);
                senders.push(Sender::open(*number, interface, layers, route, record, own)?);
            }
        }
        let is_ending = Arc::new(AtomicBool::new(false));
        let interval_ns = Arc::new(AtomicU64::new(interval_ns(plan.rate)));
        let (ends, interval) = (Arc::clone(&is_ending), Arc::clone(&interval_ns));
        let run = move || send_all(&mut senders, session, &interval, &ends);
        let thread = std::thread::Builder::new().name("trex-latency".to_owned()).spawn(run);
        let thread = Some(thread.map_err(|error| format!("cannot start a thread: {error}"))?);
        Ok(Self { is_ending, interval_ns, thread, _sockets: sockets })
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        // A panic has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns the time between two packets of a port.
fn interval_ns(rate: f64) -> u64 {
    // NaN becomes the least rate.
    let rate = if rate > RATES.0 { rate.min(RATES.1) } else { RATES.0 };
    (1e9 / rate) as u64
}

/// Keeps the thread on one CPU, because packets of a veth that leave from several CPUs overtake each
/// other. Without the right to do so, some count as sequence errors.
fn stay_on_one_cpu(session: u32) {
    let cpus = affinity::allowed();
    if let Some(cpu) = (session as usize).checked_rem(cpus.len()).and_then(|at| cpus.get(at)) {
        let _ = affinity::restrict_to(&[*cpu]);
    }
}

fn send_all(senders: &mut [Sender], session: u32, interval_ns: &AtomicU64, ends: &AtomicBool) {
    stay_on_one_cpu(session);
    let mut due = clock::now();
    while !ends.load(Ordering::Relaxed) {
        let now = clock::now();
        if now.saturating_since(due) > LATE_MAX {
            due = now;
        }
        while due <= now {
            senders.iter_mut().for_each(|sender| sender.send(session));
            due = due.saturating_add(Duration::from_nanos(interval_ns.load(Ordering::Relaxed)));
        }
        let left = due.saturating_since(clock::now()).as_nanos().min(SLEEP_MAX.as_nanos());
        std::thread::sleep(StdDuration::from_nanos(left));
        senders.iter_mut().for_each(Sender::flush);
    }
}

/// Latency traffic of the server.
#[derive(Default)]
pub(in super::super) struct Latency {
    traffic: Option<Traffic>,
    /// Whether a request is starting it.
    is_starting: bool,
    /// Profile with whose end it ends.
    profile: Option<String>,
    /// Number of starts.
    epoch: u32,
    /// Counters of the last start, by port.
    records: BTreeMap<usize, SharedRecord>,
    mask: u32,
}

impl Trex {
    /// Starts latency traffic. `profile`: the one with whose end it ends.
    pub(super) fn start_latency(
        &self,
        plan: &LatencyPlan,
        profile: Option<&str>,
    ) -> Result<(), String> {
        let (layers, session, tunnels) = {
            let mut state = self.state();
            let tunnels = state.astf.tunnels.of_latency()?;
            let latency = &mut state.astf.latency;
            if latency.traffic.is_some() || latency.is_starting {
                return Err("Latency state is not idle, should stop latency first".to_owned());
            }
            latency.is_starting = true;
            latency.epoch += 1;
            let session = latency.epoch ^ (clock::now().as_nanos() as u32).rotate_left(16);
            let layers: Vec<Layers> = state.ports.iter().map(|port| port.layers.clone()).collect();
            (layers, session, tunnels)
        };
        let ports: Vec<(&Interface, Layers)> = self.interfaces.iter().zip(layers).collect();
        let paired = (0..ports.len()).filter(|port| port ^ 1 < ports.len());
        let records: BTreeMap<usize, SharedRecord> =
            paired.map(|port| (port, SharedRecord::default())).collect();
        let started = match records.is_empty() {
            true => Err("latency traffic needs a pair of ports, such as 0 and 1".to_owned()),
            false => Traffic::start(plan, tunnels.as_ref(), session, &ports, &records),
        };
        let mut state = self.state();
        let latency = &mut state.astf.latency;
        latency.is_starting = false;
        latency.traffic = Some(started?);
        latency.profile = profile.map(str::to_owned);
        latency.records = records;
        latency.mask = plan.mask;
        Ok(())
    }

    /// Ends latency traffic, if there is any.
    pub(in super::super) fn stop_latency(&self) {
        let traffic = {
            let mut state = self.state();
            let latency = &mut state.astf.latency;
            latency.profile = None;
            latency.traffic.take()
        };
        // The end waits for threads.
        drop(traffic);
    }

    /// Returns whether latency traffic is active.
    pub(super) fn has_latency(&self) -> bool {
        self.state().astf.latency.is_active()
    }
}

impl Latency {
    /// Returns whether packets are being sent.
    pub(in super::super) const fn is_active(&self) -> bool {
        self.traffic.is_some()
    }

    /// Ends latency traffic that a profile started, without waiting for its end.
    pub(super) fn end_with(&mut self, profile: &str) {
        if self.profile.as_deref() != Some(profile) {
            return;
        }
        self.profile = None;
        let Some(traffic) = self.traffic.take() else { return };
        traffic.is_ending.store(true, Ordering::Relaxed);
        // Without a thread, the end is waited for here.
        let _ = std::thread::Builder::new()
            .name("trex-latency-end".to_owned())
            .spawn(move || drop(traffic));
    }
}

pub(in super::super) fn start_latency(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    let address = |name: &str, what: &str| -> Result<Ipv4Addr, RpcError> {
        let text = parameters.text(name)?;
        let wrong = || RpcError::parameters(format!("invalid {what} IPv4 address: '{text}'"));
        text.parse().map_err(|_| wrong())
    };
    let addresses = [address("src_addr", "source")?, address("dst_addr", "destination")?];
    let offset = address("dual_port_addr", "dual port ip")?;
    let of_servers = match parameters.find("port_s_offset") {
        Some(_) => address("port_s_offset", "dual port ip")?,
        None => offset,
    };
    let (rate, mask) = (parameters.number("mult")?, parameters.u32("mask")?);
    let plan = LatencyPlan { rate, addresses, offsets: [offset, of_servers], mask };
    let hosts = trex.state().ports.iter().map(|port| port.layers.ipv4).collect::<Vec<_>>();
    for (port, host) in hosts.into_iter().enumerate() {
        let Some((own, _, _)) = host else { continue };
        let is_reached = |sender: usize| sender % 2 != port % 2 && plan.route(sender)[1] == own;
        if (0..trex.interfaces.len()).any(is_reached) {
            return Err(RpcError::execution(format!(
                "Latency dst IP and dual_port might reach port {port} with IP {own}"
            )));
        }
    }
    trex.start_latency(&plan, None).map_err(RpcError::execution)?;
    Ok(Value::Null)
}

pub(in super::super) fn stop_latency(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    trex.stop_latency();
    Ok(json!({"stopped": true}))
}

pub(in super::super) fn update_latency(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    let rate = parameters.number("mult")?;
    let state = trex.state();
    let Some(traffic) = &state.astf.latency.traffic else {
        return Err(RpcError::execution("Latency is not active, can't update rate"));
    };
    traffic.interval_ns.store(interval_ns(rate), Ordering::Relaxed);
    Ok(Value::Null)
}

pub(in super::super) fn get_latency_stats(trex: &Trex, _: &Parameters<'_>) -> Answer {
    let state = trex.state();
    let latency = &state.astf.latency;
    let mut data = Map::new();
    for (port, record) in &latency.records {
        if latency.mask.checked_shr(*port as u32).unwrap_or(0) & 1 == 1 {
            data.insert(format!("port-{port}"), lock(record).document());
        }
    }
    data.insert("cpu_util".to_owned(), 0.0.into());
    data.insert("epoch".to_owned(), latency.epoch.into());
    data.insert("unknown".to_owned(), 0.into());
    Ok(json!({"name": "trex-latecny-v2", "type": 0, "data": data}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(sequence: u64, sent_us: u64) -> Probe {
        Probe { session: 7, port: 1, sequence, sent: Instant::from_nanos(1_000 * sent_us) }
    }

    fn plan() -> LatencyPlan {
        let [clients, servers] = ["16.0.0.1", "48.0.0.1"].map(|text| text.parse().unwrap());
        let offset = Ipv4Addr::new(1, 0, 0, 0);
        LatencyPlan { rate: 10.0, addresses: [clients, servers], offsets: [offset; 2], mask: 0b101 }
    }

    #[test]
    fn packet_has_valid_checksums_and_its_payload_is_found_behind_tags() {
        let ethernet = [&[2; 12][..], &[0x81, 0, 0, 30, 8, 0]].concat();
        let frame = packet(&ethernet, plan().route(1), probe(65_537, 5));
        assert_eq!(Probe::find(&frame), Some(probe(65_537, 5)));
        assert_eq!(checksum(&frame[18..38]), 0);
        assert_eq!(checksum(&frame[38..]), 0);
        assert_eq!(frame[38], ECHO_REPLY);
        for length in 0..frame.len() {
            assert_eq!(Probe::find(&frame[..length]), None, "{length}");
        }
    }

    #[test]
    fn further_pairs_have_addresses_with_an_offset() {
        assert_eq!(plan().route(0).map(|it| it.to_string()), ["16.0.0.1", "48.0.0.1"]);
        assert_eq!(plan().route(3).map(|it| it.to_string()), ["49.0.0.1", "17.0.0.1"]);
        assert_eq!(
            [0, 1, 2, 3, 40].map(|port| plan().sends(port)),
            [true, false, true, false, false]
        );
    }

    #[test]
    fn delays_are_counted_by_their_first_digit() {
        let mut record = Record::default();
        for (sequence, delay_us) in [(0, 5), (1, 47), (3, 812), (2, 840)] {
            record.note(probe(sequence, 1_000), Instant::from_nanos(1_000 * (1_000 + delay_us)));
        }
        let document = record.document();
        assert_eq!(document["stats"]["m_pkt_ok"], 4);
        // Number 3 instead of 2, and 2 instead of 4.
        assert_eq!(document["stats"]["m_seq_error"], 2);
        let hist = &document["hist"];
        assert_eq!((&hist["min_usec"], &hist["max_usec"]), (&json!(5.0), &json!(840.0)));
        assert_eq!((&hist["cnt"], &hist["high_cnt"]), (&json!(4), &json!(3)));
        let expected = json!([{"key": 40, "val": 1}, {"key": 800, "val": 2}]);
        assert_eq!(hist["histogram"], expected);
    }

    #[test]
    fn rates_out_of_range_become_the_nearest_one() {
        let second = 1_000_000_000;
        for (rate, expected) in [(0.0, second), (-5.0, second), (f64::NAN, second), (1e12, 10_000)]
        {
            assert_eq!(interval_ns(rate), expected, "{rate}");
        }
    }

    #[test]
    fn profile_gives_the_addresses() {
        let range = |dir: &str, start: &str| {
            json!({
                "dir": dir, "ip_start": start, "ip_end": "16.0.0.255", "ip_offset": "1.0.0.0",
            })
        };
        let profile = json!({"ip_gen_dist_list": [range("c", "16.0.0.1"), range("s", "48.0.0.1")]});
        let found = LatencyPlan::of_profile(&profile, 10.0).unwrap();
        assert_eq!(found, LatencyPlan { mask: u32::MAX, ..plan() });
        let profile = json!({"ip_gen_dist_list": [range("c", "16.0.0.1")]});
        assert!(LatencyPlan::of_profile(&profile, 10.0).is_err());
    }
}
