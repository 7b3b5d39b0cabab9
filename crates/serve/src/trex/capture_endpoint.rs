//! Endpoint of a capture: its frames go as pcap or pcapng to a ZeroMQ socket of a client.
//!
//! ```text
//! FrameSocket ── records ──> Records: messages of up to 1 MiB ── PAIR ──> client
//! ```
//!
//! The first message of a connection is the header of the file, each further one has whole records.
//! So the client appends the messages to a file.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use wirestorm_control::base::time::Instant;
use wirestorm_control::to_unix_ns;
use wirestorm_control::wire::capture::{
    LinkType, PacketDirection, PcapWriter, PcapngWriter, Resolution,
};

use super::frame_socket::Frame;
use super::pair_socket::{Endpoint, Outgoing, stay_connected};

/// Length from which a message takes no further record, in bytes.
const MESSAGE_BYTES: usize = 1 << 20;
/// Maximum number of bytes that wait for the client.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Time in which the client takes the records that wait at the end of a capture.
const END_WAIT: Duration = Duration::from_secs(2);
/// Snap length in the header of a file, as in TRex.
const SNAP_LENGTH: u32 = 2_000;

/// Format of a file.
enum Format {
    Pcap(PcapWriter),
    /// The index of a port is the number of its interface.
    Pcapng(PcapngWriter, Vec<usize>),
}

impl Format {
    fn header(&self, snap_length: u16) -> Vec<u8> {
        let mut header = Vec::new();
        match self {
            Self::Pcap(writer) => {
                let snap_length = SNAP_LENGTH;
                PcapWriter { snap_length, ..*writer }.push_header(&mut header);
            }
            Self::Pcapng(writer, ports) => {
                writer.push_section(&mut header);
                for port in ports {
                    let name = format!("port {port}");
                    let ethernet = LinkType::EN10MB;
                    // An error is impossible: the name is short.
                    let _ = writer.push_interface(&mut header, ethernet, snap_length.into(), &name);
                }
            }
        }
        header
    }

    /// Appends a record. A frame whose lengths are invalid appends nothing.
    fn push(&self, message: &mut Vec<u8>, port: usize, is_sent: bool, frame: &Frame<'_>) -> bool {
        let time = Instant::from_nanos(to_unix_ns(frame.time));
        let length = u32::try_from(frame.length).unwrap_or(u32::MAX);
        let pushed = match self {
            Self::Pcap(writer) => writer.push_record(message, time, length, frame.bytes),
            Self::Pcapng(writer, ports) => {
                let interface = ports.iter().position(|it| *it == port).unwrap_or_default();
                let direction = match is_sent {
                    true => PacketDirection::Outbound,
                    false => PacketDirection::Inbound,
                };
                let bytes = frame.bytes;
                writer.push_directed_record(
                    message,
                    interface as u32,
                    time,
                    length,
                    bytes,
                    direction,
                )
            }
        };
        pushed.is_ok()
    }
}

/// Records that wait for the client.
#[derive(Default)]
struct Records {
    messages: VecDeque<(Vec<u8>, u64)>,
    waiting_bytes: usize,
    matched: u64,
    /// Frames with a record, and their bytes on the wire.
    recorded: u64,
    bytes: u64,
    /// Frames that went to the client.
    written: u64,
}

struct Shared {
    format: Format,
    header: Vec<u8>,
    limit: u64,
    snap_length: u16,
    records: Mutex<Records>,
    is_ending: AtomicBool,
    /// Records wait, or the capture ends.
    changed: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, port: usize, is_sent: bool, frame: &Frame<'_>) {
        let mut records = self.lock();
        let records = &mut *records;
        records.matched += 1;
        let is_beyond = self.limit > 0 && records.matched > self.limit;
        if is_beyond || records.waiting_bytes >= WAITING_BYTES_MAX {
            return;
        }
        let snap_length = if self.snap_length == 0 { usize::MAX } else { self.snap_length.into() };
        let bytes = frame.bytes.get(..snap_length).unwrap_or(frame.bytes);
        let is_full = |(message, _): &(Vec<u8>, u64)| message.len() >= MESSAGE_BYTES;
        if records.messages.back().is_none_or(is_full) {
            records.messages.push_back((Vec::new(), 0));
        }
        let Some((message, count)) = records.messages.back_mut() else { return };
        let before = message.len();
        if self.format.push(message, port, is_sent, &Frame { bytes, ..*frame }) {
            *count += 1;
            records.waiting_bytes += message.len() - before;
            records.recorded += 1;
            records.bytes += frame.length as u64;
            self.changed.notify_one();
        }
    }

    fn take(&self) -> Option<Vec<u8>> {
        let mut records = self.lock();
        let (message, count) = records.messages.pop_front()?;
        records.waiting_bytes -= message.len();
        records.written += count;
        (!message.is_empty()).then_some(message)
    }
}

/// Messages of a connection.
struct Messages {
    shared: Arc<Shared>,
    needs_header: bool,
}

impl Outgoing for Messages {
    fn begin(&mut self) {
        // Behind a new connection there may be a new client.
        self.needs_header = true;
    }

    fn end(&mut self) {}

    async fn next(&mut self) -> Option<Vec<u8>> {
        if std::mem::take(&mut self.needs_header) {
            return Some(self.shared.header.clone());
        }
        loop {
            let is_ending = self.shared.is_ending.load(Ordering::Acquire);
            if let Some(message) = self.shared.take() {
                return Some(message);
            }
            if is_ending {
                return None;
            }
            self.shared.changed.notified().await;
        }
    }
}

/// An endpoint. Dropping it closes the connection.
pub(super) struct CaptureEndpoint {
    /// Without options.
    name: String,
    shared: Arc<Shared>,
    connection: JoinHandle<()>,
    /// Carries no message: closes at the end of the connection.
    ended: Mutex<mpsc::Receiver<Infallible>>,
}

impl Drop for CaptureEndpoint {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl CaptureEndpoint {
    /// Connects to a client's socket. The client may open it later, except a Unix socket.
    ///
    /// # Errors
    /// The endpoint is not valid.
    pub(super) fn open(
        text: &str,
        limit: u32,
        snap_length: u16,
        ports: &[usize],
    ) -> Result<Self, String> {
        let (name, option) = text.split_once('?').unwrap_or((text, "pcap"));
        let format = match option {
            "pcap" => {
                let resolution = Resolution::Microseconds;
                let writer = PcapWriter::new(LinkType::EN10MB);
                Format::Pcap(PcapWriter { resolution, snap_length: 0, ..writer })
            }
            "pcapng" => {
                let mut ports = ports.to_vec();
                ports.sort_unstable();
                ports.dedup();
                Format::Pcapng(PcapngWriter::new(), ports)
            }
            other => return Err(format!("unsupported format {other:?}: expected pcap or pcapng")),
        };
        if name.starts_with("file:") {
            let text = "this server writes no files: expected tcp://HOST:PORT or ipc://PATH";
            return Err(text.to_owned());
        }
        let endpoint = Endpoint::parse(name)
            .ok_or_else(|| format!("found {name:?}, expected tcp://HOST:PORT or ipc://PATH"))?;
        if let Endpoint::Ipc(path) = &endpoint
            && !std::path::Path::new(path).exists()
        {
            return Err(format!("ipc socket '{path}' does not exist"));
        }
        let shared = Arc::new(Shared {
            header: format.header(snap_length),
            format,
            limit: limit.into(),
            snap_length,
            records: Mutex::default(),
            is_ending: AtomicBool::new(false),
            changed: Notify::new(),
        });
        let messages = Messages { shared: Arc::clone(&shared), needs_header: true };
        let runtime = Handle::try_current().map_err(|error| error.to_string())?;
        let (end, ended) = mpsc::channel::<Infallible>();
        let connection = runtime.spawn(async move {
            // Closes the channel when the client has all records.
            let _end = end;
            stay_connected(endpoint, messages, None).await;
        });
        Ok(Self { name: name.to_owned(), shared, connection, ended: Mutex::new(ended) })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a function that records frames of a port.
    pub(super) fn recorder(
        &self,
        port: usize,
        is_sent: bool,
    ) -> impl FnMut(Frame<'_>) + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move |frame: Frame<'_>| shared.record(port, is_sent, &frame)
    }

    /// Ends the recording, and waits until the client has the last record, for at most 2 s.
    pub(super) fn finish(&self) {
        self.shared.is_ending.store(true, Ordering::Release);
        self.shared.changed.notify_one();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // An error either way: the channel closes, or the time is over.
        let _ = ended.recv_timeout(END_WAIT);
    }

    /// Returns the number of recorded frames that the client does not have.
    pub(super) fn pending(&self) -> u64 {
        let records = self.shared.lock();
        records.recorded - records.written
    }

    /// Returns fields of a capture's status.
    pub(super) fn status(&self) -> [(String, Value); 8] {
        let records = self.shared.lock();
        let format = match self.shared.format {
            Format::Pcap(_) => "pcap",
            Format::Pcapng(..) => "pcapng",
        };
        let fields: [(&str, Value); 8] = [
            ("matched", records.matched.into()),
            ("fetched", records.written.into()),
            ("endpoint", self.name.as_str().into()),
            ("count", records.recorded.into()),
            ("bytes", records.bytes.into()),
            ("limit", self.shared.limit.into()),
            ("snaplen", self.shared.snap_length.into()),
            ("format", format.into()),
        ];
        fields.map(|(name, value)| (name.to_owned(), value))
    }
}
