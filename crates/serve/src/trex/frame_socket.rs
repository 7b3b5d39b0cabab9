//! A thread that receives the frames of an interface through a packet socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use wirestorm_control::af_packet::{
    AfPacketOptions, AfPacketReceive, Direction, FilterInstruction,
};
use wirestorm_control::base::port::Receive;
use wirestorm_control::base::time::{Duration, Instant};
use wirestorm_control::capture::compile_filter;
use wirestorm_control::clock;
use wirestorm_control::namespace::InterfaceName;
use wirestorm_control::tunnel::DecapsulatingPort;

/// Size of the receive ring in bytes.
const RING_BYTES: usize = 4 << 20;
/// Number of frames fetched at a time.
const BATCH: usize = 256;
/// Longest wait for a frame, which is also the time until the thread notices its end.
const WAIT: Duration = Duration::from_millis(20);
/// Wait for the frames that had arrived at the end, and the longest time for fetching them.
const LAST_WAIT: Duration = Duration::from_millis(10);
const LAST_WAIT_MAX: StdDuration = StdDuration::from_millis(500);

/// A frame that arrived or left.
pub(super) struct Frame<'a> {
    pub(super) bytes: &'a [u8],
    /// Length on the wire without FCS.
    pub(super) length: usize,
    pub(super) time: Instant,
}

/// A thread that passes each frame to a function. Dropping it ends the thread after the frames that
/// have arrived.
pub(super) struct FrameSocket {
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FrameSocket {
    /// Opens the socket and starts the thread.
    ///
    /// # Errors
    /// The interface cannot be used.
    pub(super) fn open(
        interface: &InterfaceName,
        direction: Direction,
        filter: Vec<FilterInstruction>,
        is_promiscuous: bool,
        handle: impl FnMut(Frame<'_>) + Send + 'static,
    ) -> Result<Self, String> {
        let socket = receive(interface, direction, filter, is_promiscuous)?;
        Self::start(socket, |socket, time| socket.wait(time), handle)
    }

    /// As [`Self::open`], for the packets in GTP-U tunnels without their outer headers. The filter
    /// concerns the frames in front of that.
    ///
    /// # Errors
    /// The interface cannot be used.
    pub(super) fn open_tunnelled(
        interface: &InterfaceName,
        direction: Direction,
        filter: Vec<FilterInstruction>,
        is_promiscuous: bool,
        handle: impl FnMut(Frame<'_>) + Send + 'static,
    ) -> Result<Self, String> {
        let socket = receive(interface, direction, filter, is_promiscuous)?;
        let socket = DecapsulatingPort::new(socket, true, true);
        Self::start(socket, |socket, time| socket.port_mut().wait(time), handle)
    }

    /// Starts the thread. `wait` waits for frames for at most a time.
    fn start<Socket: Receive + Send + 'static>(
        mut socket: Socket,
        wait: impl Fn(&mut Socket, Duration) + Send + 'static,
        mut handle: impl FnMut(Frame<'_>) + Send + 'static,
    ) -> Result<Self, String> {
        let is_ending = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_ending);
        let run = move || {
            let mut batch = Vec::with_capacity(BATCH);
            let mut end: Option<(Instant, StdInstant)> = None;
            loop {
                if end.is_none() && ends.load(Ordering::Relaxed) {
                    end = Some((clock::now(), StdInstant::now() + LAST_WAIT_MAX));
                }
                // After an error the interface is down; it may come back.
                let count = socket.receive(BATCH, &mut batch).unwrap_or_default();
                let mut is_late = false;
                for received in batch.drain(..) {
                    is_late |= end.is_some_and(|(end, _)| received.arrival > end);
                    if !is_late {
                        handle(Frame {
                            bytes: socket.frame(&received),
                            length: received.original_length,
                            time: received.arrival,
                        });
                    }
                    socket.release(received);
                }
                match end {
                    Some((_, last)) if is_late || StdInstant::now() >= last => return,
                    Some(_) if count == 0 => {
                        let waited = StdInstant::now();
                        wait(&mut socket, LAST_WAIT);
                        // The kernel signals frames that wait in a block before the time is over.
                        if waited.elapsed() >= StdDuration::from_millis(9) {
                            return;
                        }
                    }
                    None if count == 0 => wait(&mut socket, WAIT),
                    _ => {}
                }
            }
        };
        let thread = std::thread::Builder::new().name("trex-frames".to_owned()).spawn(run);
        let thread = Some(thread.map_err(|error| format!("cannot start a thread: {error}"))?);
        Ok(Self { is_ending, thread })
    }
}

impl Drop for FrameSocket {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        // A panic has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Opens the socket.
fn receive(
    interface: &InterfaceName,
    direction: Direction,
    filter: Vec<FilterInstruction>,
    is_promiscuous: bool,
) -> Result<AfPacketReceive, String> {
    let options = AfPacketOptions {
        receive_ring_bytes: RING_BYTES,
        promiscuous: is_promiscuous,
        filter,
        direction,
        ..AfPacketOptions::new(interface.clone())
    };
    AfPacketReceive::open(&options).map_err(|error| error.to_string())
}

/// Compiles a filter in tcpdump syntax; empty for all frames.
///
/// # Errors
/// The filter is not valid.
pub(super) fn compiled(
    interface: &InterfaceName,
    filter: &str,
) -> Result<Vec<FilterInstruction>, String> {
    compile_filter(interface, filter).map_err(|error| error.to_string())
}

/// Returns a filter that accepts nothing.
pub(super) fn nothing() -> Vec<FilterInstruction> {
    vec![FilterInstruction { code: 0x06, ..FilterInstruction::default() }]
}
