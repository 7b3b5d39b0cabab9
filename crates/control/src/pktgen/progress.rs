//! Snapshots of a script: its devices over all its runs, and the arrivals.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wirestorm_base::port::{ReceiveCounters, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock;

use super::run::DeviceProgress;
use crate::lifecycle::{Context, PortSnapshot, Snapshot};
use crate::receive::ArrivalCounters;

/// Maximum number of devices with counters of their own. A script can add and remove devices
/// without end.
const DEVICES_MAX: usize = 1_024;

/// Progress of a script. Each start of the devices begins at 0; the snapshots count on.
pub(super) struct ScriptProgress {
    arrivals: Option<ArrivalCounters>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    start: Option<Instant>,
    /// Devices of all runs so far, by name.
    devices: BTreeMap<String, Device>,
}

#[derive(Default)]
struct Device {
    interface: String,
    /// Sum of the ended runs.
    ended: DeviceProgress,
    /// Counters of the current run.
    current: DeviceProgress,
}

impl ScriptProgress {
    /// Creates the progress of a script that has not started a run.
    pub(super) fn new(arrivals: Option<ArrivalCounters>) -> Self {
        Self { arrivals, state: Mutex::default() }
    }

    /// Sets the start of the script.
    pub(super) fn start(&self, start: Instant) {
        self.lock().start = Some(start);
    }

    /// Publishes a snapshot with the counters of running devices, by name and interface.
    pub(super) fn publish<'a>(
        &self,
        context: &Context,
        devices: impl Iterator<Item = ((&'a str, &'a str), &'a DeviceProgress)>,
    ) {
        let snapshot = {
            let mut state = self.lock();
            for ((name, interface), progress) in devices {
                if !state.devices.contains_key(name) && state.devices.len() >= DEVICES_MAX {
                    continue;
                }
                let device = state.devices.entry(name.to_owned()).or_default();
                interface.clone_into(&mut device.interface);
                device.current = *progress;
            }
            state.snapshot()
        };
        context.publish(self.with_arrivals(snapshot));
    }

    /// Adds the counters of the current run to those of the ended ones.
    pub(super) fn end_run(&self) {
        for device in self.lock().devices.values_mut() {
            device.ended = device.sum();
            device.current = DeviceProgress::default();
        }
    }

    fn with_arrivals(&self, mut snapshot: Snapshot) -> Snapshot {
        if let Some(arrivals) = &self.arrivals {
            snapshot.ports = with_arrivals(snapshot.ports, arrivals.interface(), arrivals.read());
        }
        snapshot
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn snapshot(&self) -> Snapshot {
        let elapsed = self.start.map_or(Duration::ZERO, |it| clock::now().saturating_since(it));
        let mut snapshot = Snapshot { elapsed, ..Snapshot::default() };
        for (name, device) in &self.devices {
            let DeviceProgress { transmitted, time } = device.sum();
            snapshot.transmitted.merge(&transmitted);
            snapshot.worker_time += time;
            snapshot.ports.push(PortSnapshot {
                name: name.clone(),
                interface: device.interface.clone(),
                transmitted,
                ..PortSnapshot::default()
            });
        }
        snapshot
    }
}

impl Device {
    fn sum(&self) -> DeviceProgress {
        let mut transmitted: TransmitCounters = self.ended.transmitted;
        transmitted.merge(&self.current.transmitted);
        DeviceProgress { transmitted, time: self.ended.time + self.current.time }
    }
}

/// Adds the arrivals on an interface. A device with the same name is the same port.
fn with_arrivals(
    mut ports: Vec<PortSnapshot>,
    interface: String,
    received: ReceiveCounters,
) -> Vec<PortSnapshot> {
    match ports.iter_mut().find(|port| port.name == interface) {
        Some(port) => port.received = received,
        None => {
            let name = interface.clone();
            ports.push(PortSnapshot { name, interface, received, ..PortSnapshot::default() });
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_on_the_interface_of_a_device_belong_to_its_port() {
        let received = ReceiveCounters { received: 3, ..ReceiveCounters::default() };
        let device = PortSnapshot { name: "eth1".into(), ..PortSnapshot::default() };
        let ports = with_arrivals(vec![device], "eth1".into(), received);
        let ports = with_arrivals(ports, "eth2".into(), received);
        let names = ports.iter().map(|port| (port.name.as_str(), port.received.received));
        assert_eq!(names.collect::<Vec<_>>(), [("eth1", 3), ("eth2", 3)]);
    }

    #[test]
    fn counters_go_on_over_the_runs_of_a_script() {
        let progress = ScriptProgress::new(None);
        let counted = |sent| DeviceProgress {
            transmitted: TransmitCounters { sent, ..Default::default() },
            time: Duration::from_millis(sent),
        };
        let mut state = progress.lock();
        let device = state.devices.entry("eth1@0".into()).or_default();
        device.current = counted(5);
        drop(state);
        progress.end_run();
        progress.lock().devices.entry("eth1@0".into()).or_default().current = counted(2);
        let snapshot = progress.lock().snapshot();
        assert_eq!(snapshot.ports[0].transmitted.sent, 7);
        assert_eq!(snapshot.transmitted.sent, 7);
        assert_eq!(snapshot.worker_time, Duration::from_millis(7));
    }
}
