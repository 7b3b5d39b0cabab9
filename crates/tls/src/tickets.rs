//! What clients remember to resume sessions by: each address what servers gave it, and nobody else.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use crate::settings::Resume;

/// A client and the server that it asks for.
type Pair = (IpAddr, ServerKey);

/// The name of a server, in an order.
type ServerKey = String;

/// What one client remembers of one server.
#[derive(Debug, Default)]
struct Remembered {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    /// Each is good for one connection (RFC 8446 appendix C.4); the newest is the last.
    tls13: VecDeque<Tls13ClientSessionValue>,
}

/// Tickets that one client keeps of one server; rustls's servers give two for each handshake.
const TICKETS_MAX: usize = 4;

#[derive(Debug, Default)]
struct Pairs {
    remembered: BTreeMap<Pair, Remembered>,
    /// In the order in which they came.
    order: VecDeque<Pair>,
}

/// What all clients of a template remember, each for itself.
#[derive(Debug)]
pub(crate) struct Tickets {
    pairs: Mutex<Pairs>,
    resume: Resume,
    /// Connections that have begun.
    begun: AtomicU64,
}

impl Tickets {
    pub(crate) const PAIRS_MAX: usize = 1 << 16;

    pub(crate) fn new(resume: Resume) -> Self {
        Self { pairs: Mutex::default(), resume, begun: AtomicU64::new(0) }
    }

    /// Whether the next connection tries to resume: the same ones in each run.
    fn draw(&self) -> bool {
        // SplitMix64.
        let number = self.begun.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.resume.has(mixed ^ (mixed >> 31))
    }

    fn lock(&self) -> MutexGuard<'_, Pairs> {
        // Whatever panics, a pair is put there in one step.
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pairs {
    /// What is remembered of a pair, from now on at least.
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

/// What the client of one connection may have of it.
#[derive(Debug)]
pub(crate) struct OfClient {
    tickets: Arc<Tickets>,
    client: IpAddr,
    /// Whether this connection tries to resume; what it is given is remembered all the same.
    tries: bool,
}

impl OfClient {
    pub(crate) fn new(tickets: Arc<Tickets>, client: IpAddr) -> Self {
        let tries = tickets.draw();
        Self { tickets, client, tries }
    }

    fn pair(&self, server: &ServerName<'_>) -> Pair {
        (self.client, server.to_str().into_owned())
    }

    /// Changes what is remembered of a server.
    fn change(&self, server: &ServerName<'_>, change: impl FnOnce(&mut Remembered)) {
        change(self.tickets.lock().of(self.pair(server)));
    }

    /// Looks at what is remembered of a server, or takes of it.
    fn take<T>(
        &self,
        server: &ServerName<'_>,
        take: impl FnOnce(&mut Remembered) -> Option<T>,
    ) -> Option<T> {
        take(self.tickets.lock().remembered.get_mut(&self.pair(server))?)
    }
}

impl ClientSessionStore for OfClient {
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
    fn so_many_connections_try_as_are_to() {
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
    fn the_oldest_pair_gives_way() {
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
