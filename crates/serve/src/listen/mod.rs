//! A server thread: listening sockets, bounded connections, routers.

mod connection;
mod tls;

use std::cell::RefCell;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use wirestorm_control::Host;
use wirestorm_control::host::OffReservedCpus;

pub(crate) use connection::{Bounds, Peer};
pub use tls::{Tls, TlsError, TlsFiles};

/// Time that open responses have at the end of the server.
const GRACE: Duration = Duration::from_millis(500);

/// Maximum number of threads for requests that block.
const BLOCKING_THREADS_MAX: usize = 32;

/// Error of starting a server.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The system does not accept the address or the port.
    #[error("cannot listen on {address}: {error}; {}", advice(error))]
    Listen {
        /// Address and port.
        address: SocketAddr,
        /// Error of the system.
        error: io::Error,
    },
    /// The TLS configuration is not valid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A thread or its event loop does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Returns what the user can do about an error of `bind(2)`.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program uses this port: choose another one, or port 0 for any free port"
        }
        io::ErrorKind::AddrNotAvailable => {
            "use an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them"
        }
        io::ErrorKind::PermissionDenied => "choose a port from 1024 on, or run as root",
        _ => "choose another address and port",
    }
}

/// An address with a router behind it.
pub(crate) struct Endpoint {
    /// Address and port; port 0 selects a free port.
    pub(crate) address: SocketAddr,
    /// TLS; `None` for plain HTTP.
    pub(crate) tls: Option<TlsAcceptor>,
    /// Routes.
    pub(crate) router: Router,
    /// Bounds of its connections.
    pub(crate) bounds: Bounds,
}

/// A thread that serves HTTP. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct HttpThread {
    addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl HttpThread {
    /// Listens on the addresses of all endpoints. Clients can connect once this returns.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub(crate) fn start(
        name: &str,
        endpoints: Vec<Endpoint>,
        host: &Host,
    ) -> Result<Self, ListenError> {
        let mut listening = Vec::with_capacity(endpoints.len());
        for endpoint in endpoints {
            let address = endpoint.address;
            let listen = || {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok((listener.local_addr()?, listener))
            };
            let bound = listen().map_err(|error| ListenError::Listen { address, error })?;
            listening.push((bound, endpoint));
        }
        let addresses = listening.iter().map(|((address, _), _)| *address).collect();
        let runtime = runtime(name, host).map_err(ListenError::Thread)?;
        let (stop, stopped) = watch::channel(false);
        let host = host.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _off = host.keep_off_reserved_cpus();
            serve(runtime, listening, stopped);
        });
        let thread = Some(thread.map_err(ListenError::Thread)?);
        Ok(Self { addresses, stop, thread })
    }

    /// Returns the address and the port of each endpoint, in order.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for HttpThread {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        // A panic of the thread has been printed, and has no consequence for runs.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

thread_local! {
    /// Keeps a thread of the runtime off the CPUs of in-kernel senders until it ends.
    static OFF: RefCell<Option<OffReservedCpus>> = const { RefCell::new(None) };
}

/// Creates the event loop. Its other threads execute what blocks.
pub(crate) fn runtime(name: &str, host: &Host) -> io::Result<Runtime> {
    let host = host.clone();
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .thread_name(format!("{name}-work"))
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .on_thread_start(move || OFF.set(Some(host.keep_off_reserved_cpus())))
        .build()
}

/// Serves until `stopped` is true, and open responses for at most [`GRACE`] longer.
fn serve(
    runtime: Runtime,
    listening: Vec<((SocketAddr, TcpListener), Endpoint)>,
    mut stopped: watch::Receiver<bool>,
) {
    runtime.block_on(async {
        let mut endpoints = tokio::task::JoinSet::new();
        for ((_, listener), Endpoint { tls, router, bounds, .. }) in listening {
            // The listener is non-blocking, so this cannot fail.
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
            endpoints.spawn(connection::accept(listener, tls, router, bounds, stopped.clone()));
        }
        // An error means that the server is gone.
        let _ = stopped.wait_for(|stopped| *stopped).await;
        // An endpoint ends with its last connection. After the grace time, it is dropped with them.
        let _ = tokio::time::timeout(GRACE, endpoints.join_all()).await;
    });
    // Requests that block, such as a report, have no more readers.
    runtime.shutdown_background();
}
