//! Captures the frames that arrive on an interface, as pcapng.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use wirestorm_base::port::{PortError, Receive};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::af_packet::{AfPacketError, AfPacketOptions, AfPacketReceive, FilterInstruction};
use wirestorm_io::clock::{self, RealtimeOffset};
use wirestorm_io::namespace::{InterfaceName, InterfaceNameError, NamespaceError};
use wirestorm_wire::capture::{LinkType, PcapngWriter};

/// Options of a capture.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Interface to capture on.
    pub interface: String,
    /// Filter in tcpdump syntax; empty for all frames.
    pub filter: String,
    /// Stop after N frames.
    pub packets: u64,
    /// Maximum duration.
    pub duration: Duration,
    /// Maximum bytes stored of each frame.
    pub snap_length: usize,
    /// Whether the capture continues after the interface was down.
    pub survives_outages: bool,
}

/// Result of a capture.
#[derive(Clone, Debug, Serialize)]
pub struct CaptureReport {
    /// Name and version of the document format.
    pub schema: &'static str,
    /// Interface.
    pub interface: String,
    /// Frames written.
    pub packets: u64,
    /// Bytes without FCS, counted with the original frame lengths.
    pub bytes: u64,
    /// Frames that passed the filter but were dropped because the socket buffer was full.
    pub missed: u64,
    /// Duration in seconds.
    pub elapsed_s: f64,
}

/// Error that prevented or ended a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The name is not a valid interface name.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// The namespace does not open.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The filter is invalid.
    #[error("filter {filter:?}: {reason}")]
    Filter {
        /// Filter text.
        filter: String,
        /// Error message of tcpdump.
        reason: String,
    },
    /// The packet socket does not open.
    #[error(transparent)]
    Open(#[from] AfPacketError),
    /// The interface failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Writing the capture failed.
    #[error("cannot write the capture: {0}")]
    Write(#[from] io::Error),
}

/// Captures until a limit is reached or `stop` is set. A reader of `output` sees each frame within
/// 100 ms. Calls `observe` with the frames and bytes so far, about ten times a second.
///
/// # Errors
/// See [`CaptureError`]. Frames written before the error remain in `output`.
pub fn capture(
    options: &CaptureOptions,
    output: &mut dyn Write,
    stop: &AtomicBool,
    mut observe: impl FnMut(u64, u64),
) -> Result<CaptureReport, CaptureError> {
    const ROOM: usize = 256;
    /// Maximum time until a stop request takes effect.
    const PATIENCE: Duration = Duration::from_millis(50);
    const OBSERVE_INTERVAL: Duration = Duration::from_millis(100);
    let interface: InterfaceName = options.interface.parse()?;
    let mut port_options = AfPacketOptions::new(interface.clone());
    port_options.filter = compile_filter(&interface, &options.filter)?;
    let mut port = AfPacketReceive::open(&port_options)?;
    let writer = PcapngWriter::new();
    let mut bytes = Vec::new();
    writer.push_section(&mut bytes);
    let snap_length = u32::try_from(options.snap_length).unwrap_or(0);
    let name = interface.name();
    writer
        .push_interface(&mut bytes, LinkType::EN10MB, snap_length, name)
        .map_err(io::Error::other)?;
    let start = clock::now();
    let end = start.saturating_add(options.duration);
    let (mut packets, mut length, mut observed) = (0, 0, start);
    let mut batch = Vec::with_capacity(ROOM);
    loop {
        // Read the flag before the port, so that frames that arrived before the stop are still
        // fetched.
        let is_last = stop.load(Ordering::Relaxed) || clock::now() >= end;
        let offset = RealtimeOffset::read();
        let fetched = match port.receive(ROOM, &mut batch) {
            Err(PortError::Down { .. }) if options.survives_outages => 0,
            outcome => outcome?,
        };
        for received in batch.drain(..) {
            if packets < options.packets {
                let frame = port.frame(&received);
                let captured = &frame[..frame.len().min(options.snap_length)];
                let time = Instant::from_nanos(offset.to_realtime_nanos(received.arrival));
                writer
                    .push_record(&mut bytes, 0, time, received.original_length as u32, captured)
                    .map_err(io::Error::other)?;
                packets += 1;
                length += received.original_length as u64;
            }
            port.release(received);
        }
        output.write_all(&bytes)?;
        bytes.clear();
        let now = clock::now();
        if now.saturating_since(observed) >= OBSERVE_INTERVAL {
            observed = now;
            output.flush()?;
            observe(packets, length);
        }
        if packets >= options.packets || is_last && fetched == 0 {
            break;
        }
        if fetched == 0 {
            port.wait(PATIENCE.min(end.saturating_since(clock::now())));
        }
    }
    let missed = port.received().rx_dropped;
    let time = Instant::from_nanos(clock::realtime_nanos());
    writer.push_statistics(&mut bytes, 0, time, packets + missed, missed);
    output.write_all(&bytes)?;
    output.flush()?;
    Ok(CaptureReport {
        schema: "wirestorm.capture/1",
        interface: interface.to_string(),
        packets,
        bytes: length,
        missed,
        elapsed_s: clock::now().saturating_since(start).as_secs_f64(),
    })
}

/// Compiles a filter to a classic BPF program for this interface. tcpdump does the compilation.
///
/// # Errors
/// The filter is not valid, or there is no tcpdump.
pub fn compile_filter(
    interface: &InterfaceName,
    filter: &str,
) -> Result<Vec<FilterInstruction>, CaptureError> {
    if filter.trim().is_empty() {
        return Ok(Vec::new());
    }
    let wrong = |reason: String| CaptureError::Filter { filter: filter.to_owned(), reason };
    let output = interface.namespace.enter(|| {
        let mut command = Command::new("tcpdump");
        command.args(["-ddd", "-i", interface.name(), "--", filter]).stdin(Stdio::null()).output()
    })?;
    let output = output.map_err(|error| {
        wrong(format!("cannot run tcpdump to compile it: {error}; apt-get install tcpdump"))
    })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        let last = message.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no reason");
        return Err(wrong(last.trim_start_matches("tcpdump: ").to_owned()));
    }
    // The first line is the number of instructions; each other line is an instruction.
    let text = String::from_utf8_lossy(&output.stdout);
    let instruction = |line: &str| {
        let mut numbers = line.split_whitespace();
        Some(FilterInstruction {
            code: numbers.next()?.parse().ok()?,
            jump_true: numbers.next()?.parse().ok()?,
            jump_false: numbers.next()?.parse().ok()?,
            operand: numbers.next()?.parse().ok()?,
        })
    };
    let program: Option<Vec<_>> = text.lines().skip(1).map(instruction).collect();
    program.ok_or_else(|| wrong("tcpdump -ddd did not print a BPF program".into()))
}
