//! Ports of a replay, as its plan defines them.

use wirestorm_base::pace::Pace;
use wirestorm_base::resident::ResidentOptions;
use wirestorm_plan::replay::{ReplayPlan, Target};

use crate::backend::Choice;
use crate::backend::{self, Backend, TransmitPort};
use crate::files::Files;
use crate::host::CpuPlan;
use crate::port::{Interfaces, OpenError, PortOptions};

/// Returns the names of the interfaces.
pub(super) fn interfaces(plan: &ReplayPlan) -> Vec<&str> {
    match &plan.target {
        Target::Interfaces { primary, secondary } => {
            std::iter::once(primary.as_str()).chain(secondary.as_deref()).collect()
        }
        Target::File(_) | Target::Memory { .. } => Vec::new(),
    }
}

/// Returns the names of the ports: interfaces, a file, or the memory of all outputs.
pub(super) fn port_names(plan: &ReplayPlan, interfaces: &Interfaces) -> Vec<String> {
    match &plan.target {
        Target::Interfaces { .. } => {
            interfaces.links.iter().map(|(interface, _)| interface.to_string()).collect()
        }
        Target::File(path) => vec![path.display().to_string()],
        Target::Memory { .. } => vec!["memory".to_owned()],
    }
}

/// Memory of ports for the frames of a capture.
pub(super) struct PortMemory {
    /// Bytes of frames.
    pub(super) store_bytes: usize,
    /// Capture that a port should send by itself.
    pub(super) resident: Option<ResidentOptions>,
}

/// Opens the ports of one worker.
pub(super) fn open_ports(
    plan: &ReplayPlan,
    backend: Backend,
    interfaces: &Interfaces,
    cpus: &CpuPlan,
    worker: usize,
    memory: &PortMemory,
    files: &dyn Files,
) -> Result<Vec<(TransmitPort, Choice)>, OpenError> {
    match &plan.target {
        Target::Memory { .. } => {
            return Ok((0..plan.target.outputs()).map(|_| backend::memory()).collect());
        }
        Target::File(path) => {
            let failed = |reason| OpenError::Port { interface: files.name(path), reason };
            let path = files.output(path).map_err(|error| failed(error.to_string()))?;
            return Ok(vec![backend::create_file(&path).map_err(failed)?]);
        }
        Target::Interfaces { .. } => {}
    }
    let mut ports = Vec::new();
    for (position, (interface, link)) in interfaces.links.iter().enumerate() {
        let options = PortOptions {
            policy: plan.policy,
            paced: plan.pace != Pace::TopSpeed,
            cpu: cpus.sender(worker * interfaces.links.len() + position),
            queue: worker as u32,
            store_bytes: memory.store_bytes,
            is_visible: false,
            resident: memory.resident.clone(),
            needs_no_process: memory.resident.is_some() && plan.pace == Pace::TopSpeed,
        };
        let port = backend::open(backend, interface, link, &options)
            .map_err(|reason| OpenError::Port { interface: interface.to_string(), reason })?;
        ports.push(port);
    }
    Ok(ports)
}
