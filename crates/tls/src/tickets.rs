//! Client session cache for resumption: each client address has its own tickets.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use crate::settings::Resume;

/// Client address and server.
type Pair = (IpAddr, ServerKey);

/// Server name, as a type with an order.
type ServerKey = String;

/// Resumption state of one client for one server.
#[derive(Debug, Default)]
struct Remembered {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    /// Each ticket serves one connection (RFC 8446 appendix C.4); the newest is last.
    tls13: VecDeque<Tls13ClientSessionValue>,
}

/// Limit on tickets of one client for one server. rustls servers issue two in a handshake.
const TICKETS_MAX: usize = 4;

#[derive(Debug, Default)]
struct Pairs {
    remembered: BTreeMap<Pair, Remembered>,
    /// Pairs in the order of insertion, oldest first.
    order: VecDeque<Pair>,
}

/// Resumption state of all clients of a template, separate for each client address.
#[derive(Debug)]
pub(crate) struct Tickets {
    pairs: Mutex<Pairs>,
    resume: Resume,
    /// Number of connections begun.
    begun: AtomicU64,
}

impl Tickets {
    pub(crate) const PAIRS_MAX: usize = 1 << 16;

    pub(crate) fn new(resume: Resume) -> Self {
        Self { pairs: Mutex::default(), resume, begun: AtomicU64::new(0) }
    }

    /// Returns whether the next connection tries to resume. The sequence is the same in each run.
    fn draw(&self) -> bool {
        // SplitMix64 hash of the connection number.
        let number = self.begun.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.resume.has(mixed ^ (mixed >> 31))
    }

    fn lock(&self) -> MutexGuard<'_, Pairs> {
        // Updates of a pair are one step, so a panic cannot leave it inconsistent.
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pairs {
    /// Returns the state of a pair; creates it if absent and evicts the oldest pair at the limit.
    fn of(&mut self, pair: Pair) -> &mut Remembered {
        if !self.remembered.contains_key(&pair) {
            if self.remembered.len() >= Tickets::PAIRS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.remembered.remove(&oldest);
            }
            self.order.push_back(pair.clone());
        }
        self.remembered.entry(pair).or_default()
    }
}

/// Session cache of one connection, limited to its client's address.
#[derive(Debug)]
pub(crate) struct ClientTickets {
    tickets: Arc<Tickets>,
    client: IpAddr,
    /// Whether this connection tries to resume. It stores new tickets in any case.
    tries: bool,
}

impl ClientTickets {
    pub(crate) fn new(tickets: Arc<Tickets>, client: IpAddr) -> Self {
        let tries = tickets.draw();
        Self { tickets, client, tries }
    }

    fn pair(&self, server: &ServerName<'_>) -> Pair {
        (self.client, server.to_str().into_owned())
    }

    /// Updates the state for a server, which is created if absent.
    fn change(&self, server: &ServerName<'_>, change: impl FnOnce(&mut Remembered)) {
        change(self.tickets.lock().of(self.pair(server)));
    }

    /// Reads or takes from the state for a server, if there is any.
    fn take<T>(
        &self,
        server: &ServerName<'_>,
        take: impl FnOnce(&mut Remembered) -> Option<T>,
    ) -> Option<T> {
        take(self.tickets.lock().remembered.get_mut(&self.pair(server))?)
    }
}

impl ClientSessionStore for ClientTickets {
    fn set_kx_hint(&self, server: ServerName<'static>, group: NamedGroup) {
        self.change(&server, |it| it.group = Some(group));
    }

    fn kx_hint(&self, server: &ServerName<'_>) -> Option<NamedGroup> {
        self.take(server, |it| it.group)
    }

    fn set_tls12_session(&self, server: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.change(&server, |it| it.tls12 = Some(value));
    }

    fn tls12_session(&self, server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.take(server, |it| it.tls12.clone()).filter(|_| self.tries)
    }

    fn remove_tls12_session(&self, server: &ServerName<'_>) {
        self.take(server, |it| it.tls12.take());
    }

    fn insert_tls13_ticket(&self, server: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.change(&server, |it| {
            if it.tls13.len() >= TICKETS_MAX {
                it.tls13.pop_front();
            }
            it.tls13.push_back(value);
        });
    }

    fn take_tls13_ticket(&self, server: &ServerName<'_>) -> Option<Tls13ClientSessionValue> {
        if self.tries { self.take(server, |it| it.tls13.pop_back()) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_connections_that_try_matches_the_setting() {
        for (billionths, expected) in [(0, 0..=0), (300_000_000, 2_850..=3_150)] {
            let resume = Resume::from_billionths(billionths).unwrap();
            let tickets = Tickets::new(resume);
            let tries = (0..10_000).filter(|_| tickets.draw()).count();
            assert!(expected.contains(&tries), "{tries}");
        }
        let tickets = Tickets::new(Resume::ALL);
        assert!((0..10_000).all(|_| tickets.draw()));
    }

    #[test]
    fn oldest_pair_is_evicted_at_the_limit() {
        let mut pairs = Pairs::default();
        let pair = |number: usize| {
            (IpAddr::from([10, 0, (number >> 8) as u8, number as u8]), number.to_string())
        };
        for number in 0..=Tickets::PAIRS_MAX {
            pairs.of(pair(number));
        }
        assert_eq!(
            (pairs.remembered.len(), pairs.order.len()),
            (Tickets::PAIRS_MAX, Tickets::PAIRS_MAX)
        );
        assert!(!pairs.remembered.contains_key(&pair(0)));
        assert!(pairs.remembered.contains_key(&pair(1)));
    }
}
