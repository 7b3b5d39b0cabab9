//! Capture ports: a port connected to a ZeroMQ socket of a client, in both directions.
//!
//! ```text
//! client: PAIR, bound <─ZMTP─ connect ─┬─ received frames that match the filter: FrameSocket
//!                                      └─> thread `trex-capture-port` ─> PacketSender
//! ```
//!
//! As in TRex, frames that the client does not take at once are lost, and so are frames without a
//! client. A connection that ends is opened again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use wirestorm_control::af_packet::Direction;
use wirestorm_control::namespace::InterfaceName;

use super::Trex;
use super::frame_socket::{Frame, FrameSocket, compiled};
use super::interface::Interface;
use super::packets::{PADDED, PacketSender, Pushed};
use super::pair_socket::{Endpoint, Outgoing, stay_connected};
use super::parameters::{Parameters, done};
use super::rpc::{Answer, RpcError};

/// Maximum number of frames that wait in each direction.
const QUEUE: usize = 1_024;
/// Maximum number of frames of the client that are sent together.
const BATCH: usize = 32;
/// Least length of a frame in bytes.
const FRAME_BYTES_MIN: usize = 14;
/// Least length of the text of an endpoint, as in TRex.
const ENDPOINT_LENGTH_MIN: usize = 5;

/// A port connected to a client's socket. Dropping it closes the connection.
pub(super) struct CapturePort {
    endpoint: String,
    filter: String,
    /// Receives the frames that match the filter.
    socket: FrameSocket,
    received: Sender<Vec<u8>>,
    is_connected: Arc<AtomicBool>,
    connection: JoinHandle<()>,
}

impl Drop for CapturePort {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl CapturePort {
    fn start(interface: &Interface, endpoint: &str, filter: &str) -> Result<Self, String> {
        let parsed = Endpoint::parse(endpoint).ok_or_else(|| {
            "Could not connect to ZMQ socket: expected tcp://HOST:PORT or ipc://PATH".to_owned()
        })?;
        let (received, to_client) = channel(QUEUE);
        let (from_client, frames) = channel(QUEUE);
        let is_connected = Arc::new(AtomicBool::new(false));
        let name = interface.name.clone();
        let socket = receive(&name, filter, received.clone(), &is_connected)?;
        send_on_thread(&name, frames, Arc::clone(&interface.pushed))?;
        let outgoing = Frames { received: to_client, is_connected: Arc::clone(&is_connected) };
        let connection = stay_connected(parsed, outgoing, Some(from_client));
        let connection =
            Handle::try_current().map_err(|error| error.to_string())?.spawn(connection);
        Ok(Self {
            endpoint: endpoint.to_owned(),
            filter: filter.to_owned(),
            socket,
            received,
            is_connected,
            connection,
        })
    }

    /// Returns the capture port as the status of a port shows it.
    pub(super) fn document(port: Option<&SharedCapturePort>) -> Value {
        let Some(port) = port else { return json!({"is_active": false}) };
        let port = lock(port);
        json!({
            "is_active": true,
            "bpf_filter": port.filter,
            "endpoint": port.endpoint,
            "socket_open": true,
        })
    }
}

/// Opens a socket whose frames go to the client.
fn receive(
    interface: &InterfaceName,
    filter: &str,
    received: Sender<Vec<u8>>,
    is_connected: &Arc<AtomicBool>,
) -> Result<FrameSocket, String> {
    let program = compiled(interface, filter)?;
    let is_connected = Arc::clone(is_connected);
    let handle = move |frame: Frame<'_>| {
        if is_connected.load(Ordering::Relaxed) {
            // A client that is too slow loses frames.
            let _ = received.try_send(frame.bytes.to_vec());
        }
    };
    FrameSocket::open(interface, Direction::Arriving, program, true, handle)
}

/// Starts the thread that sends the frames of the client. It ends with the connection.
fn send_on_thread(
    interface: &InterfaceName,
    mut frames: Receiver<Vec<u8>>,
    pushed: Arc<Pushed>,
) -> Result<(), String> {
    let mut sender = PacketSender::new(interface.clone());
    let send = move || {
        let mut batch = Vec::with_capacity(BATCH);
        while frames.blocking_recv_many(&mut batch, BATCH) > 0 {
            batch.retain(|frame| frame.len() >= FRAME_BYTES_MIN);
            for frame in &mut batch {
                frame.resize(frame.len().max(PADDED), 0);
            }
            // The interface may be down, or refuse frames of this length; it may take others.
            let _ = sender.send(&batch, Duration::ZERO, &pushed);
            batch.clear();
        }
    };
    let spawned = std::thread::Builder::new().name("trex-capture-port".to_owned()).spawn(send);
    spawned.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Frames to the client.
struct Frames {
    received: Receiver<Vec<u8>>,
    is_connected: Arc<AtomicBool>,
}

impl Outgoing for Frames {
    fn begin(&mut self) {
        self.is_connected.store(true, Ordering::Relaxed);
    }

    fn end(&mut self) {
        self.is_connected.store(false, Ordering::Relaxed);
        while self.received.try_recv().is_ok() {}
    }

    async fn next(&mut self) -> Option<Vec<u8>> {
        self.received.recv().await
    }
}

/// Returns the filter of a request, checked.
fn filter<'a>(interface: &InterfaceName, parameters: &Parameters<'a>) -> Result<&'a str, RpcError> {
    let filter = parameters.text_or("bpf_filter", "")?;
    match compiled(interface, filter) {
        Ok(_) => Ok(filter),
        Err(_) => {
            Err(RpcError::parameters(format!("BPF filter: '{filter}' is not a valid pattern")))
        }
    }
}

pub(super) fn start_capture_port(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let number = trex.port_id(parameters)?;
    let interface = &trex.interfaces[number];
    let filter = filter(&interface.name, parameters)?;
    let endpoint = parameters.text("endpoint")?;
    if endpoint.len() < ENDPOINT_LENGTH_MIN {
        return Err(RpcError::parameters(format!("invalid endpoint '{endpoint}'")));
    }
    let failed = |error: String| {
        RpcError::execution(format!("Could not enable capture port on port {number}: {error}"))
    };
    let is_active = || failed("Capture port is already active".to_owned());
    if trex.capture_port(number).is_some() {
        return Err(is_active());
    }
    let started = CapturePort::start(interface, endpoint, filter).map_err(failed)?;
    let started = Arc::new(Mutex::new(started));
    let mut state = trex.state();
    let slot = &mut state.ports[number].capture_port;
    if slot.is_some() {
        drop(state);
        return Err(is_active());
    }
    *slot = Some(started);
    done()
}

pub(super) fn stop_capture_port(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let before = trex.state().ports[port].capture_port.take();
    // The end waits for a thread.
    drop(before);
    done()
}

pub(super) fn set_capture_port_bpf(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let number = trex.port_id(parameters)?;
    let filter = filter(&trex.interfaces[number].name, parameters)?;
    let Some(port) = trex.capture_port(number) else { return done() };
    let (received, is_connected) = {
        let port = lock(&port);
        (port.received.clone(), Arc::clone(&port.is_connected))
    };
    let interface = &trex.interfaces[number].name;
    let socket =
        receive(interface, filter, received, &is_connected).map_err(RpcError::execution)?;
    let before = {
        let mut port = lock(&port);
        filter.clone_into(&mut port.filter);
        std::mem::replace(&mut port.socket, socket)
    };
    // The end of the old socket waits for its thread.
    drop(before);
    done()
}

/// A capture port that requests share.
pub(super) type SharedCapturePort = Arc<Mutex<CapturePort>>;

fn lock(port: &SharedCapturePort) -> MutexGuard<'_, CapturePort> {
    port.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Trex {
    /// Disconnects all capture ports.
    pub(super) fn stop_capture_ports(&self) {
        let ports: Vec<_> =
            self.state().ports.iter_mut().filter_map(|port| port.capture_port.take()).collect();
        drop(ports);
    }

    fn capture_port(&self, number: usize) -> Option<SharedCapturePort> {
        self.state().ports[number].capture_port.clone()
    }
}
