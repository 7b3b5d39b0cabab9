//! Unicast negotiation of a slave: it asks one master for messages (16.1).

use wirestorm_base::time::{Duration, Instant};

use crate::ptp::address::Address;
use crate::ptp::interval::LogInterval;
use crate::ptp::message::{MessageType, Tlv};

/// Time between requests that are not answered.
const RETRY: Duration = Duration::from_secs(1);
/// Time after a refused or cancelled grant until the next request.
const REFUSED: Duration = Duration::from_secs(5);

/// Intervals without a master after which a slave asks for Announce again.
const ANNOUNCE_PATIENCE: u64 = 5;

/// What a slave asks a unicast master for.
#[derive(Clone, Copy, Debug)]
pub struct UnicastOptions {
    /// Address of the master.
    pub master: Address,
    /// Interval of Announce messages.
    pub announce: LogInterval,
    /// Interval of Sync and Follow_Up messages.
    pub sync: LogInterval,
    /// Interval of Delay_Req messages.
    pub delay: LogInterval,
    /// Time of a grant in seconds; it is renewed before its end.
    pub seconds: u32,
}

/// Messages of one type that a slave asks for.
#[derive(Debug)]
struct Service {
    kind: MessageType,
    interval: LogInterval,
    next_request: Instant,
    end: Option<Instant>,
}

/// The grants of the master.
#[derive(Debug)]
pub(super) struct Negotiation {
    pub(super) master: Address,
    seconds: u32,
    services: [Service; 3],
}

impl Negotiation {
    pub(super) fn new(now: Instant, options: &UnicastOptions) -> Self {
        let service = |kind, interval| Service { kind, interval, next_request: now, end: None };
        Self {
            master: options.master,
            seconds: options.seconds,
            services: [
                service(MessageType::Announce, options.announce),
                service(MessageType::Sync, options.sync),
                service(MessageType::DelayResp, options.delay),
            ],
        }
    }

    /// Returns the interval of Announce messages, which unicast headers do not have.
    pub(super) const fn announce_interval(&self) -> LogInterval {
        self.services[0].interval
    }

    /// Returns the interval of Delay_Req messages while the master grants answers.
    pub(super) fn delay_interval(&self, now: Instant) -> Option<LogInterval> {
        let delay = &self.services[2];
        delay.end.is_some_and(|end| now < end).then_some(delay.interval)
    }

    /// Returns when requests are due. Without a parent, the slave asks for Announce alone.
    pub(super) fn next_request(&self, has_parent: bool) -> Option<Instant> {
        self.wanted(has_parent).map(|service| service.next_request).min()
    }

    fn wanted(&self, has_parent: bool) -> impl Iterator<Item = &Service> {
        self.services.iter().take(if has_parent { 3 } else { 1 })
    }

    /// Returns the requests that are due.
    pub(super) fn requests(&mut self, now: Instant, has_parent: bool) -> Vec<Tlv> {
        let seconds = self.seconds;
        let wanted = self.services.iter_mut().take(if has_parent { 3 } else { 1 });
        let due = wanted.filter(|service| service.next_request <= now);
        due.map(|service| {
            service.next_request = now.saturating_add(RETRY);
            let (kind, log_interval) = (service.kind, service.interval.power());
            Tlv::Request { kind, log_interval, seconds }
        })
        .collect()
    }

    /// Takes a grant. Returns whether it gives messages.
    pub(super) fn grant(
        &mut self,
        now: Instant,
        has_parent: bool,
        (kind, log_interval, seconds): (MessageType, i8, u32),
    ) -> bool {
        let Some(service) = self.services.iter_mut().find(|service| service.kind == kind) else {
            return false;
        };
        if seconds == 0 {
            service.next_request = now.saturating_add(REFUSED);
            return false;
        }
        let seconds = u64::from(seconds);
        service.interval = LogInterval::clamped(log_interval);
        service.end = Some(now.saturating_add(Duration::from_secs(seconds)));
        // Leave a quarter of the time for renewals that get lost.
        let renewal = Duration::from_millis(seconds * 750);
        // A master that restarts forgets its grants.
        let patience = service.interval.times(ANNOUNCE_PATIENCE);
        let wait = if has_parent { renewal } else { renewal.min(patience) };
        service.next_request = now.saturating_add(wait);
        true
    }

    /// Takes the end of a grant that the master cancels.
    pub(super) fn cancelled(&mut self, now: Instant, kind: MessageType) {
        if let Some(service) = self.services.iter_mut().find(|service| service.kind == kind) {
            service.end = None;
            service.next_request = now.saturating_add(REFUSED);
        }
    }

    /// Forgets the grants of the last parent, and asks again. A new parent was found by the grant of
    /// Announce, which remains.
    pub(super) fn parent_changed(&mut self, now: Instant, has_parent: bool) {
        for service in self.services.iter_mut().skip(usize::from(has_parent)) {
            service.end = None;
            service.next_request = now;
        }
    }

    /// Returns the messages that end all grants.
    pub(super) fn cancel_all(&mut self) -> Vec<Tlv> {
        let granted = self
            .services
            .iter_mut()
            .filter_map(|service| service.end.take().map(|_| Tlv::Cancel { kind: service.kind }));
        granted.collect()
    }
}
