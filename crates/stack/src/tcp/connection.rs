//! One end of a connection: what it remembers, and what its program tells it.

use alloc::boxed::Box;

use wirestorm_base::time::{Duration, Instant};

use super::congestion::Congestion;
use super::counters::TcpCounters;
use super::disorder::Disorder;
use super::round_trip::RoundTrip;
use super::segment::{Options, SACK_BLOCKS_MAX, Segment};
use super::sequence::SequenceNumber;
use wirestorm_model::tcp::Algorithm;
use wirestorm_model::tcp::{EcnUse, SEGMENT_SIZE_MIN, Settings};

/// The time, as connections tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds of any clock that never goes back.
    pub micros: u64,
    /// The same in milliseconds, modulo 2^32: for timers and timestamps.
    pub millis: u32,
}

impl Now {
    /// A time in microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self { micros, millis: (micros / 1_000) as u32 }
    }

    /// When so many microseconds are over since a time of the same clock, in ms: never sooner, and
    /// at once where they are over already.
    pub(crate) const fn millis_after(self, since: u64, micros: u32) -> u32 {
        let end = since + micros as u64;
        if end <= self.micros { self.millis } else { end.div_ceil(1_000) as u32 }
    }

    /// The same to others.
    pub(crate) const fn instant(self) -> Instant {
        Instant::from_nanos(self.micros * 1_000)
    }
}

/// The states of RFC 9293 section 3.3.2: "A connection progresses through a series of states during
/// its lifetime." LISTEN is none here, for it "represents waiting for a connection request from any
/// remote TCP peer and port": nothing is remembered of who may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A SYN was sent, or is to be.
    SynSent,
    /// SYN was received, and ours is not acknowledged.
    SynReceived,
    /// Open.
    Established,
    /// Our FIN was sent, or is to be, and is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may go on.
    FinWait2,
    /// The peer's FIN was received; we may go on.
    CloseWait,
    /// Both sent FIN at once; ours is not acknowledged.
    Closing,
    /// The peer's FIN was received, then ours sent; it is not acknowledged.
    LastAck,
    /// Over, remembered for the case that our last acknowledgement was lost.
    TimeWait,
    /// Nothing is left.
    Closed,
}

/// Bits that a connection remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u32);

impl Marks {
    /// Timestamps were agreed upon.
    pub(super) const TIMESTAMPS: Self = Self(1 << 0);
    /// SACK was agreed upon.
    pub(super) const SACK: Self = Self(1 << 1);
    /// ECN was agreed upon.
    pub(super) const ECN: Self = Self(1 << 2);
    /// SYN is to be sent (again).
    pub(super) const SYN_DUE: Self = Self(1 << 3);
    /// An acknowledgement is to be sent at once.
    pub(super) const ACK_DUE: Self = Self(1 << 4);
    /// An acknowledgement waits for company.
    pub(super) const ACK_WAITS: Self = Self(1 << 5);
    /// The retransmission timer runs, or that of TIME-WAIT.
    pub(super) const RETRANSMIT: Self = Self(1 << 6);
    /// It runs to probe a closed window: "The sending TCP peer must regularly transmit at least one
    /// octet of new data [...] even if the send window is zero" (RFC 9293 section 3.8.6.1).
    pub(super) const PERSIST: Self = Self(1 << 7);
    /// A probe is due: a byte leaves whatever the window is.
    pub(super) const PROBE_DUE: Self = Self(1 << 8);
    /// The program sends no more.
    pub(super) const CLOSED: Self = Self(1 << 9);
    /// A segment is being timed.
    pub(super) const TIMED: Self = Self(1 << 10);
    /// A loss is being repaired, until an acknowledgement "acknowledges all of the data up to and
    /// including the data that was outstanding when the fast recovery procedure began" (RFC 6582
    /// section 3.1; RFC 6675 likewise).
    pub(super) const RECOVERY: Self = Self(1 << 11);
    /// The oldest segment is sent again at once, whatever the window is.
    pub(super) const RESEND: Self = Self(1 << 12);
    /// The window was reduced: CWR is set in "the first new data packet sent after the window
    /// reduction" (RFC 3168 section 6.1.2).
    pub(super) const CWR_DUE: Self = Self(1 << 13);
    /// A CE packet came: ECE is set "in all the ACK packets it sends [...] until it receives a CWR
    /// packet" (RFC 3168 section 6.1.3).
    pub(super) const ECHO: Self = Self(1 << 14);
    /// The keepalive timer runs.
    pub(super) const KEEPALIVE: Self = Self(1 << 15);
    /// A keepalive probe is due.
    pub(super) const KEEPALIVE_DUE: Self = Self(1 << 16);
    /// A reset is due, the last thing that is sent.
    pub(super) const RESET_DUE: Self = Self(1 << 17);
    /// It came from a SYN of the peer.
    pub(super) const PASSIVE: Self = Self(1 << 18);
    /// A challenge is due, in answer to what may be forged: "TCP MUST send an ACK (also referred to
    /// as challenge ACK)" (RFC 5961 section 4.2; section 3.2 likewise).
    pub(super) const CHALLENGE_DUE: Self = Self(1 << 19);
    /// Our SYN is not acknowledged.
    pub(super) const SYN_OPEN: Self = Self(1 << 20);
    /// Both ends scale their windows: "both sides MUST send Window Scale options in their \<SYN\>
    /// segments to enable window scaling in either direction" (RFC 7323 section 2.2).
    pub(super) const SCALED: Self = Self(1 << 21);
    /// RACK and tail loss probes are used: "The connection MUST use selective acknowledgment (SACK)
    /// options" (RFC 8985 section 4).
    pub(super) const RACK: Self = Self(1 << 22);
    /// The timer of tail loss probes runs, beside that of retransmissions.
    pub(super) const TAIL: Self = Self(1 << 23);
    /// A tail loss probe is due.
    pub(super) const TAIL_DUE: Self = Self(1 << 24);
    /// No round trip was measured since the last of them.
    pub(super) const PROBED: Self = Self(1 << 25);
    /// The reordering timer runs.
    pub(super) const REORDER: Self = Self(1 << 26);
    /// The congestion window held back what was to be sent last.
    pub(super) const LIMITED: Self = Self(1 << 27);
    /// Data arrived beyond a hole at some time.
    pub(super) const DISTURBED: Self = Self(1 << 28);
    /// What is sent is paced, and deliveries are measured: BBR.
    pub(super) const PACED: Self = Self(1 << 29);
    /// The timer runs until the next segment may leave.
    pub(super) const PACE: Self = Self(1 << 30);
    /// SYN has, or had, the option of TCP Fast Open (RFC 7413).
    pub(super) const FAST_OPEN: Self = Self(1 << 31);
    /// What is sent again is due, or may be.
    pub(super) const ANY_REPAIR: Self = Self(Self::RECOVERY.0 | Self::TAIL_DUE.0);
    /// All that makes a segment without data due.
    pub(super) const ANY_ACK: Self =
        Self(Self::ACK_DUE.0 | Self::CHALLENGE_DUE.0 | Self::KEEPALIVE_DUE.0);

    /// All that makes anything due but new data.
    pub(super) const ANY_DUE: Self =
        Self(Self::ANY_REPAIR.0 | Self::ANY_ACK.0 | Self::SYN_DUE.0 | Self::RESET_DUE.0);

    /// What both ends have agreed upon, once they have.
    const AGREED: Self = Self(Self::TIMESTAMPS.0 | Self::SACK.0 | Self::ECN.0 | Self::SCALED.0);

    #[inline]
    pub(super) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    const fn only(self, marks: Self) -> Self {
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

/// By how many bits the peer's windows are shifted, and ours: at most 14 each (RFC 7323 section 2.3),
/// four bits of a byte.
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

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both sides closed it.
    Closed,
    /// The peer reset it.
    Reset,
    /// The peer, which had closed its side, reset it: it takes nothing of what was sent since.
    ResetAfterClose,
    /// The peer reset it in answer to SYN.
    Refused,
    /// A router said that no way leads to the peer, which had not answered.
    Unreachable,
    /// Nothing was acknowledged any more.
    TimedOut,
    /// SYN was never answered.
    Unanswered,
    /// The peer did not answer keepalive probes.
    KeepaliveTimeout,
    /// The program reset it.
    Aborted,
}

/// One end of a connection, sans I/O: segments and time go in, segments come out.
///
/// What is sent is told by numbers alone: the bytes are with the program, from which whoever
/// sends a segment fetches them. What arrives is counted and forgotten, unless it is beyond a hole.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The oldest number that is not acknowledged (`SND.UNA`).
    pub(super) unacknowledged: SequenceNumber,
    /// The next number to send (`SND.NXT`); goes back where all is sent again.
    pub(super) next: SequenceNumber,
    /// Behind the highest number that was sent.
    pub(super) highest: SequenceNumber,
    /// Behind the last byte that the program has handed over. FIN, if any, has this number.
    pub(super) queued: SequenceNumber,
    /// What the peer has room for, in bytes (`SND.WND`).
    pub(super) send_window: u32,
    /// The greatest that was ever offered.
    pub(super) send_window_max: u32,
    /// Sequence and acknowledgement number of the segment that told it (`SND.WL1`, `SND.WL2`).
    pub(super) window_sequence: SequenceNumber,
    pub(super) window_acknowledgement: SequenceNumber,
    /// The next number to arrive (`RCV.NXT`).
    pub(super) expected: SequenceNumber,
    /// Behind what we offered room for.
    pub(super) offered: SequenceNumber,
    /// What we acknowledged last: "Last.ACK.sent holds the ACK field from the last segment sent"
    /// (RFC 7323 section 4.3).
    pub(super) acknowledged: SequenceNumber,
    /// The number of the peer's SYN (`IRS`), to know it again.
    pub(super) peer_initial: SequenceNumber,
    /// The timestamp to echo (`TS.Recent`), and when it was heard, in ms.
    pub(super) timestamp: u32,
    pub(super) timestamp_at: u32,
    /// What is timed, and since when, in microseconds modulo 2^32.
    pub(super) timed: SequenceNumber,
    pub(super) timed_at: u32,
    /// When data was sent last, in ms.
    pub(super) sent_at: u32,
    /// All from here on was sent then.
    pub(super) burst: SequenceNumber,
    /// In ms, where the marks say that they run.
    pub(super) retransmit_at: u32,
    pub(super) acknowledge_at: u32,
    pub(super) keepalive_at: u32,
    pub(super) congestion: Congestion,
    pub(super) round_trip: RoundTrip,
    /// What is remembered of losses, and of what came in another order.
    pub(super) disorder: Option<Box<Disorder>>,
    pub(super) marks: Marks,
    /// The microseconds of `sent_at`.
    pub(super) sent_micros: u16,
    /// The longest segment that both ends take, options not subtracted.
    pub(super) segment_size: u16,
    pub(super) state: State,
    pub(super) end: Option<End>,
    /// By how many bits the peer's windows are shifted, and ours.
    pub(super) scales: Scales,
    /// Segments with data since the last acknowledgement.
    pub(super) unanswered: u8,
    /// How often the timer expired since anything was acknowledged.
    pub(super) expiries: u8,
    pub(super) probes: u8,
    /// Segments with data sent again, modulo 256.
    pub(super) repeats: u8,
    /// Segments with data that arrived beyond a hole, modulo 256.
    pub(super) out_of_order: u8,
}

const _: () = assert!(size_of::<Connection>() <= 144);

impl Connection {
    /// A connection that asks for another end. RFC 9293 section 3.10.1: "if active and the remote
    /// socket is specified, issue a SYN segment. An initial send sequence number (ISS) is
    /// selected."
    pub fn connect(
        settings: &Settings,
        initial: SequenceNumber,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Self {
        counters.connattempt += 1;
        let mut connection = Self::new(settings, initial, State::SynSent);
        // What may be agreed upon is what we offer.
        connection.marks.put(Marks::TIMESTAMPS, settings.timestamps);
        connection.marks.put(Marks::SACK, settings.sack);
        connection.marks.put(Marks::ECN, settings.ecn == EcnUse::Ask);
        connection.scales = Scales::new(0, settings.window_scale());
        connection.leave_room_for_data();
        connection.limit_opening(settings, now);
        connection
    }

    /// The answer to a SYN without ACK that found somebody listening. RFC 9293 section 3.10.7.2,
    /// third: "Set RCV.NXT to SEG.SEQ+1, IRS is set to SEG.SEQ", and SYN with ACK is sent.
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
        connection.marks.set(Marks::PASSIVE);
        connection.marks.put(Marks::TIMESTAMPS, settings.timestamps);
        connection.marks.put(Marks::SACK, settings.sack);
        connection.marks.put(Marks::ECN, settings.ecn != EcnUse::Never);
        connection.scales = Scales::new(0, settings.window_scale());
        connection.agree(settings, syn, now, counters);
        connection.limit_opening(settings, now);
        connection
    }

    fn new(settings: &Settings, initial: SequenceNumber, state: State) -> Self {
        let mut marks = Marks::default();
        marks.set(Marks::SYN_DUE);
        marks.set(Marks::SYN_OPEN);
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
            peer_initial: SequenceNumber(0),
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
            unanswered: 0,
            expiries: 0,
            probes: 0,
            repeats: 0,
            out_of_order: 0,
        }
    }

    /// Notes what the peer's SYN says, and what both understand.
    pub(super) fn agree(
        &mut self,
        settings: &Settings,
        syn: &Segment<'_>,
        now: Now,
        counters: &mut TcpCounters,
    ) {
        use wirestorm_wire::packet::tcp::Flags;
        let Options { maximum_segment_size, window_scale, sack_permitted, timestamps, .. } =
            syn.options;
        self.peer_initial = syn.sequence;
        self.expected = syn.sequence + 1;
        self.acknowledged = syn.sequence;
        // RFC 9293 section 3.7.1 names no least size that a peer may offer.
        let offered = maximum_segment_size.unwrap_or(settings.default_segment_size);
        // Room that was left for options may not be needed.
        self.segment_size = self.segment_size.min(offered).min(settings.maximum_segment_size);
        // RFC 7323 section 2.2: "This option is an offer, not a promise".
        match window_scale.filter(|_| settings.window_scaling) {
            Some(shift) => {
                self.scales = Scales::new(shift, self.scales.receive());
                self.marks.set(Marks::SCALED);
            }
            None => self.scales = Scales::default(),
        }
        if !sack_permitted {
            self.marks.clear(Marks::SACK);
        }
        self.marks.put(Marks::RACK, settings.rack && self.marks.has(Marks::SACK));
        match timestamps {
            Some(heard) if self.marks.has(Marks::TIMESTAMPS) => {
                self.timestamp = heard.value;
                self.timestamp_at = now.millis;
            }
            _ => self.marks.clear(Marks::TIMESTAMPS),
        }
        self.leave_room_for_data();
        // RFC 3168 section 6.1.1: "We call a SYN packet with the ECE and CWR flags set an
        // 'ECN-setup SYN packet'", and "a SYN-ACK packet with only the ECE flag set but the CWR
        // flag not set an 'ECN-setup SYN-ACK packet'".
        let asks = syn.flags.contains(Flags::ECE);
        let asks = asks && syn.flags.contains(Flags::CWR) != syn.flags.contains(Flags::ACK);
        if self.marks.has(Marks::ECN) && asks {
            counters.ecn_shs += 1;
        } else {
            self.marks.clear(Marks::ECN);
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
        self.marks.put(Marks::PACED, settings.congestion == Algorithm::Bbr);
    }

    /// Its state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Why it ended, once it is [`State::Closed`].
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// Behind the last byte that was handed over: the number of the next one.
    pub const fn queued(&self) -> SequenceNumber {
        self.queued
    }

    /// Behind the last byte that arrived in order, and behind the peer's FIN once that has.
    pub const fn expected(&self) -> SequenceNumber {
        self.expected
    }

    /// The oldest byte that is not acknowledged: those before it are not needed any more.
    pub const fn unacknowledged(&self) -> SequenceNumber {
        self.unacknowledged
    }

    /// Bytes handed over that are not acknowledged.
    #[inline]
    pub fn backlog(&self) -> u32 {
        self.queued.distance_from(self.unacknowledged).max(0) as u32
    }

    /// Bytes handed over that were never sent.
    #[inline]
    pub fn unsent(&self) -> u32 {
        self.queued.distance_from(self.highest).max(0) as u32
    }

    /// The most bytes that may wait in a connection.
    pub const BACKLOG_MAX: u32 = 1 << 30;

    /// Takes so many bytes from the program, to be sent behind those before. No more than
    /// [`Self::BACKLOG_MAX`] may wait.
    ///
    /// # Panics
    /// After [`Self::close`], in debug builds.
    #[inline]
    pub fn queue(&mut self, bytes: u32, counters: &mut TcpCounters) {
        debug_assert!(!self.marks.has(Marks::CLOSED), "a closed connection sends no more");
        self.queued += bytes;
        counters.sndbyte += u64::from(bytes);
    }

    /// Sends no more than what was handed over (CLOSE). RFC 9293 section 3.10.4: "Queue this until
    /// all preceding SENDs have been segmentized, then form a FIN segment and send it." In
    /// SYN-SENT, too, it waits until the connection is open, where the RFC would "Delete the TCB".
    pub fn close(&mut self) {
        if self.marks.has(Marks::CLOSED) {
            return;
        }
        self.marks.set(Marks::CLOSED);
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            // FIN follows what is queued, once the connection is established.
            _ => {}
        }
    }

    /// Ends it at once (ABORT). RFC 9293 section 3.10.5: "Send a reset segment:
    /// <SEQ=SND.NXT><CTL=RST>" from SYN-RECEIVED to CLOSE-WAIT, none from the other states.
    pub fn abort(&mut self, counters: &mut TcpCounters) {
        let is_known_to_peer = !matches!(
            self.state,
            State::SynSent | State::Closing | State::LastAck | State::TimeWait | State::Closed
        );
        self.finish(End::Aborted, counters);
        self.marks.put(Marks::RESET_DUE, is_known_to_peer);
    }

    /// How long ago the segment was sent that was timed last.
    #[inline]
    pub(crate) fn timed_for(&self, now: Now) -> Duration {
        Duration::from_micros((now.micros as u32).wrapping_sub(self.timed_at).into())
    }

    /// Whether all that the peer sends has arrived, its FIN included.
    #[inline]
    pub const fn is_peer_done(&self) -> bool {
        use State::{CloseWait, Closing, LastAck, TimeWait};
        matches!(self.state, CloseWait | Closing | LastAck | TimeWait)
    }

    /// Whether nothing is left to do or to remember.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.state == State::Closed && !self.marks.has(Marks::RESET_DUE)
    }

    /// Whether the other end is there and agreed.
    #[inline]
    pub const fn is_established(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived | State::Closed)
    }

    /// Whether segments have been lost on their way here, or overtaken. From then on "an ACK SHOULD
    /// be generated for at least every second full-sized segment" (RFC 5681 section 4.2), also of
    /// those that arrive at one time: the loss of one answer for all would stop a peer with a small
    /// window.
    #[inline]
    pub fn is_disturbed(&self) -> bool {
        self.marks.has(Marks::DISTURBED)
    }

    /// Whether an acknowledgement is not to wait for what has arrived at the same time.
    #[inline]
    pub fn is_answer_due(&self) -> bool {
        self.is_disturbed() && self.marks.has(Marks::ACK_DUE)
    }

    /// Ends it, for a reason.
    pub(super) fn finish(&mut self, end: End, counters: &mut TcpCounters) {
        if self.state == State::Closed {
            return;
        }
        counters.closed += 1;
        match end {
            End::Closed => {}
            _ if self.is_established() => counters.drops += 1,
            _ => counters.conndrops += 1,
        }
        // What was agreed upon, and how much has come, is told of it yet: FIN is none of that.
        let agreed = if self.state == State::SynSent { Marks::default() } else { Marks::AGREED };
        self.marks = self.marks.only(agreed);
        self.peer_initial += u32::from(self.is_peer_done());
        self.state = State::Closed;
        self.end = Some(end);
        if let Some(mut disorder) = self.disorder.take() {
            disorder.end_reassembly(counters);
        }
    }

    /// Options are taken off what a segment holds (RFC 9293 section 3.7.1), of which something is to
    /// be left.
    fn leave_room_for_data(&mut self) {
        self.segment_size = self.segment_size.max(self.options_length() + SEGMENT_SIZE_MIN);
    }

    /// Behind the last byte that may be sent now, by the peer's window and our own buffer.
    #[inline]
    pub(super) fn offered_end(&self, settings: &Settings) -> SequenceNumber {
        self.unacknowledged + self.send_window.min(settings.send_buffer)
    }

    /// The longest data of a segment: what both take, less the options that each one has.
    #[inline]
    pub(super) fn data_size(&self) -> u16 {
        self.segment_size - self.options_length()
    }

    /// Bytes of the options that each segment has.
    #[inline]
    fn options_length(&self) -> u16 {
        if self.marks.has(Marks::TIMESTAMPS) { 12 } else { 0 }
    }

    /// Whether our FIN is acknowledged.
    pub(super) fn is_fin_acknowledged(&self) -> bool {
        self.marks.has(Marks::CLOSED) && self.unacknowledged == self.queued + 1
    }

    /// Behind the last byte that was sent; FIN is none.
    pub(super) fn sent_to(&self) -> SequenceNumber {
        if self.queued.is_before(self.highest) { self.queued } else { self.highest }
    }

    /// Behind the last number that may ever be sent as of now: FIN takes one.
    #[inline]
    pub(super) fn send_end(&self) -> SequenceNumber {
        self.queued + u32::from(self.marks.has(Marks::CLOSED))
    }
}

/// The most ranges that are remembered of what arrived beyond holes, on either side.
pub(super) const RANGES_MAX: usize = 256;

/// Blocks that leave room for timestamps in a header of 60 bytes.
pub(super) const SACK_BLOCKS_WITH_TIMESTAMPS: usize = SACK_BLOCKS_MAX - 1;
