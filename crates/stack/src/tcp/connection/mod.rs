//! One end of a TCP connection: its state, and the commands of its program.

pub(in crate::tcp) mod loss_state;
pub(in crate::tcp) mod rack;
pub(in crate::tcp) mod undo;

use alloc::boxed::Box;

use wirestorm_base::time::Duration;

use super::congestion::Congestion;
use super::counters::TcpCounters;
use super::now::Now;
use super::round_trip::RoundTrip;
use super::segment::{Options, SACK_BLOCKS_MAX, Segment};
use super::sequence::SequenceNumber;
use loss_state::LossState;
use wirestorm_model::tcp::Algorithm;
use wirestorm_model::tcp::{EcnMode, SEGMENT_SIZE_MIN, Settings};

/// States of RFC 9293 section 3.3.2: "A connection progresses through a series of states during its
/// lifetime." There is no LISTEN, which "represents waiting for a connection request from any
/// remote TCP peer and port": a listener keeps no connection state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// SYN sent, or due.
    SynSent,
    /// SYN received; our SYN is not acknowledged.
    SynReceived,
    /// Connection open.
    Established,
    /// Our FIN is sent or due, and not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer's FIN is received; this end may still send.
    CloseWait,
    /// Both ends sent FIN at the same time; ours is not acknowledged.
    Closing,
    /// The peer's FIN is received, then ours sent; ours is not acknowledged.
    LastAck,
    /// Both ends closed; kept in case our last acknowledgement was lost.
    TimeWait,
    /// Connection ended.
    Closed,
}

/// Flags of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StateFlags(u32);

impl StateFlags {
    /// Both ends use timestamps.
    pub(super) const TIMESTAMPS: Self = Self(1 << 0);
    /// Both ends use SACK.
    pub(super) const SACK: Self = Self(1 << 1);
    /// Both ends use ECN.
    pub(super) const ECN: Self = Self(1 << 2);
    /// A SYN is due, for the first time or again.
    pub(super) const SYN_DUE: Self = Self(1 << 3);
    /// An acknowledgement is due at once.
    pub(super) const ACK_DUE: Self = Self(1 << 4);
    /// An acknowledgement is delayed.
    pub(super) const ACK_WAITS: Self = Self(1 << 5);
    /// The retransmission or TIME-WAIT timer runs.
    pub(super) const RETRANSMIT: Self = Self(1 << 6);
    /// The retransmission timer runs as the persist timer: "The sending TCP peer must regularly
    /// transmit at least one octet of new data [...] even if the send window is zero" (RFC 9293
    /// section 3.8.6.1).
    pub(super) const PERSIST: Self = Self(1 << 7);
    /// A window probe is due: one byte leaves whatever the window is.
    pub(super) const PROBE_DUE: Self = Self(1 << 8);
    /// The program has closed its side and sends no more data.
    pub(super) const CLOSED: Self = Self(1 << 9);
    /// An RTT sample is in progress.
    pub(super) const TIMED: Self = Self(1 << 10);
    /// Fast recovery, until an acknowledgement "acknowledges all of the data up to and including
    /// the data that was outstanding when the fast recovery procedure began" (RFC 6582 section 3.1;
    /// likewise RFC 6675).
    pub(super) const RECOVERY: Self = Self(1 << 11);
    /// The oldest segment is retransmitted at once, whatever the window is.
    pub(super) const RESEND: Self = Self(1 << 12);
    /// The window was reduced, so CWR is due in "the first new data packet sent after the window
    /// reduction" (RFC 3168 section 6.1.2).
    pub(super) const CWR_DUE: Self = Self(1 << 13);
    /// A CE packet arrived, so ECE is set "in all the ACK packets it sends [...] until it receives
    /// a CWR packet" (RFC 3168 section 6.1.3).
    pub(super) const ECHO: Self = Self(1 << 14);
    /// The keepalive timer runs.
    pub(super) const KEEPALIVE: Self = Self(1 << 15);
    /// A keepalive probe is due.
    pub(super) const KEEPALIVE_DUE: Self = Self(1 << 16);
    /// A RST is due, as the last segment of the connection.
    pub(super) const RESET_DUE: Self = Self(1 << 17);
    /// The connection was opened by the peer's SYN.
    pub(super) const PASSIVE: Self = Self(1 << 18);
    /// A challenge ACK is due, in answer to a segment that may be forged: "TCP MUST send an ACK
    /// (also referred to as challenge ACK)" (RFC 5961 section 4.2; likewise section 3.2).
    pub(super) const CHALLENGE_DUE: Self = Self(1 << 19);
    /// Our SYN is not acknowledged.
    pub(super) const SYN_UNACKNOWLEDGED: Self = Self(1 << 20);
    /// Both ends use window scaling: "both sides MUST send Window Scale options in their \<SYN\>
    /// segments to enable window scaling in either direction" (RFC 7323 section 2.2).
    pub(super) const SCALED: Self = Self(1 << 21);
    /// The connection uses RACK and tail loss probes: "The connection MUST use selective
    /// acknowledgment (SACK) options" (RFC 8985 section 4).
    pub(super) const RACK: Self = Self(1 << 22);
    /// The tail loss probe timer runs, besides the retransmission timer.
    pub(super) const PROBE_TIMER: Self = Self(1 << 23);
    /// A tail loss probe is due.
    pub(super) const TAIL_PROBE_DUE: Self = Self(1 << 24);
    /// No round trip was measured since the last tail loss probe.
    pub(super) const PROBED: Self = Self(1 << 25);
    /// The reordering timer runs.
    pub(super) const REORDER: Self = Self(1 << 26);
    /// The congestion window limited the last transmission.
    pub(super) const LIMITED: Self = Self(1 << 27);
    /// Data has arrived beyond a hole at least once.
    pub(super) const REORDERED: Self = Self(1 << 28);
    /// BBR: transmissions are paced and deliveries measured.
    pub(super) const PACED: Self = Self(1 << 29);
    /// The pacing timer runs until the next segment may leave.
    pub(super) const PACE: Self = Self(1 << 30);
    /// The SYN carries, or carried, the TCP Fast Open option (RFC 7413).
    pub(super) const FAST_OPEN: Self = Self(1 << 31);
    /// A retransmission is due, or may be.
    pub(super) const ANY_REPAIR: Self = Self(Self::RECOVERY.0 | Self::TAIL_PROBE_DUE.0);
    /// Any reason for a segment without data.
    pub(super) const ANY_ACK: Self =
        Self(Self::ACK_DUE.0 | Self::CHALLENGE_DUE.0 | Self::KEEPALIVE_DUE.0);

    /// Any reason to send other than new data.
    pub(super) const ANY_DUE: Self =
        Self(Self::ANY_REPAIR.0 | Self::ANY_ACK.0 | Self::SYN_DUE.0 | Self::RESET_DUE.0);

    /// Options that both ends agreed on.
    const NEGOTIATED: Self = Self(Self::TIMESTAMPS.0 | Self::SACK.0 | Self::ECN.0 | Self::SCALED.0);

    #[inline]
    pub(super) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    const fn intersection(self, marks: Self) -> Self {
        Self(self.0 & marks.0)
    }

    #[inline]
    pub(super) const fn set(&mut self, mark: Self) {
        self.0 |= mark.0;
    }

    #[inline]
    pub(super) const fn clear(&mut self, mark: Self) {
        self.0 &= !mark.0;
    }

    pub(super) const fn put(&mut self, mark: Self, is_set: bool) {
        if is_set { self.set(mark) } else { self.clear(mark) }
    }
}

/// Window shifts of the peer and of this end, four bits each; at most 14 (RFC 7323 section 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scales(u8);

impl Scales {
    const fn new(send: u8, receive: u8) -> Self {
        Self(receive << 4 | send & 0xf)
    }

    #[inline]
    pub(super) const fn send(self) -> u8 {
        self.0 & 0xf
    }

    #[inline]
    pub(super) const fn receive(self) -> u8 {
        self.0 >> 4
    }
}

/// Reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Both ends closed it.
    Closed,
    /// The peer sent RST.
    Reset,
    /// The peer sent RST after it closed its side: it discards the data sent since.
    ResetAfterClose,
    /// The peer answered the SYN with RST or an ICMP error.
    Refused,
    /// An ICMP error reported that the peer is unreachable, before the peer answered.
    Unreachable,
    /// Retransmission timeout: the peer stopped acknowledging.
    TimedOut,
    /// The peer never answered the SYN.
    Unanswered,
    /// The peer did not answer keepalive probes.
    KeepaliveTimeout,
    /// The program aborted it.
    Aborted,
}

/// One end of a connection, sans I/O: segments and time go in, segments come out.
///
/// The connection stores only sequence numbers. Whoever transmits a segment fetches its bytes from
/// the program. Received data is counted and dropped, unless it lies beyond a hole.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Oldest unacknowledged number (`SND.UNA`).
    pub(super) unacknowledged: SequenceNumber,
    /// Next number to send (`SND.NXT`); goes back for a retransmission of everything.
    pub(super) next: SequenceNumber,
    /// Number after the highest one that was sent.
    pub(super) highest: SequenceNumber,
    /// Number after the last byte that the program has queued. A FIN has this number.
    pub(super) queued: SequenceNumber,
    /// Send window of the peer in bytes (`SND.WND`).
    pub(super) send_window: u32,
    /// Largest send window that the peer ever offered.
    pub(super) send_window_max: u32,
    /// Sequence and acknowledgement number of the last window update (`SND.WL1`, `SND.WL2`).
    pub(super) window_sequence: SequenceNumber,
    pub(super) window_acknowledgement: SequenceNumber,
    /// Next expected number (`RCV.NXT`).
    pub(super) expected: SequenceNumber,
    /// End of the receive window that was offered to the peer.
    pub(super) offered: SequenceNumber,
    /// Last acknowledgement that was sent: "Last.ACK.sent holds the ACK field from the last segment
    /// sent" (RFC 7323 section 4.3).
    pub(super) acknowledged: SequenceNumber,
    /// Number of the peer's SYN (`IRS`), to recognize a repeated SYN.
    pub(super) initial_receive: SequenceNumber,
    /// Timestamp to echo (`TS.Recent`), and its time of arrival in ms.
    pub(super) timestamp: u32,
    pub(super) timestamp_at: u32,
    /// Number of the RTT sample in progress, and its start in microseconds modulo 2^32.
    pub(super) timed: SequenceNumber,
    pub(super) timed_at: u32,
    /// Time of the last transmission of data, in ms.
    pub(super) sent_at: u32,
    /// Start of the newest burst: all data from here on was sent at `sent_at`.
    pub(super) burst: SequenceNumber,
    /// Timer expiries in ms; each is valid while its mark is set.
    pub(super) retransmit_at: u32,
    pub(super) acknowledge_at: u32,
    pub(super) keepalive_at: u32,
    pub(super) congestion: Congestion,
    pub(super) round_trip: RoundTrip,
    /// State of loss recovery and reordering, if there is any.
    pub(super) disorder: Option<Box<LossState>>,
    pub(super) marks: StateFlags,
    /// Microseconds within the millisecond `sent_at`.
    pub(super) sent_micros: u16,
    /// Maximum segment size of both ends, options included.
    pub(super) segment_size: u16,
    pub(super) state: State,
    pub(super) end: Option<EndReason>,
    /// Window shifts of the peer and of this end.
    pub(super) scales: Scales,
    /// Segments with data received since the last acknowledgement was sent.
    pub(super) unacknowledged_segments: u8,
    /// Timer expiries since the last acknowledgement of new data.
    pub(super) expiries: u8,
    pub(super) probes: u8,
    /// Retransmitted segments with data, modulo 256.
    pub(super) retransmitted: u8,
    /// Segments with data that arrived beyond a hole, modulo 256.
    pub(super) out_of_order: u8,
}

const _: () = assert!(size_of::<Connection>() <= 144);

impl Connection {
    /// Opens a connection actively. RFC 9293 section 3.10.1: "if active and the remote socket is
    /// specified, issue a SYN segment. An initial send sequence number (ISS) is selected."
    pub fn connect(
        settings: &Settings,
        initial: SequenceNumber,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Self {
        counters.connattempt += 1;
        let mut connection = Self::new(settings, initial, State::SynSent);
        // Start with the options that we offer; the SYN-ACK may remove some.
        connection.marks.put(StateFlags::TIMESTAMPS, settings.timestamps);
        connection.marks.put(StateFlags::SACK, settings.sack);
        connection.marks.put(StateFlags::ECN, settings.ecn == EcnMode::Offer);
        connection.scales = Scales::new(0, settings.window_scale());
        connection.reserve_data_room();
        connection.start_open_timeout(settings, now);
        connection
    }

    /// Opens a connection for a received SYN without ACK. RFC 9293 section 3.10.7.2, third: "Set
    /// RCV.NXT to SEG.SEQ+1, IRS is set to SEG.SEQ". A SYN-ACK becomes due.
    pub fn accept(
        settings: &Settings,
        syn: &Segment<'_>,
        initial: SequenceNumber,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Self {
        counters.accepts += 1;
        counters.rcvtotal += 1;
        let mut connection = Self::new(settings, initial, State::SynReceived);
        connection.marks.set(StateFlags::PASSIVE);
        connection.marks.put(StateFlags::TIMESTAMPS, settings.timestamps);
        connection.marks.put(StateFlags::SACK, settings.sack);
        connection.marks.put(StateFlags::ECN, settings.ecn != EcnMode::Never);
        connection.scales = Scales::new(0, settings.window_scale());
        connection.negotiate(settings, syn, now, counters);
        connection.start_open_timeout(settings, now);
        connection
    }

    fn new(settings: &Settings, initial: SequenceNumber, state: State) -> Self {
        let mut marks = StateFlags::default();
        marks.set(StateFlags::SYN_DUE);
        marks.set(StateFlags::SYN_UNACKNOWLEDGED);
        let size = settings.maximum_segment_size;
        Self {
            unacknowledged: initial,
            next: initial,
            highest: initial,
            queued: initial + 1,
            send_window: 0,
            send_window_max: 0,
            window_sequence: SequenceNumber(0),
            window_acknowledgement: SequenceNumber(0),
            expected: SequenceNumber(0),
            offered: SequenceNumber(0),
            acknowledged: SequenceNumber(0),
            initial_receive: SequenceNumber(0),
            timestamp: 0,
            timestamp_at: 0,
            timed: initial,
            timed_at: 0,
            sent_at: 0,
            burst: initial,
            sent_micros: 0,
            retransmit_at: 0,
            acknowledge_at: 0,
            keepalive_at: 0,
            congestion: Congestion::new(
                settings.congestion,
                size,
                u32::from(settings.initial_window),
            ),
            round_trip: RoundTrip::new(),
            disorder: None,
            marks,
            segment_size: settings.maximum_segment_size,
            state,
            end: None,
            scales: Scales::default(),
            unacknowledged_segments: 0,
            expiries: 0,
            probes: 0,
            retransmitted: 0,
            out_of_order: 0,
        }
    }

    /// Applies the peer's SYN and keeps the options that both ends support.
    pub(super) fn negotiate(
        &mut self,
        settings: &Settings,
        syn: &Segment<'_>,
        now: Now,
        counters: &mut TcpCounters,
    ) {
        use wirestorm_wire::packet::tcp::Flags;
        let Options { maximum_segment_size, window_scale, sack_permitted, timestamps, .. } =
            syn.options;
        self.initial_receive = syn.sequence;
        self.expected = syn.sequence + 1;
        self.acknowledged = syn.sequence;
        // RFC 9293 section 3.7.1 defines no minimum for the offered MSS.
        let offered = maximum_segment_size.unwrap_or(settings.default_segment_size);
        // The space reserved for options may not be needed.
        self.segment_size = self.segment_size.min(offered).min(settings.maximum_segment_size);
        // RFC 7323 section 2.2: "This option is an offer, not a promise".
        match window_scale.filter(|_| settings.window_scaling) {
            Some(shift) => {
                self.scales = Scales::new(shift, self.scales.receive());
                self.marks.set(StateFlags::SCALED);
            }
            None => self.scales = Scales::default(),
        }
        if !sack_permitted {
            self.marks.clear(StateFlags::SACK);
        }
        self.marks.put(StateFlags::RACK, settings.rack && self.marks.has(StateFlags::SACK));
        match timestamps {
            Some(timestamps) if self.marks.has(StateFlags::TIMESTAMPS) => {
                self.timestamp = timestamps.value;
                self.timestamp_at = now.millis;
            }
            _ => self.marks.clear(StateFlags::TIMESTAMPS),
        }
        self.reserve_data_room();
        // RFC 3168 section 6.1.1: "We call a SYN packet with the ECE and CWR flags set an
        // 'ECN-setup SYN packet'", and "a SYN-ACK packet with only the ECE flag set but the CWR
        // flag not set an 'ECN-setup SYN-ACK packet'".
        let asks = syn.flags.contains(Flags::ECE);
        let asks = asks && syn.flags.contains(Flags::CWR) != syn.flags.contains(Flags::ACK);
        if self.marks.has(StateFlags::ECN) && asks {
            counters.ecn_shs += 1;
        } else {
            self.marks.clear(StateFlags::ECN);
        }
        self.offered = self.expected + settings.receive_buffer.min(u32::from(u16::MAX));
        // RFC 7323 section 2.2: "The window field in a segment where the SYN bit is set (i.e., a
        // <SYN> or <SYN,ACK>) MUST NOT be scaled."
        self.send_window = u32::from(syn.window);
        self.send_window_max = self.send_window;
        self.window_sequence = syn.sequence;
        self.window_acknowledgement = syn.acknowledgement;
        self.congestion = Congestion::new(
            settings.congestion,
            self.data_size(),
            u32::from(settings.initial_window),
        );
        self.marks.put(StateFlags::PACED, settings.congestion == Algorithm::Bbr);
    }

    /// State of the connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Reason for the end, once the state is [`State::Closed`].
    pub const fn end(&self) -> Option<EndReason> {
        self.end
    }

    /// Number after the last queued byte, which is the number of the next one.
    pub const fn queued(&self) -> SequenceNumber {
        self.queued
    }

    /// Number after the last byte received in order, and after the peer's FIN once it is received.
    pub const fn expected(&self) -> SequenceNumber {
        self.expected
    }

    /// Oldest unacknowledged number. The program may release all bytes before it.
    pub const fn unacknowledged(&self) -> SequenceNumber {
        self.unacknowledged
    }

    /// Queued bytes that are not acknowledged.
    #[inline]
    pub fn backlog(&self) -> u32 {
        self.queued.distance_from(self.unacknowledged).max(0) as u32
    }

    /// Queued bytes that were never sent.
    #[inline]
    pub fn unsent(&self) -> u32 {
        self.queued.distance_from(self.highest).max(0) as u32
    }

    /// Maximum backlog in bytes.
    pub const BACKLOG_MAX: u32 = 1 << 30;

    /// Queues bytes of the program for transmission. The backlog must not exceed
    /// [`Self::BACKLOG_MAX`].
    ///
    /// # Panics
    /// After [`Self::close`], in debug builds.
    #[inline]
    pub fn queue(&mut self, bytes: u32, counters: &mut TcpCounters) {
        debug_assert!(!self.marks.has(StateFlags::CLOSED), "a closed connection sends no more");
        self.queued += bytes;
        counters.sndbyte += u64::from(bytes);
    }

    /// Closes this end after the queued data (CLOSE). RFC 9293 section 3.10.4: "Queue this until
    /// all preceding SENDs have been segmentized, then form a FIN segment and send it." In SYN-SENT
    /// it also waits until the connection is open, where the RFC would "Delete the TCB".
    pub fn close(&mut self) {
        if self.marks.has(StateFlags::CLOSED) {
            return;
        }
        self.marks.set(StateFlags::CLOSED);
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            // In other states, FIN follows the queued data once the connection is established.
            _ => {}
        }
    }

    /// Ends the connection at once (ABORT). RFC 9293 section 3.10.5: "Send a reset segment:
    /// <SEQ=SND.NXT><CTL=RST>" from SYN-RECEIVED to CLOSE-WAIT, and none in the other states.
    pub fn abort(&mut self, counters: &mut TcpCounters) {
        let is_known_to_peer = !matches!(
            self.state,
            State::SynSent | State::Closing | State::LastAck | State::TimeWait | State::Closed
        );
        self.finish(EndReason::Aborted, counters);
        self.marks.put(StateFlags::RESET_DUE, is_known_to_peer);
    }

    /// Time since the segment of the last RTT sample was sent.
    #[inline]
    pub(crate) fn timed_for(&self, now: Now) -> Duration {
        Duration::from_micros((now.micros as u32).wrapping_sub(self.timed_at).into())
    }

    /// Whether all data of the peer has arrived, including its FIN.
    #[inline]
    pub const fn has_received_fin(&self) -> bool {
        use State::{CloseWait, Closing, LastAck, TimeWait};
        matches!(self.state, CloseWait | Closing | LastAck | TimeWait)
    }

    /// Whether the connection is closed and sends no more.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.state == State::Closed && !self.marks.has(StateFlags::RESET_DUE)
    }

    /// Whether the handshake is complete and the connection not closed.
    #[inline]
    pub const fn is_established(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived | State::Closed)
    }

    /// Whether segments to this end were lost or reordered at some time.
    ///
    /// From then on "an ACK SHOULD be generated for at least every second full-sized segment" (RFC
    /// 5681 section 4.2), also for segments that arrive together. If one acknowledgement for all of
    /// them were lost, a peer with a small window would stop.
    #[inline]
    pub fn has_reordering(&self) -> bool {
        self.marks.has(StateFlags::REORDERED)
    }

    /// Whether to send an acknowledgement now, instead of after all segments that arrived together.
    #[inline]
    pub fn is_answer_due(&self) -> bool {
        self.has_reordering() && self.marks.has(StateFlags::ACK_DUE)
    }

    /// Ends the connection for a reason.
    pub(super) fn finish(&mut self, end: EndReason, counters: &mut TcpCounters) {
        if self.state == State::Closed {
            return;
        }
        counters.closed += 1;
        match end {
            EndReason::Closed => {}
            _ if self.is_established() => counters.drops += 1,
            _ => counters.conndrops += 1,
        }
        // Reports still need the agreed options and the received byte count, which excludes FIN.
        let agreed = if self.state == State::SynSent {
            StateFlags::default()
        } else {
            StateFlags::NEGOTIATED
        };
        self.marks = self.marks.intersection(agreed);
        self.initial_receive += u32::from(self.has_received_fin());
        self.state = State::Closed;
        self.end = Some(end);
        if let Some(mut disorder) = self.disorder.take() {
            disorder.end_reassembly(counters);
        }
    }

    /// Raises the segment size so that options leave room for data. Options reduce the data of a
    /// segment (RFC 9293 section 3.7.1).
    fn reserve_data_room(&mut self) {
        self.segment_size = self.segment_size.max(self.options_length() + SEGMENT_SIZE_MIN);
    }

    /// Number after the last byte that may be sent now, limited by the peer's window and our send
    /// buffer.
    #[inline]
    pub(super) fn offered_end(&self, settings: &Settings) -> SequenceNumber {
        self.unacknowledged + self.send_window.min(settings.send_buffer)
    }

    /// Maximum data length of a segment: the segment size less the options of every segment.
    #[inline]
    pub(super) fn data_size(&self) -> u16 {
        self.segment_size - self.options_length()
    }

    /// Length of the options that every segment has, in bytes.
    #[inline]
    fn options_length(&self) -> u16 {
        if self.marks.has(StateFlags::TIMESTAMPS) { 12 } else { 0 }
    }

    /// Whether the peer acknowledged our FIN.
    pub(super) fn is_fin_acknowledged(&self) -> bool {
        self.marks.has(StateFlags::CLOSED) && self.unacknowledged == self.queued + 1
    }

    /// Number after the last byte of data that was sent, without FIN.
    pub(super) fn sent_to(&self) -> SequenceNumber {
        if self.queued.is_before(self.highest) { self.queued } else { self.highest }
    }

    /// Number after the last one that may be sent so far, including FIN.
    #[inline]
    pub(super) fn send_end(&self) -> SequenceNumber {
        self.queued + u32::from(self.marks.has(StateFlags::CLOSED))
    }
}

/// Maximum number of ranges of out-of-order data, for either direction.
pub(super) const RANGES_MAX: usize = 256;

/// Maximum number of SACK blocks in a header of 60 bytes with timestamps.
pub(super) const SACK_BLOCKS_WITH_TIMESTAMPS: usize = SACK_BLOCKS_MAX - 1;
