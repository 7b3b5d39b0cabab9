//! Who transmits on an interface: one process by itself, or several by packet sockets.

use std::io;
use std::mem::{offset_of, size_of};

use crate::link::{Link, LinkError};
use crate::namespace::{InterfaceName, NamespaceError};
use crate::system::socket::{Plain, Socket};

/// How many others can learn who holds the lock.
const CONNECTIONS_MAX: i32 = 1024;

/// Shared holders of an interface at most, each of which has a name with a number.
const SHARED_MAX: u32 = 64;

/// Who else may transmit on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Others that share it, as packet sockets do.
    Shared,
    /// Nobody.
    Exclusive,
}

/// The right to transmit on an interface, held until dropped.
///
/// It is a Unix socket with an abstract name, bound in the interface's own network namespace:
/// abstract names belong to a namespace, need no file system, and end with the process however
/// that ends. There is one name for the exclusive holder and a numbered one for each shared
/// holder. A process binds its name first and then looks for the names that exclude it. If two that
/// exclude each other come at the same time, at least one sees the other.
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
        "interface {interface} is in use by another Wirestorm, {holder}; wait for it to end{}",
        .holder.or_end_it()
    )]
    Held {
        /// Interface to send on.
        interface: InterfaceName,
        /// Which process.
        holder: Holder,
    },
    /// As many share it as can.
    #[error("interface {interface} is in use by {SHARED_MAX} others; wait for one to end")]
    Crowded {
        /// Interface to send on.
        interface: InterfaceName,
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
        /// Interface to send on.
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

impl Holder {
    fn or_end_it(&self) -> String {
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
    /// Takes the lock of an interface.
    ///
    /// # Errors
    /// [`LockError::Held`] where somebody has it who excludes `access`; the holder's number is in
    /// it.
    pub fn acquire(interface: &InterfaceName, access: Access) -> Result<Self, LockError> {
        let index = Link::open_without_routes(interface)?.index;
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
        Access::Exclusive => take(&exclusive).map_err(system)?,
        Access::Shared => {
            let mut taken = Taken::ByOther(None);
            for number in 0..SHARED_MAX {
                taken = take(&shared(number)).map_err(system)?;
                if matches!(taken, Taken::Here(_)) {
                    break;
                }
            }
            taken
        }
    };
    let socket = match taken {
        Taken::Here(socket) => socket,
        Taken::ByOther(process) if access == Access::Exclusive => return Err(held(process)),
        Taken::ByOther(_) => return Err(LockError::Crowded { interface: interface.clone() }),
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

/// What became of a name.
enum Taken {
    /// This process has it.
    Here(Socket),
    /// Another socket has it, of that process where it tells.
    ByOther(Option<u32>),
}

/// Takes a name.
fn take(name: &str) -> io::Result<Taken> {
    let (address, length) = abstract_address(name);
    let socket = Socket::open(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    match socket.bind(&address, length) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Ok(Taken::ByOther(holder(name).flatten()))
        }
        Err(error) => Err(error),
        Ok(()) => {
            // Listening lets others connect, and so learn who holds the lock. Connections are
            // never accepted: whoever tries after the backlog is full is not told the process.
            socket.listen(CONNECTIONS_MAX)?;
            Ok(Taken::Here(socket))
        }
    }
}

/// Who has taken a name and listens, as the kernel noted when it began to (`SO_PEERCRED`); `None`
/// where nobody does, and no number where the process cannot be told.
fn holder(name: &str) -> Option<Option<u32>> {
    let (address, length) = abstract_address(name);
    let socket = Socket::open(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).ok()?;
    match socket.connect(&address, length) {
        Ok(()) => {}
        // Its backlog is full.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(None),
        Err(_) => return None,
    }
    let credentials = socket.option::<libc::ucred>(libc::SOL_SOCKET, libc::SO_PEERCRED).ok();
    let process = credentials.and_then(|it| u32::try_from(it.pid).ok());
    Some(process.filter(|process| *process != 0))
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
