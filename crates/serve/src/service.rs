//! A server with its listening sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::api::{self, Access};
use crate::listen::{Bounds, Endpoint, HttpThread, ListenError, Tls};
use crate::otg::{self, Sessions};
use crate::server::{Owner, Server, ServerError, ServerOptions, UsersError};
use crate::trex::{TrexError, TrexOption, TrexThread};
use crate::web;

/// Bounds of connections: idle ones of dashboards and consoles must not keep others out.
const BOUNDS: Bounds = Bounds { connections_max: 2_048, lifetime_max: None };
/// Interval at which the server checks leases and limits.
const TICK: Duration = Duration::from_millis(100);
/// Interval at which the server reads the links of its ports, while anybody follows its events.
const LINKS_INTERVAL: Duration = Duration::from_secs(1);
/// Time for the end of all runs when the server ends.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(10);

/// An address to listen on.
#[derive(Clone, Debug)]
pub struct ListenOption {
    /// Address and port; port 0 selects a free port.
    pub address: SocketAddr,
    /// TLS; `None` for plain HTTP, on loopback alone.
    pub tls: Option<Tls>,
    /// Whether requests need a token or a client certificate. Addresses other than loopback always
    /// need one.
    pub needs_user: bool,
    /// A user of this socket alone, beside the users of the server.
    pub owner: Option<Owner>,
}

/// Error of starting a service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// Others could reach the address, and the traffic would be readable.
    #[error(
        "{0} is not a loopback address: it needs TLS; give a certificate and its key, or listen on \
         127.0.0.1 and forward the port with ssh"
    )]
    NeedsTls(SocketAddr),
    /// Requests need a user, and there is none.
    #[error(
        "{0} needs users, and there are none: add one with `wirestorm serve user add NAME --role \
         operate`"
    )]
    NeedsUsers(SocketAddr),
    /// The server does not open.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The users cannot be read.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// An address cannot be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The server for TRex's clients does not start.
    #[error(transparent)]
    Trex(#[from] TrexError),
}

/// A server with its listening sockets. Dropping it stops all runs.
pub struct Service {
    server: Arc<Server>,
    http: Option<HttpThread>,
    trex: Option<TrexThread>,
    otg: Arc<Sessions>,
    clock: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Service {
    /// Opens the server and listens. Clients can connect once this returns.
    ///
    /// # Errors
    /// See [`ServiceError`]. An address other than loopback needs TLS and users.
    pub fn start(
        options: ServerOptions,
        listen: &[ListenOption],
        trex: Option<TrexOption>,
    ) -> Result<Self, ServiceError> {
        for option in listen {
            if option.tls.is_none() && !option.address.ip().is_loopback() {
                return Err(ServiceError::NeedsTls(option.address));
            }
        }
        let server = Server::open(options)?;
        let sessions = Sessions::new(Arc::clone(&server));
        let mut endpoints = Vec::new();
        for ListenOption { address, tls, needs_user, owner } in listen {
            let needs_user = *needs_user || !address.ip().is_loopback();
            if needs_user && owner.is_none() && server.users().list()?.is_empty() {
                return Err(ServiceError::NeedsUsers(*address));
            }
            let tls = tls.as_ref().map(|tls| tls.acceptor(address.ip())).transpose();
            let tls = tls.map_err(ListenError::Tls)?;
            let access = Access { server: Arc::clone(&server), needs_user, owner: owner.clone() };
            let router = api::router(access, otg::router(&sessions)).merge(web::router());
            endpoints.push(Endpoint { address: *address, tls, router, bounds: BOUNDS });
        }
        let http = Some(HttpThread::start("serve", endpoints, server.host())?);
        let trex = trex.map(|option| TrexThread::start(option, &server)).transpose()?;
        let clock = Some(start_clock(&server, &sessions)?);
        Ok(Self { server, http, trex, otg: sessions, clock })
    }

    /// Returns the address and the port of each listening socket, in order.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.http.as_ref().map_or(&[], HttpThread::addresses)
    }

    /// Returns the addresses of TRex's requests and events; `None` without that server.
    pub fn trex_addresses(&self) -> Option<[SocketAddr; 2]> {
        self.trex.as_ref().map(TrexThread::addresses)
    }

    /// Stops all runs, saves their results, and closes the sockets. Returns the IDs of runs whose
    /// results could not be saved.
    pub fn stop(mut self) -> Vec<String> {
        self.end()
    }

    fn end(&mut self) -> Vec<String> {
        let Some(http) = self.http.take() else { return Vec::new() };
        // Runs end first, so that clients that follow them see the end.
        let unsaved = self.server.shut_down(SHUTDOWN_WAIT);
        if let Some(trex) = self.trex.take() {
            trex.announce_end();
        }
        drop(http);
        self.otg.close();
        if let Some((stop, thread)) = self.clock.take() {
            drop(stop);
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
        unsaved
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts the thread for what happens by time.
fn start_clock(
    server: &Arc<Server>,
    otg: &Arc<Sessions>,
) -> Result<(mpsc::Sender<()>, JoinHandle<()>), ListenError> {
    let (stop, stopped) = mpsc::channel::<()>();
    let (server, otg) = (Arc::clone(server), Arc::clone(otg));
    let run = move || {
        let _off = server.host().keep_off_reserved_cpus();
        let (mut ports, mut read) = (Vec::new(), Instant::now());
        while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            server.tick();
            otg.update_links();
            if server.has_subscribers() && read.elapsed() >= LINKS_INTERVAL {
                read = Instant::now();
                ports = server.publish_changed_ports(ports);
            }
        }
    };
    let thread = std::thread::Builder::new().name("serve-clock".to_owned()).spawn(run);
    Ok((stop, thread.map_err(ListenError::Thread)?))
}
