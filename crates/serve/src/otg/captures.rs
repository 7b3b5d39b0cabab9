//! Captures of the frames that arrive at ports.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use wirestorm_control::base::time::{Duration, Instant};
use wirestorm_control::capture::{CaptureError, CaptureOptions, CaptureReport, capture};
use wirestorm_control::wire::capture::{LinkType, PcapWriter, PcapngWriter, Records, Resolution};
use wirestorm_otg::lower::{CaptureFormat, CaptureSettings};

use super::error::OtgError;
use crate::server::{CaptureGuard, Identity, Server};

/// Maximum number of frames of a capture. Later frames are not captured.
const PACKETS_MAX: u64 = 2_000_000;
/// Maximum bytes stored of a frame without `packet_size`.
const SNAP_LENGTH: usize = 65_535;

/// Captures by port of the configuration.
pub(super) struct Captures(Vec<Option<PortCapture>>);

/// The capture of a port, running or stopped.
struct PortCapture {
    settings: Option<CaptureSettings>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<CaptureReport, CaptureError>>>,
    /// Captured frames as pcapng, without a name in the file system.
    file: File,
    _guard: Option<CaptureGuard>,
}

type Answer<T> = Result<T, OtgError>;

impl Captures {
    pub(super) fn new(ports: usize) -> Self {
        Self((0..ports).map(|_| None).collect())
    }

    /// Starts the capture of a port; an earlier one is discarded.
    ///
    /// # Errors
    /// The frames are not available, or the file or the thread is not.
    pub(super) fn start(
        &mut self,
        server: &Arc<Server>,
        user: &Identity,
        port: usize,
        location: &str,
        settings: Option<&CaptureSettings>,
    ) -> Answer<()> {
        self.stop(port);
        let guard = server.begin_capture(user, location)?;
        let failed = |error: io::Error| OtgError::internal(format!("{location}: {error}"));
        let file = tempfile::tempfile().map_err(failed)?;
        let mut output = BufWriter::new(file.try_clone().map_err(failed)?);
        let options = CaptureOptions {
            interface: guard.interface.clone(),
            filter: String::new(),
            packets: PACKETS_MAX,
            duration: Duration::MAX,
            // Filters need the whole frame; the file is shortened later.
            snap_length: SNAP_LENGTH,
            survives_outages: true,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (opened, is_open) = std::sync::mpsc::sync_channel(1);
        let run = move || {
            let mut output = Opened { output: &mut output, opened };
            capture(&options, &mut output, &stopped, |_, _| ())
        };
        let thread = std::thread::Builder::new().name("otg-capture".to_owned()).spawn(run);
        let mut started = PortCapture {
            settings: settings.cloned(),
            stop,
            thread: Some(thread.map_err(failed)?),
            file,
            _guard: Some(guard),
        };
        // The first write comes when the interface is open: no later frame is missed.
        if is_open.recv().is_err() {
            let reason = started.join().err().unwrap_or_else(|| "it ended at once".to_owned());
            return Err(OtgError::invalid(format!("{location}: {reason}")));
        }
        self.0[port] = Some(started);
        Ok(())
    }

    /// Stops the capture of a port.
    pub(super) fn stop(&mut self, port: usize) {
        if let Some(capture) = &mut self.0[port] {
            // The file has what was captured before an error.
            let _ = capture.join();
        }
    }

    /// Stops all captures.
    pub(super) fn stop_all(&mut self) {
        (0..self.0.len()).for_each(|port| self.stop(port));
    }

    pub(super) fn is_running(&self, port: usize) -> bool {
        let capture = self.0.get(port).and_then(Option::as_ref);
        capture.is_some_and(|it| it.thread.as_ref().is_some_and(|thread| !thread.is_finished()))
    }

    /// Stops the capture of a port and returns its file.
    ///
    /// # Errors
    /// The port was not captured, or the file cannot be read.
    pub(super) fn file(&mut self, port: usize) -> Answer<Vec<u8>> {
        let Some(capture) = &mut self.0[port] else {
            return Err(OtgError::invalid("the port was not captured: start a capture first"));
        };
        capture.join().map_err(OtgError::internal)?;
        let mut bytes = Vec::new();
        let read = capture
            .file
            .rewind()
            .and_then(|()| BufReader::new(&capture.file).read_to_end(&mut bytes));
        read.map_err(|error| OtgError::internal(error.to_string()))?;
        converted(&bytes, capture.settings.as_ref()).map_err(OtgError::internal)
    }
}

impl PortCapture {
    /// Stops the thread. Returns the error that ended the capture.
    fn join(&mut self) -> Result<(), String> {
        self.stop.store(true, Ordering::Relaxed);
        self._guard = None;
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(_))) => Ok(()),
            Some(Ok(Err(error))) => Err(error.to_string()),
            Some(Err(_)) => Err("a defect in wirestorm ended the capture".to_owned()),
        }
    }
}

impl Drop for PortCapture {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// Reports the first write.
struct Opened<'a> {
    output: &'a mut BufWriter<File>,
    opened: std::sync::mpsc::SyncSender<()>,
}

impl Write for Opened<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Later reports find the channel full, or closed.
        let _ = self.opened.try_send(());
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Converts captured frames to the format of the configuration: only those that its filters accept,
/// each with its FCS, which interfaces do not deliver.
fn converted(pcapng: &[u8], settings: Option<&CaptureSettings>) -> Result<Vec<u8>, String> {
    let format = settings.map_or(CaptureFormat::Pcap, |it| it.format);
    let length_max = settings.and_then(|it| it.packet_size).map_or(usize::MAX, |it| it as usize);
    let pcap =
        PcapWriter { resolution: Resolution::Microseconds, ..PcapWriter::new(LinkType::EN10MB) };
    let writer = PcapngWriter::new();
    let mut file = Vec::with_capacity(pcapng.len());
    match format {
        CaptureFormat::Pcap => pcap.push_header(&mut file),
        CaptureFormat::Pcapng => {
            writer.push_section(&mut file);
            writer
                .push_interface(&mut file, LinkType::EN10MB, SNAP_LENGTH as u32, "")
                .map_err(|error| error.to_string())?;
        }
    }
    let fcs = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);
    for record in Records::new(pcapng) {
        let (record, data) = record.map_err(|error| error.to_string())?;
        if settings.is_some_and(|settings| !settings.accepts(data)) {
            continue;
        }
        let mut frame = data.to_vec();
        frame.extend(fcs.checksum(data).to_le_bytes());
        let original = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        frame.truncate(length_max);
        let time: Instant = record.timestamp;
        match format {
            CaptureFormat::Pcap => pcap.push_record(&mut file, time, original, &frame),
            CaptureFormat::Pcapng => writer.push_record(&mut file, 0, time, original, &frame),
        }
        .map_err(|error| error.to_string())?;
    }
    Ok(file)
}
