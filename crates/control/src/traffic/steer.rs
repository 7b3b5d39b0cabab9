//! Changes to flows while they are sent.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::stream::Generator;
use wirestorm_io::clock;
use wirestorm_wire::stream::Speed;

/// What is asked of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// To hold. Frames that a port was given ahead of their due times still leave.
    Pause,
    /// To go on where it was held.
    Resume,
    /// To begin, whether it has ended or never began.
    Start,
    /// To end; the flow that it names as its next one does not start.
    Stop,
    /// To be sent at another speed.
    SetSpeed(Speed),
    /// To be sent at `numerator / denominator` of the plan's speed.
    Scale {
        /// Upper part of the factor.
        numerator: u64,
        /// Lower part of it, not 0.
        denominator: u64,
    },
}

/// Where a run takes orders from.
#[derive(Debug, Default)]
pub struct Steering {
    given: Mutex<Vec<Given>>,
    /// How many were given: read by the workers at every turn.
    count: AtomicUsize,
}

/// Orders take effect this much later than they are given, so that all workers know of them by
/// then: longer than a worker ever rests.
const NOTICE: Duration = Duration::from_millis(25);

#[derive(Clone, Debug)]
struct Given {
    at: Instant,
    flows: Vec<usize>,
    order: Order,
}

impl Steering {
    /// Asks something of flows, by their places in the plan. It happens 25 ms later, at the same
    /// instant on all workers; or at the start of the run, if that is later.
    pub fn give(&self, flows: &[usize], order: Order) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let at = clock::now().saturating_add(NOTICE);
        given.push(Given { at, flows: flows.to_vec(), order });
        self.count.store(given.len(), Ordering::Release);
    }

    /// The flows of which something was asked.
    pub(super) fn flows(&self) -> BTreeSet<usize> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.iter().flat_map(|given| &given.flows).copied().collect()
    }
}

/// One worker's view of the orders.
pub(super) struct Follower<'a> {
    steering: &'a Steering,
    /// Orders that were carried out.
    done: usize,
    /// When the next one is to be.
    due: Option<Instant>,
    /// When sending begins: what was ordered before happens then.
    start: Instant,
}

impl<'a> Follower<'a> {
    pub(super) fn new(steering: &'a Steering, start: Instant) -> Self {
        Self { steering, done: 0, due: None, start }
    }

    /// When the next order is due, as far as one is known.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Carries out what is due; `lanes` are the flows of each generator, in its streams' order.
    #[inline]
    pub(super) fn follow<'b>(
        &mut self,
        now: Instant,
        generators: &mut [Generator],
        lanes: impl Fn(usize) -> &'b [usize],
    ) {
        if self.steering.count.load(Ordering::Acquire) != self.done {
            self.carry_out(now, generators, lanes);
        }
    }

    #[cold]
    fn carry_out<'b>(
        &mut self,
        now: Instant,
        generators: &mut [Generator],
        lanes: impl Fn(usize) -> &'b [usize],
    ) {
        let rest: Vec<Given> = {
            let given = self.steering.given.lock().unwrap_or_else(PoisonError::into_inner);
            given[self.done..].to_vec()
        };
        for Given { at, flows, order } in rest {
            let at = at.max(self.start);
            if now < at {
                self.due = Some(at);
                return;
            }
            self.done += 1;
            for (index, generator) in generators.iter_mut().enumerate() {
                for (stream, flow) in lanes(index).iter().enumerate() {
                    if flows.contains(flow) {
                        carry_out(generator, stream, order, at);
                    }
                }
            }
        }
        self.due = None;
    }
}

fn carry_out(generator: &mut Generator, stream: usize, order: Order, at: Instant) {
    match order {
        Order::Pause => generator.pause(stream, at),
        Order::Resume => generator.resume(stream, at),
        Order::Start => generator.start(stream, at),
        Order::Stop => generator.stop(stream),
        Order::SetSpeed(speed) => generator.set_speed(stream, speed, at),
        Order::Scale { numerator, denominator } => {
            // A product beyond what a rate can be leaves the speed as it is.
            let _ = generator.scale_speed(stream, numerator, denominator, at);
        }
    }
}
