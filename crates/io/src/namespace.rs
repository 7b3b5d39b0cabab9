//! Names of interfaces and of the network namespaces they live in.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use wirestorm_base::port::PortError;

use crate::system::checked;

/// Where `ip netns add` keeps the namespaces it made.
pub(crate) const NAMED_NAMESPACES: &str = "/var/run/netns";

/// Longest interface name, in bytes (`IFNAMSIZ` without the terminator).
const INTERFACE_NAME_MAX: usize = 15;

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// The one this process is in.
    #[default]
    Current,
    /// One made with `ip netns add NAME`.
    Named(String),
    /// One reached through a file such as `/proc/PID/ns/net`.
    Path(PathBuf),
}

/// An interface and the namespace it is in.
///
/// Written `veth0`, `netns/NAME:veth0`, or `netns//proc/PID/ns/net:veth0` with an absolute path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceName {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name there: 1 to 15 bytes without `/`, `:` or white space.
    name: String,
}

/// Why a text is not the name of an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterfaceNameError {
    /// The kernel would refuse such a name.
    #[error(
        "{0:?} is no interface name: expected 1 to 15 bytes without '/', ':' or white space, \
         or netns/NAMESPACE:INTERFACE; `ip link` lists the interfaces"
    )]
    Interface(String),
    /// `netns/` is there, but nothing usable follows.
    #[error("{0:?} names no namespace: expected netns/NAMESPACE:INTERFACE")]
    Namespace(String),
}

/// Why a namespace could not be entered.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// There is none of that name.
    #[error("there is no network namespace {namespace} ({path} does not exist); {remedy}", path = .path.display())]
    Missing {
        /// File name.
        namespace: Namespace,
        /// The file that was looked for.
        path: PathBuf,
        /// What to do about it.
        remedy: &'static str,
    },
    /// This process may not.
    #[error(
        "no privilege to enter network namespace {namespace}: it needs CAP_SYS_ADMIN; \
         run as root, or: setcap cap_sys_admin,cap_net_admin,cap_net_raw,cap_bpf=ep on the program"
    )]
    Privilege {
        /// File name.
        namespace: Namespace,
    },
    /// The file exists, but is something else.
    #[error("{path} is not a network namespace", path = .0.display())]
    NotANamespace(PathBuf),
    /// Anything else the operating system said.
    #[error("network namespace {namespace}: {operation} failed: {reason}")]
    System {
        /// File name.
        namespace: Namespace,
        /// What was tried.
        operation: &'static str,
        /// What the system answered.
        reason: io::Error,
    },
}

impl InterfaceName {
    /// The interface `name` of `namespace`.
    ///
    /// # Errors
    /// [`InterfaceNameError::Interface`] where the kernel would refuse such a name.
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

    /// The name within the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The command that brings it up.
    pub fn up_command(&self) -> String {
        self.namespace.command(&format!("ip link set {} up", self.name))
    }

    /// It went down while a port was open on it.
    pub fn went_down(&self) -> PortError {
        PortError::Down { interface: self.to_string(), command: self.up_command() }
    }

    /// It was removed while a port was open on it.
    pub fn is_gone(&self) -> PortError {
        PortError::Gone { interface: self.to_string() }
    }

    /// What an error of a socket in use means.
    pub(crate) fn port_error(&self, operation: &'static str, reason: &io::Error) -> PortError {
        match reason.raw_os_error() {
            Some(libc::ENETDOWN) => self.went_down(),
            // A socket whose interface was removed is bound to none.
            Some(libc::ENXIO | libc::ENODEV) => self.is_gone(),
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
        // The last colon: a path may have others, an interface name has none.
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
    /// As it stands in an interface's name; the current one is `(current)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current => f.write_str("(current)"),
            Self::Named(name) => f.write_str(name),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// More named namespaces than this are not gone through.
const NAMESPACES_MAX: usize = 4096;

impl Namespace {
    /// That of this process, and those that `ip netns` knows, by name.
    pub fn all() -> Vec<Self> {
        let entries = std::fs::read_dir(NAMED_NAMESPACES).into_iter().flatten().flatten();
        let names = entries.filter_map(|it| it.file_name().into_string().ok());
        let mut names: Vec<String> = names.take(NAMESPACES_MAX).collect();
        names.sort();
        std::iter::once(Self::Current).chain(names.into_iter().map(Self::Named)).collect()
    }

    /// A command, to be typed where this process was started, that does in the namespace what
    /// `command` does in the current one.
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
    /// The work runs on a thread of its own that has joined the namespace and ends with it, so
    /// the caller's thread stays where it was; for the current namespace it simply runs.
    /// Sockets, BPF links and child processes that are made inside keep belonging to the
    /// namespace. A panic inside is continued outside.
    ///
    /// # Errors
    /// Where there is no such namespace, or the process lacks `CAP_SYS_ADMIN`.
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
        // SAFETY: takes integers only; it changes nothing but the calling thread's namespace,
        // and that thread was started for this and ends afterwards.
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
    fn a_plain_name_is_in_the_current_namespace() {
        let interface = parse("veth0").unwrap();
        assert_eq!(interface.namespace, Namespace::Current);
        assert_eq!(interface.name(), "veth0");
        assert_eq!(interface.to_string(), "veth0");
    }

    #[test]
    fn a_namespace_is_a_name_or_an_absolute_path() {
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
    fn what_the_kernel_refuses_is_refused_here() {
        for text in ["", ".", "..", "a/b", "eth0:1", "a b", "a\tb", "sixteen-bytes-xx", "netns/n:"]
        {
            assert!(matches!(parse(text), Err(InterfaceNameError::Interface(_))), "{text:?}");
        }
        for text in ["netns/veth0", "netns/:veth0", "netns/../x:veth0", "netns/a/b:veth0"] {
            assert!(matches!(parse(text), Err(InterfaceNameError::Namespace(_))), "{text:?}");
        }
    }

    #[test]
    fn commands_for_another_namespace_enter_it() {
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
    fn a_missing_namespace_says_how_to_make_one() {
        let missing = Namespace::Named("wirestorm-no-such".into());
        let error = missing.enter(|| ()).unwrap_err();
        assert!(matches!(error, NamespaceError::Missing { .. }));
        assert!(error.to_string().contains("ip netns add"), "{error}");
    }

    #[test]
    fn a_file_that_is_no_namespace_is_told_from_one() {
        let error = Namespace::Path("/proc/self/status".into()).enter(|| ()).unwrap_err();
        assert!(
            matches!(error, NamespaceError::NotANamespace(_) | NamespaceError::Privilege { .. }),
            "{error}"
        );
    }
}
