//! Captures, and queues of received frames.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wirestorm_control::af_packet::Direction;

use super::capture_endpoint::CaptureEndpoint;
use super::frame_socket::{Frame, FrameSocket, compiled};
use super::parameters::{Parameters, done};
use super::port::Port;
use super::rpc::{Answer, RpcError};
use super::{Trex, now_s};

/// Maximum number of captures.
const CAPTURES_MAX: usize = 10;
/// Maximum number of bytes of the frames of a capture or a queue.
const BYTES_MAX: usize = 256 << 20;
/// Maximum number of frames of a queue.
const QUEUE_MAX: u32 = 10_000_000;

/// A stored frame.
struct Stored {
    time_s: f64,
    bytes: Vec<u8>,
    length: usize,
    port: usize,
    index: u64,
    is_sent: bool,
}

impl Stored {
    fn document(&self, snap_length: usize) -> Value {
        let bytes = &self.bytes[..self.bytes.len().min(snap_length)];
        json!({
            "ts": self.time_s,
            "binary": STANDARD.encode(bytes),
            "port": self.port,
            "index": self.index,
            "wirelen": self.length,
            "origin": if self.is_sent { "TX" } else { "RX" },
        })
    }
}

/// A bounded list of frames.
struct Frames {
    limit: usize,
    /// Whether the first frames stay, not the last ones.
    is_fixed: bool,
    snap_length: usize,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    frames: VecDeque<Stored>,
    bytes: usize,
    matched: u64,
    fetched: u64,
}

impl Frames {
    fn new(limit: u32, is_fixed: bool, snap_length: u16) -> Self {
        let snap_length = if snap_length == 0 { usize::MAX } else { snap_length.into() };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { limit, is_fixed, snap_length, content: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, port: usize, is_sent: bool, frame: &Frame<'_>) {
        let bytes = &frame.bytes[..frame.bytes.len().min(self.snap_length)];
        let mut content = self.lock();
        content.matched += 1;
        while content.frames.len() >= self.limit || content.bytes + bytes.len() > BYTES_MAX {
            if self.is_fixed {
                return;
            }
            let Some(oldest) = content.frames.pop_front() else { return };
            content.bytes -= oldest.bytes.len();
        }
        content.bytes += bytes.len();
        let index = content.matched;
        content.frames.push_back(Stored {
            time_s: frame.time.as_nanos() as f64 / 1e9,
            bytes: bytes.to_vec(),
            length: frame.length,
            port,
            index,
            is_sent,
        });
    }

    /// Removes the oldest frames. Returns the number of those that stay.
    fn take(&self, count: usize, snap_length: usize) -> (Vec<Value>, usize) {
        let mut content = self.lock();
        let count = count.min(content.frames.len());
        let taken: Vec<Stored> = content.frames.drain(..count).collect();
        content.bytes -= taken.iter().map(|frame| frame.bytes.len()).sum::<usize>();
        content.fetched += count as u64;
        let left = content.frames.len();
        drop(content);
        (taken.iter().map(|frame| frame.document(snap_length)).collect(), left)
    }
}

/// A capture.
struct Capture {
    start_s: f64,
    filter: String,
    sent_ports: Vec<usize>,
    received_ports: Vec<usize>,
    /// Frames that wait for requests; none with an endpoint.
    frames: Arc<Frames>,
    endpoint: Option<CaptureEndpoint>,
    is_active: AtomicBool,
    sockets: Mutex<Vec<FrameSocket>>,
}

impl Capture {
    fn stop(&self) {
        self.is_active.store(false, Ordering::Relaxed);
        let sockets =
            std::mem::take(&mut *self.sockets.lock().unwrap_or_else(PoisonError::into_inner));
        drop(sockets);
        if let Some(endpoint) = &self.endpoint {
            endpoint.finish();
        }
    }

    fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }
}

/// Captures by number.
#[derive(Default)]
pub(super) struct Captures(Mutex<List>);

#[derive(Default)]
struct List {
    last: u32,
    captures: BTreeMap<u32, Arc<Capture>>,
}

impl Captures {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, parameters: &Parameters<'_>) -> Result<Arc<Capture>, RpcError> {
        let number = parameters.u32("capture_id")?;
        let found = self.lock().captures.get(&number).cloned();
        found.ok_or_else(|| RpcError::execution("capture ID not found"))
    }

    fn is_watched(&self, is_by: impl Fn(&Capture) -> bool) -> bool {
        self.lock().captures.values().any(|capture| capture.is_active() && is_by(capture))
    }

    /// Returns whether a capture needs the frames that a port sends.
    pub(super) fn watch_leaving(&self, port: usize) -> bool {
        self.is_watched(|capture| capture.sent_ports.contains(&port))
    }

    /// Returns whether a capture needs the frames that arrive at a port.
    pub(super) fn watch_arriving(&self, port: usize) -> bool {
        self.is_watched(|capture| capture.received_ports.contains(&port))
    }

    /// Ends and removes all captures.
    pub(super) fn clear(&self) {
        let captures = std::mem::take(&mut self.lock().captures);
        captures.into_values().for_each(|capture| capture.stop());
    }
}

pub(super) fn capture(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    match parameters.choice("command", &["start", "stop", "fetch", "status", "remove"])? {
        "start" => start(trex, parameters),
        "stop" => {
            let capture = trex.captures.get(parameters)?;
            capture.stop();
            Ok(match &capture.endpoint {
                Some(it) => json!({"pkt_count": it.pending(), "endpoint": it.name()}),
                None => json!({"pkt_count": capture.frames.lock().frames.len(), "endpoint": ""}),
            })
        }
        "fetch" => {
            let capture = trex.captures.get(parameters)?;
            let count = parameters.u32("pkt_limit")?;
            let snap_length = match parameters.u16_or("snaplen", 0)? {
                0 => usize::MAX,
                length => length.into(),
            };
            let (packets, mut pending) = capture.frames.take(count as usize, snap_length);
            if let Some(endpoint) = &capture.endpoint {
                pending = usize::try_from(endpoint.pending()).unwrap_or(usize::MAX);
            }
            Ok(json!({"pending": pending, "start_ts": capture.start_s, "pkts": packets}))
        }
        "status" => Ok(status(&trex.captures)),
        _ => {
            let capture = trex.captures.get(parameters)?;
            trex.captures.lock().captures.remove(&parameters.u32("capture_id")?);
            capture.stop();
            done()
        }
    }
}

fn start(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let limit = parameters.u32("limit")?;
    let is_fixed = parameters.choice("mode", &["fixed", "cyclic"])? == "fixed";
    let ports = |name: &str| -> Result<Vec<usize>, RpcError> {
        let numbers = parameters.u32s(name)?.into_iter();
        numbers.map(|number| trex.checked_port(number as usize)).collect()
    };
    let (sent_ports, received_ports) = (ports("tx")?, ports("rx")?);
    let filter = parameters.text_or("filter", "")?;
    let endpoint = parameters.text_or("endpoint", "")?;
    let snap_length = parameters.u16_or("snaplen", 0)?;
    if trex.captures.lock().captures.len() >= CAPTURES_MAX {
        return Err(RpcError::execution("capture limit has reached"));
    }
    let frames = Arc::new(Frames::new(limit, is_fixed, snap_length));
    let endpoint = match endpoint {
        "" => None,
        endpoint => {
            let ports = [&sent_ports[..], &received_ports].concat();
            let opened = CaptureEndpoint::open(endpoint, limit, snap_length, &ports);
            Some(opened.map_err(|error| {
                RpcError::execution(format!("specified endpoint is unavailable: {error}"))
            })?)
        }
    };
    let mut sockets = Vec::new();
    let both = received_ports.iter().map(|port| (*port, false));
    for (port, is_sent) in both.chain(sent_ports.iter().map(|port| (*port, true))) {
        let interface = &trex.interfaces[port].name;
        let program = compiled(interface, filter).map_err(|_| {
            RpcError::parameters(format!("BPF filter: '{filter}' is not a valid pattern"))
        })?;
        let direction = if is_sent { Direction::Leaving } else { Direction::Arriving };
        let handle: Box<dyn FnMut(Frame<'_>) + Send> = match &endpoint {
            Some(endpoint) => Box::new(endpoint.recorder(port, is_sent)),
            None => {
                let stored = Arc::clone(&frames);
                Box::new(move |frame: Frame<'_>| stored.record(port, is_sent, &frame))
            }
        };
        let socket = FrameSocket::open(interface, direction, program, !is_sent, handle);
        sockets.push(socket.map_err(RpcError::execution)?);
    }
    let start_s = now_s();
    let capture = Arc::new(Capture {
        start_s,
        filter: filter.to_owned(),
        sent_ports,
        received_ports,
        frames,
        endpoint,
        is_active: AtomicBool::new(true),
        sockets: Mutex::new(sockets),
    });
    let mut list = trex.captures.lock();
    if list.captures.len() >= CAPTURES_MAX {
        return Err(RpcError::execution("capture limit has reached"));
    }
    list.last += 1;
    let number = list.last;
    list.captures.insert(number, capture);
    Ok(json!({"capture_id": number, "start_ts": start_s}))
}

fn status(captures: &Captures) -> Value {
    let bits = |ports: &[usize]| -> u64 {
        let bits = ports.iter().map(|port| 1_u64.checked_shl(*port as u32).unwrap_or_default());
        bits.fold(0, |all, bit| all | bit)
    };
    let list = captures.lock();
    let document = |(number, capture): (&u32, &Arc<Capture>)| {
        let content = capture.frames.lock();
        let mut found = json!({
            "id": number,
            "matched": content.matched,
            "fetched": content.fetched,
            "filter": {
                "tx": bits(&capture.sent_ports),
                "rx": bits(&capture.received_ports),
                "bpf": capture.filter,
            },
            "state": if capture.is_active() { "ACTIVE" } else { "STOPPED" },
            "count": content.frames.len(),
            "bytes": content.bytes,
            "limit": capture.frames.limit,
            "mode": if capture.frames.is_fixed { "fixed" } else { "cyclic" },
        });
        if let (Some(endpoint), Some(fields)) = (&capture.endpoint, found.as_object_mut()) {
            fields.remove("mode");
            fields.extend(endpoint.status());
        }
        found
    };
    list.captures.iter().map(document).collect()
}

/// Queue of the last frames that a port received.
pub(super) struct RxQueue {
    frames: Arc<Frames>,
    _socket: FrameSocket,
}

impl RxQueue {
    /// Returns the queue as the status of a port shows it.
    pub(super) fn document(queue: Option<&Self>) -> Value {
        match queue {
            None => json!({"is_active": false}),
            Some(queue) => json!({
                "is_active": true,
                "size": queue.frames.limit,
                "count": queue.frames.lock().frames.len(),
            }),
        }
    }
}

pub(super) fn set_rx_feature(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let kind = parameters.choice("type", &["queue", "server", "capwap_proxy"])?;
    let is_enabled = parameters.flag_or("enabled", false)?;
    match kind {
        "queue" if is_enabled => {
            let size = parameters.u32("size")?;
            if !trex.state().ports[port].is_service {
                let text = "setting RX queue is only available under service mode";
                return Err(RpcError::execution(text));
            }
            if size == 0 {
                return Err(RpcError::parameters("queue size cannot be zero"));
            }
            let frames = Arc::new(Frames::new(size.min(QUEUE_MAX), false, 0));
            let stored = Arc::clone(&frames);
            let handle = move |frame: Frame<'_>| stored.record(port, false, &frame);
            let interface = &trex.interfaces[port].name;
            let socket =
                FrameSocket::open(interface, Direction::Arriving, Vec::new(), true, handle)
                    .map_err(RpcError::execution)?;
            let queue = RxQueue { frames, _socket: socket };
            let before = trex.state().ports[port].rx_queue.replace(queue);
            // The end of the old queue waits for its thread.
            drop(before);
        }
        "queue" => {
            let before = trex.state().ports[port].rx_queue.take();
            drop(before);
        }
        "server" => {}
        _ => return Err(RpcError::execution("CAPWAP proxy is not supported")),
    }
    done()
}

pub(super) fn get_rx_queue_pkts(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let state = trex.state();
    let port = &state.ports[port];
    if !port.is_service {
        let text = "fetching RX queue packets is only available under service mode";
        return Err(RpcError::execution(text));
    }
    let frames = port.rx_queue.as_ref().map(|queue| Arc::clone(&queue.frames));
    drop(state);
    let packets = frames.map_or_else(Vec::new, |frames| frames.take(usize::MAX, usize::MAX).0);
    Ok(json!({"pkts": packets}))
}

impl Trex {
    /// Checks that a port can leave the service mode.
    pub(super) fn check_no_captures(&self, number: usize, port: &Port) -> Result<(), RpcError> {
        let prefix = "unable to disable service mode -";
        if port.rx_queue.is_some() {
            return Err(RpcError::execution(format!("{prefix} please remove RX queue")));
        }
        if port.capture_port.is_some() {
            return Err(RpcError::execution(format!("{prefix} please stop the capture port")));
        }
        let is_captured = |capture: &Capture| {
            capture.sent_ports.contains(&number) || capture.received_ports.contains(&number)
        };
        if self.captures.is_watched(is_captured) {
            let text = format!("{prefix} an active capture on port {number} exists");
            return Err(RpcError::execution(text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_control::base::time::Instant;

    use super::*;

    fn record(frames: &Frames, count: u8) {
        for byte in 0..count {
            let bytes = [byte; 20];
            let time = Instant::from_nanos(u64::from(byte));
            frames.record(1, false, &Frame { bytes: &bytes, length: 60, time });
        }
    }

    #[test]
    fn fixed_capture_keeps_the_first_frames_and_cyclic_one_the_last() {
        let fixed = Frames::new(2, true, 0);
        record(&fixed, 5);
        let (packets, left) = fixed.take(1, 4);
        assert_eq!((packets[0]["index"].clone(), left), (1.into(), 1));
        assert_eq!(packets[0]["binary"], "AAAAAA==");
        assert_eq!(packets[0]["wirelen"], 60);
        let cyclic = Frames::new(2, false, 10);
        record(&cyclic, 5);
        let (packets, left) = cyclic.take(10, usize::MAX);
        assert_eq!((packets.len(), left), (2, 0));
        assert_eq!(packets[1]["index"], 5);
        assert_eq!(cyclic.lock().bytes, 0);
    }
}
