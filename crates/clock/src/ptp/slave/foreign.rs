//! Masters that a slave receives Announce messages from (9.3.2.4).

use wirestorm_base::time::{Duration, Instant};

use crate::ptp::address::Address;
use crate::ptp::identity::PortIdentity;
use crate::ptp::interval::LogInterval;
use crate::ptp::message::{Announce, Flags, Header};

/// Most masters of one domain that a slave compares.
pub const MASTERS_MAX: usize = 16;

/// Intervals without an Announce after which a master is gone (`announceReceiptTimeout`).
const RECEIPT_TIMEOUT: u64 = 3;
/// Intervals in which two Announce messages qualify a master (`FOREIGN_MASTER_TIME_WINDOW`).
const QUALIFICATION_WINDOW: u64 = 4;

/// A master that announces itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForeignMaster {
    pub(super) port: PortIdentity,
    pub(super) address: Address,
    pub(super) announce: Announce,
    pub(super) flags: Flags,
    interval: Duration,
    last: Instant,
    is_qualified: bool,
}

/// All masters that announce themselves, at most [`MASTERS_MAX`].
#[derive(Debug, Default)]
pub(super) struct ForeignMasters(Vec<ForeignMaster>);

impl ForeignMasters {
    /// Takes an Announce of a master that sends one each `interval`. Returns whether there was room.
    pub(super) fn announce(
        &mut self,
        now: Instant,
        from: Address,
        header: &Header,
        announce: Announce,
        interval: LogInterval,
    ) -> bool {
        let interval = interval.duration();
        let mut master = ForeignMaster {
            port: header.source,
            address: from,
            announce,
            flags: header.flags,
            interval,
            last: now,
            is_qualified: false,
        };
        if let Some(known) = self.0.iter_mut().find(|known| known.port == header.source) {
            let window = interval.as_nanos().saturating_mul(QUALIFICATION_WINDOW);
            let is_recent = now.saturating_since(known.last).as_nanos() <= window;
            master.is_qualified = known.is_qualified || is_recent;
            *known = master;
            return true;
        }
        let has_room = self.0.len() < MASTERS_MAX;
        if has_room {
            self.0.push(master);
        }
        has_room
    }

    /// Forgets masters whose Announce messages stopped.
    pub(super) fn expire(&mut self, now: Instant) {
        self.0.retain(|master| now < master.expiry());
    }

    /// Returns when the next master expires.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.0.iter().map(ForeignMaster::expiry).min()
    }

    /// Returns the best of the qualified masters.
    pub(super) fn best(&self) -> Option<&ForeignMaster> {
        let qualified = self.0.iter().filter(|master| master.is_qualified);
        qualified.min_by(|a, b| a.announce.compare(&b.announce).then(a.port.cmp(&b.port)))
    }
}

impl ForeignMaster {
    fn expiry(&self) -> Instant {
        let nanoseconds = self.interval.as_nanos().saturating_mul(RECEIPT_TIMEOUT);
        self.last.saturating_add(Duration::from_nanos(nanoseconds))
    }
}
