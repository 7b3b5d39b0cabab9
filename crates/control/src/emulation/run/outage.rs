//! An interface that goes down during a run, and comes up again.

use wirestorm_base::count::counted;
use wirestorm_base::port::PortError;
use wirestorm_base::time::{Duration, Instant};

use crate::port::Watch;
use crate::result::PortReport;

/// How long a port's interface was down, and whether that is still to be borne.
pub(in crate::emulation) struct Outage {
    watch: Option<Watch>,
    /// How long it may last.
    patience: Duration,
    /// Since when it lasts.
    since: Option<Instant>,
    /// How long earlier ones took.
    earlier: Duration,
    /// How many there were, this one among them.
    count: u64,
    /// When it was found down last.
    found: Option<Instant>,
}

/// Ports know of an outage before the kernel tells of it, or behind: what they find within this time
/// of each other is one.
const SAME_WITHIN: Duration = Duration::from_millis(100);

impl Outage {
    pub(in crate::emulation) fn new(watch: Option<Watch>, patience: Duration) -> Self {
        Self { watch, patience, since: None, earlier: Duration::ZERO, count: 0, found: None }
    }

    /// Looks whether the interface is down. `is_told`: whether its port has found it so, which may
    /// be known a moment before the kernel tells of it, or be over by now.
    ///
    /// # Errors
    /// Where it is gone, or down for longer than is borne.
    pub(in crate::emulation) fn look(
        &mut self,
        now: Instant,
        is_told: bool,
    ) -> Result<bool, PortError> {
        let Some(watch) = &mut self.watch else { return Ok(false) };
        let is_down = match watch.check() {
            Err(PortError::Down { .. }) => true,
            Ok(()) if watch.knows() || !is_told => false,
            // Nobody would tell that it is up again.
            Ok(()) => return Err(watch.went_down()),
            Err(error) => return Err(error),
        };
        if is_down || is_told {
            let found = self.found.replace(now);
            let is_same = found.is_some_and(|it| now.saturating_since(it) < SAME_WITHIN);
            self.count += u64::from(self.since.is_none() && !is_same);
        }
        if !is_down {
            self.earlier = self.time(now);
            self.since = None;
            return Ok(false);
        }
        let since = *self.since.get_or_insert(now);
        match now.saturating_since(since) < self.patience {
            true => Ok(true),
            false => Err(watch.went_down()),
        }
    }

    /// How long the interface was down by now.
    pub(in crate::emulation) fn time(&self, now: Instant) -> Duration {
        let lasts = self.since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.earlier.saturating_add(lasts)
    }

    /// How often the interface was down, for however short a time.
    pub(in crate::emulation) fn count(&self) -> u64 {
        self.count
    }

    /// What ended a run.
    pub(in crate::emulation) fn explain(&self, error: &PortError) -> String {
        match error {
            PortError::Down { .. } if self.since.is_some() && self.patience > Duration::ZERO => {
                let seconds = self.patience.as_secs_f64();
                format!("{error} (it stayed down for {seconds} s)")
            }
            error => error.to_string(),
        }
    }
}

/// What is to be said of ports whose interfaces were down and came up again, or not.
pub(in crate::emulation) fn notes(ports: &[PortReport]) -> impl Iterator<Item = String> {
    /// What is shorter is told as a moment: of some it is known only that they were.
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
            counted(unsent, "frame was", "frames were")
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
    fn outages_are_counted_even_if_they_are_over_when_it_looks() {
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
        assert_eq!(outage.look(at(0), false), Ok(false));
        assert_eq!(outage.count(), 0);
        // The port has found it down, and it is up.
        assert_eq!(outage.look(at(10), true), Ok(false));
        assert_eq!((outage.count(), outage.time(at(10))), (1, Duration::ZERO));
        assert_eq!(outage.look(at(30), true), Ok(false));
        lab.a.set_up(false).unwrap();
        assert_eq!(outage.look(at(50), false), Ok(true));
        assert_eq!(outage.count(), 1, "it is the same one");
        assert_eq!(outage.look(at(900), true), Ok(true));
        lab.a.set_up(true).unwrap();
        assert_eq!(outage.look(at(950), true), Ok(false));
        assert_eq!((outage.count(), outage.time(at(960))), (1, Duration::from_millis(900)));
        assert_eq!(outage.look(at(1_200), true), Ok(false));
        assert_eq!((outage.count(), outage.time(at(1_200))), (2, Duration::from_millis(900)));
    }
}
