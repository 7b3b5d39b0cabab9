//! Commands to the clients and servers of a run, and queries of their counters.

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

/// Changes the load of a run and queries its counters.
#[derive(Debug, Default)]
pub(crate) struct LoadControl {
    has_ended: AtomicBool,
    /// Load factor: numerator in the upper 32 bits, denominator in the lower ones; 0 if not set.
    scale: AtomicU64,
    /// Disabled clients.
    off: SharedTable<AddressSet>,
    /// Tunnels that differ from the plan.
    tunnels: SharedTable<TunnelTable>,
    /// Whether any port has tunnels; set at the start of the run.
    has_tunnels: OnceLock<bool>,
    /// Number of queries so far; the lowest two bits are the detail of the last one.
    queries: AtomicU64,
    /// Allows one query at a time.
    asking: Mutex<()>,
    answers: Mutex<QueryAnswers>,
    answered: Condvar,
}

/// Error of changing tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TunnelChangeError {
    /// The changed tunnels would form too many ranges.
    #[error(
        "changed tunnels would form more than {most} ranges: use larger ranges",
        most = LoadControl::RANGES_MAX
    )]
    TooMany,
    /// No port of the plan has tunnels.
    #[error(
        "cannot change tunnels of clients: no port of the plan has tunnels; give the ports that \
         carry them `tunnels`, which may be an empty list"
    )]
    NoTunnels,
}

/// Detail of a report during a run. The worker thread of the port builds the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Counters of the port.
    Port,
    /// Counters of the port and of each template.
    Templates,
    /// Counters, histograms and time series, as in a result.
    All,
}

#[derive(Debug, Default)]
struct QueryAnswers {
    /// Number of the last query that each port answered, and the answer.
    ports: Vec<Option<(u64, PortReport)>>,
    is_over: bool,
}

const DETAIL_BITS: u32 = 2;

/// Factor of loads; greater than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadFactor {
    numerator: NonZeroU32,
    denominator: NonZeroU32,
}

impl LoadFactor {
    /// Converts a decimal to a factor, rounded to about nine digits. `None` if it is 0, or 2^32 or
    /// more.
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
    /// Maximum wait for answers. Workers check for queries every 20 ms.
    const PATIENCE: StdDuration = StdDuration::from_secs(5);

    /// Stops starting connections, as at the end of the duration.
    pub(crate) fn end_load(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Multiplies the loads of the plan: rates, numbers of concurrent flows, throughputs. A rate
    /// that would be out of range keeps its value.
    pub(crate) fn set_load(&self, factor: LoadFactor) {
        self.scale.store(factor.pack(), Ordering::Relaxed);
    }

    /// Maximum number of ranges of disabled clients, or of clients with changed tunnels.
    pub(crate) const RANGES_MAX: usize = 1 << 20;

    /// Enables or disables clients by address range. A disabled client starts no connections; its
    /// open connections continue. Workers follow within 20 ms. Returns false and changes nothing if
    /// there would be more than [`Self::RANGES_MAX`] ranges.
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

    /// Disabled clients.
    pub(crate) fn clients_off(&self) -> Arc<AddressSet> {
        self.off.now()
    }

    /// Adds or replaces tunnels of clients on all ports that have tunnels. Workers follow within 20
    /// ms. The host does not answer ARP for new tunnel endpoints: it only knows those of the
    /// plan.
    ///
    /// # Errors
    /// Fails if there would be more than [`Self::RANGES_MAX`] ranges, or if no port of a started
    /// run has tunnels. Nothing changes then.
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

    /// Sets whether the run has ports with tunnels.
    ///
    /// # Errors
    /// Fails if tunnels were changed but no port has tunnels.
    pub(crate) fn set_has_tunnels(&self, has_tunnels: bool) -> Result<(), TunnelChangeError> {
        let _ = self.has_tunnels.set(has_tunnels);
        match has_tunnels || self.tunnels.now().ranges() == 0 {
            true => Ok(()),
            false => Err(TunnelChangeError::NoTunnels),
        }
    }

    /// Returns the current counters of each port. `None` before the start and after the end, when
    /// the result contains them.
    pub(crate) fn reports(&self, detail: Detail) -> Option<Vec<PortReport>> {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let query = (self.queries.load(Ordering::Relaxed) >> DETAIL_BITS) + 1;
        self.queries.store(query << DETAIL_BITS | detail as u64, Ordering::Relaxed);
        let answers = self.lock();
        let is_open = |answers: &mut QueryAnswers| {
            let has_answered =
                |it: &Option<(u64, PortReport)>| it.as_ref().is_some_and(|it| it.0 >= query);
            !answers.is_over && !answers.ports.iter().all(has_answered)
        };
        let waited = self.answered.wait_timeout_while(answers, Self::PATIENCE, is_open);
        let (answers, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if answers.is_over || answers.ports.is_empty() {
            return None;
        }
        answers.ports.iter().map(|it| it.as_ref().map(|(_, report)| report.clone())).collect()
    }

    /// Lets `ports` ports answer queries until the returned guard is dropped.
    pub(crate) fn begin(&self, ports: usize) -> QueryGuard<'_> {
        self.lock().ports = vec![None; ports];
        QueryGuard(self)
    }

    fn lock(&self) -> MutexGuard<'_, QueryAnswers> {
        // Updates happen in one step, so a panic of another thread leaves the answers consistent.
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A table that writers replace as a whole. Workers that read it neither wait for a change nor free
/// an old table.
#[derive(Debug, Default)]
struct SharedTable<Table> {
    /// Current table. Locked only to clone or replace the reference.
    now: Mutex<Arc<Table>>,
    /// Number of changes.
    changes: AtomicU64,
    /// Old tables that workers may still use. Locked during a change, so that one change happens at
    /// a time.
    before: Mutex<Vec<Arc<Table>>>,
}

impl<Table: Clone> SharedTable<Table> {
    fn now(&self) -> Arc<Table> {
        Arc::clone(&self.now.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the table by a changed copy if `change` returns true. Returns that value.
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
        // No new references to an old table can appear. If this is the last one, drop the table
        // here.
        before.retain(|old| Arc::strong_count(old) > 1);
        true
    }

    /// Returns the table if it changed since `seen` changes, and updates `seen`.
    fn if_changed(&self, seen: &mut u64) -> Option<Arc<Table>> {
        let changes = self.changes.load(Ordering::Acquire);
        (std::mem::replace(seen, changes) != changes).then(|| self.now())
    }
}

/// Returns the set of all addresses.
fn all_addresses() -> AddressSet {
    let mut all = AddressSet::default();
    let v4 = (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::BROADCAST.into());
    let v6 = (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::from_bits(u128::MAX).into());
    all.add([v4, v6]);
    all
}

/// Guard: while it exists, the ports of the run answer queries.
pub(crate) struct QueryGuard<'a>(&'a LoadControl);

impl Drop for QueryGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.answered.notify_all();
    }
}

/// View of a port's worker on the commands.
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
    /// Creates the view of the worker of port `port`, an index among the ports of the run.
    pub(crate) fn new(control: &'a LoadControl, port: usize) -> Self {
        Self { control, port, scale: 0, switched: 0, is_paused: false, tunnelled: 0, answered: 0 }
    }

    /// Returns whether clients must start no more connections.
    pub(crate) fn has_ended(&self) -> bool {
        self.control.has_ended.load(Ordering::Relaxed)
    }

    /// Returns numerator and denominator of the load factor if it changed since the last call.
    pub(crate) fn scale(&mut self) -> Option<(NonZeroU32, NonZeroU32)> {
        let packed = self.control.scale.load(Ordering::Relaxed);
        if packed == self.scale {
            return None;
        }
        self.scale = packed;
        LoadFactor::unpack(packed).map(|it| (it.numerator, it.denominator))
    }

    /// Returns the disabled clients if they changed since the last call. A pause disables all
    /// clients.
    pub(crate) fn clients_off(&mut self, is_paused: bool) -> Option<Arc<AddressSet>> {
        let changed = self.control.off.if_changed(&mut self.switched);
        let was_paused = std::mem::replace(&mut self.is_paused, is_paused);
        match (is_paused, was_paused) {
            (true, true) => None,
            (true, false) => Some(Arc::new(all_addresses())),
            (false, true) => Some(self.control.off.now()),
            (false, false) => changed,
        }
    }

    /// Returns the tunnels that differ from the plan if they changed since the last call.
    pub(crate) fn tunnels(&mut self) -> Option<Arc<TunnelTable>> {
        self.control.tunnels.if_changed(&mut self.tunnelled)
    }

    /// Answers the pending query, if there is one.
    #[inline]
    pub(crate) fn answer(&mut self, report: impl FnOnce(Detail) -> PortReport) {
        let query = self.control.queries.load(Ordering::Relaxed);
        if query != self.answered {
            self.answered = query;
            let detail = match query & ((1 << DETAIL_BITS) - 1) {
                0 => Detail::Port,
                1 => Detail::Templates,
                _ => Detail::All,
            };
            self.put(query >> DETAIL_BITS, report(detail));
        }
    }

    /// Leaves a final report, which answers all later queries.
    pub(crate) fn leave(self, report: PortReport) {
        self.put(u64::MAX, report);
    }

    fn put(&self, query: u64, report: PortReport) {
        if let Some(place) = self.control.lock().ports.get_mut(self.port) {
            *place = Some((query, report));
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
    fn load_factor_is_rounded_to_two_32_bit_numbers() {
        assert_eq!(factor("1"), Some((1, 1)));
        assert_eq!(factor("0.000000001"), Some((1, 1_000_000_000)));
        assert_eq!(factor("100.5"), Some((1_005, 10)));
        assert_eq!(factor("100.123456789"), Some((1_001_234_568, 10_000_000)));
        assert_eq!(factor("4294967295"), Some((u32::MAX, 1)));
        assert_eq!(factor("4294967296"), None);
        assert_eq!(factor("0"), None);
    }

    #[test]
    fn each_worker_sees_a_new_load_factor_once() {
        let control = LoadControl::default();
        let (mut first, mut second) =
            (LoadFollower::new(&control, 0), LoadFollower::new(&control, 1));
        assert_eq!(first.scale(), None);
        control.set_load(LoadFactor::new(Decimal::parse("2.5").unwrap()).unwrap());
        let expected = (NonZeroU32::new(25).unwrap(), NonZeroU32::new(10).unwrap());
        assert_eq!(first.scale(), Some(expected));
        assert_eq!((first.scale(), second.scale()), (None, Some(expected)));
    }

    #[test]
    fn each_worker_sees_disabled_clients_once() {
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
    fn pause_disables_all_clients_and_resume_restores_them() {
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
    fn each_worker_sees_changed_tunnels_once() {
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
        assert_eq!(control.set_has_tunnels(true), Ok(()));
        assert_eq!(control.change_tunnels(&[tunnel(2, 7)]), Ok(()));
        for follower in [&mut first, &mut second] {
            let tunnels = follower.tunnels().unwrap();
            let teid = |last: u8| tunnels.of(address(last)).map(|it| it.teid);
            assert_eq!([teid(1), teid(2), teid(3)], [Some(5), Some(7), None]);
            assert!(follower.tunnels().is_none());
        }
        // No port has tunnels: a change fails at the start of the run, or at once after it.
        let control = LoadControl::default();
        assert_eq!(control.change_tunnels(&[tunnel(1, 5)]), Ok(()));
        assert_eq!(control.set_has_tunnels(false), Err(TunnelChangeError::NoTunnels));
        let control = LoadControl::default();
        assert_eq!(control.set_has_tunnels(false), Ok(()));
        assert_eq!(control.change_tunnels(&[tunnel(1, 5)]), Err(TunnelChangeError::NoTunnels));
    }

    #[test]
    fn workers_neither_wait_for_a_change_nor_free_old_tables() {
        let table: SharedTable<Vec<u8>> = SharedTable::default();
        let mut seen = 0;
        assert!(table.if_changed(&mut seen).is_none());
        assert!(table.change(|it| {
            it.push(1);
            true
        }));
        let first = table.if_changed(&mut seen).unwrap();
        // A read during a change must not wait; a deadlock would block this test forever.
        assert!(table.change(|it| {
            assert_eq!(*table.now(), [1]);
            it.push(2);
            true
        }));
        assert!(!table.change(|it| {
            it.push(3);
            false
        }));
        let second = table.if_changed(&mut seen).unwrap();
        assert_eq!((first.as_slice(), second.as_slice()), (&[1][..], &[1, 2][..]));
        assert!(table.if_changed(&mut seen).is_none());
        assert_eq!(Arc::strong_count(&first), 2, "the writer keeps a reference too");
        let old = Arc::downgrade(&first);
        drop(first);
        assert!(old.upgrade().is_some());
        assert!(table.change(|_| true));
        assert!(old.upgrade().is_none(), "the next change frees it");
    }

    #[test]
    fn no_reports_before_the_start_or_after_the_end() {
        let control = LoadControl::default();
        assert!(control.reports(Detail::All).is_none());
        drop(control.begin(1));
        assert!(control.reports(Detail::All).is_none());
    }
}
