//! Messages that a master has granted to unicast slaves (16.1).

use wirestorm_base::time::{Duration, Instant};

use crate::ptp::address::Address;
use crate::ptp::identity::PortIdentity;
use crate::ptp::interval::LogInterval;
use crate::ptp::message::MessageType;

/// Most grants of a master; a slave needs three.
pub const GRANTS_MAX: usize = 384;
/// Longest grant in seconds.
pub const GRANT_SECONDS_MAX: u32 = 300;

/// Messages of one type for one slave.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) slave: PortIdentity,
    pub(super) address: Address,
    pub(super) kind: MessageType,
    pub(super) sequence: u16,
    interval: Duration,
    end: Instant,
    /// When the next message is due; never for answers.
    next: Instant,
}

/// All grants, at most [`GRANTS_MAX`].
#[derive(Debug, Default)]
pub(super) struct Grants(Vec<Grant>);

impl Grants {
    /// Grants messages or extends a grant. Returns the seconds; 0 if there is no room.
    pub(super) fn grant(
        &mut self,
        now: Instant,
        (slave, address): (PortIdentity, Address),
        kind: MessageType,
        interval: LogInterval,
        seconds: u32,
    ) -> u32 {
        let seconds = seconds.min(GRANT_SECONDS_MAX);
        let end = now.saturating_add(Duration::from_secs(u64::from(seconds)));
        let interval = interval.duration();
        let first = if kind == MessageType::DelayResp { Instant::MAX } else { now };
        if let Some(known) = self.find(slave, kind) {
            known.address = address;
            known.end = end;
            known.interval = interval;
            known.next = known.next.min(now.saturating_add(interval)).max(first);
            return seconds;
        }
        if self.0.len() >= GRANTS_MAX || seconds == 0 {
            return 0;
        }
        self.0.push(Grant { slave, address, kind, sequence: 0, interval, end, next: first });
        seconds
    }

    fn find(&mut self, slave: PortIdentity, kind: MessageType) -> Option<&mut Grant> {
        self.0.iter_mut().find(|grant| grant.slave == slave && grant.kind == kind)
    }

    /// Returns whether a slave may have messages of a type at `now`.
    pub(super) fn has(&self, now: Instant, slave: PortIdentity, kind: MessageType) -> bool {
        self.0.iter().any(|it| it.slave == slave && it.kind == kind && now < it.end)
    }

    /// Ends a grant.
    pub(super) fn cancel(&mut self, slave: PortIdentity, kind: MessageType) {
        self.0.retain(|grant| grant.slave != slave || grant.kind != kind);
    }

    /// Ends all grants, and returns them.
    pub(super) fn cancel_all(&mut self) -> Vec<Grant> {
        std::mem::take(&mut self.0)
    }

    /// Forgets grants that are over.
    pub(super) fn expire(&mut self, now: Instant) {
        self.0.retain(|grant| now < grant.end);
    }

    /// Returns when a message is due or a grant is over.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.0.iter().map(|grant| grant.next.min(grant.end)).min()
    }

    /// Calls `send` for each grant whose message is due.
    pub(super) fn due(&mut self, now: Instant, mut send: impl FnMut(&mut Grant)) {
        for grant in self.0.iter_mut().filter(|grant| grant.next <= now) {
            grant.next = next_after(grant.next, grant.interval, now);
            send(grant);
        }
    }

    /// Returns the number of slaves with a grant.
    pub(super) fn slaves(&self) -> usize {
        let is_first = |(position, grant): &(usize, &Grant)| {
            self.0.iter().take(*position).all(|before| before.slave != grant.slave)
        };
        self.0.iter().enumerate().filter(is_first).count()
    }
}

/// Returns the next time of a schedule after `now`. It keeps the schedule unless a whole interval was
/// missed.
pub(super) fn next_after(due: Instant, interval: Duration, now: Instant) -> Instant {
    let next = due.saturating_add(interval);
    if next > now { next } else { now.saturating_add(interval) }
}
