//! What a run sends through: interfaces, CPUs, ports.

use std::time::{Duration, Instant};

use wirestorm_base::pace::Pace;
use wirestorm_base::port::PortError;
use wirestorm_io::link::{Link, LinkError, LinkState, LinkWatch};
use wirestorm_io::lock::InterfaceLock;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_plan::replay::{Backend, ReplayPlan, Target};

use super::port::{Choice, PortOptions, TransmitPort};
use super::run::ReplayError;
use crate::cpu;

/// The interfaces of a run, locked.
pub(super) struct Interfaces {
    pub(super) links: Vec<(InterfaceName, Link)>,
    _locks: Vec<InterfaceLock>,
}

impl Interfaces {
    pub(super) fn open(plan: &ReplayPlan) -> Result<Self, ReplayError> {
        let names: Vec<&str> = match &plan.target {
            Target::Interfaces { primary, secondary } => {
                std::iter::once(primary.as_str()).chain(secondary.as_deref()).collect()
            }
            Target::File(_) | Target::Memory => Vec::new(),
        };
        let mut links = Vec::new();
        let mut locks = Vec::new();
        for name in names {
            let interface: InterfaceName = name.parse()?;
            let link = Link::open(&interface)?;
            if !link.up {
                return Err(ReplayError::Down { interface });
            }
            if link.default_route && !plan.force_interface {
                return Err(ReplayError::DefaultRoute(interface));
            }
            locks.push(InterfaceLock::acquire(&interface)?);
            links.push((interface, link));
        }
        Ok(Self { links, _locks: locks })
    }

    /// Watches them from now on.
    pub(super) fn watch(&self) -> Vec<Watch> {
        let watch = |(interface, _): &(InterfaceName, Link)| Watch {
            interface: interface.clone(),
            watch: LinkWatch::open(interface).ok(),
        };
        self.links.iter().map(watch).collect()
    }

    /// What an error of a port turns out to be: an interface that is removed loses its carrier
    /// and goes down first, some milliseconds before it is gone.
    pub(super) fn settle(&self, error: PortError) -> PortError {
        let deadline = Instant::now() + REMOVAL_TIME_MAX;
        let mut watches = Vec::new();
        for (interface, link) in &self.links {
            match LinkWatch::open(interface) {
                Ok(watch) if watch.index() == link.index => watches.push((interface, watch)),
                // There is none of that name, or it is another.
                Ok(_) | Err(LinkError::Missing(_)) => return interface.is_gone(),
                Err(_) => {}
            }
        }
        while !watches.is_empty() && Instant::now() < deadline {
            for (interface, watch) in &mut watches {
                if matches!(watch.state(), Ok(LinkState::Gone)) {
                    return interface.is_gone();
                }
            }
            std::thread::sleep(REMOVAL_LOOK_INTERVAL);
        }
        error
    }

    /// The same interfaces with the facts of this moment.
    pub(super) fn read_again(mut self) -> Result<Self, ReplayError> {
        for (interface, link) in &mut self.links {
            *link = Link::open(interface)?;
        }
        Ok(self)
    }
}

/// How long an interface that went down may take to be gone.
const REMOVAL_TIME_MAX: Duration = Duration::from_millis(250);
const REMOVAL_LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Whether an interface is still there and up.
pub(super) struct Watch {
    interface: InterfaceName,
    /// `None` where the kernel does not tell.
    watch: Option<LinkWatch>,
}

impl Watch {
    /// # Errors
    /// Where the interface went down or vanished.
    pub(super) fn check(&mut self) -> Result<(), PortError> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        match watch.state() {
            // Without a carrier the kernel still takes frames; what becomes of them is counted.
            Ok(LinkState::Running | LinkState::NoCarrier) => Ok(()),
            Ok(LinkState::Down) => Err(self.interface.went_down()),
            Ok(LinkState::Gone) => Err(self.interface.is_gone()),
            // Not knowing is no reason to end a run.
            Err(_) => Ok(()),
        }
    }
}

/// Which CPUs the ports' own threads have to themselves; all others share the rest.
pub(super) struct CpuPlan {
    senders: Vec<usize>,
    rest: Vec<usize>,
    /// In-kernel senders that were asked for and have to share CPUs.
    sharing: usize,
}

impl CpuPlan {
    pub(super) fn new(plan: &ReplayPlan, interfaces: &Interfaces) -> Self {
        let mut rest = cpu::allowed();
        let wanted = match plan.backend {
            Backend::Auto | Backend::Xdp => interfaces.links.len() * usize::from(plan.workers),
            Backend::Memory | Backend::AfPacket | Backend::AfXdp => 0,
        };
        // One CPU at least is for everything else.
        if wanted >= rest.len() {
            let sharing = if plan.backend == Backend::Xdp { wanted } else { 0 };
            return Self { senders: Vec::new(), rest, sharing };
        }
        let senders = rest.split_off(rest.len() - wanted);
        Self { senders, rest, sharing: 0 }
    }

    /// What one should know of it.
    pub(super) fn note(&self) -> Option<String> {
        let (senders, cpus) = (self.sharing, self.rest.len());
        (senders > 0).then(|| {
            format!(
                "an in-kernel sender keeps a CPU busy, and {senders} of them shared {cpus} CPUs with \
                 everything else: with fewer --workers, or with --backend auto, it goes faster"
            )
        })
    }

    pub(super) fn apply(&self) {
        // Where it is refused, the threads share CPUs: slower, but right.
        let _ = cpu::restrict_to(&self.rest);
    }
}

pub(super) fn open_ports(
    plan: &ReplayPlan,
    interfaces: &Interfaces,
    cpus: &CpuPlan,
    worker: usize,
    store_bytes: usize,
) -> Result<Vec<(TransmitPort, Choice)>, ReplayError> {
    match &plan.target {
        Target::Memory => return Ok(vec![TransmitPort::memory()]),
        Target::File(path) => {
            let port = TransmitPort::file(path).map_err(|reason| ReplayError::Port {
                interface: path.display().to_string(),
                reason,
            })?;
            return Ok(vec![port]);
        }
        Target::Interfaces { .. } => {}
    }
    let mut ports = Vec::new();
    for (position, (interface, link)) in interfaces.links.iter().enumerate() {
        let options = PortOptions {
            policy: plan.policy,
            paced: plan.pace != Pace::TopSpeed,
            cpu: cpus.senders.get(worker * interfaces.links.len() + position).copied(),
            queue: worker as u32,
            store_bytes,
        };
        let port = TransmitPort::open(plan.backend, interface, link, &options)
            .map_err(|reason| ReplayError::Port { interface: interface.to_string(), reason })?;
        ports.push(port);
    }
    Ok(ports)
}
