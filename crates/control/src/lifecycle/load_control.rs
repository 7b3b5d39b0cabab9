//! Commands to the clients and servers of a run, and questions about what they have counted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration as StdDuration;

use wirestorm_base::rate::Decimal;
use wirestorm_engine::tunnel::TunnelTable;
use wirestorm_model::tunnel::ClientTunnels;
use wirestorm_stack::endpoint::AddressSet;

use crate::result::PortReport;

/// Changes the load of a run, and asks what it has counted so far.
#[derive(Debug, Default)]
pub(crate) struct LoadControl {
    has_ended: AtomicBool,
    /// What loads are multiplied by, the numerator above the denominator; 0: nothing was said.
    scale: AtomicU64,
    /// Clients that are switched off.
    off: Changing<AddressSet>,
    /// Tunnels that are others than the plan's.
    tunnels: Changing<TunnelTable>,
    /// Whether any port has tunnels, once that is known.
    has_tunnels: OnceLock<bool>,
    /// How often reports were asked for, and in the lowest two bits in how much detail.
    asked: AtomicU64,
    /// One asks at a time.
    asking: Mutex<()>,
    answers: Mutex<Answers>,
    answered: Condvar,
}

/// Why tunnels are not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TunnelChangeError {
    /// There are too many.
    #[error(
        "tunnels that were changed would be more than {most} ranges: change whole ranges",
        most = LoadControl::RANGES_MAX
    )]
    TooMany,
    /// Nobody would follow.
    #[error(
        "tunnels of clients are changed, but no port of the plan has any: give the ports that carry \
         them `tunnels`, which may be an empty list"
    )]
    NoTunnels,
}

/// How much a report tells while a run goes on. It is made by the thread that works at the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// What the port has counted.
    Port,
    /// What each of its templates has counted, too.
    Templates,
    /// How long things took and what happened over time, too: as in a result.
    All,
}

#[derive(Debug, Default)]
struct Answers {
    /// Of each port the last question that it has answered, and how.
    ports: Vec<Option<(u64, PortReport)>>,
    is_over: bool,
}

const DETAIL_BITS: u32 = 2;

/// What loads are multiplied by, more than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadFactor {
    numerator: NonZeroU32,
    denominator: NonZeroU32,
}

impl LoadFactor {
    /// A factor with nine digits or so; `None` where that is 0, or 2^32 or more.
    pub fn new(factor: Decimal) -> Option<Self> {
        let Decimal { mut digits, mut denominator } = factor;
        while digits > u32::MAX.into() && denominator > 1 {
            digits = digits / 10 + u64::from(digits % 10 >= 5);
            denominator /= 10;
        }
        let positive = |it: u64| u32::try_from(it).ok().and_then(NonZeroU32::new);
        Some(Self { numerator: positive(digits)?, denominator: positive(denominator)? })
    }

    fn pack(self) -> u64 {
        u64::from(self.numerator.get()) << 32 | u64::from(self.denominator.get())
    }

    fn unpack(packed: u64) -> Option<Self> {
        let numerator = NonZeroU32::new((packed >> 32) as u32)?;
        Some(Self { numerator, denominator: NonZeroU32::new(packed as u32)? })
    }
}

impl LoadControl {
    /// Workers look for questions every 20 ms: one that takes so much longer does not answer.
    const PATIENCE: StdDuration = StdDuration::from_secs(5);

    /// No connection is made from now on, as at the end of the duration.
    pub(crate) fn end_load(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Multiplies the loads that the plan has: rates, numbers of flows held, throughputs. A rate
    /// that becomes too small or too great to be told stays as it is.
    pub(crate) fn set_load(&self, factor: LoadFactor) {
        self.scale.store(factor.pack(), Ordering::Relaxed);
    }

    /// The most ranges of clients that are switched off, or have other tunnels.
    pub(crate) const RANGES_MAX: usize = 1 << 20;

    /// Switches clients off, or on again, by their first and last addresses: one that is off makes
    /// no connections, and those that it has go on. Workers follow within 20 ms. Returns whether it
    /// was possible: beyond [`Self::RANGES_MAX`] all stays as it is.
    #[must_use]
    pub(crate) fn switch_clients(&self, ranges: &[(IpAddr, IpAddr)], on: bool) -> bool {
        self.off.change(|off| {
            match on {
                true => off.remove(ranges.iter().copied()),
                false => off.add(ranges.iter().copied()),
            }
            off.ranges() <= Self::RANGES_MAX
        })
    }

    /// Clients that are switched off.
    pub(crate) fn clients_off(&self) -> Arc<AddressSet> {
        self.off.now()
    }

    /// Gives clients other tunnels than they have, on all ports that have any; or one where they had
    /// none. Workers follow within 20 ms. Neighbours are not told: ends of tunnels that no tunnel of
    /// the plan has are not answered for.
    ///
    /// # Errors
    /// Where ranges of tunnels that were changed would be more than [`Self::RANGES_MAX`], or no port
    /// of a run that has begun has tunnels; then all stays as it is.
    pub(crate) fn change_tunnels(
        &self,
        tunnels: &[ClientTunnels],
    ) -> Result<(), TunnelChangeError> {
        if self.has_tunnels.get() == Some(&false) {
            return Err(TunnelChangeError::NoTunnels);
        }
        let is_changed = self.tunnels.change(|known| {
            tunnels.iter().for_each(|tunnels| known.insert(tunnels));
            known.ranges() <= Self::RANGES_MAX
        });
        if is_changed { Ok(()) } else { Err(TunnelChangeError::TooMany) }
    }

    /// The run has ports with tunnels, or none.
    ///
    /// # Errors
    /// Where some are changed and there are none.
    pub(crate) fn know_tunnels(&self, has_tunnels: bool) -> Result<(), TunnelChangeError> {
        let _ = self.has_tunnels.set(has_tunnels);
        match has_tunnels || self.tunnels.now().ranges() == 0 {
            true => Ok(()),
            false => Err(TunnelChangeError::NoTunnels),
        }
    }

    /// What each port has counted by now; `None` of a run that has not begun, or is over: then it is
    /// in the run's result.
    pub(crate) fn reports(&self, detail: Detail) -> Option<Vec<PortReport>> {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let question = (self.asked.load(Ordering::Relaxed) >> DETAIL_BITS) + 1;
        self.asked.store(question << DETAIL_BITS | detail as u64, Ordering::Relaxed);
        let answers = self.lock();
        let is_open = |answers: &mut Answers| {
            let has_answered =
                |it: &Option<(u64, PortReport)>| it.as_ref().is_some_and(|it| it.0 >= question);
            !answers.is_over && !answers.ports.iter().all(has_answered)
        };
        let waited = self.answered.wait_timeout_while(answers, Self::PATIENCE, is_open);
        let (answers, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if answers.is_over || answers.ports.is_empty() {
            return None;
        }
        answers.ports.iter().map(|it| it.as_ref().map(|(_, report)| report.clone())).collect()
    }

    /// So many ports answer from now on, until what is returned is dropped.
    pub(crate) fn begin(&self, ports: usize) -> Answering<'_> {
        self.lock().ports = vec![None; ports];
        Answering(self)
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        // An answer is put there in one step: a panic elsewhere leaves none half done.
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A table that is changed as a whole, and followed by workers, which neither wait for a change nor
/// free a table.
#[derive(Debug, Default)]
struct Changing<Table> {
    /// Held for no longer than it takes to refer to it.
    now: Mutex<Arc<Table>>,
    /// How often it was changed.
    changes: AtomicU64,
    /// What it was before, for as long as a worker may have it. Held as long as a change takes: one
    /// changes at a time.
    before: Mutex<Vec<Arc<Table>>>,
}

impl<Table: Clone> Changing<Table> {
    fn now(&self) -> Arc<Table> {
        Arc::clone(&self.now.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes it, where what `change` makes of it is allowed, as that says. Returns whether it was.
    fn change(&self, change: impl FnOnce(&mut Table) -> bool) -> bool {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Table::clone(&self.now());
        if !change(&mut changed) {
            return false;
        }
        let changed = Arc::new(changed);
        let old = {
            let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *now, changed)
        };
        self.changes.fetch_add(1, Ordering::Release);
        before.push(old);
        // Nobody can refer anew to what is not the present one: one reference is this one.
        before.retain(|old| Arc::strong_count(old) > 1);
        true
    }

    /// What it is, where it was changed since as many changes as were seen.
    fn since(&self, seen: &mut u64) -> Option<Arc<Table>> {
        let changes = self.changes.load(Ordering::Acquire);
        (std::mem::replace(seen, changes) != changes).then(|| self.now())
    }
}

/// All clients that there can be.
fn everybody() -> AddressSet {
    let mut all = AddressSet::default();
    let v4 = (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::BROADCAST.into());
    let v6 = (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::from_bits(u128::MAX).into());
    all.add([v4, v6]);
    all
}

/// A run whose ports answer questions.
pub(crate) struct Answering<'a>(&'a LoadControl);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.answered.notify_all();
    }
}

/// How a port's worker follows.
pub(crate) struct LoadFollower<'a> {
    control: &'a LoadControl,
    port: usize,
    scale: u64,
    switched: u64,
    is_paused: bool,
    tunnelled: u64,
    answered: u64,
}

impl<'a> LoadFollower<'a> {
    /// `port`: its place among those of the run.
    pub(crate) fn new(control: &'a LoadControl, port: usize) -> Self {
        Self { control, port, scale: 0, switched: 0, is_paused: false, tunnelled: 0, answered: 0 }
    }

    /// Whether no more connections are to be made.
    pub(crate) fn has_ended(&self) -> bool {
        self.control.has_ended.load(Ordering::Relaxed)
    }

    /// What loads are to be multiplied by, where that was said anew: numerator and denominator.
    pub(crate) fn scale(&mut self) -> Option<(NonZeroU32, NonZeroU32)> {
        let packed = self.control.scale.load(Ordering::Relaxed);
        if packed == self.scale {
            return None;
        }
        self.scale = packed;
        LoadFactor::unpack(packed).map(|it| (it.numerator, it.denominator))
    }

    /// Clients that are to be off, where that has changed: all of them while the run is paused.
    pub(crate) fn clients_off(&mut self, is_paused: bool) -> Option<Arc<AddressSet>> {
        let changed = self.control.off.since(&mut self.switched);
        let was_paused = std::mem::replace(&mut self.is_paused, is_paused);
        match (is_paused, was_paused) {
            (true, true) => None,
            (true, false) => Some(Arc::new(everybody())),
            (false, true) => Some(self.control.off.now()),
            (false, false) => changed,
        }
    }

    /// Tunnels that are others than the plan's, where that was said anew.
    pub(crate) fn tunnels(&mut self) -> Option<Arc<TunnelTable>> {
        self.control.tunnels.since(&mut self.tunnelled)
    }

    /// Answers, where something was asked.
    #[inline]
    pub(crate) fn answer(&mut self, report: impl FnOnce(Detail) -> PortReport) {
        let asked = self.control.asked.load(Ordering::Relaxed);
        if asked != self.answered {
            self.answered = asked;
            let detail = match asked & ((1 << DETAIL_BITS) - 1) {
                0 => Detail::Port,
                1 => Detail::Templates,
                _ => Detail::All,
            };
            self.put(asked >> DETAIL_BITS, report(detail));
        }
    }

    /// Leaves what answers all that will be asked.
    pub(crate) fn leave(self, report: PortReport) {
        self.put(u64::MAX, report);
    }

    fn put(&self, question: u64, report: PortReport) {
        if let Some(place) = self.control.lock().ports.get_mut(self.port) {
            *place = Some((question, report));
        }
        self.control.answered.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(text: &str) -> Option<(u32, u32)> {
        let factor = LoadFactor::new(Decimal::parse(text).unwrap())?;
        Some((factor.numerator.get(), factor.denominator.get()))
    }

    #[test]
    fn a_factor_is_as_exact_as_two_numbers_of_32_bits_are() {
        assert_eq!(factor("1"), Some((1, 1)));
        assert_eq!(factor("0.000000001"), Some((1, 1_000_000_000)));
        assert_eq!(factor("100.5"), Some((1_005, 10)));
        assert_eq!(factor("100.123456789"), Some((1_001_234_568, 10_000_000)));
        assert_eq!(factor("4294967295"), Some((u32::MAX, 1)));
        assert_eq!(factor("4294967296"), None);
        assert_eq!(factor("0"), None);
    }

    #[test]
    fn a_factor_is_told_once_to_each_worker() {
        let control = LoadControl::default();
        let (mut first, mut second) =
            (LoadFollower::new(&control, 0), LoadFollower::new(&control, 1));
        assert_eq!(first.scale(), None);
        control.set_load(LoadFactor::new(Decimal::parse("2.5").unwrap()).unwrap());
        let said = (NonZeroU32::new(25).unwrap(), NonZeroU32::new(10).unwrap());
        assert_eq!(first.scale(), Some(said));
        assert_eq!((first.scale(), second.scale()), (None, Some(said)));
    }

    #[test]
    fn clients_are_switched_for_each_worker() {
        let control = LoadControl::default();
        let (mut first, mut second) =
            (LoadFollower::new(&control, 0), LoadFollower::new(&control, 1));
        assert!(first.clients_off(false).is_none());
        let address = |last: u8| IpAddr::from([16, 0, 0, last]);
        assert!(control.switch_clients(&[(address(1), address(9))], false));
        assert!(control.switch_clients(&[(address(4), address(4))], true));
        for follower in [&mut first, &mut second] {
            let off = follower.clients_off(false).unwrap();
            assert!(off.contains(address(3)) && !off.contains(address(4)));
            assert!(follower.clients_off(false).is_none());
        }
    }

    #[test]
    fn a_pause_switches_all_clients_off_and_what_follows_restores_them() {
        let control = LoadControl::default();
        let mut follower = LoadFollower::new(&control, 0);
        let address = |last: u8| IpAddr::from([16, 0, 0, last]);
        assert!(control.switch_clients(&[(address(1), address(1))], false));
        assert!(follower.clients_off(false).is_some());
        let off = follower.clients_off(true).unwrap();
        assert!(off.contains(address(7)) && off.contains("2001:db8::1".parse().unwrap()));
        assert!(control.switch_clients(&[(address(2), address(2))], false));
        assert!(follower.clients_off(true).is_none());
        let off = follower.clients_off(false).unwrap();
        assert!(off.contains(address(1)) && off.contains(address(2)) && !off.contains(address(7)));
        assert!(follower.clients_off(false).is_none());
    }

    #[test]
    fn tunnels_are_changed_for_each_worker() {
        let control = LoadControl::default();
        let (mut first, mut second) =
            (LoadFollower::new(&control, 0), LoadFollower::new(&control, 1));
        assert!(first.tunnels().is_none());
        let address = |last: u8| IpAddr::from([16, 0, 0, last]);
        let tunnel = |last: u8, teid: u32| ClientTunnels {
            first: address(last),
            last: address(last),
            teid,
            teid_step: 0,
            from: address(254),
            to: address(255),
            source_port: None,
        };
        assert_eq!(control.change_tunnels(&[tunnel(1, 5), tunnel(2, 9)]), Ok(()));
        assert_eq!(control.know_tunnels(true), Ok(()));
        assert_eq!(control.change_tunnels(&[tunnel(2, 7)]), Ok(()));
        for follower in [&mut first, &mut second] {
            let tunnels = follower.tunnels().unwrap();
            let teid = |last: u8| tunnels.of(address(last)).map(|it| it.teid);
            assert_eq!([teid(1), teid(2), teid(3)], [Some(5), Some(7), None]);
            assert!(follower.tunnels().is_none());
        }
        // Of a run whose ports have none, some are changed before that is known, or later.
        let control = LoadControl::default();
        assert_eq!(control.change_tunnels(&[tunnel(1, 5)]), Ok(()));
        assert_eq!(control.know_tunnels(false), Err(TunnelChangeError::NoTunnels));
        let control = LoadControl::default();
        assert_eq!(control.know_tunnels(false), Ok(()));
        assert_eq!(control.change_tunnels(&[tunnel(1, 5)]), Err(TunnelChangeError::NoTunnels));
    }

    #[test]
    fn workers_neither_wait_for_a_change_nor_free_what_was_before() {
        let table: Changing<Vec<u8>> = Changing::default();
        let mut seen = 0;
        assert!(table.since(&mut seen).is_none());
        assert!(table.change(|it| {
            it.push(1);
            true
        }));
        let first = table.since(&mut seen).unwrap();
        // Taken over meanwhile: this would wait for ever.
        assert!(table.change(|it| {
            assert_eq!(*table.now(), [1]);
            it.push(2);
            true
        }));
        assert!(!table.change(|it| {
            it.push(3);
            false
        }));
        let second = table.since(&mut seen).unwrap();
        assert_eq!((first.as_slice(), second.as_slice()), (&[1][..], &[1, 2][..]));
        assert!(table.since(&mut seen).is_none());
        assert_eq!(Arc::strong_count(&first), 2, "a worker that drops it does not free it");
        let old = Arc::downgrade(&first);
        drop(first);
        assert!(old.upgrade().is_some());
        assert!(table.change(|_| true));
        assert!(old.upgrade().is_none(), "the next change does");
    }

    #[test]
    fn nothing_is_told_of_a_run_that_has_not_begun_or_is_over() {
        let control = LoadControl::default();
        assert!(control.reports(Detail::All).is_none());
        drop(control.begin(1));
        assert!(control.reports(Detail::All).is_none());
    }
}
