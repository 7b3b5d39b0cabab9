//! A PTP session on an interface: a state machine with its sockets, and what it measures.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_clock::estimate::Timeline;
use wirestorm_clock::exchange::Exchange;
use wirestorm_clock::ptp::identity::{ClockIdentity, PortIdentity};
use wirestorm_clock::ptp::master::{Master, MasterCounters, MasterOptions};
use wirestorm_clock::ptp::output::Output;
use wirestorm_clock::ptp::slave::{Parent, Slave, SlaveCounters, SlaveOptions, UnicastOptions};
use wirestorm_io::clock;
use wirestorm_io::namespace::InterfaceName;

pub use wirestorm_clock::ptp::address::Address;
pub use wirestorm_clock::ptp::interval::LogInterval;

use super::PATIENCE;
use super::ptp_transport::{Event, Transport, TransportError, TransportKind};

/// Exchanges that a session keeps, the newest: a minute at 64 a second.
const EXCHANGES_MAX: usize = 4_096;
/// Exchanges of the live estimate.
const LIVE_EXCHANGES: usize = 256;
/// Time of a unicast grant in seconds.
const GRANT_SECONDS: u32 = 300;

/// Role of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtpRole {
    /// Follows a master; `unicast` is the master to ask for messages, else it uses multicast.
    Slave {
        /// Address of the master.
        unicast: Option<Address>,
    },
    /// Is a master.
    Master {
        /// First priority; the lowest wins.
        priority1: u8,
    },
}

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct PtpOptions {
    /// Interface to send and receive on.
    pub interface: InterfaceName,
    /// Network.
    pub transport: TransportKind,
    /// PTP domain.
    pub domain: u8,
    /// Role.
    pub role: PtpRole,
    /// Interval of Sync and Delay_Req messages. A multicast slave gets those of its master.
    pub interval: LogInterval,
}

impl fmt::Display for PtpOptions {
    /// Formats for messages: `eth1 (l2, domain 0)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, domain {})", self.interface, self.transport.keyword(), self.domain)
    }
}

/// A PTP session.
#[derive(Debug)]
pub struct PtpSession {
    transport: Transport,
    machine: Machine,
    domain: u8,
    start: Instant,
    exchanges: VecDeque<Exchange>,
    /// Sends that a full queue or a missing neighbour prevented.
    unsent: u64,
}

#[derive(Debug)]
enum Machine {
    Slave(Box<Slave>),
    Master(Box<Master>),
}

/// The master that a slave follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PtpMaster {
    /// Port of the master, such as `025753.fffe.000001-1`.
    pub port: String,
    /// Address of the master.
    pub address: String,
    /// Clock that the time comes from, such as `025753.fffe.000001`.
    #[schemars(with = "String")]
    pub grandmaster: ClockIdentity,
    /// Class of the grandmaster.
    pub clock_class: u8,
    /// Code of the grandmaster's accuracy.
    pub accuracy: u8,
    /// First priority of the grandmaster.
    pub priority1: u8,
    /// Second priority of the grandmaster.
    pub priority2: u8,
    /// Steps to the grandmaster.
    pub steps_removed: u16,
    /// TAI minus UTC in seconds, if the times of the master are TAI, which are converted; else null.
    pub utc_offset: Option<i16>,
}

/// The clock that a session is compared with: that of its master, or its own if it is a master. Clocks
/// that are compared with the same one can be compared with each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PtpSource {
    /// Identity of the grandmaster, such as `025753.fffe.000001`.
    pub grandmaster: String,
    /// Identity of the clock that the time stamps are of: the grandmaster, or a boundary clock.
    pub clock: String,
    /// PTP domain: a clock may have another time in each.
    pub domain: u8,
    /// TAI minus UTC in seconds, if the times of the clock were TAI. They are converted.
    pub utc_offset: Option<i16>,
}

impl PtpSource {
    fn of_parent(parent: &Parent, domain: u8) -> Self {
        Self {
            grandmaster: parent.grandmaster().to_string(),
            clock: parent.port.clock.to_string(),
            domain,
            utc_offset: parent.utc_offset,
        }
    }

    fn of_master(master: &Master, domain: u8) -> Self {
        let clock = master.identity().clock.to_string();
        Self { grandmaster: clock.clone(), clock, domain, utc_offset: None }
    }
}

impl fmt::Display for PtpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grandmaster {}", self.grandmaster)?;
        if self.clock != self.grandmaster {
            write!(f, " through boundary clock {}", self.clock)?;
        }
        if self.domain != 0 {
            write!(f, " in domain {}", self.domain)?;
        }
        Ok(())
    }
}

/// What a slave has measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PtpMeasurement {
    /// This clock minus the master's in ns: the median of single measurements.
    pub offset_median_ns: i64,
    /// Mean of both directions of the path in ns: the median of single measurements.
    pub path_delay_median_ns: i64,
    /// Measurements that the medians are based on.
    pub exchanges: usize,
    /// Offset with its error, estimated from all measurements; null with less than four.
    pub estimate: Option<PtpEstimate>,
}

/// Estimated offset of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PtpEstimate {
    /// This clock minus the master's in ns, at the last measurement.
    pub offset_ns: f64,
    /// Likely error of the offset in ns, if the path is symmetric.
    pub half_width_ns: f64,
    /// Largest error of the offset in ns, whatever the asymmetry of the path is.
    pub bound_ns: f64,
    /// Drift of this clock against the master's in ppm.
    pub drift_ppm: f64,
    /// Shortest round trip in ns.
    pub round_trip_ns: f64,
}

/// State or result of a session.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
#[schemars(deny_unknown_fields)]
pub enum PtpStatus {
    /// Of a slave.
    Slave {
        /// Time since the start in seconds.
        elapsed: f64,
        /// The master; null if there is none.
        master: Option<PtpMaster>,
        /// What was measured; null without a complete measurement.
        measurement: Option<PtpMeasurement>,
        /// Counters of messages.
        messages: SlaveCounters,
        /// Messages that could not be sent.
        unsent: u64,
    },
    /// Of a master.
    Master {
        /// Time since the start in seconds.
        elapsed: f64,
        /// Port of this master.
        port: String,
        /// Unicast slaves with a grant.
        unicast_slaves: usize,
        /// Counters of messages.
        messages: MasterCounters,
        /// Messages that could not be sent.
        unsent: u64,
    },
}

impl PtpSession {
    /// Opens the sockets and starts the state machine.
    ///
    /// # Errors
    /// See [`TransportError`].
    pub fn open(options: &PtpOptions) -> Result<Self, TransportError> {
        if let PtpRole::Slave { unicast: Some(address) } = options.role {
            options.transport.check(address)?;
        }
        let transport = Transport::open(&options.interface, options.transport)?;
        let identity = PortIdentity { clock: ClockIdentity::from_mac(transport.mac()), port: 1 };
        let now = clock::now();
        let (domain, interval) = (options.domain, options.interval);
        let machine = match options.role {
            PtpRole::Slave { unicast } => {
                let unicast = unicast.map(|master| UnicastOptions {
                    master,
                    announce: LogInterval::clamped(1),
                    sync: interval,
                    delay: interval,
                    seconds: GRANT_SECONDS,
                });
                let seed = clock::realtime_nanos();
                let options =
                    SlaveOptions { identity, domain, unicast, delay_interval: interval, seed };
                Machine::Slave(Box::new(Slave::new(now, options)))
            }
            PtpRole::Master { priority1 } => {
                let mut options =
                    MasterOptions { domain, priority1, ..MasterOptions::new(identity) };
                (options.sync, options.delay) = (interval, interval);
                Machine::Master(Box::new(Master::new(now, options)))
            }
        };
        Ok(Self { transport, machine, domain, start: now, exchanges: VecDeque::new(), unsent: 0 })
    }

    /// Runs until `stop` is set or `duration` is over, on this thread. Calls `show` about each
    /// `interval`. Returns the final status.
    ///
    /// # Errors
    /// See [`TransportError`]; a missing master is none.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        duration: Option<Duration>,
        interval: Duration,
        mut show: impl FnMut(&PtpStatus),
    ) -> Result<PtpStatus, TransportError> {
        let end = duration.map_or(Instant::MAX, |duration| self.start.saturating_add(duration));
        let mut next_show = self.start.saturating_add(interval);
        loop {
            let now = clock::now();
            if stop.load(Ordering::Relaxed) || now >= end {
                break;
            }
            self.step(now, end.min(next_show))?;
            if now >= next_show {
                next_show = now.saturating_add(interval);
                show(&self.status(LIVE_EXCHANGES));
            }
        }
        self.stop()?;
        Ok(self.status(EXCHANGES_MAX))
    }

    /// Ends the session for the other clocks: cancels unicast grants.
    pub(super) fn stop(&mut self) -> Result<(), TransportError> {
        match &mut self.machine {
            Machine::Slave(slave) => slave.stop(),
            Machine::Master(master) => master.stop(),
        }
        self.send_outputs()
    }

    /// Checks that the interface is up, and still the one that the session opened.
    pub(super) fn check_link(&self) -> Result<(), TransportError> {
        self.transport.check_link()
    }

    /// Returns whether the interface has a MAC address, which identifies the clock.
    pub(super) fn has_identity(&self) -> bool {
        self.transport.mac() != [0; 6]
    }

    /// Returns the clock that the session is compared with; `None` while a slave has no master.
    pub(super) fn source(&self) -> Option<PtpSource> {
        match &self.machine {
            Machine::Slave(slave) => {
                slave.parent().map(|parent| PtpSource::of_parent(parent, self.domain))
            }
            Machine::Master(master) => Some(PtpSource::of_master(master, self.domain)),
        }
    }

    /// Takes the exchanges with the master that the session follows, or followed last.
    pub(super) fn take_exchanges(&mut self) -> VecDeque<Exchange> {
        std::mem::take(&mut self.exchanges)
    }

    /// Does what is due, then waits for the sockets until the next timer, at most until `end`.
    pub(super) fn step(&mut self, now: Instant, end: Instant) -> Result<(), TransportError> {
        let due = match &mut self.machine {
            Machine::Slave(slave) => {
                if slave.next_timer().is_some_and(|due| due <= now) {
                    slave.handle_timer(now);
                }
                slave.next_timer()
            }
            Machine::Master(master) => {
                if master.next_timer().is_some_and(|due| due <= now) {
                    master.handle_timer(now);
                }
                master.next_timer()
            }
        };
        self.send_outputs()?;
        let until = due.unwrap_or(Instant::MAX).min(end);
        let machine = &mut self.machine;
        self.transport.poll(until.saturating_since(now).min(PATIENCE), |event| match event {
            Event::Arrived { from, bytes, stamp } => {
                let now = clock::now();
                match machine {
                    Machine::Slave(slave) => slave.handle_message(now, from, bytes, stamp),
                    Machine::Master(master) => master.handle_message(now, from, bytes, stamp),
                }
            }
            Event::Departed { stamp, time } => match machine {
                Machine::Slave(slave) => slave.handle_sent(stamp, time),
                Machine::Master(master) => master.handle_sent(stamp, time),
            },
        })?;
        self.send_outputs()
    }

    fn send_outputs(&mut self) -> Result<(), TransportError> {
        loop {
            let output = match &mut self.machine {
                Machine::Slave(slave) => slave.poll_output(),
                Machine::Master(master) => master.poll_output(),
            };
            match output {
                None => return Ok(()),
                Some(Output::Send(message)) => {
                    self.unsent += u64::from(!self.transport.send(&message)?);
                }
                Some(Output::Exchange(exchange)) => {
                    if self.exchanges.len() >= EXCHANGES_MAX {
                        self.exchanges.pop_front();
                    }
                    self.exchanges.push_back(exchange);
                }
                // Measurements of another master are of another clock.
                Some(Output::Parent(Some(_))) => self.exchanges.clear(),
                Some(Output::Parent(None)) => {}
            }
        }
    }

    /// Returns the state, with an estimate from the newest exchanges.
    fn status(&mut self, exchanges: usize) -> PtpStatus {
        let elapsed = clock::now().saturating_since(self.start).as_secs_f64();
        let unsent = self.unsent;
        match &self.machine {
            Machine::Master(master) => PtpStatus::Master {
                elapsed,
                port: master.identity().to_string(),
                unicast_slaves: master.unicast_slaves(),
                messages: *master.counters(),
                unsent,
            },
            Machine::Slave(slave) => {
                let all = self.exchanges.make_contiguous();
                let newest = all.get(all.len().saturating_sub(exchanges)..).unwrap_or_default();
                PtpStatus::Slave {
                    elapsed,
                    master: slave.parent().map(PtpMaster::new),
                    measurement: PtpMeasurement::new(newest),
                    messages: *slave.counters(),
                    unsent,
                }
            }
        }
    }
}

impl PtpStatus {
    /// Returns whether a slave has measured a master; a master always succeeds.
    pub const fn is_success(&self) -> bool {
        match self {
            Self::Slave { measurement, .. } => measurement.is_some(),
            Self::Master { .. } => true,
        }
    }
}

impl PtpMaster {
    fn new(parent: &Parent) -> Self {
        let announce = &parent.announce;
        Self {
            port: parent.port.to_string(),
            address: parent.address.to_string(),
            grandmaster: announce.grandmaster,
            clock_class: announce.clock_class,
            accuracy: announce.accuracy,
            priority1: announce.priority1,
            priority2: announce.priority2,
            steps_removed: announce.steps_removed,
            utc_offset: parent.utc_offset,
        }
    }
}

impl PtpMeasurement {
    /// Evaluates exchanges; `None` if there are none.
    fn new(exchanges: &[Exchange]) -> Option<Self> {
        let last = exchanges.last()?;
        // The far clock is the master's, so its offset has the opposite sign.
        let offset = |it: &Exchange| it.backward() / 2 - it.forward() / 2;
        let delay = |it: &Exchange| it.round_trip() / 2;
        let estimate = Timeline::new(exchanges).at(last.t1).map(|it| PtpEstimate {
            offset_ns: -it.offset_ns,
            half_width_ns: it.half_width_ns,
            bound_ns: it.bound_ns(),
            drift_ppm: -it.drift_ppm,
            round_trip_ns: it.round_trip_ns,
        });
        Some(Self {
            offset_median_ns: median(exchanges.iter().map(offset)),
            path_delay_median_ns: median(exchanges.iter().map(delay)),
            exchanges: exchanges.len(),
            estimate,
        })
    }
}

/// Returns the median, or 0 of no values; of an even number of values the upper one.
fn median(values: impl Iterator<Item = i64>) -> i64 {
    let mut values: Vec<i64> = values.collect();
    let middle = values.len() / 2;
    if values.is_empty() { 0 } else { *values.select_nth_unstable(middle).1 }
}

#[cfg(test)]
mod tests {
    use wirestorm_clock::timestamp::Timestamp;

    use super::*;

    /// An exchange at this second, with a slave whose clock is `ahead` ns.
    fn exchange(second: i64, ahead: i64) -> Exchange {
        let at = |nanoseconds| Timestamp::from_nanos(second * 1_000_000_000 + nanoseconds);
        Exchange { t1: at(ahead), t2: at(3_000), t3: at(0), t4: at(3_000 + ahead) }
    }

    #[test]
    fn offset_is_this_clock_minus_the_masters() {
        let exchanges: Vec<Exchange> = (0..10).map(|second| exchange(second, 500)).collect();
        let measurement = PtpMeasurement::new(&exchanges).unwrap();
        assert_eq!(measurement.offset_median_ns, 500);
        assert_eq!((measurement.path_delay_median_ns, measurement.exchanges), (3_000, 10));
        let estimate = measurement.estimate.unwrap();
        assert!((estimate.offset_ns - 500.0).abs() < 1.0, "{estimate:?}");
        assert!((estimate.round_trip_ns - 6_000.0).abs() < 1.0, "{estimate:?}");
        assert!(PtpMeasurement::new(&exchanges[..1]).unwrap().estimate.is_none());
        assert_eq!(PtpMeasurement::new(&[]), None);
    }
}
