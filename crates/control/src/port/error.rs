//! Errors of opening interfaces and ports.

use wirestorm_io::link::LinkError;
use wirestorm_io::lock::LockError;
use wirestorm_io::namespace::{InterfaceName, InterfaceNameError};

use crate::host::LeaseHolder;

/// Error of opening an interface or a port.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The name is not a valid interface name.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// The interface does not exist or cannot be read.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Another process uses the interface.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Another run of this process uses the interface.
    #[error(
        "{interface} is in use by {holder}: wait for it to end, stop it, or give both runs shared \
         access"
    )]
    Leased {
        /// Interface to send on.
        interface: InterfaceName,
        /// Holder of the interface.
        holder: LeaseHolder,
    },
    /// The interfaces are shared, but this backend takes received frames away from other runs.
    #[error(
        "found backend {0}, expected af_packet or auto: on shared interfaces only packet sockets \
         let several runs receive the same frames; use one of those, or exclusive access"
    )]
    SharedBackend(&'static str),
    /// The receiver of another run consumes the frames that arrive there.
    #[error(
        "{interface}: the receiver of another run consumes all frames with {backend}; start that \
         run after this one, and both runs receive them"
    )]
    FramesTaken {
        /// Interface to send on.
        interface: InterfaceName,
        /// Backend of that receiver.
        backend: &'static str,
    },
    /// Two ports use the same interface.
    #[error("{0} is named twice: each port needs its own interface")]
    Twice(InterfaceName),
    /// The interface is down.
    #[error("{interface} is down; bring it up with: {}", .interface.up_command())]
    Down {
        /// Interface to send on.
        interface: InterfaceName,
    },
    /// The interface carries the default route.
    #[error(
        "{0} carries the default route: frames would go to your own network; \
             use --force-interface to send anyway"
    )]
    DefaultRoute(InterfaceName),
    /// The port does not open.
    #[error("{interface}: {reason}")]
    Port {
        /// Interface to send on.
        interface: String,
        /// Backends tried, and the system errors.
        reason: String,
    },
}
