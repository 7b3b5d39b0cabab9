//! Why a write to one of pktgen's files is refused, or a device's settings cannot be followed.

use wirestorm_base::rate::RateError;

/// A command that was refused, and by which file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {command:?}: {problem}")]
pub struct PktgenError {
    /// The file, without `/proc/net/pktgen/`.
    pub file: String,
    /// What was written, without white space at its ends.
    pub command: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no such file.
    #[error(
        "no such file: expected pgctrl, kpktgend_0 to kpktgend_{last_thread}, or a device that \
         was added to one of these"
    )]
    NoSuchFile {
        /// The number of the last thread.
        last_thread: u32,
    },
    /// The file does not know the command.
    #[error("no such command: found {found:?}, expected one of {expected}")]
    NoSuchCommand {
        /// The first word.
        found: String,
        /// The words that the file knows.
        expected: String,
    },
    /// A value that means nothing.
    #[error("found {found:?}, expected {expected}")]
    Malformed {
        /// The value.
        found: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// As [`Problem::Malformed`], where the kernel takes the write all the same and tells of it
    /// in the file's result only.
    #[error("found {found:?}, expected {expected}")]
    Ignored {
        /// The value.
        found: String,
        /// What should stand there.
        expected: String,
    },
    /// More entries than a list holds.
    #[error("found more than {limit} entries, expected {limit} at most")]
    TooMany {
        /// What it holds.
        limit: usize,
    },
    /// A setting that another one excludes.
    #[error("not together with {other}: leave one of them out")]
    Excluded {
        /// The other one.
        other: &'static str,
    },
    /// A setting that a transmit mode excludes.
    #[error("{setting} does not go with xmit_mode {mode}: leave one of them out")]
    NotInMode {
        /// The setting.
        setting: &'static str,
        /// The mode.
        mode: &'static str,
    },
    /// The interface is in use by a thread under this name.
    #[error("added already: give it another name, as in {name}@1, or remove it first")]
    Busy {
        /// The name.
        name: String,
    },
    /// There is no such interface.
    #[error("no such interface: {interface:?}")]
    NoSuchInterface {
        /// File name.
        interface: String,
    },
    /// The interface is down.
    #[error("{interface} is down: bring it up with `ip link set {interface} up`")]
    InterfaceDown {
        /// File name.
        interface: String,
    },
}

/// How the kernel's write would fail.
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
    /// How the kernel's write fails; `None`: it succeeds, and only the file's result tells.
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

/// Why a device's settings cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// The flag IPSEC.
    #[error(
        "{device}: flag IPSEC encrypts with the kernel's security associations, which are out of \
         reach here: unset it, or capture such traffic and replay it"
    )]
    Ipsec {
        /// The device.
        device: String,
    },
    /// `xmit_mode netif_receive`.
    #[error(
        "{device}: xmit_mode netif_receive hands frames to this machine's own receive path: use \
         start_xmit on the other end of a veth pair instead"
    )]
    NetifReceive {
        /// The device.
        device: String,
    },
    /// Longer than the length fields of IP and UDP can say.
    #[error("{device}: frames of {bytes} bytes: found more than the {limit} that IP and UDP allow")]
    TooLong {
        /// The device.
        device: String,
        /// The length that was asked for.
        bytes: u64,
        /// The longest.
        limit: u64,
    },
    /// IPDST_RND over a range in which no host can be; the kernel would search for ever.
    #[error(
        "{device}: flag IPDST_RND: between dst_min and dst_max are only addresses of 0.0.0.0/8, \
         loopback, multicast and broadcast, which are never drawn"
    )]
    NoDestination {
        /// The device.
        device: String,
    },
    /// The rate is beyond what can be told.
    #[error("{device}: {error}")]
    Rate {
        /// The device.
        device: String,
        /// What is wrong.
        error: RateError,
    },
}
