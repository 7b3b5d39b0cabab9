//! Latency probes at a steady rate beside other traffic: ICMP echo requests, or UDP datagrams that
//! the target returns.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use wirestorm_base::port::PortError;
use wirestorm_base::rate::{Rate, Ticker};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{Distribution, Jitter};
use wirestorm_io::clock;
use wirestorm_stack::{Datagram, EchoRequest, HostEvent};
use wirestorm_wire::packet::MacAddress;

use super::packet_socket_host::PacketSocketHost;

/// Time to wait for the last replies.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of outstanding requests. Sequence numbers have 16 bits.
const WAITING_MAX: usize = 1 << 15;

/// Maximum number of requests sent at once when the thread is late.
const CATCH_UP_MAX: u32 = 16;

/// Start and end of all probers of a run.
#[derive(Debug, Default)]
pub(crate) struct ProbeSchedule {
    start: OnceLock<Instant>,
    stop: OnceLock<()>,
    /// Number of probers that send or wait for replies.
    busy: Mutex<usize>,
    /// Signals that no prober is busy.
    is_over: Condvar,
}

impl ProbeSchedule {
    /// Starts all probers.
    pub(crate) fn begin(&self) {
        // Only the first call has an effect.
        let _ = self.start.set(clock::now());
    }

    /// Stops all probers and waits for outstanding replies, for at most [`Self::END_PATIENCE`].
    pub(crate) fn end(&self) {
        self.stop();
        let patience = std::time::Duration::from_nanos(Self::END_PATIENCE.as_nanos());
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        // After a timeout the results so far are final.
        let _ = self.is_over.wait_timeout_while(busy, patience, |busy| *busy > 0);
    }

    /// Maximum wait for outstanding replies at the end.
    pub(crate) const END_PATIENCE: Duration = Duration::from_secs(2);

    /// Stops all probers and returns at once.
    pub(crate) fn stop(&self) {
        // Only the first call has an effect.
        let _ = self.stop.set(());
    }

    /// Returns whether any prober sends or waits for replies.
    pub(crate) fn are_busy(&self) -> bool {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner) > 0
    }

    fn enter(&self) {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn leave(&self) {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.is_over.notify_all();
    }
}

/// Results of a prober: round-trip delays (RFC 2681).
#[derive(Debug)]
pub(crate) struct ProbeRecord {
    /// Probes sent.
    pub(crate) sent: u64,
    /// Probes answered.
    pub(crate) received: u64,
    /// Duplicate replies.
    pub(crate) duplicated: u64,
    /// Reordered replies (RFC 4737 section 3.3).
    pub(crate) reordered: u64,
    /// Probes that could not be sent on time and were skipped.
    pub(crate) unsent: u64,
    pub(crate) delays: Distribution,
    pub(crate) jitter: Jitter,
    /// Outstanding probes. `first` is the sequence number of the first one.
    waiting: VecDeque<SentProbe>,
    first: u64,
    /// One more than the greatest sequence number answered.
    next_expected: u64,
}

#[derive(Debug)]
struct SentProbe {
    at: Instant,
    is_answered: bool,
}

impl ProbeRecord {
    fn new() -> Self {
        Self {
            sent: 0,
            received: 0,
            duplicated: 0,
            reordered: 0,
            unsent: 0,
            delays: Distribution::new(),
            jitter: Jitter::default(),
            waiting: VecDeque::new(),
            first: 0,
            next_expected: 0,
        }
    }

    /// Returns the sequence number of the next probe.
    fn next_number(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    /// Records that the next probe leaves now.
    fn record_send(&mut self) {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.first += 1;
        }
        self.waiting.push_back(SentProbe { at: clock::now(), is_answered: false });
        self.sent += 1;
    }

    /// Records that the last probe was not sent.
    fn undo_send(&mut self) {
        self.waiting.pop_back();
        self.sent -= 1;
        self.unsent += 1;
    }

    /// Records a reply to the outstanding probe at index `place`.
    fn record_reply(&mut self, place: usize, arrival: Instant) {
        let Some(probe) = self.waiting.get_mut(place) else { return };
        if std::mem::replace(&mut probe.is_answered, true) {
            self.duplicated += 1;
            return;
        }
        let delay = arrival.saturating_since(probe.at).as_nanos() as i64;
        self.received += 1;
        self.delays.record(delay);
        self.jitter.note(delay);
        // RFC 4737 section 3.3: a packet is reordered if its number is smaller than NextExp, which
        // is one more than the greatest number received.
        let number = self.first + place as u64;
        if number < self.next_expected {
            self.reordered += 1;
        } else {
            self.next_expected = number + 1;
        }
    }

    /// Returns whether each outstanding probe is answered or timed out.
    fn is_over(&self) -> bool {
        let now = clock::now();
        let mut waiting = self.waiting.iter();
        waiting.all(|it| it.is_answered || now.saturating_since(it.at) >= PATIENCE)
    }
}

/// Target and rate of a prober.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeTarget {
    /// Destination address.
    pub(crate) target: IpAddr,
    /// UDP destination port; `None` for ICMP.
    pub(crate) port: Option<u16>,
    /// Probe rate.
    pub(crate) rate: Rate,
}

/// Sends probes to one host.
pub(crate) struct Prober {
    packet: ProbePacket,
    /// Next hop, whose Ethernet address may change.
    next_hop: Option<IpAddr>,
    ticker: Ticker,
    /// Due time of the next probe, relative to the start.
    due: Duration,
    is_counted: bool,
    times: Arc<ProbeSchedule>,
    record: Arc<Mutex<ProbeRecord>>,
}

/// Packet that a prober sends.
enum ProbePacket {
    Echo(EchoRequest),
    Datagram {
        macs: (MacAddress, MacAddress),
        source: SocketAddr,
        target: SocketAddr,
        token: Token,
    },
}

/// First bytes of a prober's datagrams, which identify the prober.
type Token = [u8; 8];

/// Payload length in bytes, as in `ping`.
const PAYLOAD_LENGTH: usize = 56;

/// Source ports of UDP probes: dynamic ports (RFC 6335 section 6).
const SOURCE_PORTS: std::ops::RangeInclusive<u16> = 49_152..=65_535;

impl ProbePacket {
    fn new(
        host: &PacketSocketHost,
        (source, next_hop): (IpAddr, MacAddress),
        target: &ProbeTarget,
    ) -> Self {
        // Several runs of this process may probe on one interface, so identifiers differ.
        static PROBERS: AtomicU16 = AtomicU16::new(0);
        let number = PROBERS.fetch_add(1, Ordering::Relaxed);
        let identifier = (std::process::id() as u16).wrapping_add(number);
        let macs = (host.host().mac, next_hop);
        match target.port {
            None => Self::Echo(EchoRequest {
                macs,
                source,
                destination: target.target,
                identifier,
                sequence: 0,
                payload: (0..PAYLOAD_LENGTH).map(|byte| byte as u8).collect(),
            }),
            Some(port) => {
                let ports = SOURCE_PORTS.end() - SOURCE_PORTS.start() + 1;
                Self::Datagram {
                    macs,
                    source: SocketAddr::new(source, SOURCE_PORTS.start() + identifier % ports),
                    target: SocketAddr::new(target.target, port),
                    token: (clock::now().as_nanos() ^ u64::from(identifier) << 48).to_be_bytes(),
                }
            }
        }
    }

    /// Sets the Ethernet address of the next hop.
    fn send_to(&mut self, next_hop: MacAddress) {
        match self {
            Self::Echo(request) => request.macs.1 = next_hop,
            Self::Datagram { macs, .. } => macs.1 = next_hop,
        }
    }

    /// Returns the frame of probe `number`; `None` if source and destination have different address
    /// families, which a route excludes.
    fn frame(&mut self, number: u64) -> Option<Vec<u8>> {
        match self {
            Self::Echo(request) => {
                request.sequence = number as u16;
                request.frame()
            }
            Self::Datagram { macs, source, target, token } => {
                let mut payload = [0; PAYLOAD_LENGTH];
                payload[..token.len()].copy_from_slice(token);
                payload[token.len()..][..8].copy_from_slice(&number.to_be_bytes());
                let (macs, source, destination) = (*macs, *source, *target);
                Datagram { macs, source, destination, payload: &payload }.frame()
            }
        }
    }
}

impl Prober {
    /// Creates a prober. `route` is the host's source address and the Ethernet address of the
    /// next hop.
    pub(crate) fn new(
        host: &PacketSocketHost,
        route: (IpAddr, MacAddress),
        target: &ProbeTarget,
        times: &Arc<ProbeSchedule>,
    ) -> Self {
        times.enter();
        Self {
            packet: ProbePacket::new(host, route, target),
            next_hop: host.host().route(target.target).map(|route| route.next_hop),
            ticker: Ticker::new(target.rate),
            due: Duration::ZERO,
            is_counted: true,
            times: Arc::clone(times),
            record: Arc::new(Mutex::new(ProbeRecord::new())),
        }
    }

    /// Returns the shared results.
    pub(crate) fn record(&self) -> Arc<Mutex<ProbeRecord>> {
        Arc::clone(&self.record)
    }

    /// Returns the receiver of UDP replies, which do not arrive at the host; `None` for ICMP.
    pub(crate) fn udp_reply_receiver(&self) -> Option<UdpReplyReceiver> {
        let ProbePacket::Datagram { source, target, token, .. } = &self.packet else {
            return None;
        };
        let (source, target, token) = (*source, *target, *token);
        Some(UdpReplyReceiver { source, target, token, record: self.record() })
    }

    /// Sends the due probes. Returns the time of the next one.
    pub(super) fn send_due(&mut self, host: &mut PacketSocketHost) -> Result<Instant, PortError> {
        let Some(start) = self.times.start.get() else { return Ok(Instant::MAX) };
        if self.times.stop.get().is_some() {
            self.finish();
            return Ok(Instant::MAX);
        }
        let mut left = CATCH_UP_MAX;
        loop {
            let (now, at) = (clock::now(), start.saturating_add(self.due));
            if at > now {
                return Ok(at);
            }
            self.due = self.due.saturating_add(self.ticker.step(1));
            if left == 0 {
                self.lock().unsent += 1;
                continue;
            }
            left -= 1;
            let number = self.lock().next_number();
            if let Some(mac) = self.next_hop.and_then(|next_hop| host.known(next_hop)) {
                self.packet.send_to(mac);
            }
            let Some(frame) = self.packet.frame(number) else { return Ok(Instant::MAX) };
            // Record first: the reply may arrive before `send` returns.
            self.lock().record_send();
            host.send(&frame).inspect_err(|_| self.lock().undo_send())?;
        }
    }

    fn finish(&mut self) {
        if self.is_counted && self.lock().is_over() {
            self.is_counted = false;
            self.times.leave();
        }
    }

    /// Records an ICMP reply if it belongs to this prober.
    pub(super) fn receive(&mut self, event: &HostEvent, arrival: Instant) {
        let (HostEvent::EchoReply(reply), ProbePacket::Echo(request)) = (event, &self.packet)
        else {
            return;
        };
        let is_ours = reply.identifier == request.identifier
            && reply.source == request.destination
            && reply.payload == request.payload;
        if is_ours {
            let mut record = self.lock();
            let place = reply.sequence.wrapping_sub(record.first as u16);
            record.record_reply(place.into(), arrival);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProbeRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receiver of the replies to a prober's datagrams.
pub(crate) struct UdpReplyReceiver {
    source: SocketAddr,
    target: SocketAddr,
    token: Token,
    record: Arc<Mutex<ProbeRecord>>,
}

impl UdpReplyReceiver {
    /// Records a reply if it belongs to the prober. Returns whether it does.
    pub(crate) fn receive(&self, datagram: &Datagram<'_>, arrival: Instant) -> bool {
        if datagram.source != self.target || datagram.destination != self.source {
            return false;
        }
        let Some(rest) = datagram.payload.strip_prefix(&self.token) else { return false };
        let Some(number) = rest.first_chunk() else { return false };
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let place = u64::from_be_bytes(*number).checked_sub(record.first);
        if let Some(place) = place.and_then(|it| usize::try_from(it).ok()) {
            record.record_reply(place, arrival);
        }
        true
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        if self.is_counted {
            self.times.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_testkit::net::Lab;
    use wirestorm_testkit::require::require_root;
    use wirestorm_wire::prefix::Prefix;

    #[test]
    fn replies_are_counted_by_probe() {
        let mut record = ProbeRecord::new();
        for number in 0..6 {
            assert_eq!(record.next_number(), number);
            record.record_send();
        }
        let now = clock::now();
        // Reply 3 is missing, 2 arrives after 4, 4 arrives twice, and probe 9 was never sent.
        for place in [0, 1, 4, 2, 4, 5, 9] {
            record.record_reply(place, now);
        }
        let counted = (record.sent, record.received, record.duplicated, record.reordered);
        assert_eq!(counted, (6, 5, 1, 1));
        assert!(!record.is_over(), "reply 3 may still arrive");
        record.record_reply(3, now);
        assert_eq!((record.received, record.reordered), (6, 2));
        assert!(record.is_over());
    }

    #[test]
    fn unsent_probes_do_not_count_as_lost() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let prefix = Prefix { address: "10.0.9.1".parse().unwrap(), length: 24 };
        let mut host = PacketSocketHost::open(&lab.a.port(), vec![prefix], Vec::new()).unwrap();
        let target = "10.0.9.2".parse().unwrap();
        let target = ProbeTarget {
            target,
            port: None,
            rate: Rate::new(10, Duration::from_secs(1)).unwrap(),
        };
        let times = Arc::new(ProbeSchedule::default());
        let route = (prefix.address, MacAddress(lab.b.mac()));
        let mut prober = Prober::new(&host, route, &target, &times);
        times.begin();
        lab.a.set_up(false).unwrap();
        assert!(matches!(prober.send_due(&mut host), Err(PortError::Down { .. })));
        let counted = |prober: &Prober| {
            let record = prober.lock();
            (record.sent, record.unsent, record.next_number(), record.is_over())
        };
        assert_eq!(counted(&prober), (0, 1, 0, true));
        lab.a.set_up(true).unwrap();
        while counted(&prober).0 == 0 {
            prober.send_due(&mut host).unwrap();
        }
        let (sent, unsent, next, _) = counted(&prober);
        assert_eq!((unsent, next), (1, sent));
    }

    #[test]
    fn oldest_outstanding_probes_are_dropped() {
        let mut record = ProbeRecord::new();
        for _ in 0..WAITING_MAX + 10 {
            record.record_send();
        }
        assert_eq!((record.first, record.waiting.len()), (10, WAITING_MAX));
        record.record_reply(0, clock::now());
        assert_eq!(record.next_expected, 11);
    }

    #[test]
    fn udp_reply_matches_addresses_and_token() {
        let (source, target) = ("10.0.0.1:50000".parse().unwrap(), "10.0.0.2:7".parse().unwrap());
        let record = Arc::new(Mutex::new(ProbeRecord::new()));
        record.lock().unwrap().record_send();
        let receiver =
            UdpReplyReceiver { source, target, token: [5; 8], record: Arc::clone(&record) };
        let answer = |source, destination, payload: &[u8]| {
            let macs = (MacAddress([0; 6]), MacAddress([0; 6]));
            receiver.receive(&Datagram { macs, source, destination, payload }, clock::now())
        };
        let carried = [[5; 8], [0; 8]].concat();
        assert!(!answer(source, target, &carried), "the request itself");
        assert!(!answer(target, "10.0.0.1:50001".parse().unwrap(), &carried));
        assert!(!answer(target, source, &[6; 16]) && !answer(target, source, &carried[..15]));
        assert_eq!(record.lock().unwrap().received, 0);
        assert!(answer(target, source, &carried));
        // A reply with an unknown number belongs to the prober too, but is not counted.
        assert!(answer(target, source, &[5; 16]));
        assert_eq!(record.lock().unwrap().received, 1);
    }
}
