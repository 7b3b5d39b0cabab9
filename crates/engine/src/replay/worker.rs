//! Worker: takes records from its feed and passes frames to ports, each with its due time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::slice;

use wirestorm_base::departure::{Admission, DeparturePolicy, DepartureRecord, DepartureScheduler};
use wirestorm_base::pace::Pace;
use wirestorm_base::port::{Capabilities, PortError, StoredBytes, Transmit};
use wirestorm_base::resident::CapturePosition;
use wirestorm_base::time::{Duration, Instant};

use wirestorm_wire::packet::ethernet;

use crate::measure::frame_hash;

use super::chunk::{Chunk, Feed, FeedItem, Record, RecordFlags};
use super::render::Renderer;
use super::resident::StoredPass;
use super::schedule::Schedule;

/// Options of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Index of this worker; it sends the records assigned to it.
    pub index: u16,
    /// Rule that derives due times from records.
    pub pace: Pace,
    /// Policy for late frames on ports that do not hold departures themselves.
    pub policy: DeparturePolicy,
    /// Total number of records to send, by all workers together.
    pub packets_max: u64,
    /// Frames due at or after this time since the start are not sent.
    pub duration_max: Duration,
    /// Pause between two passes.
    pub pass_delay: Duration,
    /// Whether to use capture time: the schedule starts at the first record's timestamp, and the
    /// worker never waits. At top speed every frame keeps its timestamp.
    pub virtual_time: bool,
    /// How far ahead of their due times ports that hold departures receive frames. It must bridge
    /// the time for which the scheduler may preempt the worker.
    pub horizon: Duration,
}

/// Counters of a worker. It counts frames when a port accepts them; the port counts their further
/// fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounters {
    /// Frames passed to a port.
    pub packets: u64,
    /// Bytes of these frames, without FCS.
    pub bytes: u64,
    /// Frames of flows.
    pub flow_packets: u64,
    /// Frames that are not IP.
    pub non_flow_packets: u64,
    /// Frames with truncated or invalid headers.
    pub invalid_packets: u64,
    /// Flows started, including restarts after the expiry.
    pub flows: u64,
    /// Flows restarted after the expiry.
    pub flows_expired: u64,
    /// Frames sent shorter than on the wire, because of the capture or an edit.
    pub truncated: u64,
    /// Frames not sent because the port does not accept their length ([`Capabilities::accepts`]).
    pub too_long: u64,
    /// Longest of these frames, in bytes without FCS.
    pub too_long_max: u64,
    /// Empty frames or frames shorter than an Ethernet header; not sent.
    pub too_short: u64,
    /// Records of another link layer that cannot be converted to Ethernet; not sent.
    pub unconvertible: u64,
    /// Frames skipped because they were late (`CatchUp::Strict`).
    pub unsent: u64,
    /// Records filtered by a packet list, a cache file or an edit.
    pub filtered: u64,
    /// Passes completed.
    pub passes: u64,
    /// Breaths in which the reader had no data (underruns).
    pub underruns: u64,
}

impl ReplayCounters {
    /// Adds another worker's counters. Counts that are equal for all workers are not added: passes,
    /// and records that no worker sends.
    pub fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.flow_packets += other.flow_packets;
        self.non_flow_packets += other.non_flow_packets;
        self.invalid_packets += other.invalid_packets;
        self.flows += other.flows;
        self.flows_expired += other.flows_expired;
        self.truncated += other.truncated;
        self.too_long += other.too_long;
        self.too_long_max = self.too_long_max.max(other.too_long_max);
        self.too_short += other.too_short;
        self.unsent += other.unsent;
        self.filtered = self.filtered.max(other.filtered);
        self.unconvertible = self.unconvertible.max(other.unconvertible);
        self.passes = self.passes.max(other.passes);
        self.underruns += other.underruns;
    }

    /// Counts a frame of `length` bytes. `counts_flows`: whether its flow may be new.
    #[inline]
    pub(super) fn count(
        &mut self,
        flags: RecordFlags,
        length: usize,
        counts_flows: bool,
        is_truncated: bool,
    ) {
        self.packets += 1;
        self.bytes += length as u64;
        if flags.contains(RecordFlags::FLOW) {
            self.flow_packets += 1;
            if flags.contains(RecordFlags::NEW_FLOW) && counts_flows {
                self.flows += 1;
                self.flows_expired += u64::from(flags.contains(RecordFlags::AFTER_EXPIRY));
            }
        } else if flags.contains(RecordFlags::INVALID) {
            self.invalid_packets += 1;
        } else {
            self.non_flow_packets += 1;
        }
        self.truncated += u64::from(is_truncated);
    }

    /// Adds the counts of later records of the same worker.
    pub(super) fn add(&mut self, later: &Self) {
        let (filtered, unconvertible, passes) = (
            self.filtered + later.filtered,
            self.unconvertible + later.unconvertible,
            self.passes + later.passes,
        );
        self.merge(later);
        (self.filtered, self.unconvertible, self.passes) = (filtered, unconvertible, passes);
    }

    /// Returns the counts of `passes` passes like this one.
    #[must_use]
    pub(super) fn times(&self, passes: u64) -> Self {
        let Self { too_long_max, .. } = *self;
        Self {
            packets: self.packets * passes,
            bytes: self.bytes * passes,
            flow_packets: self.flow_packets * passes,
            non_flow_packets: self.non_flow_packets * passes,
            invalid_packets: self.invalid_packets * passes,
            flows: self.flows * passes,
            flows_expired: self.flows_expired * passes,
            truncated: self.truncated * passes,
            too_long: self.too_long * passes,
            too_long_max: if passes > 0 { too_long_max } else { 0 },
            too_short: self.too_short * passes,
            unconvertible: self.unconvertible * passes,
            unsent: self.unsent * passes,
            filtered: self.filtered * passes,
            passes: self.passes * passes,
            underruns: self.underruns * passes,
        }
    }
}

/// State at the end of a breath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// More work is ready.
    Active,
    /// Nothing is due before this instant.
    Waiting(Instant),
    /// All buffers of the port are in flight.
    Blocked,
    /// The reader has no data.
    Underrun,
    /// The limit of [`Worker::allow`] is reached.
    Held,
    /// The ports have received all frames; they may still hold some.
    Done,
}

/// Result of a breath.
#[derive(Clone, Copy, Debug)]
pub struct Breath {
    /// Frames passed to ports in this breath.
    pub frames: usize,
    /// State at its end.
    pub state: WorkerState,
}

/// Interval of the looks at a port that sends the capture by itself.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum number of frames in a breath, so that the worker notices stop requests soon.
const BREATH_FRAMES: usize = 256;

/// Ports of a worker.
#[derive(Debug)]
pub struct Outputs<'a, P> {
    /// One or two ports.
    ports: &'a mut [P],
    /// Index of the secondary side's port.
    secondary: usize,
}

impl<'a, P> Outputs<'a, P> {
    /// Uses one port for both sides.
    pub fn one(port: &'a mut P) -> Self {
        Self { ports: slice::from_mut(port), secondary: 0 }
    }

    /// Uses one port for each side: primary, secondary.
    pub fn by_side(ports: &'a mut [P; 2]) -> Self {
        Self { ports, secondary: 1 }
    }

    /// Uses one or two ports, whose number is known only at run time; `None` for any other number.
    pub fn of(ports: &'a mut [P]) -> Option<Self> {
        let secondary = ports.len().checked_sub(1).filter(|secondary| *secondary < 2)?;
        Some(Self { ports, secondary })
    }

    /// Returns the index of the port for a record.
    #[inline]
    fn port_index(&self, record: &Record) -> usize {
        if record.flags.contains(RecordFlags::SECONDARY) { self.secondary } else { 0 }
    }
}

/// Replays a feed onto one port, or onto two, one for each side.
pub struct Worker<F> {
    feed: F,
    options: WorkerOptions,
    renderer: Renderer,
    chunk: Option<Arc<Chunk>>,
    /// Index of the next record in the chunk.
    cursor: usize,
    /// Number of records sent so far by all workers together.
    position: u64,
    /// Due time of the next record, once it is known.
    due: Option<Instant>,
    start: Instant,
    schedule: Schedule,
    departures: DepartureScheduler,
    /// Counters by port; counts that belong to no port are in the first.
    counters: [ReplayCounters; 2],
    /// End of the pause between passes at top speed.
    resume_at: Instant,
    pauses: Pauses,
    /// Whether flows that start in this pass are new.
    counts_flows: bool,
    is_done: bool,
    /// Whether the end of a pass ends the breath.
    stops_at_pass_end: bool,
    sent_log: Option<SentLog>,
    /// Callback for every frame before it is sent.
    show: Option<FrameCallback>,
    /// Position up to which records may be sent.
    allowed: u64,
    /// Buffer for frames that are longer than the port's buffers before an edit cuts them.
    aside: Vec<u8>,
    /// Storage of the kept chunks in each port, by chunk number.
    stored: Vec<[Storage; 2]>,
    /// Storage of the current chunk in each port.
    chunk_storage: [Option<StoredBytes>; 2],
    resident: ResidentState,
}

/// Whether the port sends the capture by itself.
#[derive(Debug)]
enum ResidentState {
    /// Not known yet.
    Unknown,
    /// It does not, for this reason.
    No(&'static str),
    /// It does, or it will after a pause.
    Yes(Box<Hosted>),
}

/// A capture that a port sends by itself.
#[derive(Debug)]
struct Hosted {
    pass: StoredPass,
    passes: u64,
    /// Next frame, unless the port sends.
    position: CapturePosition,
    is_sending: bool,
    /// Frames that the port had sent when it was given the capture for the last time.
    before: u64,
}

/// Whether a port stores the bytes of a chunk.
#[derive(Clone, Copy, Debug)]
enum Storage {
    /// The port was not asked yet.
    Unasked,
    /// The port's answer: its handle, or `None` if it cannot store the bytes.
    Answered(Option<StoredBytes>),
}

/// Callback that receives a frame with its capture time.
pub type FrameCallback = Box<dyn FnMut(Instant, &[u8]) + Send>;

/// Callback that receives the hashes of the frames of one breath.
pub type HashCallback = Box<dyn FnMut(&[u64]) + Send>;

/// Log of the hashes of sent frames, in order, published before the frames leave.
struct SentLog {
    /// Hashes of this breath.
    hashes: Vec<u64>,
    publish: HashCallback,
    /// Hashes of the last frames of each port, as many as the port can hold, newest last.
    held: [VecDeque<u64>; 2],
}

impl<F: Feed> Worker<F> {
    /// Creates a worker whose first record is due at `start`, which all workers of a run share.
    pub fn new(feed: F, options: WorkerOptions, renderer: Renderer, start: Instant) -> Self {
        let departures = DepartureScheduler::new(options.policy);
        let schedule = Schedule::new(options.pace, start);
        Self {
            feed,
            options,
            renderer,
            chunk: None,
            cursor: 0,
            position: 0,
            due: None,
            start,
            schedule,
            departures,
            counters: Default::default(),
            resume_at: Instant::ZERO,
            pauses: Pauses::default(),
            counts_flows: true,
            is_done: false,
            stops_at_pass_end: false,
            sent_log: None,
            show: None,
            allowed: u64::MAX,
            aside: Vec::new(),
            stored: Vec::new(),
            chunk_storage: [None; 2],
            resident: ResidentState::Unknown,
        }
    }

    /// Sets a callback for every frame before it is sent.
    #[must_use]
    pub fn with_frame_callback(mut self, show: FrameCallback) -> Self {
        self.show = Some(show);
        self
    }

    /// Ends the breath at the end of a pass, so that the caller can read its counters.
    pub fn stop_at_pass_end(&mut self) {
        self.stops_at_pass_end = true;
    }

    /// Permits `packets` more records. After them the state is [`WorkerState::Held`] until more are
    /// permitted.
    pub fn allow(&mut self, packets: u64) {
        self.allowed = self.position.saturating_add(packets);
    }

    /// Returns the number of the next record, counted from 1 over the whole run.
    pub fn next_packet(&self) -> u64 {
        self.position + 1
    }

    /// Delays all remaining records by `span`, for which the run was suspended. Call
    /// [`Worker::recall`] before.
    pub fn postpone(&mut self, span: Duration) {
        self.pauses.note(self.position, span);
        self.schedule.postpone(span);
        if let ResidentState::Yes(hosted) = &mut self.resident
            && let Some(due) = &mut hosted.position.due
        {
            *due = due.saturating_add(span);
        }
        self.due = self.due.map(|due| if due == Instant::ZERO { due } else { due + span });
    }

    /// Sets a callback for the hashes ([`frame_hash`]) of the frames of each breath, in order. It
    /// is called before the ports are flushed.
    #[must_use]
    pub fn with_sent_log(mut self, publish: HashCallback) -> Self {
        self.sent_log = Some(SentLog {
            hashes: Vec::with_capacity(BREATH_FRAMES),
            publish,
            held: [const { VecDeque::new() }; 2],
        });
        self
    }

    /// Ends the worker. With a sent log, returns the hashes of the frames that each port may still
    /// hold, newest last. Frames that a port drops are the last of them.
    pub fn into_unsent_hashes(self) -> [VecDeque<u64>; 2] {
        self.sent_log.map(|log| log.held).unwrap_or_default()
    }

    /// Sends what is due at `now`, then flushes the ports.
    ///
    /// # Errors
    /// Returns errors of a port. The counters of worker and port stay valid.
    // Inlined where the number of ports is known: one port needs 10 % fewer instructions a frame.
    #[inline(always)]
    pub fn breathe<P: Transmit>(
        &mut self,
        now: Instant,
        mut outputs: Outputs<'_, P>,
    ) -> Result<Breath, PortError> {
        let packets = |worker: &Self| worker.counters.iter().map(|it| it.packets).sum::<u64>();
        let before = packets(self);
        let state = match self.resident {
            ResidentState::No(_) => self.fill(now, &mut outputs),
            _ => self.watch(now, &mut outputs),
        };
        if let Some(log) = &mut self.sent_log
            && !log.hashes.is_empty()
        {
            (log.publish)(&log.hashes);
            log.hashes.clear();
        }
        for port in outputs.ports {
            port.flush()?;
        }
        Ok(Breath { frames: (packets(self) - before) as usize, state })
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> ReplayCounters {
        let [mut sum, second] = self.counters;
        sum.merge(&second);
        sum
    }

    /// Returns the counters so far by port. Counts that belong to no port are in the first: passes,
    /// filtered and unconvertible records, breaths without a record.
    pub fn counters_by_port(&self) -> &[ReplayCounters; 2] {
        &self.counters
    }

    /// Returns the total pause between the first and the last record sent: pauses between passes
    /// and those of [`Worker::postpone`].
    pub fn paused(&self) -> Duration {
        self.pauses.between_records(self.position)
    }

    /// Returns the departures of ports that do not hold departures, as observed by this process.
    pub fn departures(&self) -> &DepartureRecord {
        self.departures.record()
    }

    /// Returns the frames that the port has sent by itself, and the reason why it sends none so; `None`
    /// if it does, or has not begun.
    pub fn made_by_port(&self) -> (u64, Option<&'static str>) {
        match &self.resident {
            ResidentState::Unknown => (0, None),
            ResidentState::No(reason) => (0, Some(reason)),
            ResidentState::Yes(_) => (self.counters().packets, None),
        }
    }

    /// Takes the capture back from a port that sends it by itself. Call it before
    /// [`Worker::postpone`], and before the counters are final.
    pub fn recall<P: Transmit>(&mut self, port: &mut P) {
        let ResidentState::Yes(hosted) = &mut self.resident else { return };
        if !hosted.is_sending {
            return;
        }
        let Some(resident) = port.resident() else { return };
        resident.recall();
        hosted.position = resident.position();
        hosted.is_sending = false;
        let taken = resident.taken(0);
        self.observe(taken);
        if let ResidentState::Yes(hosted) = &mut self.resident {
            hosted.before += taken;
        }
    }

    /// Counts the frames that the port has taken since it was given the capture.
    fn observe(&mut self, taken: u64) {
        let ResidentState::Yes(hosted) = &self.resident else { return };
        let underruns = self.counters[0].underruns;
        (self.counters[0], self.position) = hosted.pass.counts(hosted.before + taken);
        self.counters[0].underruns = underruns;
    }

    /// Gives the capture to the port if it can send it by itself, and watches it; else sends frame by
    /// frame.
    #[cold]
    fn watch<P: Transmit>(&mut self, now: Instant, outputs: &mut Outputs<'_, P>) -> WorkerState {
        if matches!(self.resident, ResidentState::Unknown) {
            if self.options.pace == Pace::TopSpeed && now < self.start {
                return WorkerState::Waiting(self.start);
            }
            self.resident = match self.prepare_resident(outputs) {
                Ok(hosted) => ResidentState::Yes(Box::new(hosted)),
                Err(reason) => ResidentState::No(reason),
            };
        }
        let ResidentState::Yes(hosted) = &mut self.resident else {
            return self.fill(now, outputs);
        };
        let [port] = outputs.ports else { return self.done() };
        let Some(resident) = port.resident() else { return self.done() };
        if !hosted.is_sending {
            let until = self.start.saturating_add(self.options.duration_max);
            let frames = hosted.pass.frames_max(hosted.passes, self.options.packets_max);
            let left = frames.saturating_sub(hosted.before);
            if left == 0 {
                return self.done();
            }
            let capture = hosted.pass.resident(hosted.position);
            if resident.host_capture(&capture, left, until).is_err() {
                // Nothing was sent: the port refuses a capture as a whole, the first time.
                self.resident = ResidentState::No("the kernel refuses it");
                return self.fill(now, outputs);
            }
            hosted.is_sending = true;
        }
        // In this order: a port that has ended has counted all frames.
        let sends = resident.sending() > 0;
        let taken = resident.taken(0);
        self.observe(taken);
        match sends {
            true => WorkerState::Waiting(now.saturating_add(WATCH_INTERVAL)),
            false => self.done(),
        }
    }

    /// Stores the frames in the port.
    ///
    /// # Errors
    /// The reason why the port cannot send the capture by itself.
    fn prepare_resident<P: Transmit>(
        &mut self,
        outputs: &mut Outputs<'_, P>,
    ) -> Result<Hosted, &'static str> {
        let [port] = &mut *outputs.ports else { return Err("it leaves by two interfaces") };
        let has_capture = port.resident().is_some_and(|it| it.options().capture.is_some());
        match () {
            () if !has_capture => return Err("the backend sends no captures by itself"),
            () if self.options.virtual_time => return Err("time is virtual"),
            () if self.sent_log.is_some() => return Err("each frame is noted for --verify"),
            () if self.show.is_some() => return Err("each frame is shown"),
            () if self.allowed != u64::MAX => return Err("frames are sent on request"),
            () if self.stops_at_pass_end => return Err("statistics follow each pass"),
            () => {}
        }
        let kept = self.feed.kept().ok_or("the capture is not in memory")?;
        let pass = StoredPass::store(&kept.chunks, &self.options, &self.renderer, port)?;
        let position = pass.first(self.start);
        Ok(Hosted { pass, passes: kept.passes, position, is_sending: false, before: 0 })
    }

    // Without it, whether the compiler inlines depends on the rest of the program: 14 instructions a
    // packet (`./bench instructions`).
    #[inline(always)]
    fn fill<P: Transmit>(&mut self, now: Instant, outputs: &mut Outputs<'_, P>) -> WorkerState {
        let mut frames = 0;
        while frames < BREATH_FRAMES {
            if now < self.resume_at && self.chunk.is_some() {
                return WorkerState::Waiting(self.resume_at);
            }
            if self.is_done || self.position >= self.options.packets_max {
                return self.done();
            }
            if self.position >= self.allowed {
                return WorkerState::Held;
            }
            let Some(chunk) = self.chunk.take() else {
                match self.feed.next() {
                    FeedItem::Chunk(chunk) => self.open(chunk, outputs),
                    FeedItem::PassEnd => {
                        self.end_pass(now);
                        if self.stops_at_pass_end {
                            return WorkerState::Active;
                        }
                    }
                    FeedItem::Pending => {
                        self.counters[0].underruns += 1;
                        return WorkerState::Underrun;
                    }
                    FeedItem::End => return self.done(),
                }
                continue;
            };
            let run = self.send_run(now, &chunk, outputs, BREATH_FRAMES - frames);
            frames += run.frames;
            if run.is_blocked || frames == BREATH_FRAMES {
                self.chunk = Some(chunk);
                return if run.is_blocked { WorkerState::Blocked } else { WorkerState::Active };
            }
            let Some(record) = chunk.records.get(self.cursor) else {
                continue;
            };
            if self.position >= self.options.packets_max || self.position >= self.allowed {
                self.chunk = Some(chunk);
                continue;
            }
            let step = self.send(now, &chunk, record, outputs);
            self.chunk = Some(chunk);
            match step {
                Step::Sent => frames += 1,
                Step::Passed => {}
                Step::Stop(state) => return state,
            }
            self.cursor += 1;
            self.due = None;
        }
        WorkerState::Active
    }

    fn open<P: Transmit>(&mut self, chunk: Arc<Chunk>, outputs: &mut Outputs<'_, P>) {
        if chunk.starts_file {
            self.schedule.restart(Duration::ZERO);
        }
        self.cursor = 0;
        self.chunk_storage = match chunk.kept {
            Some(number) if self.renderer.may_be_verbatim() => {
                self.store(number as usize, &chunk.bytes, outputs.ports)
            }
            _ => [None; 2],
        };
        self.chunk = Some(chunk);
    }

    /// Returns the storage of kept chunk `number` in each port; asks a port only once.
    fn store<P: Transmit>(
        &mut self,
        number: usize,
        bytes: &[u8],
        ports: &mut [P],
    ) -> [Option<StoredBytes>; 2] {
        if self.stored.len() <= number {
            self.stored.resize(number + 1, [Storage::Unasked; 2]);
        }
        let mut here = [None; 2];
        for ((storage, port), here) in self.stored[number].iter_mut().zip(ports).zip(&mut here) {
            *here = match *storage {
                Storage::Answered(answer) => answer,
                Storage::Unasked => port.store(bytes),
            };
            *storage = Storage::Answered(*here);
        }
        here
    }

    fn end_pass(&mut self, now: Instant) {
        self.counters[0].passes += 1;
        self.pauses.note(self.position, self.options.pass_delay);
        // A schedule includes the pause in its due times; at top speed, wait for it here.
        if self.options.pace == Pace::TopSpeed && !self.options.virtual_time {
            self.resume_at = now.saturating_add(self.options.pass_delay);
        }
        self.counts_flows = self.renderer.start_pass(self.counters[0].passes);
        self.schedule.restart(self.options.pass_delay);
    }

    fn done(&mut self) -> WorkerState {
        self.is_done = true;
        self.chunk = None;
        WorkerState::Done
    }

    /// Fast path: sends Ethernet records unchanged at top speed and stops at any special record,
    /// which [`Worker::send`] handles. For the most common replay it takes a third of the
    /// instructions.
    #[inline]
    fn send_run<P: Transmit>(
        &mut self,
        now: Instant,
        chunk: &Chunk,
        outputs: &mut Outputs<'_, P>,
        frames_max: usize,
    ) -> Run {
        let mut run = Run { frames: 0, is_blocked: false };
        let is_plain = self.options.pace == Pace::TopSpeed
            && !self.options.virtual_time
            && self.sent_log.is_none()
            && self.show.is_none()
            && self.renderer.is_plain();
        if !is_plain || now.saturating_since(self.start) >= self.options.duration_max {
            return run;
        }
        let allowed = self.options.packets_max.min(self.allowed) - self.position;
        let frames_max = frames_max.min(usize::try_from(allowed).unwrap_or(usize::MAX));
        let mut lengths_max = [0; 2];
        for (length_max, port) in lengths_max.iter_mut().zip(&*outputs.ports) {
            *length_max = port.capabilities().untagged_length_max;
        }
        while let Some(record) = chunk.records.get(self.cursor)
            && run.frames < frames_max
        {
            let data = chunk.data(record);
            let side = outputs.port_index(record);
            let is_special = record.flags.contains(RecordFlags::FILTERED)
                || record.ethertype != 0
                || record.worker != self.options.index
                || data.len() < ethernet::HEADER_LENGTH
                || data.len() > lengths_max[side];
            if is_special {
                break;
            }
            let port = &mut outputs.ports[side];
            let Some(frame) = port.take() else {
                run.is_blocked = true;
                break;
            };
            if let Some(stored) = self.chunk_storage[side] {
                let range = record.offset as usize..record.end();
                port.send_stored(frame, stored, range, Instant::ZERO);
            } else {
                port.frame_mut(&frame)[..data.len()].copy_from_slice(data);
                port.send(frame, data.len(), Instant::ZERO);
            }
            self.count(record, data.len(), side);
            self.cursor += 1;
            run.frames += 1;
        }
        self.position += run.frames as u64;
        run
    }

    /// Processes one record; `Step::Stop` leaves it for the next breath.
    #[inline]
    fn send<P: Transmit>(
        &mut self,
        now: Instant,
        chunk: &Chunk,
        record: &Record,
        outputs: &mut Outputs<'_, P>,
    ) -> Step {
        let flags = record.flags;
        if flags.contains(RecordFlags::FILTERED) {
            if flags.contains(RecordFlags::INVALID) {
                self.counters[0].unconvertible += 1;
            } else {
                self.counters[0].filtered += 1;
            }
            return Step::Passed;
        }
        let length = self.renderer.frame_length(record);
        let due = match self.due {
            Some(due) => due,
            None => self.schedule_next(record.timestamp, length),
        };
        let at = if due == Instant::ZERO { now } else { due };
        if at.saturating_since(self.start) >= self.options.duration_max {
            return Step::Stop(self.done());
        }
        if record.worker != self.options.index {
            self.position += 1;
            return Step::Passed;
        }
        let side = outputs.port_index(record);
        let port = &mut outputs.ports[side];
        let capabilities = *port.capabilities();
        let holds_departure = capabilities.holds_departure;
        let room = self.renderer.room(record);
        if self.renderer.exceeds(room, &capabilities) {
            return self.refuse_length(room, side);
        }
        if holds_departure
            && !self.options.virtual_time
            && due > now.saturating_add(self.options.horizon)
        {
            return Step::Stop(WorkerState::Waiting(due.saturating_sub(self.options.horizon)));
        }
        let Some(frame) = port.take() else { return Step::Stop(WorkerState::Blocked) };
        if !holds_departure && due != Instant::ZERO {
            match self.departures.admit(now, due) {
                Admission::Send => {}
                Admission::Wait(until) => {
                    port.release(frame);
                    return Step::Stop(WorkerState::Waiting(until));
                }
                Admission::Drop => {
                    port.release(frame);
                    self.position += 1;
                    self.counters[side].unsent += 1;
                    return Step::Passed;
                }
            }
        }
        if let Some(stored) = self.chunk_storage[side]
            && self.renderer.is_verbatim(record)
        {
            let data = chunk.data(record);
            if let Some(step) = self.refuse(data, &capabilities, side) {
                port.release(frame);
                return step;
            }
            self.note(record.timestamp, data, side, capabilities.frames);
            port.send_stored(frame, stored, record.offset as usize..record.end(), due);
            self.position += 1;
            self.count(record, data.len(), side);
            return Step::Sent;
        }
        let number = chunk.first_record + self.cursor as u64;
        let buffer = port.frame_mut(&frame);
        let rendered = if room <= buffer.len() {
            self.renderer.render(chunk, record, number, buffer)
        } else {
            self.render_to_scratch(chunk, record, number, room, buffer)
        };
        let Some(length) = rendered else {
            port.release(frame);
            self.position += 1;
            self.counters[0].filtered += 1;
            return Step::Passed;
        };
        let Some(bytes) = port.frame_mut(&frame).get(..length) else {
            port.release(frame);
            return self.refuse_length(length, side);
        };
        if let Some(step) = self.refuse(bytes, &capabilities, side) {
            port.release(frame);
            return step;
        }
        self.note(record.timestamp, bytes, side, capabilities.frames);
        port.send(frame, length, due);
        self.position += 1;
        self.count(record, length, side);
        Step::Sent
    }

    /// Logs and shows a frame that is about to leave through a port with `buffer_frames` buffers.
    #[inline]
    fn note(&mut self, timestamp: Instant, frame: &[u8], side: usize, buffer_frames: usize) {
        if let Some(log) = &mut self.sent_log {
            let hash = frame_hash(frame);
            log.hashes.push(hash);
            let held = &mut log.held[side];
            if held.len() >= buffer_frames {
                held.pop_front();
            }
            held.push_back(hash);
        }
        if let Some(show) = &mut self.show {
            show(timestamp, frame);
        }
    }

    #[inline]
    fn schedule_next(&mut self, timestamp: Instant, length: usize) -> Instant {
        if self.options.virtual_time && self.position == 0 && self.start != timestamp {
            self.start = timestamp;
            self.schedule = Schedule::new(self.options.pace, timestamp);
        }
        let due = match self.schedule.next(timestamp, length) {
            Instant::ZERO if self.options.virtual_time => timestamp,
            due => due,
        };
        self.due = Some(due);
        due
    }

    /// Renders a frame that exceeds the port's buffer before an edit cuts it. The returned length
    /// exceeds the buffer if the frame is still too long.
    #[cold]
    fn render_to_scratch(
        &mut self,
        chunk: &Chunk,
        record: &Record,
        number: u64,
        room: usize,
        buffer: &mut [u8],
    ) -> Option<usize> {
        if self.aside.len() < room {
            self.aside.resize(room, 0);
        }
        let length = self.renderer.render(chunk, record, number, &mut self.aside)?;
        if let Some(buffer) = buffer.get_mut(..length) {
            buffer.copy_from_slice(&self.aside[..length]);
        }
        Some(length)
    }

    /// Counts and skips a frame that the port does not accept.
    #[inline]
    fn refuse(&mut self, frame: &[u8], capabilities: &Capabilities, side: usize) -> Option<Step> {
        (!capabilities.accepts(frame)).then(|| self.refuse_length(frame.len(), side))
    }

    /// Counts and skips a frame because of its length.
    #[cold]
    fn refuse_length(&mut self, length: usize, side: usize) -> Step {
        if length < ethernet::HEADER_LENGTH {
            self.counters[side].too_short += 1;
        } else {
            let counters = &mut self.counters[side];
            counters.too_long += 1;
            counters.too_long_max = counters.too_long_max.max(length as u64);
        }
        self.position += 1;
        Step::Passed
    }

    #[inline]
    fn count(&mut self, record: &Record, length: usize, side: usize) {
        let is_truncated = self.renderer.is_truncated(record, length);
        self.counters[side].count(record.flags, length, self.counts_flows, is_truncated);
    }
}

/// Pauses; each counts once a record was sent after it.
#[derive(Clone, Copy, Debug, Default)]
struct Pauses {
    /// Total of the pauses after which records were sent.
    passed: Duration,
    /// Total of the pauses since the last record.
    latest: Duration,
    /// Number of records sent before these pauses.
    position: u64,
}

impl Pauses {
    /// Records a pause after `position` records.
    fn note(&mut self, position: u64, span: Duration) {
        self.passed = self.between_records(position);
        // A pause before the first record is not part of the run.
        let before = if position == self.position { self.latest } else { Duration::ZERO };
        self.latest = if position == 0 { Duration::ZERO } else { before.saturating_add(span) };
        self.position = position;
    }

    /// Returns the total pause between the first and the last of `position` records.
    fn between_records(&self, position: u64) -> Duration {
        if position > self.position { self.passed.saturating_add(self.latest) } else { self.passed }
    }
}

/// Result of a run of records.
struct Run {
    /// Frames passed to ports.
    frames: usize,
    /// Whether a port had no buffer for the next frame.
    is_blocked: bool,
}

/// Result of processing a record.
enum Step {
    /// A port has accepted the frame.
    Sent,
    /// The record was counted and skipped.
    Passed,
    /// The record stays the next one.
    Stop(WorkerState),
}
