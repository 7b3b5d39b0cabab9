//! The ports a run can have, as one type, and how the one for an interface is chosen.

use std::fmt;

use wirestorm_base::departure::{DeparturePolicy, DepartureRecord};
use wirestorm_base::port::{Capabilities, FrameId, PortError, Transmit, TransmitCounters};
use wirestorm_base::time::Instant;
use wirestorm_io::link::Link;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::xdp::{XdpTransmit, XdpTransmitOptions};
use wirestorm_plan::replay::Backend;
use wirestorm_sim::memory::{MemorySink, WireOptions};

/// A port that sends, whatever carries it.
pub enum TransmitPort {
    /// Nothing: frames are thrown away.
    Memory(Box<MemorySink>),
    /// The in-kernel sender.
    Xdp(Box<XdpTransmit>),
}

/// What carries an interface's frames, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What was chosen; never `Auto`.
    pub backend: Backend,
    /// Why.
    pub why: String,
}

/// How a port is opened.
#[derive(Clone, Debug)]
pub struct PortOptions {
    /// What becomes of late frames.
    pub policy: DeparturePolicy,
    /// Whether frames have due times.
    pub paced: bool,
    /// The CPU for the port's own thread, where it has one.
    pub cpu: Option<usize>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = backend_name(self.backend);
        write!(f, "{name} ({})", self.why)
    }
}

/// The name that flags and results use.
pub const fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Auto => "auto",
        Backend::Memory => "memory",
        Backend::AfPacket => "af_packet",
        Backend::AfXdp => "af_xdp",
        Backend::Xdp => "xdp",
    }
}

impl TransmitPort {
    /// A port that throws frames away.
    pub fn memory() -> Self {
        Self::Memory(Box::new(MemorySink::new(WireOptions::default())))
    }

    /// The port for an interface: the one asked for, or with `auto` the first that opens.
    ///
    /// # Errors
    /// What was tried, and what the system said.
    pub fn open(
        backend: Backend,
        interface: &InterfaceName,
        link: &Link,
        options: &PortOptions,
    ) -> Result<(Self, Choice), String> {
        let choice = |backend, why: &str| Choice { backend, why: why.to_owned() };
        match backend {
            Backend::Memory => Ok((Self::memory(), choice(backend, "asked for"))),
            _ => match Self::xdp(interface, link, options) {
                Ok(port) => Ok((port, choice(Backend::Xdp, "asked for"))),
                Err(error) => Err(format!("xdp: {error}")),
            },
        }
    }

    /// The in-kernel sender on an interface.
    fn xdp(interface: &InterfaceName, link: &Link, options: &PortOptions) -> std::io::Result<Self> {
        let options = XdpTransmitOptions {
            interface: interface.name().to_owned(),
            mtu: link.mtu as usize,
            cpu: options.cpu,
            policy: options.policy,
            paced: options.paced,
        };
        let port = interface
            .namespace
            .enter(|| XdpTransmit::open(&options))
            .map_err(std::io::Error::other)??;
        Ok(Self::Xdp(Box::new(port)))
    }
}

/// Calls the same method of whatever port it is.
macro_rules! forward {
    ($self:expr, $port:ident => $call:expr) => {
        match $self {
            TransmitPort::Memory($port) => $call,
            TransmitPort::Xdp($port) => $call,
        }
    };
}

impl Transmit for TransmitPort {
    #[inline]
    fn capabilities(&self) -> &Capabilities {
        forward!(self, port => port.capabilities())
    }

    #[inline]
    fn take(&mut self) -> Option<FrameId> {
        forward!(self, port => port.take())
    }

    #[inline]
    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        forward!(self, port => port.frame_mut(frame))
    }

    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        forward!(self, port => port.send(frame, length, departure));
    }

    #[inline]
    fn release(&mut self, frame: FrameId) {
        forward!(self, port => port.release(frame));
    }

    fn flush(&mut self) -> Result<(), PortError> {
        forward!(self, port => port.flush())
    }

    fn in_flight(&self) -> usize {
        forward!(self, port => port.in_flight())
    }

    fn transmitted(&self) -> TransmitCounters {
        forward!(self, port => port.transmitted())
    }

    fn departures(&self) -> Option<DepartureRecord> {
        forward!(self, port => port.departures())
    }

    fn abort(&mut self) {
        forward!(self, port => port.abort());
    }
}
