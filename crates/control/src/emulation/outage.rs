//! An interface that goes down during a run, and comes up again.

use wirestorm_base::port::PortError;
use wirestorm_base::time::{Duration, Instant};

use super::report::PortReport;
use crate::port::Watch;

/// How long a port's interface was down, and whether that is still to be borne.
pub(super) struct Outage {
    watch: Option<Watch>,
    /// How long it may last.
    patience: Duration,
    /// Since when it lasts.
    since: Option<Instant>,
    /// How long earlier ones took.
    earlier: Duration,
}

impl Outage {
    pub(super) fn new(watch: Option<Watch>, patience: Duration) -> Self {
        Self { watch, patience, since: None, earlier: Duration::ZERO }
    }

    /// Looks whether the interface is down. `is_told`: whether its port has found it so, which may
    /// be known a moment before the kernel tells of it, or be over by now.
    ///
    /// # Errors
    /// Where it is gone, or down for longer than is borne.
    pub(super) fn look(&mut self, now: Instant, is_told: bool) -> Result<bool, PortError> {
        let Some(watch) = &mut self.watch else { return Ok(false) };
        match watch.check() {
            Err(PortError::Down { .. }) => {}
            Ok(()) if watch.knows() || !is_told => {
                self.earlier = self.time(now);
                self.since = None;
                return Ok(false);
            }
            // Nobody would tell that it is up again.
            Ok(()) => return Err(watch.went_down()),
            Err(error) => return Err(error),
        }
        let since = *self.since.get_or_insert(now);
        match now.saturating_since(since) < self.patience {
            true => Ok(true),
            false => Err(watch.went_down()),
        }
    }

    /// How long the interface was down by now.
    pub(super) fn time(&self, now: Instant) -> Duration {
        let lasts = self.since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.earlier.saturating_add(lasts)
    }

    /// What ended a run.
    pub(super) fn explain(&self, error: &PortError) -> String {
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
pub(super) fn notes(ports: &[PortReport]) -> impl Iterator<Item = String> {
    let ports = ports.iter().filter(|port| port.down_s > 0.0);
    ports.map(|port| {
        let PortReport { name, interface, down_s, unsent, .. } = port;
        format!(
            "{name}: {interface} was down for {down_s:.1} s; {unsent} frames were not sent, and \
             times that were measured have the outage in them"
        )
    })
}
