//! TAP interfaces: the frames of an interface of the kernel through a file
//! (`Documentation/networking/tuntap.rst`).
//!
//! The interface vanishes with the last file that refers to it, also if the process is killed. The
//! kernel computes all checksums of the frames, because the file offers no offloads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use crate::namespace::{InterfaceName, NamespaceError};
use crate::system::checked;

/// Device that makes the interfaces.
const DEVICE: &str = "/dev/net/tun";

/// Reason why an interface was not created.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// Its namespace cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A system call failed.
    #[error("cannot create TAP interface {interface}: {operation}: {reason}")]
    System {
        /// The interface.
        interface: String,
        /// Operation that failed.
        operation: &'static str,
        /// Error of the system call.
        reason: io::Error,
    },
}

/// `struct ifreq` of `TUNSETIFF`; the ioctl uses only the name and the flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

/// A TAP interface of this process.
#[derive(Debug)]
pub struct Tap(File);

impl Tap {
    /// Creates an interface, which is down.
    ///
    /// # Errors
    /// The namespace does not exist, the name is in use, or the process lacks `CAP_NET_ADMIN`.
    pub fn create(interface: &InterfaceName) -> Result<Self, TapError> {
        let failed = |operation: &'static str| {
            move |reason| TapError::System { interface: interface.to_string(), operation, reason }
        };
        interface.namespace.enter(|| {
            let mut options = File::options();
            options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
            let file = options.open(DEVICE).map_err(failed("opening /dev/net/tun"))?;
            let flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
            let mut request = InterfaceRequest { name: [0; libc::IFNAMSIZ], flags, rest: [0; 22] };
            // Names are at most 15 bytes long, so that a zero ends them.
            for (to, from) in request.name.iter_mut().zip(interface.name().bytes()) {
                *to = from;
            }
            // SAFETY: the ioctl reads and writes one `struct ifreq`, which `request` is.
            checked(unsafe {
                libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request)
            })
            .map_err(failed("TUNSETIFF"))?;
            Ok(Self(file))
        })?
    }

    /// Fetches a frame that the interface has sent, without FCS; a longer one is cut. `None` if
    /// there is none.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.0).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets the interface receive a frame without FCS.
    ///
    /// # Errors
    /// The interface is down, its queue is full, or the frame is shorter than an Ethernet header.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        (&self.0).write(frame).map(drop)
    }

    /// Waits until one of the interfaces has a frame, for at most `patience`.
    pub fn wait<'a>(taps: impl Iterator<Item = &'a Self>, patience: Duration) {
        let descriptor = |tap: &Self| libc::pollfd {
            fd: tap.0.as_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut descriptors: Vec<libc::pollfd> = taps.map(descriptor).collect();
        let count = descriptors.len() as libc::nfds_t;
        let milliseconds = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: `count` is the number of the descriptors, which outlive the call. After an error
        // the caller finds no frame and waits again.
        let _ = unsafe { libc::poll(descriptors.as_mut_ptr(), count, milliseconds) };
    }
}
