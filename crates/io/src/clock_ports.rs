//! UDP ports whose datagrams compare clocks: receivers of test traffic leave them to the kernel.
//!
//! A socket that compares clocks may be on the interface of a test. A receiver on this interface takes
//! all frames from the kernel, so its program needs to know which ones are not for it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use aya::Ebpf;
use aya::maps::Array;

use crate::system::bpf::failure;

/// Ports of PTP over UDP, and of STAMP and TWAMP Light: other processes may have sockets on them.
const WELL_KNOWN: [u16; 3] = [319, 320, 862];

/// Number of sockets of this process on each port.
static OPEN: Mutex<BTreeMap<u16, usize>> = Mutex::new(BTreeMap::new());

/// Keeps a port in the list as long as it lives.
#[derive(Debug)]
pub(crate) struct ClockPort(u16);

impl ClockPort {
    /// Adds a port. Receivers that are open already do not learn about it.
    pub(crate) fn open(port: u16) -> Self {
        *lock().entry(port).or_default() += 1;
        Self(port)
    }
}

impl Drop for ClockPort {
    fn drop(&mut self) {
        let mut open = lock();
        if let Some(count) = open.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.0);
            }
        }
    }
}

fn lock() -> std::sync::MutexGuard<'static, BTreeMap<u16, usize>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the ports of this process, and the well-known ones if `well_known`.
fn listed(well_known: bool) -> Vec<u16> {
    let mut ports: Vec<u16> = lock().keys().copied().collect();
    if well_known {
        ports.extend(WELL_KNOWN);
    }
    ports
}

/// Writes the ports to the map `clock_ports` of a program (`bpf/clock.h`).
///
/// # Errors
/// The program has no such map, or the system refuses.
pub(crate) fn write_to(programs: &mut Ebpf, well_known: bool) -> io::Result<()> {
    let map = programs.map_mut("clock_ports");
    let map = map.ok_or_else(|| io::Error::other("the program has no map named clock_ports"))?;
    let mut map: Array<_, u8> = Array::try_from(map).map_err(failure)?;
    for port in listed(well_known) {
        map.set(u32::from(port), 1, 0).map_err(failure)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_listed_as_long_as_a_socket_has_it() {
        // Other tests may have sockets at the same time.
        let has = |port: u16, well_known| listed(well_known).contains(&port);
        let one = ClockPort::open(7);
        let other = ClockPort::open(7);
        drop(one);
        assert!(has(7, false));
        drop(other);
        assert!(!has(7, false) && has(862, true));
    }
}
