//! Generator: builds the frames of streams and passes them to a port, each with its due time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

use wirestorm_base::departure::{Admission, DeparturePolicy, DepartureRecord, DepartureScheduler};
use wirestorm_base::port::{PortError, StoredBytes, Transmit};
use wirestorm_base::prefetch::prefetch;
use wirestorm_base::rate::RateError;
use wirestorm_base::resident::{ResidentOptions, ResidentStream};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::stream::{Mode, Speed, Stream, Transmission};

use super::program::{BLOCK, FrameBuilder, OperationCache};
use super::queue::{Entry, Queue, Turn};
use super::resident;
use super::schedule::{After, StreamSchedule};
use super::selection::{Selected, Selection};
use super::share::Share;
use crate::replay::{Breath, WorkerState};

/// Options of a generator.
#[derive(Clone, Debug)]
pub struct GeneratorOptions {
    /// Share of each stream's frames to send.
    pub share: Share,
    /// Policy for late frames on ports that do not hold departures themselves.
    pub policy: DeparturePolicy,
    /// Frames due at or after this time since the start are not sent.
    pub duration_max: Duration,
    /// Total number of frames to send.
    pub frames_max: u64,
    /// Whether to run in virtual time, without waiting.
    pub virtual_time: bool,
    /// How far ahead of their due times ports that hold departures receive frames.
    pub horizon: Duration,
    /// Number of the first stream in the signatures of the first worker; see [`Share::number`].
    pub first_number: u32,
}

/// Counters of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Frames sent.
    pub frames: u64,
    /// Bytes of these frames, without FCS.
    pub bytes: u64,
    /// Frames skipped because they were late.
    pub unsent: u64,
    /// Number of starts.
    pub starts: u32,
    /// Frames of `frames` that the port made by itself.
    pub made_by_port: u64,
}

/// Sends the streams of one port, or a share of each.
///
/// Frames with a due time leave in the order of their due times. Streams of [`Speed::Max`] use the
/// remaining time, a few frames each, round robin.
///
/// # Shared streams
///
/// All workers must receive pauses, speed changes, stops and starts with the same instant. Then
/// they follow one common schedule; after a speed change it is accurate to a nanosecond.
#[derive(Debug)]
pub struct Generator {
    options: GeneratorOptions,
    streams: Vec<StreamState>,
    /// Streams whose next frame has a due time.
    queue: Queue,
    /// Streams that send as fast as the port accepts frames.
    top_speed: VecDeque<u32>,
    /// Whether there are too many streams for the cache, so that prefetching pays off.
    are_many: bool,
    /// Whether the port has been asked to store the constant frames.
    has_stored: bool,
    /// Frames left in a turn of the first of these streams that another breath began; or 0.
    turn_rest: usize,
    start: Instant,
    departures: DepartureScheduler,
    /// Number of frames sent so far.
    sent: u64,
    /// Number of paused streams.
    paused: usize,
    /// How far ahead of their due times the last breath passed frames to the port.
    ahead: Duration,
    /// Streams that the port sends by itself.
    hosted: Vec<Hosted>,
    /// Earliest time to ask the port: streams without due times begin at once.
    hosts_from: Instant,
    /// Whether a stream has entered the queue since the port was last asked to send it by itself.
    has_new: bool,
    /// Total frame rate of all streams.
    rate: f64,
    /// Frame rate for which the queue was built.
    queue_rate: f64,
}

/// State of a stream. Fields that every frame needs are first, in as few cache lines as possible.
#[derive(Debug)]
#[repr(C, align(64))]
struct StreamState {
    /// Schedule while the stream is running.
    emission: Option<StreamSchedule>,
    stored: Option<StoredBytes>,
    /// Frames passed to the port, and their bytes.
    frames: u64,
    bytes: u64,
    /// Whether its frames have no due time.
    is_top_speed: bool,
    /// Whether other ports send some of its frames.
    is_part: bool,
    life: Box<ColdState>,
    maker: FrameBuilder,
}

// A template that fits occupies its own cache line.
const _: () = {
    let template = mem::offset_of!(StreamState, maker) + mem::offset_of!(FrameBuilder, short);
    assert!(template.is_multiple_of(BLOCK) && mem::size_of::<StreamState>() == template + BLOCK);
};

/// State that only the start and end of a stream need.
#[derive(Debug)]
struct ColdState {
    unsent: u64,
    /// Frames that the port made by itself.
    made_by_port: u64,
    starts: u32,
    /// Time at which the stream was paused.
    paused: Option<Instant>,
    /// Number of the first frame of this start, or of the next start if the stream is not running.
    first: u64,
    /// Number of starts by itself or as the next stream of another.
    begun: u32,
    /// Current transmission; its speed may differ from the plan.
    transmission: Transmission,
    speed_planned: Speed,
    share: Share,
    /// Frames to send; `None` for all.
    selection: Option<Selection>,
}

/// A stream that the port sends by itself.
#[derive(Clone, Copy, Debug)]
struct Hosted {
    stream: u32,
    /// Length of its frames.
    length: usize,
    /// Frames that are in the counters of the stream.
    counted: u64,
}

/// Maximum time between two looks at the streams that a port sends by itself.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum number of frames in a breath, so that the worker notices stop requests soon.
const BREATH_FRAMES: usize = 256;

/// Frames that a stream without due times sends in one turn.
const TURN_FRAMES: usize = 8;

/// Number of streams whose state fits into a second-level cache.
const CACHED_STREAMS: usize = 2_048;

/// Number of turns to prefetch ahead.
const PREFETCH_TURNS: usize = 8;

/// Maximum number of streams of the next day to prefetch.
const PREFETCH_NEXT_DAY: usize = 64;

impl Generator {
    /// Creates a generator whose streams start at `start`.
    ///
    /// # Panics
    /// Panics if a stream's program does not fit its template or `next` is not a stream: plans are
    /// validated before.
    pub fn new(streams: &[Stream], options: GeneratorOptions, start: Instant) -> Self {
        let departures = DepartureScheduler::new(options.policy);
        let share = options.share;
        let mut recipes = OperationCache::default();
        let running = streams.iter().enumerate().map(|(index, stream)| {
            let number = share.number(options.first_number, index as u32);
            let maker = FrameBuilder::new(stream, number, share, &mut recipes);
            let selection = stream.member.as_ref().map(|it| Selection::new(it, &maker));
            StreamState::new(stream.transmission, maker, share, selection)
        });
        let streams: Vec<StreamState> = running.collect();
        let rate: f64 = streams.iter().map(|stream| stream.rate()).sum();
        let is_timed = streams.iter().any(|stream| !stream.is_top_speed);
        let mut generator = Self {
            queue: Queue::new(rate),
            are_many: streams.len() > CACHED_STREAMS,
            streams,
            top_speed: VecDeque::new(),
            has_stored: false,
            turn_rest: 0,
            options,
            start,
            departures,
            sent: 0,
            paused: 0,
            ahead: Duration::ZERO,
            hosted: Vec::new(),
            hosts_from: if is_timed { Instant::ZERO } else { start },
            has_new: true,
            rate,
            queue_rate: rate,
        };
        for index in 0..generator.streams.len() {
            if generator.streams[index].life.transmission.self_start {
                generator.begin(index, start);
            }
        }
        generator
    }

    /// Sends what is due at `now`, then flushes the port.
    ///
    /// # Errors
    /// Returns errors of the port. The counters of generator and port stay valid.
    ///
    /// # Panics
    /// Panics if a template exceeds the port's maximum frame length.
    pub fn breathe<P: Transmit>(
        &mut self,
        now: Instant,
        port: &mut P,
    ) -> Result<Breath, PortError> {
        let before = self.sent;
        self.watch(now, port);
        // A frame that waits in the port would delay all frames behind it. So with streams without
        // due times, no frame is passed ahead of its due time.
        let holds_departure = port.capabilities().holds_departure
            && (self.options.virtual_time || self.top_speed.is_empty());
        let state = match holds_departure {
            true => self.fill::<true, P>(now, port),
            false => self.fill::<false, P>(now, port),
        };
        port.flush()?;
        let frames = (self.sent - before) as usize;
        if self.hosted.is_empty() {
            return Ok(Breath { frames, state });
        }
        let end = self.start.saturating_add(self.options.duration_max);
        let look = now.saturating_add(WATCH_INTERVAL);
        let look = if end > now { look.min(end) } else { look };
        let state = match state {
            WorkerState::Done => WorkerState::Waiting(look),
            WorkerState::Waiting(until) => WorkerState::Waiting(until.min(look)),
            state => state,
        };
        Ok(Breath { frames, state })
    }

    /// Gives new streams to a port that sends them by itself, and takes back those that have ended.
    fn watch<P: Transmit>(&mut self, now: Instant, port: &mut P) {
        if !self.hosted.is_empty() && port.resident().is_some_and(|it| it.sending() == 0) {
            self.recall(port);
        }
        if self.has_new && self.hosted.is_empty() && now >= self.hosts_from {
            self.has_new = false;
            self.host(now, port);
        }
    }

    /// Gives the streams to the port that it can send by itself.
    #[cold]
    fn host<P: Transmit>(&mut self, now: Instant, port: &mut P) {
        if self.options.virtual_time {
            return;
        }
        let Some(resident) = port.resident() else { return };
        let end = self.start.saturating_add(self.options.duration_max);
        let is_timed = resident.options().is_timed;
        let frames_max = self.options.frames_max - self.sent;
        if frames_max == 0 {
            return;
        }
        let mut streams = Vec::new();
        let mut hosted = Vec::new();
        let mut running = 0;
        for (index, stream) in self.streams.iter().enumerate() {
            if stream.emission.is_none() || stream.life.paused.is_some() {
                continue;
            }
            running += 1;
            // A port cannot divide its time between streams that it makes and this one.
            if is_timed && stream.is_top_speed {
                return;
            }
            if let Some(mut described) = stream.resident(end, resident.options()) {
                described.frames = described.frames.min(frames_max);
                hosted.push(Hosted {
                    stream: index as u32,
                    length: described.template.len(),
                    counted: 0,
                });
                streams.push(described);
            }
        }
        // Without due times, or with a total number of frames, the port must send all.
        let must_be_all = !is_timed || self.options.frames_max != u64::MAX;
        if streams.is_empty()
            || must_be_all && streams.len() < running
            || !is_timed && now >= end
            || resident.host(&streams, frames_max, end).is_err()
        {
            return;
        }
        for Hosted { stream, .. } in &hosted {
            self.leave(*stream as usize);
        }
        self.hosted = hosted;
    }

    /// Counts the frames that the port has sent by itself so far.
    pub fn observe<P: Transmit>(&mut self, port: &mut P) {
        if self.hosted.is_empty() {
            return;
        }
        let Some(resident) = port.resident() else { return };
        for (place, hosted) in self.hosted.iter_mut().enumerate() {
            let new = resident.taken(place) - hosted.counted;
            let running = &mut self.streams[hosted.stream as usize];
            hosted.counted += new;
            running.frames += new;
            running.life.made_by_port += new;
            running.bytes += new * hosted.length as u64;
            self.sent += new;
        }
    }

    /// Takes back the streams that the port sends by itself. Call it before a command to a stream, and
    /// before [`Generator::postpone`] and [`Generator::pass_over`].
    pub fn recall<P: Transmit>(&mut self, port: &mut P) {
        if self.hosted.is_empty() {
            return;
        }
        let Some(resident) = port.resident() else { return };
        resident.recall();
        self.observe(port);
        for Hosted { stream, length, counted } in mem::take(&mut self.hosted) {
            let running = &mut self.streams[stream as usize];
            let StreamState { emission: Some(emission), maker, .. } = running else { continue };
            maker.skip_made(counted);
            match emission.skip(counted, length, maker) {
                After::Frame => self.enter(stream as usize),
                After::End(last) => self.ended(stream as usize, last),
            }
        }
    }

    /// Returns the counters of each stream, in the order of the plan.
    pub fn counters(&self) -> impl Iterator<Item = StreamCounters> {
        self.streams.iter().map(StreamState::counters)
    }

    /// Returns the indices of the streams that are paused, in ascending order.
    pub fn paused(&self) -> impl Iterator<Item = usize> {
        let streams = self.streams.iter().enumerate();
        streams.filter(|(_, stream)| stream.life.paused.is_some()).map(|(index, _)| index)
    }

    /// Returns the departures of a port that does not hold departures, as observed by this process.
    pub fn departures(&self) -> &DepartureRecord {
        self.departures.record()
    }

    /// Pauses a stream from `now` on; does nothing if it is not running or already paused.
    ///
    /// Frames that the port received ahead of their due times still leave. `stream` is the index in
    /// the plan, here and below.
    ///
    /// # Panics
    /// Panics if there is no such stream, here and below.
    pub fn pause(&mut self, stream: usize, now: Instant) {
        let running = &mut self.streams[stream];
        if running.emission.is_some() && running.life.paused.is_none() {
            running.life.paused = Some(now);
            self.paused += 1;
            self.leave(stream);
        }
    }

    /// Resumes a stream at `now`: all its remaining frames are delayed by the length of the pause.
    pub fn resume(&mut self, stream: usize, now: Instant) {
        let running = &mut self.streams[stream];
        let Some(since) = running.life.paused.take() else { return };
        self.paused -= 1;
        if let Some(emission) = &mut running.emission {
            emission.postpone(now.saturating_since(since));
        }
        self.resume_schedule(stream);
    }

    /// Delays all remaining frames and the end by `span`, for which sending was suspended. The
    /// schedule of a paused stream stands still anyway.
    pub fn postpone(&mut self, span: Duration) {
        self.start = self.start.saturating_add(span);
        for stream in 0..self.streams.len() {
            let running = &self.streams[stream];
            if running.emission.is_none() || running.life.paused.is_some() {
                continue;
            }
            self.leave(stream);
            if let Some(emission) = &mut self.streams[stream].emission {
                emission.postpone(span);
            }
            self.enter(stream);
        }
    }

    /// Changes the speed of a stream from `now` on and keeps its phase: the rest of the current gap
    /// changes in proportion. An overdue frame keeps its due time, and so does the next frame of an
    /// on-off stream. On ports that hold departures, the change takes effect one horizon later,
    /// because the port already has the frames before.
    pub fn set_speed(&mut self, stream: usize, speed: Speed, now: Instant) {
        let running = &mut self.streams[stream];
        self.rate -= running.rate();
        running.life.transmission.speed = speed;
        running.is_top_speed = speed == Speed::Max;
        self.rate += running.rate();
        let is_on_its_way = running.emission.is_some() && running.life.paused.is_none();
        if is_on_its_way {
            self.leave(stream);
        }
        let running = &mut self.streams[stream];
        // The schedule of a paused stream stands still.
        let at = running.life.paused.unwrap_or(now).saturating_add(self.ahead);
        if let Some(emission) = &mut running.emission {
            emission.set_speed(speed, at, &running.maker);
        }
        if is_on_its_way {
            self.resume_schedule(stream);
        }
        self.rebuild_queue();
    }

    /// Sets the speed of a stream to `numerator / denominator` of its planned speed from `now` on;
    /// see [`Generator::set_speed`]. [`Speed::Max`] stays.
    ///
    /// # Errors
    /// Returns an error if the result is not a valid rate; the speed then stays.
    pub fn scale_speed(
        &mut self,
        stream: usize,
        numerator: u64,
        denominator: u64,
        now: Instant,
    ) -> Result<(), RateError> {
        let speed = match self.streams[stream].life.speed_planned {
            Speed::Max => return Ok(()),
            Speed::Frames(rate) => Speed::Frames(rate.scaled(numerator, denominator)?),
            Speed::Bits(rate, layer) => Speed::Bits(rate.scaled(numerator, denominator)?, layer),
        };
        self.set_speed(stream, speed, now);
        Ok(())
    }

    /// Scales the speed of all streams; see [`Generator::scale_speed`].
    ///
    /// # Errors
    /// Returns an error if a result is not a valid rate; earlier streams keep the new speed.
    pub fn scale_speeds(
        &mut self,
        numerator: u64,
        denominator: u64,
        now: Instant,
    ) -> Result<(), RateError> {
        for stream in 0..self.streams.len() {
            self.scale_speed(stream, numerator, denominator, now)?;
        }
        Ok(())
    }

    /// Changes template, program and trailer of a stream to those of `plan`, from the next frame on.
    /// The numbers of frames continue, also those in signatures. A speed in bits holds for the new
    /// frames. The other fields of `plan` have no effect, except the keys of its member.
    ///
    /// # Panics
    /// Panics if a step does not fit the template, or if the template exceeds the port's maximum frame
    /// length when a frame is sent.
    pub fn set_frames(&mut self, stream: usize, plan: &Stream, now: Instant) {
        let running = &mut self.streams[stream];
        self.rate -= running.rate();
        running.maker.replace(plan, running.life.share);
        running.stored = None;
        if let (Some(selection), Some(member)) = (&mut running.life.selection, &plan.member) {
            selection.set_frames(member, &running.maker);
        }
        self.rate += running.rate();
        let speed = running.life.transmission.speed;
        self.set_speed(stream, speed, now);
    }

    /// Changes the members of the link aggregation group that may send a stream, from now on; see
    /// [`Member::active`](wirestorm_model::stream::Member::active). Has no effect on other streams.
    pub fn set_members(&mut self, stream: usize, active: u64) {
        if let Some(selection) = &mut self.streams[stream].life.selection {
            selection.set_active(active);
        }
    }

    /// Changes the members of the stream's link aggregation group whose interface is down. The other
    /// members send their frames from now on.
    pub fn set_members_down(&mut self, stream: usize, down: u64) {
        if let Some(selection) = &mut self.streams[stream].life.selection {
            selection.set_down(down);
        }
    }

    /// Passes over the frames that are due at `now`, because the interface is down; counts them as
    /// unsent. Streams without due times wait.
    pub fn pass_over(&mut self, now: Instant) -> WorkerState {
        let end = self.start.saturating_add(self.options.duration_max);
        for _ in 0..BREATH_FRAMES {
            let Some(turn) = self.queue.first() else {
                if self.queue.is_day_over() {
                    self.begin_day();
                    continue;
                }
                return match self.top_speed.is_empty() {
                    true => self.finished(now, end),
                    false => WorkerState::Waiting(end),
                };
            };
            let Entry { due, stream } = turn.entry;
            if due >= end {
                return self.finished(now, end);
            }
            if due > now {
                return WorkerState::Waiting(due);
            }
            let running = &mut self.streams[stream as usize];
            if running.is_top_speed {
                self.queue.pop();
                self.top_speed.push_back(stream);
                continue;
            }
            match running.pass_over() {
                NextStep::Due(due) | NextStep::Stop(due, _) => self.queue.next_turn(turn, due),
                NextStep::End(last) => {
                    self.queue.pop();
                    self.ended(stream as usize, last);
                }
            }
        }
        WorkerState::Active
    }

    /// Stops a stream at once, without starting its next stream.
    pub fn stop(&mut self, stream: usize) {
        self.leave(stream);
        let running = &mut self.streams[stream];
        if running.emission.take().is_some() {
            self.paused -= usize::from(running.life.paused.take().is_some());
            running.align_numbers();
        }
    }

    /// Starts a stream at `now` if it is not running. Its frame numbers continue; each worker
    /// continues its own.
    pub fn start(&mut self, stream: usize, now: Instant) {
        let running = &mut self.streams[stream];
        if running.emission.is_none() {
            running.align_numbers();
            self.begin(stream, now);
        }
    }

    fn fill<const HOLDS: bool, P: Transmit>(&mut self, now: Instant, port: &mut P) -> WorkerState {
        let until = if self.options.virtual_time {
            Instant::MAX
        } else if HOLDS {
            now.saturating_add(self.options.horizon)
        } else {
            now
        };
        let gives_ahead = HOLDS && !self.options.virtual_time;
        self.ahead = if gives_ahead { self.options.horizon } else { Duration::ZERO };
        let end = self.start.saturating_add(self.options.duration_max);
        if end == Instant::ZERO {
            return self.finished(now, end);
        }
        let before_end = end.saturating_sub(Duration::from_nanos(1));
        if !self.has_stored {
            self.store(port);
        }
        let allowed = self.options.frames_max - self.sent;
        let left = BREATH_FRAMES.min(usize::try_from(allowed).unwrap_or(usize::MAX));
        let mut budget = Budget { now, left, unsent: 0 };
        // Time until which the first stream with a due time must wait to keep its gap.
        let mut held = None;
        let state = loop {
            if budget.left == 0 {
                break WorkerState::Active;
            }
            // Checked on each turn, because such a stream may start within this breath.
            let limit = if self.top_speed.is_empty() { until } else { until.min(now) };
            let limit = limit.min(before_end);
            let turn = self.queue.first();
            if held.is_none() && turn.is_some_and(|turn| turn.entry.due <= limit) {
                match self.turns::<HOLDS, P>(limit, &mut budget, port) {
                    Some(WorkerState::Waiting(until)) if !self.top_speed.is_empty() => {
                        held = Some(until);
                    }
                    Some(state) => break state,
                    None => {}
                }
            } else if turn.is_none() && self.queue.is_day_over() {
                self.begin_day();
            } else if !self.top_speed.is_empty() && now < end {
                if let Some(state) = self.serve_top_speed::<HOLDS, P>(&mut budget, port) {
                    break state;
                }
            } else {
                match (turn, held) {
                    (Some(Turn { entry: Entry { due, .. }, .. }), _)
                        if due < end && due > limit =>
                    {
                        break WorkerState::Waiting(due.saturating_sub(self.ahead));
                    }
                    (_, Some(until)) => break WorkerState::Waiting(until),
                    (_, None) => break self.finished(now, end),
                }
            }
        };
        self.sent += (left - budget.left - budget.unsent) as u64;
        match state {
            WorkerState::Active if self.sent >= self.options.frames_max => WorkerState::Done,
            state => state,
        }
    }

    /// Serves the streams due up to `limit`. Returns the state if the breath ends; `None` if the
    /// set of streams without due times may have changed.
    #[inline]
    fn turns<const HOLDS: bool, P: Transmit>(
        &mut self,
        limit: Instant,
        budget: &mut Budget,
        port: &mut P,
    ) -> Option<WorkerState> {
        while budget.left > 0 {
            let turn = self.queue.first().filter(|turn| turn.entry.due <= limit)?;
            if self.are_many
                && let Some(later) = self.streams.get(self.queue.ahead() as usize)
            {
                later.prefetch();
            }
            let stream = turn.entry.stream;
            let running = &mut self.streams[stream as usize];
            if running.is_top_speed {
                self.queue.pop();
                self.top_speed.push_back(stream);
                return None;
            }
            // Send all frames of this stream that are due before any other stream's next frame.
            let until = limit.min(turn.until);
            let then = loop {
                let then = running.frame::<false, HOLDS, P>(budget, port, &mut self.departures);
                match then {
                    NextStep::Due(due) if due <= until && budget.left > 0 => {}
                    then => break then,
                }
            };
            match then {
                NextStep::Due(due) => self.queue.next_turn(turn, due),
                NextStep::End(last) => {
                    self.queue.pop();
                    self.ended(stream as usize, last);
                    return None;
                }
                NextStep::Stop(due, state) => {
                    self.queue.next_turn(turn, due);
                    return Some(state);
                }
            }
        }
        None
    }

    /// Starts a day of the queue, and prefetches the streams of the day after it.
    #[cold]
    #[inline(never)]
    fn begin_day(&mut self) {
        self.queue.begin_day();
        if !self.are_many {
            return;
        }
        for stream in self.queue.next_day_streams().take(PREFETCH_NEXT_DAY) {
            self.streams[stream as usize].prefetch();
        }
    }

    /// Serves the next stream without due times; returns the state if the breath ends.
    #[inline(never)]
    fn serve_top_speed<const HOLDS: bool, P: Transmit>(
        &mut self,
        budget: &mut Budget,
        port: &mut P,
    ) -> Option<WorkerState> {
        let stream = self.top_speed.pop_front()?;
        if let Some(&later) = self.top_speed.get(PREFETCH_TURNS) {
            self.streams[later as usize].prefetch();
        }
        let running = &mut self.streams[stream as usize];
        // Frames of its current group leave now.
        let mut until = budget.now;
        if let Some(emission) = &mut running.emission {
            if let Err(end) = emission.wait_until(budget.now) {
                self.ended(stream as usize, end);
                return None;
            }
            until = emission.due();
        }
        let rest = match mem::take(&mut self.turn_rest) {
            0 if self.top_speed.is_empty() => budget.left,
            0 => TURN_FRAMES,
            rest => rest,
        };
        let mut turn = Budget { left: rest.min(budget.left), ..*budget };
        let first = turn.left;
        let then = loop {
            let then = running.frame::<true, HOLDS, P>(&mut turn, port, &mut self.departures);
            match then {
                NextStep::Due(due) if due <= until && turn.left > 0 => {}
                then => break then,
            }
        };
        let handled = first - turn.left;
        budget.left -= handled;
        budget.unsent = turn.unsent;
        match then {
            NextStep::Due(due) if due > until => self.queue.push(Entry { due, stream }),
            NextStep::Due(_) if rest == handled => self.top_speed.push_back(stream),
            NextStep::Due(_) | NextStep::Stop(..) => {
                self.top_speed.push_front(stream);
                self.turn_rest = rest - handled;
            }
            NextStep::End(last) => self.ended(stream as usize, last),
        }
        match then {
            NextStep::Stop(_, state) => Some(state),
            _ => None,
        }
    }

    /// Asks the port to store the frames of constant streams.
    #[cold]
    fn store<P: Transmit>(&mut self, port: &mut P) {
        self.has_stored = true;
        for stream in self.streams.iter_mut().filter(|stream| stream.maker.is_constant()) {
            stream.stored = port.store(stream.maker.template());
        }
    }

    /// Returns the state when nothing is due before the end.
    fn finished(&self, now: Instant, end: Instant) -> WorkerState {
        // A paused stream may be resumed, except in virtual time, where nobody waits.
        let may_go_on = self.paused > 0 && now < end && !self.options.virtual_time;
        if may_go_on { WorkerState::Waiting(end) } else { WorkerState::Done }
    }

    /// Ends a stream whose last frame was due at `last`, and starts its next stream.
    #[cold]
    fn ended(&mut self, stream: usize, last: Instant) {
        if let Some(next) = self.streams[stream].end() {
            self.start_next(next, last);
        }
    }

    fn start_next(&mut self, stream: usize, at: Instant) {
        let running = &mut self.streams[stream];
        let starts_max = running.life.transmission.starts_max;
        if starts_max > 0 && running.life.begun >= starts_max {
            return;
        }
        running.life.begun += 1;
        self.begin(stream, at);
    }

    /// Starts a stream at an instant; if this worker has no frames of it, starts its next stream.
    fn begin(&mut self, stream: usize, at: Instant) {
        let (mut stream, mut at) = (stream, at);
        let share = self.options.share;
        // Each start has a frame, so a worker's turn comes soon even in a loop of streams.
        for _ in 0..=share.workers.saturating_mul(self.streams.len() as u64) {
            let running = &mut self.streams[stream];
            if running.emission.is_some() {
                return;
            }
            running.life.starts += 1;
            let (emission, after) = StreamSchedule::start(
                &running.life.transmission,
                share,
                &running.maker,
                running.life.first,
                at,
            );
            match after {
                After::Frame => {
                    running.emission = Some(emission);
                    if running.life.transmission.start_paused && running.life.starts == 1 {
                        running.life.paused = Some(at);
                        self.paused += 1;
                    } else {
                        self.enter(stream);
                    }
                    return;
                }
                After::End(last) => {
                    running.emission = Some(emission);
                    let Some(next) = running.end() else { return };
                    let named = &mut self.streams[next];
                    let starts_max = named.life.transmission.starts_max;
                    if starts_max > 0 && named.life.begun >= starts_max {
                        return;
                    }
                    named.life.begun += 1;
                    (stream, at) = (next, last);
                }
            }
        }
    }

    /// Continues a stream, or ends it if a change left no frame before its end.
    fn resume_schedule(&mut self, stream: usize) {
        let emission = &self.streams[stream].emission;
        match emission.as_ref().and_then(StreamSchedule::over) {
            Some(end) => self.ended(stream, end),
            None => self.enter(stream),
        }
    }

    /// Adds a running stream to the queue.
    fn enter(&mut self, stream: usize) {
        self.has_new = true;
        if let Some(emission) = &self.streams[stream].emission {
            self.queue.push(Entry { due: emission.due(), stream: stream as u32 });
        }
    }

    /// Removes a stream from the queue.
    fn leave(&mut self, stream: usize) {
        let Some(emission) = &self.streams[stream].emission else { return };
        let entry = Entry { due: emission.due(), stream: stream as u32 };
        match self.top_speed.iter().position(|&other| other == entry.stream) {
            Some(place) => {
                self.top_speed.remove(place);
                self.turn_rest = if place == 0 { 0 } else { self.turn_rest };
            }
            None => self.queue.remove(entry),
        }
    }

    /// Rebuilds the queue if the length of its days no longer fits the rate.
    fn rebuild_queue(&mut self) {
        if (self.queue_rate / 4.0..=self.queue_rate * 4.0).contains(&self.rate) {
            return;
        }
        self.queue_rate = self.rate;
        self.queue = Queue::new(self.rate);
        for stream in 0..self.streams.len() {
            let is_at_once = self.top_speed.contains(&(stream as u32));
            if self.streams[stream].life.paused.is_none() && !is_at_once {
                self.enter(stream);
            }
        }
    }
}

/// Limits of the current breath.
#[derive(Clone, Copy)]
struct Budget {
    now: Instant,
    /// Frames that it may still process.
    left: usize,
    /// Frames that it skipped.
    unsent: usize,
}

/// Continuation after a frame.
#[derive(Clone, Copy)]
enum NextStep {
    /// Due time of the stream's next frame.
    Due(Instant),
    /// The frame was not sent; it is due then, and the breath ends.
    Stop(Instant, WorkerState),
    /// End of the stream; its last frame was due then.
    End(Instant),
}

impl ColdState {
    /// Returns whether this port does not send the current frame of `maker`, because another one
    /// does, or none does.
    #[inline(never)]
    fn leaves_to_others(&mut self, maker: &FrameBuilder) -> bool {
        let selected = self.selection.as_ref().map(|it| it.select(maker));
        self.unsent += u64::from(selected == Some(Selected::Nowhere));
        selected.is_some_and(|selected| selected != Selected::Here)
    }
}

impl StreamState {
    fn new(
        transmission: Transmission,
        maker: FrameBuilder,
        share: Share,
        selection: Option<Selection>,
    ) -> Self {
        Self {
            emission: None,
            frames: 0,
            bytes: 0,
            stored: None,
            is_top_speed: transmission.speed == Speed::Max,
            is_part: selection.is_some(),
            life: Box::new(ColdState {
                unsent: 0,
                made_by_port: 0,
                starts: 0,
                paused: None,
                first: 0,
                begun: u32::from(transmission.self_start),
                transmission,
                speed_planned: transmission.speed,
                share,
                selection,
            }),
            maker,
        }
    }

    /// Describes the stream to a port that can send it by itself; `None` if it cannot. No frame is due
    /// at `end` or later.
    fn resident(&self, end: Instant, options: &ResidentOptions) -> Option<ResidentStream> {
        let emission = self.emission.as_ref()?;
        let transmission = &self.life.transmission;
        let is_apart = self.is_part || transmission.next.is_some();
        if is_apart || self.is_top_speed == options.is_timed {
            return None;
        }
        let (frames, ticker) = emission.steady(end)?;
        let (shape, cursors) = self.maker.resident().ok()?;
        let (number, sequence) = self.maker.signing();
        (frames > 0).then_some(ResidentStream {
            shape: resident::place(&shape, options)?,
            template: self.maker.template().into(),
            cursors,
            number,
            sequence,
            frames,
            schedule: options.is_timed.then(|| (emission.due(), ticker)),
        })
    }

    fn counters(&self) -> StreamCounters {
        let ColdState { unsent, made_by_port, starts, .. } = *self.life;
        StreamCounters { frames: self.frames, bytes: self.bytes, unsent, starts, made_by_port }
    }

    /// Aligns the first frame of the next start to this worker's next frame, independent of the
    /// other workers.
    fn align_numbers(&mut self) {
        self.life.first = self.maker.number() - self.life.share.index;
    }

    /// Returns the approximate rate of frames with a due time that this worker sends.
    fn rate(&self) -> f64 {
        let of_all = match self.life.transmission.speed {
            Speed::Max => 0.0,
            Speed::Frames(rate) => rate.per_second(),
            Speed::Bits(rate, layer) => {
                let bytes = self.maker.template().len() as u64 + layer.overhead();
                rate.per_second() / (8 * bytes) as f64
            }
        };
        of_all / self.life.share.workers as f64
    }

    /// Prefetches the state for the next turn.
    #[inline]
    fn prefetch(&self) {
        prefetch(&self.emission);
        prefetch(&self.frames);
        self.maker.prefetch();
    }

    /// Ends the stream after its last frame, of any worker; returns the next stream.
    fn end(&mut self) -> Option<usize> {
        let emission = self.emission.take();
        match self.life.transmission.mode {
            Mode::Continuous => {}
            Mode::Time { .. } => match emission {
                Some(emission) if !self.is_top_speed => self.life.first = emission.advances(),
                _ => self.align_numbers(),
            },
            Mode::Burst { frames } => self.life.first += frames,
            Mode::Bursts { frames, count, .. } => {
                self.life.first += frames.saturating_mul(count);
            }
        }
        self.life.transmission.next
    }

    /// Passes over the next frame, which is counted as not sent if it is one of this port.
    fn pass_over(&mut self) -> NextStep {
        let Some(emission) = &mut self.emission else { return NextStep::End(Instant::ZERO) };
        if !self.is_part || !self.life.leaves_to_others(&self.maker) {
            self.life.unsent += 1;
        }
        let length = self.maker.skip();
        match emission.advance(length, &self.maker) {
            After::Frame => NextStep::Due(emission.due()),
            After::End(last) => NextStep::End(last),
        }
    }

    /// Sends the next frame. `AT_ONCE`: it has no due time; `HOLDS`: the port holds departures.
    // Inlined: there is one call for each way to send, and it runs for each frame.
    #[inline(always)]
    fn frame<const AT_ONCE: bool, const HOLDS: bool, P: Transmit>(
        &mut self,
        budget: &mut Budget,
        port: &mut P,
        departures: &mut DepartureScheduler,
    ) -> NextStep {
        let Some(emission) = &mut self.emission else { return NextStep::End(budget.now) };
        let maker = &mut self.maker;
        let due = emission.due();
        if self.is_part && self.life.leaves_to_others(maker) {
            budget.unsent += 1;
            budget.left -= 1;
            let length = maker.skip();
            return match emission.advance(length, maker) {
                After::Frame => NextStep::Due(emission.due()),
                After::End(last) => NextStep::End(last),
            };
        }
        let Some(frame) = port.take() else { return NextStep::Stop(due, WorkerState::Blocked) };
        let admission = match HOLDS || AT_ONCE {
            true => Admission::Send,
            false => departures.admit(budget.now, due),
        };
        let length = match admission {
            Admission::Send => {
                let departure = if AT_ONCE || !HOLDS { Instant::ZERO } else { due };
                let length = match self.stored {
                    Some(stored) => {
                        let length = maker.skip();
                        port.send_stored(frame, stored, 0..length, departure);
                        length
                    }
                    None => {
                        // If the port does not hold departures, the frame leaves now.
                        let leaves = if HOLDS && !AT_ONCE { due } else { budget.now };
                        let length = maker.make(port.frame_mut(&frame), leaves);
                        if maker.takes_stamp() {
                            port.send_stamped(frame, length, departure);
                        } else {
                            port.send(frame, length, departure);
                        }
                        length
                    }
                };
                self.frames += 1;
                self.bytes += length as u64;
                length
            }
            Admission::Drop => {
                port.release(frame);
                budget.unsent += 1;
                self.life.unsent += 1;
                maker.skip()
            }
            Admission::Wait(until) => {
                port.release(frame);
                return NextStep::Stop(due, WorkerState::Waiting(until));
            }
        };
        budget.left -= 1;
        match emission.advance(length, maker) {
            After::Frame => NextStep::Due(emission.due()),
            After::End(last) => NextStep::End(last),
        }
    }
}
