//! The interface of a port: its facts and the kernel's counters.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wirestorm_control::base::rate::Rate;
use wirestorm_control::link::{Link, LinkCounters, LinkKind, LinkMeter};
use wirestorm_control::namespace::InterfaceName;
use wirestorm_control::wire::packet::MacAddress;

use super::listen::TrexError;
use super::packets::{PacketSender, Pushed};

/// Age at which facts are read again.
const FACTS_AGE_MAX: Duration = Duration::from_millis(400);

/// The interface of a port.
pub(super) struct Interface {
    /// Name of the port on the server.
    pub(super) port: String,
    /// Interface, with its namespace.
    pub(super) name: InterfaceName,
    facts: Mutex<(Instant, Facts)>,
    meter: Mutex<LinkMeter>,
    /// Sends single frames.
    pub(super) sender: Mutex<PacketSender>,
    /// Frames sent beside the runs.
    pub(super) pushed: Arc<Pushed>,
}

/// Facts about an interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Facts {
    pub(super) mac: MacAddress,
    /// Line rate: what the interface reports, or 10 Gbit/s.
    pub(super) speed: Rate,
    pub(super) is_up: bool,
    pub(super) is_virtual: bool,
    pub(super) mtu: u32,
}

impl Interface {
    pub(super) fn open(port: &str, interface: &str) -> Result<Self, TrexError> {
        let name: InterfaceName = interface.parse()?;
        let failed = |error| TrexError::Link { name: port.to_owned(), error };
        let link = Link::open(&name).map_err(failed)?;
        let meter = LinkMeter::open(&name).map_err(failed)?;
        Ok(Self {
            port: port.to_owned(),
            sender: Mutex::new(PacketSender::new(name.clone())),
            pushed: Arc::default(),
            name,
            facts: Mutex::new((Instant::now(), facts(&link))),
            meter: Mutex::new(meter),
        })
    }

    /// Returns the current facts. An interface that is gone is down.
    pub(super) fn facts(&self) -> Facts {
        let mut cached = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.0.elapsed() >= FACTS_AGE_MAX {
            let now = match Link::open(&self.name) {
                Ok(link) => facts(&link),
                Err(_) => Facts { is_up: false, ..cached.1 },
            };
            *cached = (Instant::now(), now);
        }
        cached.1
    }

    /// Returns the kernel's counters; those of an interface that is gone are zero.
    pub(super) fn counters(&self) -> LinkCounters {
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        meter.read().unwrap_or_default()
    }
}

fn facts(link: &Link) -> Facts {
    Facts {
        mac: MacAddress(link.mac.unwrap_or_default()),
        speed: link.speed.filter(|speed| speed.per_second() > 0.0).unwrap_or(Rate::TEN_GIGA),
        is_up: link.up && link.running,
        is_virtual: link.kind != LinkKind::Physical,
        mtu: link.mtu,
    }
}
