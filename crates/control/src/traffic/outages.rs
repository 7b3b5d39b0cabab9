//! Outages of the sending interfaces of a run.

use std::collections::BTreeMap;

use wirestorm_base::port::{PortError, Transmit};
use wirestorm_engine::stream::Generator;

use super::workload::PortWorkload;
use crate::backend::TransmitPort;
use crate::port::Watch;

/// The sending interfaces of a worker that are down.
pub(super) struct Outages<'a> {
    workloads: &'a [PortWorkload],
    watches: Vec<Watch>,
    is_down: Vec<bool>,
    /// Whether the run continues during an outage. An interface without carrier is down as well.
    survives: bool,
}

impl<'a> Outages<'a> {
    /// Watches the interfaces of the ports of all workloads, in their order.
    pub(super) fn new(workloads: &'a [PortWorkload], watches: Vec<Watch>, survives: bool) -> Self {
        Self { workloads, watches, is_down: vec![false; workloads.len()], survives }
    }

    /// Returns whether the interface of a port is down.
    #[inline]
    pub(super) fn is_down(&self, port: usize) -> bool {
        self.is_down[port]
    }

    /// Begins the outage of the port at an index, which returned an error.
    ///
    /// # Errors
    /// The error, if it is no outage that the run survives.
    #[cold]
    pub(super) fn begin(
        &mut self,
        index: usize,
        error: PortError,
        ports: &mut [TransmitPort],
        generators: &mut [Generator],
    ) -> Result<(), PortError> {
        // Without the kernel's reports, nothing would show that it is up again.
        let watch = self.watches.get_mut(index).filter(|watch| self.survives && watch.knows());
        let Some(watch) = watch else { return Err(error) };
        let is_down = matches!(error, PortError::Down { .. }) || !watch.is_running()?;
        if !is_down {
            return Err(error);
        }
        self.set(index, true, ports, generators);
        Ok(())
    }

    /// Reads the states of the interfaces.
    ///
    /// # Errors
    /// An interface is down or was removed, and the run does not survive that.
    pub(super) fn update(
        &mut self,
        ports: &mut [TransmitPort],
        generators: &mut [Generator],
    ) -> Result<(), PortError> {
        if !self.survives {
            return self.watches.iter_mut().try_for_each(Watch::check);
        }
        for index in 0..self.workloads.len() {
            let running = self.watches.get_mut(index).map_or(Ok(true), Watch::is_running)?;
            self.set(index, !running, ports, generators);
        }
        Ok(())
    }

    /// Records the state of an interface. If it changes, other members of its link aggregation
    /// groups take over its frames, or give them back.
    fn set(
        &mut self,
        index: usize,
        is_down: bool,
        ports: &mut [TransmitPort],
        generators: &mut [Generator],
    ) {
        if self.is_down[index] == is_down {
            return;
        }
        self.is_down[index] = is_down;
        if is_down {
            // Queued frames would leave too late.
            ports[index].abort();
        }
        let mut down: BTreeMap<usize, u64> = BTreeMap::new();
        for (workload, is_down) in self.workloads.iter().zip(&self.is_down) {
            for member in workload.streams.iter().filter_map(|stream| stream.member.as_ref()) {
                *down.entry(member.group).or_default() |= u64::from(*is_down) << member.index;
            }
        }
        for (workload, generator) in self.workloads.iter().zip(generators) {
            for (place, stream) in workload.streams.iter().enumerate() {
                if let Some(member) = &stream.member {
                    let down = down.get(&member.group).copied().unwrap_or_default();
                    generator.set_members_down(place, down);
                }
            }
        }
    }
}
