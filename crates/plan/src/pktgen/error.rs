//! Errors of writes to pktgen's files, and of unsupported settings.

use wirestorm_base::rate::RateError;

/// A refused command, and its file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {command:?}: {problem}")]
pub struct PktgenError {
    /// The file, without `/proc/net/pktgen/`.
    pub file: String,
    /// The written text, without white space at its ends.
    pub command: String,
    /// Reason.
    pub problem: Problem,
}

/// Reason why a command is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file does not exist.
    #[error(
        "no such file: expected pgctrl, kpktgend_0 to kpktgend_{last_thread}, or an added device"
    )]
    NoSuchFile {
        /// Number of the last thread.
        last_thread: u32,
    },
    /// An unknown command.
    #[error("no such command: found {found:?}, expected one of {expected}")]
    NoSuchCommand {
        /// First word of the text.
        found: String,
        /// Commands of the file.
        expected: String,
    },
    /// An invalid value.
    #[error("found {found:?}, expected {expected}")]
    Malformed {
        /// The value found.
        found: String,
        /// The accepted notation.
        expected: &'static str,
    },
    /// Like [`Problem::Malformed`], but the kernel's write succeeds, and only the file's result
    /// shows the error.
    #[error("found {found:?}, expected {expected}")]
    Ignored {
        /// The value found.
        found: String,
        /// The accepted notation.
        expected: String,
    },
    /// Too many entries.
    #[error("found more than {limit} entries, expected {limit} at most")]
    TooMany {
        /// Maximum number of entries.
        limit: usize,
    },
    /// A setting that conflicts with another one.
    #[error("conflicts with {other}: remove one of them")]
    Excluded {
        /// The other setting.
        other: &'static str,
    },
    /// A setting that conflicts with a transmit mode.
    #[error("{setting} conflicts with xmit_mode {mode}: remove one of them")]
    NotInMode {
        /// Name of the setting.
        setting: &'static str,
        /// Transmit mode.
        mode: &'static str,
    },
    /// A thread already has a device of this name.
    #[error("already added: use another name, as in {name}@1, or remove it first")]
    Busy {
        /// Name of the interface.
        name: String,
    },
    /// The interface does not exist.
    #[error("no such interface: {interface:?}")]
    NoSuchInterface {
        /// Name of the interface.
        interface: String,
    },
    /// The interface is down.
    #[error("{interface} is down: bring it up with `ip link set {interface} up`")]
    InterfaceDown {
        /// Name of the interface.
        interface: String,
    },
}

/// Error numbers of the kernel's write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// `ENOENT`.
    NoSuchFile,
    /// `E2BIG`.
    TooBig,
    /// `EBUSY`.
    Busy,
    /// `ENODEV`.
    NoSuchDevice,
    /// `EINVAL`.
    InvalidArgument,
    /// `EOPNOTSUPP`.
    NotSupported,
    /// `ENETDOWN`.
    NetworkDown,
}

impl Problem {
    /// Returns the error of the kernel's write. `None`: the write succeeds, and only the file's
    /// result shows the error.
    pub fn errno(&self) -> Option<Errno> {
        Some(match self {
            Self::NoSuchFile { .. } => Errno::NoSuchFile,
            Self::NoSuchCommand { .. } | Self::Malformed { .. } | Self::Excluded { .. } => {
                Errno::InvalidArgument
            }
            Self::Ignored { .. } => return None,
            Self::TooMany { .. } => Errno::TooBig,
            Self::NotInMode { .. } => Errno::NotSupported,
            Self::Busy { .. } => Errno::Busy,
            Self::NoSuchInterface { .. } => Errno::NoSuchDevice,
            Self::InterfaceDown { .. } => Errno::NetworkDown,
        })
    }
}

/// Unsupported settings of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// The flag IPSEC.
    #[error(
        "{device}: flag IPSEC encrypts with the kernel's security associations, which Wirestorm \
         cannot use: unset it, or capture such traffic and replay it"
    )]
    Ipsec {
        /// Name of the device.
        device: String,
    },
    /// `xmit_mode netif_receive`.
    #[error(
        "{device}: xmit_mode netif_receive hands frames to this machine's own receive path: use \
         start_xmit on the other end of a veth pair instead"
    )]
    NetifReceive {
        /// Name of the device.
        device: String,
    },
    /// Frames too long for the length fields of IP and UDP.
    #[error(
        "{device}: found frames of {bytes} bytes, expected at most {limit}, the limit of IP and UDP"
    )]
    TooLong {
        /// Name of the device.
        device: String,
        /// Requested length.
        bytes: u64,
        /// Maximum length.
        limit: u64,
    },
    /// IPDST_RND on a range without possible hosts. The kernel would loop forever.
    #[error(
        "{device}: flag IPDST_RND: dst_min to dst_max contains only addresses of 0.0.0.0/8, \
         loopback, multicast and broadcast, which it never picks"
    )]
    NoDestination {
        /// Name of the device.
        device: String,
    },
    /// A rate out of range.
    #[error("{device}: {error}")]
    Rate {
        /// Name of the device.
        device: String,
        /// Reason.
        error: RateError,
    },
}
