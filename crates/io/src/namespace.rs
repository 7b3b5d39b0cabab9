//! Interface names and network namespaces.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use wirestorm_base::port::PortError;

use crate::system::checked;

/// Folder where `ip netns add` keeps the namespaces that it creates.
pub(crate) const NAMED_NAMESPACES: &str = "/var/run/netns";

/// Longest interface name, in bytes (`IFNAMSIZ` without the terminator).
const INTERFACE_NAME_MAX: usize = 15;

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// The namespace of this process.
    #[default]
    Current,
    /// A namespace created with `ip netns add NAME`.
    Named(String),
    /// A namespace opened through a file such as `/proc/PID/ns/net`.
    Path(PathBuf),
}

/// An interface name together with its network namespace.
///
/// Text forms: `veth0`, `netns/NAME:veth0`, or `netns//proc/PID/ns/net:veth0` with an absolute
/// path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceName {
    /// Network namespace of the interface.
    pub namespace: Namespace,
    /// Interface name: 1 to 15 bytes without `/`, `:` or white space.
    name: String,
}

/// Reason why a text is not a valid interface name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterfaceNameError {
    /// The kernel does not accept this interface name.
    #[error(
        "{0:?} is no interface name: expected 1 to 15 bytes without '/', ':' or white space, \
         or netns/NAMESPACE:INTERFACE; `ip link` lists the interfaces"
    )]
    Interface(String),
    /// The text starts with `netns/`, but no valid namespace follows.
    #[error("{0:?} names no namespace: expected netns/NAMESPACE:INTERFACE")]
    Namespace(String),
}

/// Reason why a thread could not enter a namespace.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The namespace does not exist.
    #[error("there is no network namespace {namespace} ({path} does not exist); {remedy}", path = .path.display())]
    Missing {
        /// Namespace that was requested.
        namespace: Namespace,
        /// Path that does not exist.
        path: PathBuf,
        /// Suggestion for the user.
        remedy: &'static str,
    },
    /// The process lacks `CAP_SYS_ADMIN`.
    #[error(
        "no privilege to enter network namespace {namespace}: it needs CAP_SYS_ADMIN; \
         run as root, or: setcap cap_sys_admin,cap_net_admin,cap_net_raw,cap_bpf=ep on the program"
    )]
    Privilege {
        /// Namespace that was requested.
        namespace: Namespace,
    },
    /// The file exists, but it is not a network namespace.
    #[error("{path} is not a network namespace", path = .0.display())]
    NotANamespace(PathBuf),
    /// Another system call failed.
    #[error("network namespace {namespace}: {operation} failed: {reason}")]
    System {
        /// Namespace that was requested.
        namespace: Namespace,
        /// Operation that failed.
        operation: &'static str,
        /// Error of the system call.
        reason: io::Error,
    },
}

impl InterfaceName {
    /// Creates the name of interface `name` in `namespace`.
    ///
    /// # Errors
    /// [`InterfaceNameError::Interface`] if the kernel does not accept the name.
    pub fn new(namespace: Namespace, name: &str) -> Result<Self, InterfaceNameError> {
        let valid = (1..=INTERFACE_NAME_MAX).contains(&name.len())
            && name != "."
            && name != ".."
            && !name.bytes().any(|byte| {
                byte == b'/' || byte == b':' || byte == 0 || byte.is_ascii_whitespace()
            });
        if !valid {
            return Err(InterfaceNameError::Interface(name.to_owned()));
        }
        Ok(Self { namespace, name: name.to_owned() })
    }

    /// Interface name without the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the shell command that brings the interface up.
    pub fn up_command(&self) -> String {
        self.namespace.command(&format!("ip link set {} up", self.name))
    }

    /// Returns the error for an interface that went down while a port was open on it.
    pub fn down_error(&self) -> PortError {
        PortError::Down { interface: self.to_string(), command: self.up_command() }
    }

    /// Returns the error for an interface that was removed while a port was open on it.
    pub fn removed_error(&self) -> PortError {
        PortError::Gone { interface: self.to_string() }
    }

    /// Maps the error of a system call on an open socket to a port error.
    pub(crate) fn port_error(&self, operation: &'static str, reason: &io::Error) -> PortError {
        match reason.raw_os_error() {
            Some(libc::ENETDOWN) => self.down_error(),
            // The socket is no longer bound after its interface was removed.
            Some(libc::ENXIO | libc::ENODEV) => self.removed_error(),
            _ => PortError::System {
                interface: self.to_string(),
                operation,
                reason: reason.to_string(),
            },
        }
    }
}

impl FromStr for InterfaceName {
    type Err = InterfaceNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(rest) = text.strip_prefix("netns/") else {
            return Self::new(Namespace::Current, text);
        };
        // Split at the last colon: a path may contain colons, an interface name may not.
        let Some((namespace, name)) = rest.rsplit_once(':') else {
            return Err(InterfaceNameError::Namespace(text.to_owned()));
        };
        let namespace = if namespace.starts_with('/') {
            Namespace::Path(PathBuf::from(namespace))
        } else if namespace.is_empty() || namespace.contains('/') || namespace.starts_with('.') {
            return Err(InterfaceNameError::Namespace(text.to_owned()));
        } else {
            Namespace::Named(namespace.to_owned())
        };
        Self::new(namespace, name)
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Namespace::Current => f.write_str(&self.name),
            namespace => write!(f, "netns/{namespace}:{}", self.name),
        }
    }
}

impl fmt::Display for Namespace {
    /// Writes the namespace as in an interface name; the current namespace is `(current)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current => f.write_str("(current)"),
            Self::Named(name) => f.write_str(name),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Highest number of named namespaces that [`Namespace::all`] lists.
const NAMESPACES_MAX: usize = 4096;

impl Namespace {
    /// Returns the current namespace, then those that `ip netns` lists, sorted by name.
    pub fn all() -> Vec<Self> {
        let entries = std::fs::read_dir(NAMED_NAMESPACES).into_iter().flatten().flatten();
        let names = entries.filter_map(|it| it.file_name().into_string().ok());
        let mut names: Vec<String> = names.take(NAMESPACES_MAX).collect();
        names.sort();
        std::iter::once(Self::Current).chain(names.into_iter().map(Self::Named)).collect()
    }

    /// Rewrites a shell command so that it runs inside this namespace. The user types the result in
    /// the namespace of this process.
    pub fn command(&self, command: &str) -> String {
        match (self, command.strip_prefix("ip ")) {
            (Self::Current, _) => command.to_owned(),
            (Self::Named(name), Some(arguments)) => format!("ip -n {name} {arguments}"),
            (Self::Named(name), None) => format!("ip netns exec {name} {command}"),
            (Self::Path(path), _) => format!("nsenter --net={} {command}", path.display()),
        }
    }

    /// Runs `work` inside the namespace and returns what it returns.
    ///
    /// The work runs on a new thread that joins the namespace and then ends, so the calling thread
    /// keeps its namespace. For the current namespace, the work runs on the calling thread.
    /// Sockets, BPF links and child processes created inside stay in the namespace. A panic of the
    /// work continues in the caller.
    ///
    /// # Errors
    /// Fails if the namespace does not exist or the process lacks `CAP_SYS_ADMIN`.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        let path = match self {
            Self::Current => return Ok(work()),
            Self::Named(name) => Path::new(NAMED_NAMESPACES).join(name),
            Self::Path(path) => path.clone(),
        };
        let file = File::open(&path).map_err(|error| self.open_error(error, &path))?;
        let outcome = std::thread::scope(|scope| {
            let worker = std::thread::Builder::new()
                .name("namespace".to_owned())
                .spawn_scoped(scope, || self.join(&file, &path).map(|()| work()));
            match worker {
                Ok(worker) => Ok(worker.join()),
                Err(reason) => Err(reason),
            }
        });
        match outcome {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(reason) => Err(NamespaceError::System {
                namespace: self.clone(),
                operation: "starting a thread",
                reason,
            }),
        }
    }

    /// Moves the calling thread into the namespace.
    fn join(&self, file: &File, path: &Path) -> Result<(), NamespaceError> {
        // SAFETY: `setns` takes integers only. It changes only the namespace of the calling thread,
        // which was started for this purpose and ends afterwards.
        let joined = checked(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) });
        let Err(reason) = joined else { return Ok(()) };
        Err(match reason.raw_os_error() {
            Some(libc::EPERM) => NamespaceError::Privilege { namespace: self.clone() },
            Some(libc::EINVAL) => NamespaceError::NotANamespace(path.to_owned()),
            _ => NamespaceError::System { namespace: self.clone(), operation: "setns", reason },
        })
    }

    fn open_error(&self, reason: io::Error, path: &Path) -> NamespaceError {
        match reason.kind() {
            io::ErrorKind::NotFound => NamespaceError::Missing {
                namespace: self.clone(),
                path: path.to_owned(),
                remedy: match self {
                    Self::Named(_) => {
                        "`ip netns list` shows those there are, `ip netns add NAME` makes one"
                    }
                    Self::Current | Self::Path(_) => "is the process that it belongs to alive?",
                },
            },
            io::ErrorKind::PermissionDenied => {
                NamespaceError::Privilege { namespace: self.clone() }
            }
            _ => NamespaceError::System { namespace: self.clone(), operation: "open", reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<InterfaceName, InterfaceNameError> {
        text.parse()
    }

    #[test]
    fn plain_name_refers_to_the_current_namespace() {
        let interface = parse("veth0").unwrap();
        assert_eq!(interface.namespace, Namespace::Current);
        assert_eq!(interface.name(), "veth0");
        assert_eq!(interface.to_string(), "veth0");
    }

    #[test]
    fn namespace_may_be_a_name_or_an_absolute_path() {
        let named = parse("netns/left:veth0").unwrap();
        assert_eq!(named.namespace, Namespace::Named("left".into()));
        assert_eq!(named.to_string(), "netns/left:veth0");
        let path = parse("netns//proc/1/ns/net:eth0").unwrap();
        assert_eq!(path.namespace, Namespace::Path("/proc/1/ns/net".into()));
        assert_eq!(path.to_string(), "netns//proc/1/ns/net:eth0");
        let colon = parse("netns//run/a:b:eth0").unwrap();
        assert_eq!(colon.namespace, Namespace::Path("/run/a:b".into()));
    }

    #[test]
    fn names_that_the_kernel_rejects_do_not_parse() {
        for text in ["", ".", "..", "a/b", "eth0:1", "a b", "a\tb", "sixteen-bytes-xx", "netns/n:"]
        {
            assert!(matches!(parse(text), Err(InterfaceNameError::Interface(_))), "{text:?}");
        }
        for text in ["netns/veth0", "netns/:veth0", "netns/../x:veth0", "netns/a/b:veth0"] {
            assert!(matches!(parse(text), Err(InterfaceNameError::Namespace(_))), "{text:?}");
        }
    }

    #[test]
    fn commands_for_another_namespace_use_ip_n_or_nsenter() {
        for (interface, command) in [
            ("v", "ip link set v up"),
            ("netns/a:v", "ip -n a link set v up"),
            ("netns//proc/1/ns/net:v", "nsenter --net=/proc/1/ns/net ip link set v up"),
        ] {
            assert_eq!(parse(interface).unwrap().up_command(), command);
        }
        let named = Namespace::Named("a".into());
        assert_eq!(named.command("ethtool -K v gro on"), "ip netns exec a ethtool -K v gro on");
    }

    #[test]
    fn missing_namespace_error_suggests_ip_netns_add() {
        let missing = Namespace::Named("wirestorm-no-such".into());
        let error = missing.enter(|| ()).unwrap_err();
        assert!(matches!(error, NamespaceError::Missing { .. }));
        assert!(error.to_string().contains("ip netns add"), "{error}");
    }

    #[test]
    fn entering_a_file_that_is_not_a_namespace_fails() {
        let error = Namespace::Path("/proc/self/status".into()).enter(|| ()).unwrap_err();
        assert!(
            matches!(error, NamespaceError::NotANamespace(_) | NamespaceError::Privilege { .. }),
            "{error}"
        );
    }
}
