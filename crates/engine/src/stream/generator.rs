//! The generator: makes the frames of streams and puts them into a port, each with its due time.

use alloc::vec::Vec;

use wirestorm_base::departure::{Admission, DeparturePolicy, DepartureRecord, Departures};
use wirestorm_base::port::{PortError, Stored, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::stream::{Speed, Stream};

use super::emission::{After, Emission};
use super::program::FrameMaker;
use super::queue::{Entry, Queue};
use super::share::Share;
use crate::replay::{Breath, WorkerState};

/// How a generator sends.
#[derive(Clone, Debug)]
pub struct GeneratorOptions {
    /// Which frames it sends of every stream.
    pub share: Share,
    /// What becomes of late frames on ports that do not hold departures themselves.
    pub policy: DeparturePolicy,
    /// Nothing is due this long after the start or later.
    pub duration_max: Duration,
    /// Frames to be sent in all.
    pub frames_max: u64,
    /// Whether nothing is waited for: the simulator's time.
    pub virtual_time: bool,
    /// How far ahead of their due times frames are given to ports that hold departures.
    pub horizon: Duration,
}

/// What was sent of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Frames given to the port.
    pub frames: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// Frames left out because they were too late.
    pub unsent: u64,
    /// How often it began.
    pub starts: u32,
}

/// Sends the streams of one port, or a share of each.
#[derive(Debug)]
pub struct Generator {
    options: GeneratorOptions,
    streams: Vec<Running>,
    queue: Queue,
    start: Instant,
    departures: Departures,
    /// Frames sent so far.
    sent: u64,
    is_done: bool,
}

/// A stream on its way.
#[derive(Debug)]
struct Running {
    maker: FrameMaker,
    emission: Option<Emission>,
    plan: Stream,
    stored: Option<Stored>,
    was_stored: bool,
    counters: StreamCounters,
}

/// Frames that a breath handles at most, so that stop requests are noticed soon.
const BREATH_FRAMES: usize = 256;

impl Generator {
    /// A generator whose streams start at `start`.
    ///
    /// # Panics
    /// Where a stream's program does not fit its template, or `next` names no stream: plans are
    /// validated before.
    pub fn new(streams: &[Stream], options: GeneratorOptions, start: Instant) -> Self {
        let departures = Departures::new(options.policy);
        let mut generator = Self {
            streams: streams.iter().map(|stream| Running::new(stream, options.share)).collect(),
            queue: Queue::new(streams.len(), frames_per_second(streams, options.share)),
            options,
            start,
            departures,
            sent: 0,
            is_done: false,
        };
        for (index, stream) in streams.iter().enumerate() {
            if stream.transmission.self_start {
                generator.begin(index, start);
            }
        }
        generator
    }

    /// Does what is due at `now`, then flushes the port.
    ///
    /// # Errors
    /// The port's. The counters stay valid, and so do the port's.
    ///
    /// # Panics
    /// Where a template is longer than the port's longest frame.
    pub fn breathe<P: Transmit>(
        &mut self,
        now: Instant,
        port: &mut P,
    ) -> Result<Breath, PortError> {
        let before = self.sent;
        let state = self.fill(now, port);
        port.flush()?;
        Ok(Breath { frames: (self.sent - before) as usize, state })
    }

    /// What was sent of each stream so far, in the order of the plan.
    pub fn counters(&self) -> impl Iterator<Item = StreamCounters> {
        self.streams.iter().map(|stream| stream.counters)
    }

    /// When frames left a port that does not hold departures, as this process saw it.
    pub fn departures(&self) -> &DepartureRecord {
        self.departures.record()
    }

    fn fill<P: Transmit>(&mut self, now: Instant, port: &mut P) -> WorkerState {
        let holds_departure = port.capabilities().holds_departure;
        let until = if self.options.virtual_time {
            Instant::MAX
        } else if holds_departure {
            now.saturating_add(self.options.horizon)
        } else {
            now
        };
        let end = self.start.saturating_add(self.options.duration_max);
        let mut frames = 0;
        while frames < BREATH_FRAMES {
            let Some(Entry { due, stream }) = self.queue.first() else { return self.done() };
            let allowed = self.options.frames_max - self.sent;
            if self.is_done || due >= end || allowed == 0 {
                return self.done();
            }
            if due > until {
                return WorkerState::Waiting(due.saturating_sub(self.options.horizon));
            }
            // As many frames of this stream as come before any other stream's next one.
            let turn = Turn {
                now,
                until: until.min(self.queue.until()),
                end,
                frames_max: (BREATH_FRAMES - frames)
                    .min(usize::try_from(allowed).unwrap_or(usize::MAX)),
                holds_departure,
            };
            let running = &mut self.streams[stream as usize];
            let taken = running.turn(&turn, port, &mut self.departures);
            frames += taken.frames;
            self.sent += taken.frames as u64;
            match taken.then {
                Then::Due(due) => self.queue.replace_first(Entry { due, stream }),
                Then::Stop(due, state) => {
                    self.queue.replace_first(Entry { due, stream });
                    return state;
                }
                Then::End(last) => {
                    self.queue.pop();
                    if let Some(next) = self.streams[stream as usize].plan.transmission.next {
                        self.begin(next, last);
                    }
                }
            }
        }
        WorkerState::Active
    }

    /// Starts a stream at an instant; at its end at once those that follow.
    fn begin(&mut self, index: usize, at: Instant) {
        let (mut index, mut at) = (index, at);
        // A circle of streams that have no frame for this worker and take no time would never
        // end: one round through all of them is enough.
        for _ in 0..=self.streams.len() {
            let share = self.options.share;
            let running = &mut self.streams[index];
            let transmission = running.plan.transmission;
            if transmission.starts_max > 0 && running.counters.starts >= transmission.starts_max {
                return;
            }
            running.counters.starts += 1;
            let length = running.maker.template().len();
            let varies = running.maker.lengths_vary();
            let (emission, after) = Emission::start(&transmission, share, length, varies, at);
            match after {
                After::Frame => {
                    let due = emission.due();
                    running.emission = Some(emission);
                    self.queue.push(Entry { due, stream: index as u32 });
                    return;
                }
                After::End(last) => match transmission.next {
                    Some(next) => (index, at) = (next, last),
                    None => return,
                },
            }
        }
    }

    fn done(&mut self) -> WorkerState {
        self.is_done = true;
        WorkerState::Done
    }
}

/// About how many frames a second all streams send together.
fn frames_per_second(streams: &[Stream], share: Share) -> f64 {
    let of_one = |stream: &Stream| match stream.transmission.speed {
        Speed::Max => 1e6,
        Speed::Frames(rate) => rate.per_second(),
        Speed::Bits(rate, layer) => {
            let bytes = stream.template.len() as u64 + layer.overhead();
            rate.per_second() / (8 * bytes) as f64
        }
    };
    streams.iter().map(of_one).sum::<f64>() / share.workers as f64
}

/// What one stream may do before it is another one's turn.
struct Turn {
    now: Instant,
    /// The latest due time of its turn.
    until: Instant,
    /// Nothing is due at this instant or later.
    end: Instant,
    frames_max: usize,
    holds_departure: bool,
}

/// What came of a turn.
struct Taken {
    frames: usize,
    then: Then,
}

enum Then {
    /// Its next frame is due then.
    Due(Instant),
    /// The breath ends, and its next frame is due then.
    Stop(Instant, WorkerState),
    /// Its last frame was due then.
    End(Instant),
}

impl Running {
    fn new(plan: &Stream, share: Share) -> Self {
        Self {
            maker: FrameMaker::new(&plan.template, &plan.program, share.index, share.workers),
            emission: None,
            plan: plan.clone(),
            stored: None,
            was_stored: false,
            counters: StreamCounters::default(),
        }
    }

    #[inline]
    fn turn<P: Transmit>(
        &mut self,
        turn: &Turn,
        port: &mut P,
        departures: &mut Departures,
    ) -> Taken {
        if self.maker.is_constant() && !self.was_stored {
            self.was_stored = true;
            self.stored = port.store(self.maker.template());
        }
        let at_once = self.plan.transmission.speed == Speed::Max;
        let mut frames = 0;
        let Some(emission) = &mut self.emission else {
            return Taken { frames, then: Then::End(turn.now) };
        };
        if at_once {
            // Its turn is over once it had one: streams with a schedule come before it again.
            emission.postpone(turn.now.saturating_since(emission.due()));
        }
        loop {
            let due = emission.due();
            if frames == turn.frames_max || due > turn.until || due >= turn.end {
                return Taken { frames, then: Then::Due(due) };
            }
            let Some(frame) = port.take() else {
                return Taken { frames, then: Then::Stop(due, WorkerState::Blocked) };
            };
            let departure = if at_once { Instant::ZERO } else { due };
            if !turn.holds_departure && !at_once {
                match departures.admit(turn.now, due) {
                    Admission::Send => {}
                    Admission::Wait(until) => {
                        port.release(frame);
                        return Taken {
                            frames,
                            then: Then::Stop(due, WorkerState::Waiting(until)),
                        };
                    }
                    Admission::Drop => {
                        port.release(frame);
                        self.counters.unsent += 1;
                        let length = self.maker.skip();
                        match emission.advance(length) {
                            After::Frame => continue,
                            After::End(last) => return Taken { frames, then: Then::End(last) },
                        }
                    }
                }
            }
            let length = match self.stored {
                Some(stored) => {
                    let length = self.maker.template().len();
                    port.send_stored(frame, stored, 0..length, departure);
                    length
                }
                None => {
                    let length = self.maker.make(port.frame_mut(&frame));
                    port.send(frame, length, departure);
                    length
                }
            };
            frames += 1;
            self.counters.frames += 1;
            self.counters.bytes += length as u64;
            if let After::End(last) = emission.advance(length) {
                return Taken { frames, then: Then::End(last) };
            }
        }
    }
}
