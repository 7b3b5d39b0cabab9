//! The XDP program that delivers frames to AF_XDP sockets.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, PoisonError};

use aya::Ebpf;
use aya::maps::XskMap;
use aya::programs::xdp::XdpMode;
use aya::programs::{ProgramError, Xdp};

use super::socket::retry_while_busy;
use crate::clock_ports;
use crate::system::bpf::FlagObject;
use crate::system::system_error;
use crate::xdp::XdpAttachment;

/// Object of `bpf/receive.bpf.c`.
static OBJECT: FlagObject =
    FlagObject::new(aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/receive.o")));

/// Attach mode of the XDP program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver, before it allocates a socket buffer.
    Native,
    /// In the network stack, for drivers without XDP support. Slower, but works everywhere.
    Generic,
}

/// The program, attached to an interface as long as this value lives. It is attached through a BPF
/// link, so the kernel detaches it when the process ends for any reason.
pub(super) struct ReceiveProgram {
    loaded: Mutex<Ebpf>,
    mode: AttachMode,
}

impl ReceiveProgram {
    /// Loads the program and attaches it, in native mode if possible, or replaces the program of
    /// `place`. Call this in the interface's namespace. Datagrams to sockets of this process that
    /// compare clocks go to the kernel; with `passes_neighbours`, also ARP, PTP, STAMP, neighbour
    /// discovery and pings.
    pub(super) fn attach(
        interface_index: u32,
        passes_neighbours: bool,
        place: Option<XdpAttachment>,
    ) -> io::Result<Self> {
        let mut loaded = OBJECT.load("passes_neighbours", passes_neighbours)?;
        clock_ports::write_to(&mut loaded, passes_neighbours)?;
        let program: &mut Xdp = loaded
            .program_mut("receive")
            .ok_or_else(|| io::Error::other("the object has no program named receive"))?
            .try_into()
            .map_err(|error: ProgramError| io_error(&error))?;
        program.load().map_err(|error| io_error(&error))?;
        if let Some(XdpAttachment { link, is_native }) = place {
            program.attach_to_link(link).map_err(|error| io_error(&error))?;
            let mode = if is_native { AttachMode::Native } else { AttachMode::Generic };
            return Ok(Self { loaded: Mutex::new(loaded), mode });
        }
        let mut attach = |mode| {
            retry_while_busy(|| {
                let attached = program.attach_to_if_index(interface_index, mode);
                attached.map(|_| ()).map_err(|error| io_error(&error))
            })
        };
        let mode = match attach(XdpMode::Driver) {
            Ok(()) => AttachMode::Native,
            // Another program is attached: generic mode fails too.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Err(error),
            Err(_) => {
                attach(XdpMode::Skb)?;
                AttachMode::Generic
            }
        };
        Ok(Self { loaded: Mutex::new(loaded), mode })
    }

    pub(super) fn mode(&self) -> AttachMode {
        self.mode
    }

    /// Redirects the frames of a queue to a socket until the socket is closed.
    pub(super) fn redirect_queue(&self, queue: u32, socket: RawFd) -> io::Result<()> {
        struct Descriptor(RawFd);
        impl AsRawFd for Descriptor {
            fn as_raw_fd(&self) -> RawFd {
                self.0
            }
        }
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let map = loaded
            .map_mut("sockets")
            .ok_or_else(|| io::Error::other("the object has no map named sockets"))?;
        let mut sockets = XskMap::try_from(map).map_err(|error| io_error(&error))?;
        sockets.set(queue, Descriptor(socket), 0).map_err(|error| io_error(&error))
    }
}

/// Returns the operating system's error inside a loader error; without one, the loader's message.
fn io_error(error: &(dyn std::error::Error + 'static)) -> io::Error {
    match system_error(error) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::other(error.to_string()),
    }
}
