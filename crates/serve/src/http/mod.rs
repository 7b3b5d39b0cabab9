//! A server thread: a listening socket, a bounded number of connections, a router.

mod listener;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use wirestorm_control::Host;

use listener::BoundedListener;

/// Time that open responses have at the end of the server.
const GRACE: Duration = Duration::from_millis(500);

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

/// A thread that serves HTTP. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct HttpThread {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl HttpThread {
    /// Listens on an address; port 0 selects a free port. Clients can connect once this returns.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub(crate) fn start(
        name: &str,
        address: SocketAddr,
        router: Router,
        host: &Host,
    ) -> Result<Self, ListenError> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (bound, listener) = listen().map_err(|error| ListenError::Listen { address, error })?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(ListenError::Thread)?;
        let (stop, stopped) = watch::channel(false);
        let host = host.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _off = host.keep_off_reserved_cpus();
            serve(&runtime, listener, router, stopped);
        });
        let thread = Some(thread.map_err(ListenError::Thread)?);
        Ok(Self { address: bound, stop, thread })
    }

    /// Returns the address and the port of the listening socket.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpThread {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        // A panic of the thread has been printed, and has no consequence for runs.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Serves until `stopped` is true, and open responses for at most [`GRACE`] longer.
fn serve(runtime: &Runtime, listener: TcpListener, router: Router, stopped: watch::Receiver<bool>) {
    let until_stopped = |mut stopped: watch::Receiver<bool>| async move {
        // An error means that the server is gone.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let grace = stopped.clone();
    runtime.block_on(async {
        // The listener is non-blocking, so this cannot fail.
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        let server = axum::serve(BoundedListener::new(listener), router)
            .with_graceful_shutdown(until_stopped(stopped));
        tokio::select! {
            _ = server => {}
            () = async { until_stopped(grace).await; tokio::time::sleep(GRACE).await } => {}
        }
    });
}
