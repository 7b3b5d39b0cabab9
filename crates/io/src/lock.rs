//! One Wirestorm at a time transmits on an interface.

use std::io;
use std::mem::{offset_of, size_of};

use crate::link::{Link, LinkError};
use crate::namespace::{InterfaceName, NamespaceError};
use crate::system::socket::{Plain, Socket};

/// How many others can learn who holds the lock.
const CONNECTIONS_MAX: i32 = 1024;

/// The right to transmit on an interface, held until dropped.
///
/// It is a Unix socket with an abstract name, bound in the interface's own network namespace:
/// abstract names belong to a namespace, need no file system, and end with the process however
/// that ends.
#[derive(Debug)]
pub struct InterfaceLock {
    /// Held for its name only.
    _socket: Socket,
}

/// Why an interface could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another Wirestorm transmits on it.
    #[error(
        "interface {interface} is in use by another Wirestorm, {holder}; wait for it to end, \
         or end it with: kill -INT PID"
    )]
    Held {
        /// The interface.
        interface: InterfaceName,
        /// Which process.
        holder: Holder,
    },
    /// The interface could not be looked up.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Its namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Anything else the operating system said.
    #[error("locking interface {interface} failed: {reason}")]
    System {
        /// The interface.
        interface: InterfaceName,
        /// What the system answered.
        reason: io::Error,
    },
}

/// The process that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number; `None` where it lives in a PID namespace that this process cannot see, or
    /// ended just now.
    pub process: Option<u32>,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}"),
            None => f.write_str("a process that cannot be seen from here"),
        }
    }
}

impl InterfaceLock {
    /// Takes the lock of an interface.
    ///
    /// # Errors
    /// [`LockError::Held`] where somebody has it; the holder's number is in it.
    pub fn acquire(interface: &InterfaceName) -> Result<Self, LockError> {
        let index = Link::open_without_routes(interface)?.index;
        interface.namespace.enter(|| acquire_here(interface, index))?
    }
}

fn acquire_here(interface: &InterfaceName, index: u32) -> Result<InterfaceLock, LockError> {
    let system = |reason| LockError::System { interface: interface.clone(), reason };
    let (address, length) = abstract_address(&format!("wirestorm/transmit/{index}"));
    let socket = Socket::open(libc::AF_UNIX, libc::SOCK_STREAM, 0).map_err(system)?;
    match socket.bind(&address, length) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let holder = Holder { process: holder(&address, length) };
            Err(LockError::Held { interface: interface.clone(), holder })
        }
        Err(error) => Err(system(error)),
        Ok(()) => {
            // Listening lets others connect, and so learn who holds the lock. Connections are
            // never accepted: whoever tries after the backlog is full is not told the process.
            socket.listen(CONNECTIONS_MAX).map_err(system)?;
            Ok(InterfaceLock { _socket: socket })
        }
    }
}

/// Who listens at that address, as the kernel noted when it began to (`SO_PEERCRED`).
fn holder(address: &libc::sockaddr_un, length: usize) -> Option<u32> {
    let socket = Socket::open(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).ok()?;
    socket.connect(address, length).ok()?;
    let credentials: libc::ucred = socket.option(libc::SOL_SOCKET, libc::SO_PEERCRED).ok()?;
    u32::try_from(credentials.pid).ok().filter(|process| *process != 0)
}

/// An abstract address begins with a zero byte and is as long as it says.
fn abstract_address(name: &str) -> (libc::sockaddr_un, usize) {
    let mut address = libc::sockaddr_un::zeroed();
    address.sun_family = libc::AF_UNIX as u16;
    assert!(name.len() < address.sun_path.len(), "the name {name} is too long");
    for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let length = offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    debug_assert!(length <= size_of::<libc::sockaddr_un>());
    (address, length)
}
