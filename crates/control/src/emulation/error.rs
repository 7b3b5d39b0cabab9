//! Why nothing could be emulated.

use std::io;
use std::path::PathBuf;

use wirestorm_tls::TlsError;

use crate::lifecycle::{Abandoned, TunnelChangeError};
use crate::port::OpenError;
use crate::responder::HostError;

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    /// Nobody said which interface a port is.
    #[error(
        "port {0:?} of the plan has no interface: say --port {0}=INTERFACE, or give it a location"
    )]
    Unbound(String),
    /// An interface does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A port is no host, or does not find its next hop.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Nobody can be asked where frames go.
    #[error(
        "{path}: port {port:?} has no address of its own from which it could find {server}: give it \
         `addresses` (and a `gateway`), or the client `ethernet: {{dst: ...}}`"
    )]
    NoDestination {
        /// Where in the plan.
        path: String,
        /// The port.
        port: String,
        /// Whom the clients connect to.
        server: std::net::IpAddr,
    },
    /// Nobody can ask for a router.
    #[error(
        "{path}: nobody is there to ask for the next hop {next_hop}: give it `next_hop_from` \
         (`src_ip` in a configuration of clients), or its port `addresses`"
    )]
    NoAsker {
        /// Where in the plan.
        path: String,
        /// The router.
        next_hop: std::net::IpAddr,
    },
    /// An interface that is no Ethernet.
    #[error("{0} has no Ethernet address")]
    NoMac(String),
    /// A program is too long.
    #[error("{path}: a program of {found} instructions, expected at most {most}")]
    TooLong {
        /// Where in the plan.
        path: String,
        /// Its instructions.
        found: usize,
        /// The most.
        most: usize,
    },
    /// In a simulation nobody is there but who is in the plan.
    #[error("{path}: a simulation needs the servers too, but the template has clients alone")]
    OneSided {
        /// Where in the plan.
        path: String,
    },
    /// A file is not made.
    #[error("{path}: {error}")]
    Create {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file is not written.
    #[error(transparent)]
    Write(#[from] wirestorm_base::port::PortError),
    /// A file that the plan names cannot be read.
    #[error("{path}: {}: {reason}", file.display())]
    File {
        /// Where in the plan.
        path: String,
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// TLS cannot be as it is asked for.
    #[error("{path}: {reason}")]
    Tls {
        /// Where in the plan.
        path: String,
        /// Why not.
        reason: TlsError,
    },
    /// Tunnels that nobody has were changed before it began.
    #[error(transparent)]
    Tunnels(#[from] TunnelChangeError),
    /// The run was stopped before it began.
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl EmulationError {
    /// Whether it is about a place in the plan, and begins with that.
    pub const fn is_of_plan(&self) -> bool {
        matches!(
            self,
            Self::NoDestination { .. }
                | Self::NoAsker { .. }
                | Self::TooLong { .. }
                | Self::OneSided { .. }
                | Self::File { .. }
                | Self::Tls { .. }
        )
    }
}
