//! Why an interface cannot be sent on.

use wirestorm_io::link::LinkError;
use wirestorm_io::lock::LockError;
use wirestorm_io::namespace::{InterfaceName, InterfaceNameError};

use crate::host::LeaseHolder;

/// Why an interface cannot be sent on.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A name that no interface can have.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// An interface that is not there.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Somebody else sends on it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Another run of this process has it.
    #[error(
        "{interface} is in use by {holder}: wait for it to end, stop it, or give both runs shared \
         access"
    )]
    Leased {
        /// Interface to send on.
        interface: InterfaceName,
        /// Who has it.
        holder: LeaseHolder,
    },
    /// Frames of several runs arrive there, and this backend keeps them from the others.
    #[error(
        "found backend {0}, expected af_packet or auto: only packet sockets receive the same frames \
         as other runs on shared interfaces; use one of those, or have the interfaces alone"
    )]
    SharedBackend(&'static str),
    /// A receiving end of another run takes the frames that arrive there.
    #[error(
        "{interface}: a run that counts or measures there takes all frames by {backend}; start that \
         run after this one, and it leaves them"
    )]
    FramesTaken {
        /// Interface to send on.
        interface: InterfaceName,
        /// What takes them.
        backend: &'static str,
    },
    /// One interface for two ports.
    #[error("{0} is named twice: each port needs an interface of its own")]
    Twice(InterfaceName),
    /// The interface is not up.
    #[error("{interface} is down; bring it up with: {}", .interface.up_command())]
    Down {
        /// Interface to send on.
        interface: InterfaceName,
    },
    /// The interface connects this machine to the world.
    #[error(
        "{0} carries the default route: frames would go to your own network; \
             --force-interface sends there all the same"
    )]
    DefaultRoute(InterfaceName),
    /// No port opens.
    #[error("{interface}: {reason}")]
    Port {
        /// Interface to send on.
        interface: String,
        /// What was tried, and what the system said.
        reason: String,
    },
}
