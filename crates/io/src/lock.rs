//! Transmit lock of an interface: one exclusive process, or several with packet sockets.

use std::io;
use std::mem::{offset_of, size_of};

use crate::link::{Link, LinkError};
use crate::namespace::{InterfaceName, NamespaceError};
use crate::system::socket::{Plain, Socket};

/// Backlog of the lock socket: number of processes that can read the holder's process ID.
const CONNECTIONS_MAX: i32 = 1024;

/// Highest number of shared holders of an interface. Each one binds a numbered name.
const SHARED_MAX: u32 = 64;

/// Access that a process needs to transmit on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Other processes may transmit too, as with packet sockets.
    Shared,
    /// No other process may transmit.
    Exclusive,
}

/// The right to transmit on an interface, held until dropped.
///
/// The lock is a Unix socket with an abstract name in the interface's network namespace. Abstract
/// names belong to a namespace, need no file system, and disappear when the process ends for any
/// reason. The exclusive holder binds one name, and each shared holder binds a numbered name. A
/// process binds its own name first and then looks for names that conflict with it. If two
/// conflicting processes start at the same time, at least one sees the other.
#[derive(Debug)]
pub struct InterfaceLock {
    /// Keeps the name bound; not read.
    _socket: Socket,
}

/// Reason why an interface could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another Wirestorm process holds a conflicting lock.
    #[error(
        "interface {interface} is in use by another Wirestorm, {holder}; wait for it to end{}",
        .holder.kill_hint()
    )]
    Held {
        /// Interface to transmit on.
        interface: InterfaceName,
        /// Process that holds the lock.
        holder: Holder,
    },
    /// 64 processes already share the interface.
    #[error("interface {interface} is in use by {SHARED_MAX} others; wait for one to end")]
    TooManyShared {
        /// Interface to transmit on.
        interface: InterfaceName,
    },
    /// The interface lookup failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The thread could not enter the interface's namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Another system call failed.
    #[error("locking interface {interface} failed: {reason}")]
    System {
        /// Interface to transmit on.
        interface: InterfaceName,
        /// Error of the system call.
        reason: io::Error,
    },
}

/// The process that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Process ID; `None` if the process is in a PID namespace that is not visible here, or has
    /// just ended.
    pub process: Option<u32>,
}

impl Holder {
    fn kill_hint(&self) -> String {
        self.process.map_or_else(String::new, |it| format!(", or end it with: kill -INT {it}"))
    }
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
    /// Acquires the lock of an interface.
    ///
    /// # Errors
    /// [`LockError::Held`] with the holder's process ID if another process holds a lock that
    /// conflicts with `access`.
    pub fn acquire(interface: &InterfaceName, access: Access) -> Result<Self, LockError> {
        let index = Link::open_basic(interface)?.index;
        interface.namespace.enter(|| acquire_here(interface, index, access))?
    }
}

fn acquire_here(
    interface: &InterfaceName,
    index: u32,
    access: Access,
) -> Result<InterfaceLock, LockError> {
    let system = |reason| LockError::System { interface: interface.clone(), reason };
    let held = |process| {
        let holder = Holder { process };
        LockError::Held { interface: interface.clone(), holder }
    };
    let exclusive = format!("wirestorm/transmit/{index}");
    let shared = |number| format!("wirestorm/transmit/{index}/{number}");
    let taken = match access {
        Access::Exclusive => bind_name(&exclusive).map_err(system)?,
        Access::Shared => {
            let mut taken = BindOutcome::HeldByOther(None);
            for number in 0..SHARED_MAX {
                taken = bind_name(&shared(number)).map_err(system)?;
                if matches!(taken, BindOutcome::Bound(_)) {
                    break;
                }
            }
            taken
        }
    };
    let socket = match taken {
        BindOutcome::Bound(socket) => socket,
        BindOutcome::HeldByOther(process) if access == Access::Exclusive => {
            return Err(held(process));
        }
        BindOutcome::HeldByOther(_) => {
            return Err(LockError::TooManyShared { interface: interface.clone() });
        }
    };
    let excluded = match access {
        Access::Exclusive => (0..SHARED_MAX).find_map(|number| holder(&shared(number))),
        Access::Shared => holder(&exclusive),
    };
    match excluded {
        Some(process) => Err(held(process)),
        None => Ok(InterfaceLock { _socket: socket }),
    }
}

/// Result of an attempt to bind a name.
enum BindOutcome {
    /// This process bound the name.
    Bound(Socket),
    /// Another process holds the name; its process ID if known.
    HeldByOther(Option<u32>),
}

/// Binds an abstract name and listens on it.
fn bind_name(name: &str) -> io::Result<BindOutcome> {
    let (address, length) = abstract_address(name);
    let socket = Socket::open(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    match socket.bind(&address, length) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Ok(BindOutcome::HeldByOther(holder(name).flatten()))
        }
        Err(error) => Err(error),
        Ok(()) => {
            // A listening socket lets other processes connect and so read the holder's process ID.
            // Connections are never accepted: if the backlog is full, the process ID is unknown.
            socket.listen(CONNECTIONS_MAX)?;
            Ok(BindOutcome::Bound(socket))
        }
    }
}

/// Finds the process that listens on a name, as recorded by the kernel at `listen` (`SO_PEERCRED`).
/// Returns `None` if no process listens, and `Some(None)` if its process ID is unknown.
fn holder(name: &str) -> Option<Option<u32>> {
    let (address, length) = abstract_address(name);
    let socket = Socket::open(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).ok()?;
    match socket.connect(&address, length) {
        Ok(()) => {}
        // The holder's backlog is full.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(None),
        Err(_) => return None,
    }
    let credentials = socket.option::<libc::ucred>(libc::SOL_SOCKET, libc::SO_PEERCRED).ok();
    let process = credentials.and_then(|it| u32::try_from(it.pid).ok());
    Some(process.filter(|process| *process != 0))
}

/// Builds an abstract address: a zero byte, then the name. The length marks its end.
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
