//! Outages of an interface during a run.

use wirestorm_base::count::pluralise;
use wirestorm_base::port::PortError;
use wirestorm_base::time::{Duration, Instant};

use crate::port::Watch;
use crate::result::PortReport;

/// Counts the outages of a port's interface, and ends the run if one lasts too long.
pub(in crate::emulation) struct Outage {
    watch: Option<Watch>,
    /// Maximum duration of an outage.
    duration_max: Duration,
    /// Start of the current outage; `None` if the interface is up.
    since: Option<Instant>,
    /// Total time of earlier outages.
    earlier: Duration,
    /// Number of outages, including the current one.
    count: u64,
    /// Last time that the interface was found down.
    last_down: Option<Instant>,
}

/// Maximum time between two reports of the same outage. A port may notice an outage before or after
/// the kernel reports it.
const SAME_WITHIN: Duration = Duration::from_millis(100);

impl Outage {
    pub(in crate::emulation) fn new(watch: Option<Watch>, patience: Duration) -> Self {
        Self {
            watch,
            duration_max: patience,
            since: None,
            earlier: Duration::ZERO,
            count: 0,
            last_down: None,
        }
    }

    /// Returns whether the interface is down. `port_is_down` is true if the port has found it
    /// down. The port may notice this before the kernel reports it, or after the outage has ended.
    ///
    /// # Errors
    /// Fails if the interface is gone, or down for too long.
    pub(in crate::emulation) fn update(
        &mut self,
        now: Instant,
        port_is_down: bool,
    ) -> Result<bool, PortError> {
        let Some(watch) = &mut self.watch else { return Ok(false) };
        let is_down = match watch.check() {
            Err(PortError::Down { .. }) => true,
            Ok(()) if watch.knows() || !port_is_down => false,
            // Without the kernel's reports, nothing would show that it is up again.
            Ok(()) => return Err(watch.went_down()),
            Err(error) => return Err(error),
        };
        if is_down || port_is_down {
            let last_down = self.last_down.replace(now);
            let is_same = last_down.is_some_and(|it| now.saturating_since(it) < SAME_WITHIN);
            self.count += u64::from(self.since.is_none() && !is_same);
        }
        if !is_down {
            self.earlier = self.time(now);
            self.since = None;
            return Ok(false);
        }
        let since = *self.since.get_or_insert(now);
        match now.saturating_since(since) < self.duration_max {
            true => Ok(true),
            false => Err(watch.went_down()),
        }
    }

    /// Returns the total time that the interface was down until `now`.
    pub(in crate::emulation) fn time(&self, now: Instant) -> Duration {
        let lasts = self.since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.earlier.saturating_add(lasts)
    }

    /// Returns the number of outages, however short.
    pub(in crate::emulation) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the message of the error that ended a run.
    pub(in crate::emulation) fn explain(&self, error: &PortError) -> String {
        match error {
            PortError::Down { .. }
                if self.since.is_some() && self.duration_max > Duration::ZERO =>
            {
                let seconds = self.duration_max.as_secs_f64();
                format!("{error} (it stayed down for {seconds} s)")
            }
            error => error.to_string(),
        }
    }
}

/// Returns a note about the outages of each port.
pub(in crate::emulation) fn notes(ports: &[PortReport]) -> impl Iterator<Item = String> {
    /// Shorter outages are reported without a time, because some have no known duration.
    const MOMENT_S: f64 = 0.05;
    let ports = ports.iter().filter(|port| port.outages > 0);
    ports.map(|port| {
        let PortReport { name, interface, outages, down_s, .. } = port;
        let unsent = port.tx.as_ref().map_or(0, |tx| tx.unsent);
        let often = if *outages > 1 { format!("{outages} times, ") } else { String::new() };
        let long = match *down_s < MOMENT_S {
            true => "for a moment".to_owned(),
            false => format!("for {down_s:.1} s"),
        };
        format!(
            "{name}: {interface} was down {often}{long}; {} not sent, and measured times include \
             the outage",
            pluralise(unsent, "frame was", "frames were")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Access, Host, LeaseHolder, LeaseRequest};
    use crate::port::Interfaces;
    use wirestorm_testkit::net::Lab;
    use wirestorm_testkit::require::require_root;

    #[test]
    fn outages_that_end_before_the_check_are_counted() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let host = Host::new();
        let holder = LeaseHolder { run: None, owner: String::new() };
        let lease = LeaseRequest { leases: host.leases(), access: Access::ByBackend, holder };
        let interfaces = Interfaces::open(&[&lab.a.port()], false, &lease, None).unwrap();
        let mut outage = Outage::new(interfaces.watch().pop(), Duration::from_secs(30));
        let at = |ms| Instant::ZERO.saturating_add(Duration::from_millis(ms));
        assert_eq!(outage.update(at(0), false), Ok(false));
        assert_eq!(outage.count(), 0);
        // The port has found the interface down, but it is up again.
        assert_eq!(outage.update(at(10), true), Ok(false));
        assert_eq!((outage.count(), outage.time(at(10))), (1, Duration::ZERO));
        assert_eq!(outage.update(at(30), true), Ok(false));
        lab.a.set_up(false).unwrap();
        assert_eq!(outage.update(at(50), false), Ok(true));
        assert_eq!(outage.count(), 1, "still the same outage");
        assert_eq!(outage.update(at(900), true), Ok(true));
        lab.a.set_up(true).unwrap();
        assert_eq!(outage.update(at(950), true), Ok(false));
        assert_eq!((outage.count(), outage.time(at(960))), (1, Duration::from_millis(900)));
        assert_eq!(outage.update(at(1_200), true), Ok(false));
        assert_eq!((outage.count(), outage.time(at(1_200))), (2, Duration::from_millis(900)));
    }
}
