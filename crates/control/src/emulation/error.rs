//! Errors of an emulation that does not start.

use std::io;
use std::path::PathBuf;

use wirestorm_tls::TlsError;

use crate::lifecycle::{Abandoned, TunnelChangeError};
use crate::port::OpenError;
use crate::responder::HostError;

/// Error of an emulation that does not start.
#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    /// A port has no interface.
    #[error(
        "port {0:?} has no interface: bind it with --port {0}=INTERFACE, or give it a location"
    )]
    Unbound(String),
    /// The interface does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The ARP responder of a port does not open, or a next hop does not resolve.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A port has no address, so it cannot resolve the next hop of its clients.
    #[error(
        "{path}: port {port:?} has no address to resolve {server} from: set `addresses` (and a \
         `gateway`) of the port, or `ethernet: {{dst: ...}}` of the client"
    )]
    NoDestination {
        /// Path of the client in the plan.
        path: String,
        /// Name of the port.
        port: String,
        /// First server of the clients.
        server: std::net::IpAddr,
    },
    /// A router has no source address for ARP or neighbour discovery requests.
    #[error(
        "{path}: no source address to resolve the next hop {next_hop}: set `next_hop_source` \
         (`src_ip` in a client configuration), or `addresses` of the port"
    )]
    NoSourceAddress {
        /// Path of the devices in the plan.
        path: String,
        /// Address of the router.
        next_hop: std::net::IpAddr,
    },
    /// The interface has no Ethernet address.
    #[error("{0} has no Ethernet address")]
    NoMac(String),
    /// A program has too many instructions.
    #[error("{path}: found {found} instructions, expected at most {most}")]
    TooLong {
        /// Path of the program in the plan.
        path: String,
        /// Number of instructions.
        found: usize,
        /// Maximum number of instructions.
        most: usize,
    },
    /// A simulated template has clients, but the plan has no servers for them.
    #[error("{path}: a simulation needs the servers too, but the template has only clients")]
    NoServers {
        /// Path of the template in the plan.
        path: String,
    },
    /// A capture file cannot be created.
    #[error("{path}: {error}")]
    Create {
        /// Path of the file.
        path: std::path::PathBuf,
        /// Error from the system.
        error: io::Error,
    },
    /// A capture file cannot be written.
    #[error(transparent)]
    Write(#[from] wirestorm_base::port::PortError),
    /// A file that the plan names cannot be read.
    #[error("{path}: {}: {reason}", file.display())]
    File {
        /// Path of the setting in the plan.
        path: String,
        /// Path of the file.
        file: PathBuf,
        /// Error from the system.
        reason: io::Error,
    },
    /// The TLS settings are not valid.
    #[error("{path}: {reason}")]
    Tls {
        /// Path of the setting in the plan.
        path: String,
        /// The problem.
        reason: TlsError,
    },
    /// A command changed tunnels before the run started, but no port has tunnels.
    #[error(transparent)]
    Tunnels(#[from] TunnelChangeError),
    /// The run was stopped before it started.
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl EmulationError {
    /// Whether the error is in the plan. Its message then starts with the path in the plan.
    pub const fn is_plan_error(&self) -> bool {
        matches!(
            self,
            Self::NoDestination { .. }
                | Self::NoSourceAddress { .. }
                | Self::TooLong { .. }
                | Self::NoServers { .. }
                | Self::File { .. }
                | Self::Tls { .. }
        )
    }
}
