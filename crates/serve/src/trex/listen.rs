//! The listening sockets of a TRex server, and their connections.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use wirestorm_control::link::LinkError;

use super::compression::REQUEST_BYTES_MAX;
use super::networks::ClientNetwork;
use super::zmtp::{self, Event};
use super::{SLOW_INTERVAL, Trex, TrexMode, rpc};
use crate::listen::{ListenError, runtime};
use crate::server::Server;

/// Default port of the requests.
pub(crate) const REQUEST_PORT: u16 = 4501;
/// Default port of the events.
pub(crate) const EVENT_PORT: u16 = 4500;

/// Maximum number of open connections of each socket. More wait in the queue of the kernel.
const CONNECTIONS_MAX: usize = 128;
/// Time for the handshake, and for the client to read an answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after the system refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum length of a message to the socket of the events: a subscription.
const SUBSCRIPTION_BYTES_MAX: u64 = 1_024;
/// Text that tells a client to ask for its events.
const TRIGGER: &[u8] = b"{}";

/// A TRex server to start.
#[derive(Clone, Debug)]
pub struct TrexOption {
    /// What it speaks.
    pub mode: TrexMode,
    /// Address to listen on.
    pub address: IpAddr,
    /// Port of the requests; 0 for a free one.
    pub request_port: u16,
    /// Port of the events; 0 for a free one.
    pub event_port: u16,
    /// Networks of the clients; empty for this machine alone.
    pub clients: Vec<ClientNetwork>,
}

impl TrexOption {
    /// Returns a server on the loopback address with the default ports.
    pub fn new(mode: TrexMode) -> Self {
        Self {
            mode,
            address: IpAddr::from([127, 0, 0, 1]),
            request_port: REQUEST_PORT,
            event_port: EVENT_PORT,
            clients: Vec::new(),
        }
    }

    fn admits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match self.clients.as_slice() {
            [] => address.is_loopback(),
            clients => clients.iter().any(|network| network.contains(address)),
        }
    }
}

/// Error of starting a TRex server.
#[derive(Debug, thiserror::Error)]
pub enum TrexError {
    /// Anybody could reach the address.
    #[error(
        "{0} is not a loopback address, and TRex's protocol has neither encryption nor users: name \
         the networks of the clients, or listen on 127.0.0.1"
    )]
    NeedsClients(IpAddr),
    /// TRex numbers the ports.
    #[error("TRex's clients number the ports: name the ports of the server in their order")]
    NoPorts,
    /// The name of an interface is not valid, or it does not exist.
    #[error("port {name}: {error}")]
    Link {
        /// Name of the port.
        name: String,
        /// Error of the interface.
        error: LinkError,
    },
    /// The name of an interface is not valid.
    #[error(transparent)]
    Name(#[from] wirestorm_control::namespace::InterfaceNameError),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    NoRandom,
    /// An address cannot be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// A thread that serves TRex's clients. Dropping it ends the thread.
pub(crate) struct TrexThread {
    trex: Arc<Trex>,
    addresses: [SocketAddr; 2],
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl TrexThread {
    /// Listens. Clients can connect once this returns.
    ///
    /// # Errors
    /// See [`TrexError`].
    pub(crate) fn start(option: TrexOption, server: &Arc<Server>) -> Result<Self, TrexError> {
        if !option.address.is_loopback() && option.clients.is_empty() {
            return Err(TrexError::NeedsClients(option.address));
        }
        let trex = Trex::new(Arc::clone(server), option.mode)?;
        let bind = |port: u16| {
            let address = SocketAddr::new(option.address, port);
            let listen = || {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok((listener.local_addr()?, listener))
            };
            listen().map_err(|error| ListenError::Listen { address, error })
        };
        let (requests, events) = (bind(option.request_port)?, bind(option.event_port)?);
        let addresses = [requests.0, events.0];
        let runtime = runtime("trex", server.host()).map_err(ListenError::Thread)?;
        let (stop, stopped) = watch::channel(false);
        let host = server.host().clone();
        let served = Arc::clone(&trex);
        let thread = std::thread::Builder::new().name("trex".to_owned()).spawn(move || {
            let _off = host.keep_off_reserved_cpus();
            serve(runtime, served, &Arc::new(option), [requests.1, events.1], stopped);
        });
        let thread = Some(thread.map_err(ListenError::Thread)?);
        Ok(Self { trex, addresses, stop, thread })
    }

    /// Returns the addresses of requests and of events.
    pub(crate) const fn addresses(&self) -> [SocketAddr; 2] {
        self.addresses
    }

    /// Tells the clients that the server ends.
    pub(crate) fn announce_end(&self) {
        let mut state = self.trex.state();
        self.trex.publish(&mut state, [super::Event::ServerStopped]);
    }
}

impl Drop for TrexThread {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        // A panic of the thread has been printed, and has no consequence for runs.
        let _ = self.thread.take().map(JoinHandle::join);
        self.trex.captures.clear();
        self.trex.nodes.clear();
        self.trex.stop_latency();
        self.trex.stop_capture_ports();
    }
}

#[derive(Clone, Copy)]
enum Socket {
    Requests,
    Events,
}

fn serve(
    runtime: Runtime,
    trex: Arc<Trex>,
    option: &Arc<TrexOption>,
    [requests, events]: [TcpListener; 2],
    mut stopped: watch::Receiver<bool>,
) {
    runtime.block_on(async {
        for (listener, socket) in [(requests, Socket::Requests), (events, Socket::Events)] {
            // The listener is non-blocking, so this cannot fail.
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
            tokio::spawn(accept(listener, socket, Arc::clone(&trex), Arc::clone(option)));
        }
        tokio::spawn(follow_runs(Arc::clone(&trex)));
        tokio::spawn(tick(trex));
        // An error means that the server is gone.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    });
    runtime.shutdown_background();
}

async fn accept(
    listener: tokio::net::TcpListener,
    socket: Socket,
    trex: Arc<Trex>,
    option: Arc<TrexOption>,
) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // Fails only if the semaphore is closed, which does not happen.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if !option.admits(peer.ip()) {
            continue;
        }
        // Small answers must not wait for acknowledgements. After an error they do.
        let _ = stream.set_nodelay(true);
        let trex = Arc::clone(&trex);
        tokio::spawn(async move {
            // An error concerns this client alone.
            let _ = match socket {
                Socket::Requests => answer_requests(stream, trex).await,
                Socket::Events => send_events(stream, &trex).await,
            };
            drop(slot);
        });
    }
}

/// Settles traffic as soon as a run changes its state.
async fn follow_runs(trex: Arc<Trex>) {
    use tokio::sync::broadcast::error::RecvError;
    let mut events = trex.server.subscribe();
    loop {
        match events.recv().await {
            Ok(_) | Err(RecvError::Lagged(_)) => on_thread(&trex, |trex| trex.settle()).await,
            Err(RecvError::Closed) => return,
        }
    }
}

async fn tick(trex: Arc<Trex>) {
    let mut ticks = interval(SLOW_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        on_thread(&trex, |trex| trex.tick()).await;
    }
}

async fn on_thread(trex: &Arc<Trex>, work: impl FnOnce(&Trex) + Send + 'static) {
    let trex = Arc::clone(trex);
    // A panic has been printed.
    let _ = tokio::task::spawn_blocking(move || work(&trex)).await;
}

async fn answer_requests(stream: TcpStream, trex: Arc<Trex>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    timeout(TIMEOUT, zmtp::shake_hands(&mut stream, "REP")).await??;
    loop {
        // Also reads the frames around the request.
        let event = zmtp::read(&mut stream, REQUEST_BYTES_MAX as u64 + 1_024).await?;
        let bytes = match event {
            Event::Command => continue,
            Event::Ping(context) => zmtp::pong(&context),
            Event::Message(mut frames) => {
                // The envelope ends with an empty frame; the answer has the same one.
                let body = match frames.iter().position(Vec::is_empty) {
                    Some(end) => frames.split_off(end + 1).concat(),
                    None => return Err(io::ErrorKind::InvalidData.into()),
                };
                let trex = Arc::clone(&trex);
                let work = move || rpc::answer(&body, &trex);
                // After a panic, which has been printed, the client has to connect again.
                frames.push(tokio::task::spawn_blocking(work).await?);
                zmtp::message(&frames)
            }
        };
        timeout(TIMEOUT, stream.write_all(&bytes)).await??;
    }
}

async fn send_events(stream: TcpStream, trex: &Trex) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    timeout(TIMEOUT, zmtp::shake_hands(&mut stream, "PUB")).await??;
    let (reader, mut writer) = stream.into_inner().into_split();
    let mut wake = trex.wake.subscribe();
    let trigger = zmtp::message(&[TRIGGER.to_vec()]);
    // Reading a frame must not be interrupted, so a task of its own reads.
    let (pings, mut pinged) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let mut reader = BufReader::new(reader);
        while let Ok(event) = zmtp::read(&mut reader, SUBSCRIPTION_BYTES_MAX).await {
            if let Event::Ping(context) = event
                && pings.send(context).await.is_err()
            {
                return;
            }
        }
    });
    loop {
        let bytes = tokio::select! {
            context = pinged.recv() => match context {
                Some(context) => zmtp::pong(&context),
                None => return Ok(()),
            },
            changed = wake.changed() => match changed {
                Ok(()) => trigger.clone(),
                Err(_) => return Ok(()),
            },
        };
        timeout(TIMEOUT, writer.write_all(&bytes)).await??;
    }
}
