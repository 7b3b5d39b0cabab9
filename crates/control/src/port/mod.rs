//! The ports a run can have, as one type, and how the one for an interface is chosen.

mod both;
pub mod choice;
mod error;
mod interfaces;
mod lasting;
mod receive;

use std::ops::Range;
use std::path::Path;

use wirestorm_base::departure::{DeparturePolicy, DepartureRecord};
use wirestorm_base::port::{
    Capabilities, FrameId, PortError, Segmentation, StampPoint, Stored, Transmit, TransmitCounters,
};
use wirestorm_base::time::Instant;
use wirestorm_io::af_packet::{AfPacketOptions, AfPacketTransmit, OffloadTransmit};
use wirestorm_io::af_xdp::{AfXdp, AfXdpOptions, AfXdpTransmit, Direction};
use wirestorm_io::link::Link;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::pcap::PcapTransmit;
use wirestorm_io::xdp::{XdpTransmit, XdpTransmitOptions};
use wirestorm_plan::backend::Backend;
use wirestorm_sim::memory::{MemorySink, WireOptions};

use choice::{Candidate, Conditions, KernelVersion, candidates, name};

pub(crate) use both::{BothWays, Usage};
pub use error::OpenError;
pub(crate) use interfaces::{Interfaces, Watch, are_one_pair};
pub(crate) use lasting::Lasting;
pub(crate) use receive::ReceivePort;

/// A port that sends, whatever carries it.
pub(crate) enum TransmitPort {
    /// Nothing: frames are thrown away.
    Memory(Box<MemorySink>),
    /// A capture file.
    Pcap(Box<PcapTransmit>),
    /// A packet socket.
    AfPacket(Box<AfPacketTransmit>),
    /// A packet socket that sends long frames.
    Offload(Box<OffloadTransmit>),
    /// An AF_XDP socket.
    AfXdp(Box<AfXdpTransmit>),
    /// The in-kernel sender.
    Xdp(Box<XdpTransmit>),
}

/// What carries an interface's frames, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name that flags and results use.
    pub backend: &'static str,
    /// Why that one.
    pub why: String,
}

/// How a port is opened.
#[derive(Clone, Debug)]
pub(crate) struct PortOptions {
    /// What becomes of late frames.
    pub(crate) policy: DeparturePolicy,
    /// Whether frames have due times.
    pub(crate) paced: bool,
    /// The CPU for the port's own thread, where it has one.
    pub(crate) cpu: Option<usize>,
    /// The queue, where the port is for one.
    pub(crate) queue: u32,
    /// Bytes of the captures that will be sent again and again as they are.
    pub(crate) store_bytes: usize,
    /// Whether other packet sockets on this host see what a packet socket sends.
    pub(crate) is_visible: bool,
}

impl TransmitPort {
    /// A port that throws frames away.
    pub(crate) fn memory() -> (Self, Choice) {
        let port = Self::Memory(Box::new(MemorySink::new(WireOptions::default())));
        (port, Choice { backend: "memory", why: "asked for; frames go nowhere".into() })
    }

    /// A port that writes a capture file.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn file(path: &Path) -> Result<(Self, Choice), String> {
        let port = PcapTransmit::create(path).map_err(|error| error.to_string())?;
        let choice = Choice { backend: "pcap", why: "asked for with --write".into() };
        Ok((Self::Pcap(Box::new(port)), choice))
    }

    /// The port for an interface: the one asked for, or with `auto` the first that opens.
    ///
    /// # Errors
    /// What was tried, and what the system said.
    pub(crate) fn open(
        backend: Backend,
        interface: &InterfaceName,
        link: &Link,
        options: &PortOptions,
    ) -> Result<(Self, Choice), String> {
        let asked = |port| Ok((port, "asked for".to_owned()));
        let (port, why) = match backend {
            Backend::Memory => return Ok(Self::memory()),
            Backend::AfPacket => Self::af_packet(interface, options).and_then(asked),
            Backend::AfXdp => Self::af_xdp(interface, options).and_then(asked),
            // Without privilege, that is what has to change first.
            Backend::Xdp => match Self::xdp(interface, link, options) {
                Ok(port) => match choice::xdp_refusal(interface, link) {
                    Some(reason) => Err(format!("not xdp: {reason}")),
                    None => asked(port),
                },
                Err(error) => Err(error),
            },
            Backend::Auto => Self::auto(interface, link, options),
        }?;
        let backend = port.backend();
        Ok((port, Choice { backend, why }))
    }

    /// The fastest port that this interface allows.
    fn auto(
        interface: &InterfaceName,
        link: &Link,
        options: &PortOptions,
    ) -> Result<(Self, String), String> {
        let conditions =
            Conditions { own_cpu: options.cpu.is_some(), kernel: KernelVersion::running() };
        let mut refused: Vec<String> = Vec::new();
        for Candidate { backend, verdict } in candidates(link, &conditions) {
            let name = name(backend);
            let opened = verdict.and_then(|why| {
                let port = match backend {
                    Backend::AfXdp => Self::af_xdp(interface, options),
                    Backend::Xdp => Self::xdp(interface, link, options),
                    _ => Self::af_packet(interface, options),
                }?;
                Ok((port, why))
            });
            match opened {
                // What works everywhere is taken for want of something better: the reason is
                // what stood in the way of that.
                Ok((port, _)) if backend == Backend::AfPacket => {
                    return Ok((port, refused.join("; ")));
                }
                Ok((port, why)) => return Ok((port, why.to_owned())),
                Err(reason) => refused.push(format!("not {name}: {reason}")),
            }
        }
        Err(refused.join("; "))
    }

    fn af_packet(interface: &InterfaceName, options: &PortOptions) -> Result<Self, String> {
        let mut af_packet = AfPacketOptions::new(interface.clone());
        af_packet.queueing_bypass = !options.is_visible;
        match AfPacketTransmit::open(&af_packet) {
            Ok(port) => Ok(Self::AfPacket(Box::new(port))),
            Err(error) => Err(error.to_string()),
        }
    }

    fn af_xdp(interface: &InterfaceName, options: &PortOptions) -> Result<Self, String> {
        let mut af_xdp = AfXdpOptions::new(interface.clone(), Direction::Transmit);
        af_xdp.first_queue = options.queue;
        match AfXdp::open(&af_xdp) {
            Ok(mut ports) => match ports.transmit.pop() {
                Some(port) => Ok(Self::AfXdp(Box::new(port))),
                None => Err("no queue to send on".into()),
            },
            Err(error) => Err(error.to_string()),
        }
    }

    fn xdp(interface: &InterfaceName, link: &Link, options: &PortOptions) -> Result<Self, String> {
        let options = XdpTransmitOptions {
            interface: interface.name().to_owned(),
            frame_length_max: link.frame_length_max(),
            untagged_length_max: link.untagged_length_max(),
            cpu: options.cpu,
            policy: options.policy,
            paced: options.paced,
            store_bytes: options.store_bytes,
        };
        match interface.namespace.enter(|| XdpTransmit::open(&options)) {
            Ok(Ok(port)) => Ok(Self::Xdp(Box::new(port))),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    const fn backend(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Pcap(_) => "pcap",
            Self::AfPacket(_) | Self::Offload(_) => "af_packet",
            Self::AfXdp(_) => "af_xdp",
            Self::Xdp(_) => "xdp",
        }
    }
}

/// Whether a backend can send on an interface, by opening a port and dropping it unused.
///
/// # Errors
/// What the system said.
pub(crate) fn try_open(
    backend: Backend,
    interface: &InterfaceName,
    link: &Link,
) -> Result<(), String> {
    let options = PortOptions {
        policy: DeparturePolicy::default(),
        paced: false,
        cpu: crate::host::allowed().last().copied(),
        queue: 0,
        store_bytes: 0,
        is_visible: false,
    };
    TransmitPort::open(backend, interface, link, &options).map(|_| ())
}

/// The point where departures are stamped, as results name it.
pub(crate) const fn stamp_name(stamp: StampPoint) -> &'static str {
    match stamp {
        StampPoint::Process => "process",
        StampPoint::Kernel => "kernel",
        StampPoint::Xdp => "xdp",
        StampPoint::Hardware => "hardware",
        StampPoint::Virtual => "virtual",
    }
}

/// Calls the same method of whatever port it is.
macro_rules! forward {
    ($self:expr, $port:ident => $call:expr) => {
        match $self {
            TransmitPort::Memory($port) => $call,
            TransmitPort::Pcap($port) => $call,
            TransmitPort::AfPacket($port) => $call,
            TransmitPort::Offload($port) => $call,
            TransmitPort::AfXdp($port) => $call,
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
    fn send_stamped(&mut self, frame: FrameId, length: usize, departure: Instant) {
        forward!(self, port => port.send_stamped(frame, length, departure));
    }

    fn store(&mut self, bytes: &[u8]) -> Option<Stored> {
        forward!(self, port => port.store(bytes))
    }

    #[inline]
    fn send_stored(
        &mut self,
        frame: FrameId,
        stored: Stored,
        range: Range<usize>,
        departure: Instant,
    ) {
        forward!(self, port => port.send_stored(frame, stored, range, departure));
    }

    #[inline]
    fn segmented_length_max(&self) -> Option<usize> {
        forward!(self, port => port.segmented_length_max())
    }

    #[inline]
    fn send_segments(
        &mut self,
        frame: FrameId,
        length: usize,
        segments: &Segmentation,
        departure: Instant,
    ) {
        forward!(self, port => port.send_segments(frame, length, segments, departure));
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
