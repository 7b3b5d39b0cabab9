//! Echo requests at a steady rate beside other traffic, and how long their answers take.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use wirestorm_base::port::PortError;
use wirestorm_base::rate::{Rate, Ticker};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{Distribution, Jitter};
use wirestorm_io::clock;
use wirestorm_stack::{EchoRequest, Heard};
use wirestorm_wire::packet::MacAddress;

use super::station::Station;

/// How long the last answers are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Requests whose answers are waited for, at most: their numbers have 16 bits.
const WAITING_MAX: usize = 1 << 15;

/// Requests that are sent at once where the thread is late, at most.
const BEHIND_MAX: u32 = 16;

/// When all probes of a run begin and end.
#[derive(Debug, Default)]
pub(crate) struct ProbeTimes {
    start: OnceLock<Instant>,
    stop: OnceLock<()>,
    /// Those that still ask, or wait for answers.
    busy: Mutex<usize>,
    /// That none is busy any more.
    is_over: Condvar,
}

impl ProbeTimes {
    /// They ask from now on.
    pub(crate) fn begin(&self) {
        // Who begins them first does.
        let _ = self.start.set(clock::now());
    }

    /// None asks any more; returns when there is nothing more to wait for.
    pub(crate) fn end(&self) {
        // Who ends them first does.
        let _ = self.stop.set(());
        let patience = std::time::Duration::from_nanos(2 * PATIENCE.as_nanos());
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        // Where they take longer than they may, what they found so far is what there is.
        let _ = self.is_over.wait_timeout_while(busy, patience, |busy| *busy > 0);
    }

    fn enter(&self) {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn leave(&self) {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.is_over.notify_all();
    }
}

/// What was found out by probes: round-trip delays (RFC 2681) of requests of ICMP.
#[derive(Clone, Debug)]
pub(crate) struct ProbeRecord {
    /// Requests sent.
    pub(crate) sent: u64,
    /// Those that were answered.
    pub(crate) received: u64,
    /// Answers beyond the first to a request.
    pub(crate) duplicated: u64,
    /// Requests that could not be sent when they were due, or not soon after, and were left out.
    pub(crate) unsent: u64,
    pub(crate) delays: Distribution,
    pub(crate) jitter: Jitter,
}

/// Asks one host again and again.
pub(crate) struct Prober {
    request: EchoRequest,
    ticker: Ticker,
    /// When the next request is due, from the start on.
    due: Duration,
    /// Requests that may be answered yet, the first one's number, and when they left.
    waiting: VecDeque<Asked>,
    first: u64,
    is_counted: bool,
    times: Arc<ProbeTimes>,
    record: Arc<Mutex<ProbeRecord>>,
}

struct Asked {
    at: Instant,
    is_answered: bool,
}

impl Prober {
    /// Asks a host that a station reaches by this address of its own and by this next hop.
    pub(crate) fn new(
        station: &Station,
        (source, next_hop): (IpAddr, MacAddress),
        target: IpAddr,
        rate: Rate,
        times: &Arc<ProbeTimes>,
    ) -> Self {
        times.enter();
        // Several runs of this process may ask on one interface.
        static PROBERS: AtomicU16 = AtomicU16::new(0);
        let number = PROBERS.fetch_add(1, Ordering::Relaxed);
        let identifier = (std::process::id() as u16).wrapping_add(number);
        let record = ProbeRecord {
            sent: 0,
            received: 0,
            duplicated: 0,
            unsent: 0,
            delays: Distribution::new(),
            jitter: Jitter::default(),
        };
        Self {
            request: EchoRequest {
                macs: (station.host().mac, next_hop),
                source,
                destination: target,
                identifier,
                sequence: 0,
                payload: (0..56).collect(),
            },
            ticker: Ticker::new(rate),
            due: Duration::ZERO,
            waiting: VecDeque::new(),
            first: 0,
            is_counted: true,
            times: Arc::clone(times),
            record: Arc::new(Mutex::new(record)),
        }
    }

    /// Where what it finds out can be looked at.
    pub(crate) fn record(&self) -> Arc<Mutex<ProbeRecord>> {
        Arc::clone(&self.record)
    }

    /// Sends what is due. Returns when there is something to do next.
    pub(super) fn ask(&mut self, station: &mut Station) -> Result<Instant, PortError> {
        let Some(start) = self.times.start.get() else { return Ok(Instant::MAX) };
        if self.times.stop.get().is_some() {
            self.finish();
            return Ok(Instant::MAX);
        }
        let mut left = BEHIND_MAX;
        loop {
            let (now, at) = (clock::now(), start.saturating_add(self.due));
            if at > now {
                return Ok(at);
            }
            self.due = self.due.saturating_add(self.ticker.step(1));
            if left == 0 {
                self.note(|record| record.unsent += 1);
                continue;
            }
            left -= 1;
            if self.waiting.len() == WAITING_MAX {
                self.waiting.pop_front();
                self.first += 1;
            }
            let number = self.first + self.waiting.len() as u64;
            self.request.sequence = number as u16;
            // The families are those of a route, and the payload is short.
            let Some(frame) = self.request.frame() else { return Ok(Instant::MAX) };
            self.waiting.push_back(Asked { at: clock::now(), is_answered: false });
            station.send(&frame)?;
            self.note(|record| record.sent += 1);
        }
    }

    /// Where all is answered, or nobody waits any more, it is over.
    fn finish(&mut self) {
        let is_over = |asked: &Asked| {
            asked.is_answered || clock::now().saturating_since(asked.at) >= PATIENCE
        };
        if self.is_counted && self.waiting.iter().all(is_over) {
            self.is_counted = false;
            self.times.leave();
        }
    }

    /// Takes an answer, if it is one to it.
    pub(super) fn hear(&mut self, heard: &Heard, arrival: Instant) {
        let Heard::Echo(reply) = heard else { return };
        let is_ours = reply.identifier == self.request.identifier
            && reply.source == self.request.destination
            && reply.payload == self.request.payload;
        let place = usize::from(reply.sequence.wrapping_sub(self.first as u16));
        let Some(asked) = self.waiting.get_mut(place).filter(|_| is_ours) else { return };
        if std::mem::replace(&mut asked.is_answered, true) {
            return self.note(|record| record.duplicated += 1);
        }
        let delay = arrival.saturating_since(asked.at).as_nanos() as i64;
        self.note(|record| {
            record.received += 1;
            record.delays.record(delay);
            record.jitter.note(delay);
        });
    }

    fn note(&self, note: impl FnOnce(&mut ProbeRecord)) {
        // Who reads it does not panic.
        if let Ok(mut record) = self.record.lock() {
            note(&mut record);
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        if self.is_counted {
            self.times.leave();
        }
    }
}
