//! The worker: takes records from its feed and puts frames into ports, each with its due time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::slice;

use wirestorm_base::departure::{Admission, DeparturePolicy, DepartureRecord, Departures};
use wirestorm_base::pace::Pace;
use wirestorm_base::port::{Capabilities, PortError, Stored, Transmit};
use wirestorm_base::time::{Duration, Instant};

use wirestorm_wire::capture::RECORD_LENGTH_MAX;
use wirestorm_wire::packet::ethernet;

use crate::measure::frame_hash;

use super::chunk::{Chunk, Fed, Feed, Record, RecordFlags};
use super::render::Renderer;
use super::schedule::Schedule;

/// How a worker replays.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Which worker this is: it sends the records that name it.
    pub index: u16,
    /// How due times follow from records.
    pub pace: Pace,
    /// What becomes of late frames on ports that do not hold departures themselves.
    pub policy: DeparturePolicy,
    /// Records to be sent in all, by all workers together.
    pub packets_max: u64,
    /// No frame is due this long after the start or later.
    pub duration_max: Duration,
    /// Pause between two passes.
    pub pass_delay: Duration,
    /// Whether time is the capture's: the schedule begins with the first record's time stamp, and
    /// nothing is waited for. At top speed every frame keeps its time stamp.
    pub virtual_time: bool,
    /// How far ahead of their due times frames are given to ports that hold departures: long
    /// enough to bridge a worker that the system takes off its CPU.
    pub horizon: Duration,
}

/// What a worker has done. Frames are counted when their port has taken them; what became of
/// them then is in the port's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounters {
    /// Frames given to a port.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// Frames of flows.
    pub flow_packets: u64,
    /// Frames that are not IP.
    pub non_flow_packets: u64,
    /// Frames whose headers are cut or make no sense.
    pub invalid_packets: u64,
    /// Flows begun; those that began again after the expiry included.
    pub flows: u64,
    /// Flows that began again after the expiry.
    pub flows_expired: u64,
    /// Frames sent shorter than they were on the wire, because the capture was or on request.
    pub truncated: u64,
    /// Frames longer than their port takes ([`Capabilities::accepts`]); not sent.
    pub too_long: u64,
    /// The longest of those, in bytes without FCS.
    pub too_long_max: u64,
    /// Frames without a single byte, or too short for an Ethernet header; not sent.
    pub too_short: u64,
    /// Records of another link layer that cannot become an Ethernet frame; not sent.
    pub unconvertible: u64,
    /// Frames left out because they were too late (`CatchUp::Strict`).
    pub unsent: u64,
    /// Records passed over on request.
    pub left_out: u64,
    /// Passes completed.
    pub passes: u64,
    /// Breaths in which the reader had nothing ready.
    pub starved: u64,
}

impl ReplayCounters {
    /// Adds another worker's counters. What every worker sees alike is
    /// not added: passes, and records that none of them sends.
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
        self.left_out = self.left_out.max(other.left_out);
        self.unconvertible = self.unconvertible.max(other.unconvertible);
        self.passes = self.passes.max(other.passes);
        self.starved += other.starved;
    }
}

/// Why a breath ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// There is more to do at once.
    Active,
    /// Nothing is to be done before this instant.
    Waiting(Instant),
    /// The port's buffers are all in flight.
    Blocked,
    /// The reader has nothing ready.
    Starved,
    /// As many frames were sent as [`Worker::allow`] allowed.
    Held,
    /// Everything was given to the ports; they may still hold frames.
    Done,
}

/// The outcome of a breath.
#[derive(Clone, Copy, Debug)]
pub struct Breath {
    /// Frames given to ports in this breath.
    pub frames: usize,
    /// What comes next.
    pub state: WorkerState,
}

/// Frames that a breath handles at most, so that stop requests are noticed soon.
const BREATH_FRAMES: usize = 256;

/// The ports that a worker sends through.
#[derive(Debug)]
pub struct Outputs<'a, P> {
    /// One or two.
    ports: &'a mut [P],
    /// The place of the port for the secondary side.
    secondary: usize,
}

impl<'a, P> Outputs<'a, P> {
    /// One port for the records of both sides.
    pub fn one(port: &'a mut P) -> Self {
        Self { ports: slice::from_mut(port), secondary: 0 }
    }

    /// A port for the primary side, and one for the secondary side.
    pub fn by_side(ports: &'a mut [P; 2]) -> Self {
        Self { ports, secondary: 1 }
    }

    /// The same for a number of ports that is known only while running; `None` where there is
    /// none, or more than two.
    pub fn of(ports: &'a mut [P]) -> Option<Self> {
        let secondary = ports.len().checked_sub(1).filter(|secondary| *secondary < 2)?;
        Some(Self { ports, secondary })
    }

    /// Through which of them a record leaves.
    #[inline]
    fn place_of(&self, record: &Record) -> usize {
        if record.flags.contains(RecordFlags::SECONDARY) { self.secondary } else { 0 }
    }
}

/// Replays one feed onto one port, or onto two, one for each side.
pub struct Worker<F> {
    feed: F,
    options: WorkerOptions,
    renderer: Renderer,
    chunk: Option<Arc<Chunk>>,
    /// Position of the next record in the chunk.
    cursor: usize,
    /// Records sent so far by all workers together.
    position: u64,
    /// Due time of the next record, once it is known.
    due: Option<Instant>,
    start: Instant,
    schedule: Schedule,
    departures: Departures,
    /// By port; what concerns none stands with the first.
    counters: [ReplayCounters; 2],
    /// Nothing is sent before this: a pause between passes at top speed.
    resume_at: Instant,
    pauses: Pauses,
    /// Whether flows that begin in this pass are new ones.
    counts_flows: bool,
    is_done: bool,
    /// Whether the end of a pass ends the breath.
    stops_at_pass_end: bool,
    sent_log: Option<SentLog>,
    /// Sees every frame before it leaves.
    show: Option<ShowFrame>,
    /// Records that may be sent before somebody allows more.
    allowed: u64,
    /// Room for frames that are too long for the port before they are cut.
    aside: Vec<u8>,
    /// Where the ports keep the bytes of kept chunks, by the chunk's number.
    stored: Vec<[Storage; 2]>,
    /// Where the ports keep those of the current chunk.
    stored_here: [Option<Stored>; 2],
}

/// Whether a port keeps the bytes of a chunk.
#[derive(Clone, Copy, Debug)]
enum Storage {
    /// It was not asked yet.
    Unasked,
    /// It does, or it cannot.
    Answered(Option<Stored>),
}

/// Sees a frame with its capture time.
pub type ShowFrame = Box<dyn FnMut(Instant, &[u8]) + Send>;

/// Takes the hashes of the frames of one breath.
pub type PublishHashes = Box<dyn FnMut(&[u64]) + Send>;

/// Where hashes of sent frames go, in order, before the frames leave.
struct SentLog {
    /// Hashes of this breath.
    hashes: Vec<u64>,
    publish: PublishHashes,
    /// For each port, hashes of as many frames as it can hold, the latest last.
    held: [VecDeque<u64>; 2],
}

impl<F: Feed> Worker<F> {
    /// A worker whose first record is due at `start`. All workers of a run share it.
    pub fn new(feed: F, options: WorkerOptions, renderer: Renderer, start: Instant) -> Self {
        let departures = Departures::new(options.policy);
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
            stored_here: [None; 2],
        }
    }

    /// Calls `show` with every frame before it leaves.
    #[must_use]
    pub fn with_show(mut self, show: ShowFrame) -> Self {
        self.show = Some(show);
        self
    }

    /// Ends a breath where a pass ends, so that its counters can be seen.
    pub fn stop_at_pass_end(&mut self) {
        self.stops_at_pass_end = true;
    }

    /// Sends no more than `packets` records beyond those sent so far, then is
    /// [`WorkerState::Held`] until more are allowed.
    pub fn allow(&mut self, packets: u64) {
        self.allowed = self.position.saturating_add(packets);
    }

    /// The number of the record that comes next, counted from 1 over the whole run.
    pub fn next_packet(&self) -> u64 {
        self.position + 1
    }

    /// Moves all that is still due by `span`: the run was suspended for so long.
    pub fn postpone(&mut self, span: Duration) {
        self.pauses.note(self.position, span);
        self.schedule.postpone(span);
        self.due = self.due.map(|due| if due == Instant::ZERO { due } else { due + span });
    }

    /// Calls `publish` with the hashes ([`frame_hash`]) of the frames of every breath, in order,
    /// before the ports are flushed.
    #[must_use]
    pub fn with_sent_log(mut self, publish: PublishHashes) -> Self {
        self.sent_log = Some(SentLog {
            hashes: Vec::with_capacity(BREATH_FRAMES),
            publish,
            held: [const { VecDeque::new() }; 2],
        });
        self
    }

    /// Ends the worker; returns, where there is a sent log, the hashes of the frames that each
    /// port may hold yet, the latest last: those that it gives up are the last of them.
    pub fn into_held(self) -> [VecDeque<u64>; 2] {
        self.sent_log.map(|log| log.held).unwrap_or_default()
    }

    /// Does what is due at `now`, then flushes the ports.
    ///
    /// # Errors
    /// A port's. The counters stay valid, and so do the port's.
    ///
    pub fn breathe<P: Transmit>(
        &mut self,
        now: Instant,
        mut outputs: Outputs<'_, P>,
    ) -> Result<Breath, PortError> {
        let given = |worker: &Self| worker.counters.iter().map(|it| it.packets).sum::<u64>();
        let before = given(self);
        let state = self.fill(now, &mut outputs);
        if let Some(log) = &mut self.sent_log
            && !log.hashes.is_empty()
        {
            (log.publish)(&log.hashes);
            log.hashes.clear();
        }
        for port in outputs.ports {
            port.flush()?;
        }
        Ok(Breath { frames: (given(self) - before) as usize, state })
    }

    /// What was done so far.
    pub fn counters(&self) -> ReplayCounters {
        let [mut sum, second] = self.counters;
        sum.merge(&second);
        sum
    }

    /// What was done so far by port. What concerns no port stands with the first: passes, records
    /// left out or without an Ethernet form, breaths without a record.
    pub fn counters_by_port(&self) -> &[ReplayCounters; 2] {
        &self.counters
    }

    /// Time between the first record sent and the last in which nothing was to be sent: pauses
    /// between passes, and those of [`Worker::postpone`].
    pub fn paused(&self) -> Duration {
        self.pauses.between_records(self.position)
    }

    /// When frames left ports that do not hold departures, as this process saw it.
    pub fn departures(&self) -> &DepartureRecord {
        self.departures.record()
    }

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
                    Fed::Chunk(chunk) => self.open(chunk, outputs),
                    Fed::PassEnd => {
                        self.end_pass(now);
                        if self.stops_at_pass_end {
                            return WorkerState::Active;
                        }
                    }
                    Fed::Pending => {
                        self.counters[0].starved += 1;
                        return WorkerState::Starved;
                    }
                    Fed::End => return self.done(),
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
        self.stored_here = match chunk.kept {
            Some(number) if self.renderer.may_be_verbatim() => {
                self.store(number as usize, &chunk.bytes, outputs.ports)
            }
            _ => [None; 2],
        };
        self.chunk = Some(chunk);
    }

    /// Where the ports keep the bytes of kept chunk `number`; they are asked once.
    fn store<P: Transmit>(
        &mut self,
        number: usize,
        bytes: &[u8],
        ports: &mut [P],
    ) -> [Option<Stored>; 2] {
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
        // A schedule carries the pause in its due times; without one it is waited for here.
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

    /// Sends records as they were captured at top speed, as far as nothing about them is
    /// special; what is special is left to [`Worker::send`], which knows all cases. For the most
    /// common way of replaying, this takes a third of the instructions.
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
            let side = outputs.place_of(record);
            let is_special = record.flags.contains(RecordFlags::LEFT_OUT)
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
            if let Some(stored) = self.stored_here[side] {
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

    /// Deals with one record; `Step::Stop` leaves it for the next breath.
    #[inline]
    fn send<P: Transmit>(
        &mut self,
        now: Instant,
        chunk: &Chunk,
        record: &Record,
        outputs: &mut Outputs<'_, P>,
    ) -> Step {
        let flags = record.flags;
        if flags.contains(RecordFlags::LEFT_OUT) {
            if flags.contains(RecordFlags::INVALID) {
                self.counters[0].unconvertible += 1;
            } else {
                self.counters[0].left_out += 1;
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
        let side = outputs.place_of(record);
        let port = &mut outputs.ports[side];
        let capabilities = *port.capabilities();
        let holds_departure = capabilities.holds_departure;
        let room = self.renderer.room(record);
        // An edit may cut a frame to what the port takes, but no longer frame than a capture can
        // hold is made room for, whatever length a record claims to have had.
        let room_max = if self.renderer.may_shorten() {
            RECORD_LENGTH_MAX as usize
        } else {
            capabilities.frame_length_max
        };
        if room > room_max {
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
        if let Some(stored) = self.stored_here[side]
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
            self.render_aside(chunk, record, number, room, buffer)
        };
        let Some(length) = rendered else {
            port.release(frame);
            self.position += 1;
            self.counters[0].left_out += 1;
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

    /// Tells those who want to know of a frame that is about to leave, through a port that holds
    /// so many at most.
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

    /// Renders a frame that is too long for the port before an edit cuts it. A length beyond
    /// the buffer's says that it still is.
    #[cold]
    fn render_aside(
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

    /// Leaves out what the port could not send.
    #[inline]
    fn refuse(&mut self, frame: &[u8], capabilities: &Capabilities, side: usize) -> Option<Step> {
        (!capabilities.accepts(frame)).then(|| self.refuse_length(frame.len(), side))
    }

    /// Leaves out a frame for its length.
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
        let counters = &mut self.counters[side];
        counters.packets += 1;
        counters.bytes += length as u64;
        let flags = record.flags;
        if flags.contains(RecordFlags::FLOW) {
            counters.flow_packets += 1;
            if flags.contains(RecordFlags::NEW_FLOW) && self.counts_flows {
                counters.flows += 1;
                counters.flows_expired += u64::from(flags.contains(RecordFlags::AFTER_EXPIRY));
            }
        } else if flags.contains(RecordFlags::INVALID) {
            counters.invalid_packets += 1;
        } else {
            counters.non_flow_packets += 1;
        }
        counters.truncated += u64::from(self.renderer.is_truncated(record, length));
    }
}

/// Pauses, each of which counts once a record was sent after it.
#[derive(Clone, Copy, Debug, Default)]
struct Pauses {
    /// Those that records were sent after.
    passed: Duration,
    /// Those since the record before.
    latest: Duration,
    /// Records sent before those.
    position: u64,
}

impl Pauses {
    /// Notes a pause after `position` records.
    fn note(&mut self, position: u64, span: Duration) {
        self.passed = self.between_records(position);
        // What is before the first record is before the run.
        let before = if position == self.position { self.latest } else { Duration::ZERO };
        self.latest = if position == 0 { Duration::ZERO } else { before.saturating_add(span) };
        self.position = position;
    }

    /// The pauses that lie between the first of `position` records and the last.
    fn between_records(&self, position: u64) -> Duration {
        if position > self.position { self.passed.saturating_add(self.latest) } else { self.passed }
    }
}

/// What became of several records.
struct Run {
    /// Those that a port has.
    frames: usize,
    /// Whether a port had no buffer for the next one.
    is_blocked: bool,
}

/// What became of a record.
enum Step {
    /// A port has it.
    Sent,
    /// It is dealt with otherwise.
    Passed,
    /// It stays the next one.
    Stop(WorkerState),
}
