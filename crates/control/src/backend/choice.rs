//! Choice of the backend for an interface.
//!
//! Runs and `ports`/`doctor` share this decision. A run opens the [`candidates`] in order and uses
//! the first that opens; `ports` and `doctor` show which one that is.

use wirestorm_io::link::Link;
use wirestorm_io::namespace::InterfaceName;

use super::{
    BACKENDS, Backend, Conditions, Descriptor, KernelVersion, LatencyProbe, TransmitPort, memory,
};
use crate::backend::{Choice, DuplexPort};
use crate::port::{PortOptions, Usage};

/// Reason for a backend that the user requested.
const REQUESTED: &str = "asked for";

/// A backend that `auto` considers for an interface.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) backend: &'static Descriptor,
    pub(crate) probe: LatencyProbe,
}

/// Returns the backends that `auto` considers for an interface, best first.
pub(crate) fn candidates(link: &Link, conditions: &Conditions) -> Vec<Candidate> {
    considered(|backend| (backend.probe)(link, conditions))
}

fn considered(probe: impl Fn(&'static Descriptor) -> LatencyProbe) -> Vec<Candidate> {
    let candidate = |&backend: &&'static Descriptor| Candidate { backend, probe: probe(backend) };
    let candidates = BACKENDS.iter().map(candidate);
    let mut candidates: Vec<_> =
        candidates.filter(|it| it.probe != LatencyProbe::NotConsidered).collect();
    candidates.sort_by_key(|it| it.backend.rank);
    candidates
}

/// Opens a sending port with the requested backend, or for `auto` with the first that opens.
///
/// # Errors
/// Lists the backends tried and the system errors.
pub(crate) fn open(
    backend: Backend,
    interface: &InterfaceName,
    link: &Link,
    options: &PortOptions,
) -> Result<(TransmitPort, Choice), String> {
    match backend {
        Backend::One(backend) if !backend.has_interface => {
            let port = (backend.open)(interface, link, options)?;
            Ok((port, Choice { backend, why: memory::WHY.into() }))
        }
        Backend::One(backend) => {
            let port = (backend.open)(interface, link, options)?;
            // Check after `open`, so that a missing privilege is reported first.
            match (backend.refusal)(interface, link) {
                Some(reason) => Err(format!("not {}: {reason}", backend.name)),
                None => Ok((port, Choice { backend, why: REQUESTED.into() })),
            }
        }
        Backend::Auto => {
            let conditions = Conditions {
                has_dedicated_cpu: options.cpu.is_some() || options.needs_no_process,
                kernel: KernelVersion::running(),
            };
            first(candidates(link, &conditions), |backend, why| {
                let port = (backend.open)(interface, link, options)?;
                Ok((port, Choice { backend, why }))
            })
        }
    }
}

/// Opens a port that sends and receives with the requested backend, or for `auto` with the first
/// that opens.
///
/// # Errors
/// Lists the backends tried and the system errors.
pub(crate) fn open_duplex(
    backend: Backend,
    interface: &InterfaceName,
    link: &Link,
    usage: &Usage,
) -> Result<DuplexPort, String> {
    let open =
        |backend: &'static Descriptor, why| (backend.open_both_ways)(interface, link, usage, why);
    match backend {
        Backend::One(backend) if backend.receives() => open(backend, REQUESTED.into()),
        Backend::One(backend) => {
            let both: Vec<_> = Backend::all(true).map(Backend::name).collect();
            Err(format!("{} cannot receive; expected {}", backend.name, both.join(", ")))
        }
        Backend::Auto => {
            let probe = |backend: &'static Descriptor| {
                backend.probe_duplex.map_or(LatencyProbe::NotConsidered, |probe| probe(link, usage))
            };
            first(considered(probe), open)
        }
    }
}

/// Returns the first candidate that opens. `open` receives the reason for the choice.
fn first<T>(
    candidates: Vec<Candidate>,
    mut open: impl FnMut(&'static Descriptor, String) -> Result<T, String>,
) -> Result<T, String> {
    let mut refused: Vec<String> = Vec::new();
    for Candidate { backend, probe } in candidates {
        let why = match probe {
            LatencyProbe::Good(why) => Ok(why.to_owned()),
            // A fallback is justified by the reasons against the better candidates.
            LatencyProbe::Fallback => Ok(refused.join("; ")),
            LatencyProbe::Bad(reason) => Err(reason),
            LatencyProbe::NotConsidered => continue,
        };
        match why.and_then(|why| open(backend, why)) {
            Ok(opened) => return Ok(opened),
            Err(reason) => refused.push(format!("not {}: {reason}", backend.name)),
        }
    }
    Err(refused.join("; "))
}

#[cfg(test)]
mod tests {
    use wirestorm_io::link::LinkKind;

    use super::super::xdp::tests::{GOOD, TRANSMIT, ZERO_COPY, link};
    use super::super::{AF_PACKET, AF_XDP, XDP};
    use super::*;

    fn first(link: &Link, conditions: &Conditions) -> &'static Descriptor {
        let found = candidates(link, conditions);
        let works = |it: &&Candidate| !matches!(it.probe, LatencyProbe::Bad(_));
        found.iter().find(works).expect("af_packet always is").backend
    }

    #[test]
    fn best_supported_backend_comes_first() {
        let physical = |features| link(LinkKind::Physical, 1500, features);
        assert_eq!(first(&physical(Some(TRANSMIT | ZERO_COPY)), &GOOD), &AF_XDP);
        assert_eq!(first(&physical(Some(TRANSMIT)), &GOOD), &XDP);
        assert_eq!(first(&physical(Some(0)), &GOOD), &AF_PACKET);
        // If the kernel reports no features, only opening shows whether the backend works.
        assert_eq!(first(&physical(None), &GOOD), &XDP);
    }
}
