//! Decides the fate of each frame and its departure.

use alloc::collections::VecDeque;

use wirestorm_base::rate::Ticker;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::impairment::{Bottleneck, Impairment, Jitter, Loss, Probability, Queue};
use wirestorm_model::stream::draw;

use super::ImpairmentCounters;

/// Applies an impairment to one frame after the other.
#[derive(Debug)]
pub struct Line {
    impairment: Impairment,
    seed: u64,
    /// Whether the burst loss model is in its bad state.
    is_bad: bool,
    bottleneck: Option<BottleneckQueue>,
    /// Arrival of the last frame that was not reordered; later frames do not arrive before it.
    arrived: Instant,
}

/// How a frame passes the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Departure.
    pub at: Instant,
    /// Index of the bit to invert, counted from the first bit of the frame.
    pub inverted_bit: Option<usize>,
}

/// Passages of a frame and its duplicate; `None` if it is dropped.
pub type Deliveries = [Option<Delivery>; 2];

/// Random decisions; each has its own sequence of draws.
#[derive(Clone, Copy)]
enum Draw {
    Loss = 1,
    State,
    Duplication,
    Corruption,
    Bit,
    Jitter,
    Reordering,
}

/// Bit that separates the draws of duplicates from those of frames.
const DUPLICATE: u64 = 1 << 7;

const ETHERNET_HEADER_BYTES: usize = 14;

impl Line {
    /// Creates a line before its first frame.
    pub fn new(impairment: Impairment, seed: u64) -> Self {
        let bottleneck = impairment.bottleneck.map(BottleneckQueue::new);
        Self { impairment, seed, is_bad: false, bottleneck, arrived: Instant::ZERO }
    }

    /// Decides the fate of a frame of `length` bytes without FCS that arrives at `now`. Counts
    /// everything except deliveries and frames for which the caller has no room.
    pub fn enter(
        &mut self,
        now: Instant,
        length: usize,
        counters: &mut ImpairmentCounters,
    ) -> Deliveries {
        let number = counters.entered;
        counters.entered += 1;
        if self.is_lost(number) {
            counters.lost += 1;
            return [None; 2];
        }
        let first = self.pass(now, length, number, 0, counters);
        let is_doubled = self.chance(self.impairment.duplication, Draw::Duplication, 0, number);
        let second = is_doubled.then(|| {
            counters.duplicated += 1;
            self.pass(now, length, number, DUPLICATE, counters)
        });
        [first, second.flatten()]
    }

    fn is_lost(&mut self, number: u64) -> bool {
        match self.impairment.loss {
            Loss::None => false,
            Loss::Random(share) => share.selects(self.draw(Draw::Loss, 0, number)),
            Loss::GilbertElliott(bursts) => {
                let (passing, change) =
                    if self.is_bad { (bursts.h, bursts.r) } else { (bursts.k, bursts.p) };
                let is_lost = !passing.selects(self.draw(Draw::Loss, 0, number));
                self.is_bad ^= change.selects(self.draw(Draw::State, 0, number));
                is_lost
            }
        }
    }

    /// Passes a frame from the queue onward.
    fn pass(
        &mut self,
        now: Instant,
        length: usize,
        number: u64,
        copy: u64,
        counters: &mut ImpairmentCounters,
    ) -> Option<Delivery> {
        let sent = match &mut self.bottleneck {
            None => now,
            Some(sender) => match sender.send(now, length) {
                Some(sent) => sent,
                None => {
                    counters.queue_dropped += 1;
                    return None;
                }
            },
        };
        let is_corrupt = self.chance(self.impairment.corruption, Draw::Corruption, copy, number);
        counters.corrupted += u64::from(is_corrupt);
        let flipped = is_corrupt.then(|| {
            let header = if length > ETHERNET_HEADER_BYTES { ETHERNET_HEADER_BYTES } else { 0 };
            let bits = ((length - header) * 8) as u64;
            header * 8 + below(self.draw(Draw::Bit, copy, number), bits) as usize
        });
        let mut at = sent.saturating_add(self.delay(copy, number)).max(self.arrived);
        let reordering = self.impairment.reordering;
        if self.chance(reordering.share, Draw::Reordering, copy, number) {
            at = at.saturating_add(reordering.extra_delay);
        } else {
            self.arrived = at;
        }
        Some(Delivery { at, inverted_bit: flipped })
    }

    /// Returns the delay including jitter.
    fn delay(&self, copy: u64, number: u64) -> Duration {
        let delay = self.impairment.delay;
        let random = |part| draw(self.draw(Draw::Jitter, copy, number), part);
        // Draw from a range of twice the spread, then subtract the spread.
        let (more, less) = match self.impairment.jitter {
            Jitter::None => return delay,
            Jitter::Uniform(most) => {
                let most = most.as_nanos();
                (below(random(0), most.saturating_mul(2).saturating_add(1)), most)
            }
            // The sum of twelve uniform numbers from 0 to 1 has a mean of 6 and a variance of 1.
            Jitter::Normal(deviation) => {
                let deviation = deviation.as_nanos();
                let sum: u64 = (0..12).map(|part| random(part) >> 32).sum();
                let more = (u128::from(sum) * u128::from(deviation)) >> 32;
                (more as u64, deviation.saturating_mul(6))
            }
        };
        let more = delay.saturating_add(Duration::from_nanos(more));
        more.saturating_sub(Duration::from_nanos(less))
    }

    fn chance(&self, share: Probability, what: Draw, copy: u64, number: u64) -> bool {
        share > Probability::NONE && share.selects(self.draw(what, copy, number))
    }

    fn draw(&self, what: Draw, copy: u64, number: u64) -> u64 {
        draw(self.seed ^ ((what as u64 | copy) << 56), number)
    }
}

/// Scales a 64-bit draw to a number below `end`.
const fn below(random: u64, end: u64) -> u64 {
    ((random as u128 * end as u128) >> 64) as u64
}

/// Bottleneck with its queue.
#[derive(Debug)]
struct BottleneckQueue {
    bottleneck: Bottleneck,
    ticker: Ticker,
    /// Time at which it has sent all frames so far.
    free: Instant,
    /// Start of transmission and length of each waiting frame.
    waiting: VecDeque<(Instant, usize)>,
    waiting_bytes: u64,
}

impl BottleneckQueue {
    fn new(bottleneck: Bottleneck) -> Self {
        Self {
            bottleneck,
            ticker: Ticker::new(bottleneck.rate),
            free: Instant::ZERO,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Returns when a frame that arrives now has been sent; `None` if the queue is full.
    fn send(&mut self, now: Instant, length: usize) -> Option<Instant> {
        while let Some(&(begin, length)) = self.waiting.front()
            && begin <= now
        {
            self.waiting.pop_front();
            self.waiting_bytes -= length as u64;
        }
        let begin = self.free.max(now);
        if begin > now {
            let has_room = match self.bottleneck.queue {
                Queue::Frames(frames) => self.waiting.len() < frames as usize,
                Queue::Bytes(bytes) => {
                    self.waiting_bytes + length as u64 <= bytes
                        && self.waiting.len() < Queue::MAX_FRAMES as usize
                }
            };
            if !has_room {
                return None;
            }
            self.waiting.push_back((begin, length));
            self.waiting_bytes += length as u64;
        }
        let bits = (length as u64 + self.bottleneck.layer.overhead()) * 8;
        self.free = begin.saturating_add(self.ticker.step(bits));
        Some(self.free)
    }
}
