//! tcpdump on an interface: a capture that is independent of Wirestorm's code.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Namespace, NetError};
use crate::Scratch;
use crate::pcap::{self, Packet};

/// Timeout for the start of tcpdump, and for its last frames.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which tcpdump's counters are read.
const POLL: Duration = Duration::from_millis(10);

/// Options of a capture.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Size of the kernel's buffer in KiB. Frames wait there until tcpdump writes them; the kernel
    /// drops further frames if it is full.
    pub buffer_kib: u32,
    /// Whether the kernel delivers frames one by one. Then a capture ends without delay, but each
    /// frame takes at least 2 KiB of the buffer. Otherwise the kernel packs frames tightly, and the
    /// end may wait a second for the last ones.
    pub immediate: bool,
    /// Whether to capture frames that leave the interface too.
    pub outgoing: bool,
    /// Filter expression of tcpdump; empty for all frames.
    pub filter: String,
}

impl Default for CaptureOptions {
    /// Immediate mode, with room for a burst of about 30,000 frames of 1500 bytes.
    fn default() -> Self {
        Self { buffer_kib: 64 << 10, immediate: true, outgoing: false, filter: String::new() }
    }
}

impl CaptureOptions {
    /// Returns options for bursts of small frames faster than tcpdump writes: room for over a
    /// million.
    pub fn bulk() -> Self {
        Self { buffer_kib: 256 << 10, immediate: false, ..Self::default() }
    }
}

/// A running tcpdump. Dropping it kills the process.
#[derive(Debug)]
pub struct Capture {
    tcpdump: Tcpdump,
    scratch: Scratch,
    /// Namespace and interface name.
    link: (Namespace, String),
    /// Frames that the interface had sent before the capture started.
    sent_before: u64,
}

#[derive(Debug)]
struct Tcpdump {
    child: Child,
    lines: Receiver<String>,
}

/// Result of a capture.
#[derive(Debug)]
pub struct Captured {
    /// Frames in order of arrival, with the kernel's nanosecond time stamps.
    pub packets: Vec<Packet>,
    /// Frames that the kernel dropped. A test that compares frames requires zero.
    pub dropped: u64,
    scratch: Scratch,
}

impl Captured {
    /// Path of the capture file, which lives as long as this value.
    pub fn path(&self) -> PathBuf {
        capture_file(&self.scratch)
    }

    /// Iterates over the frames without time stamps.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.packets.iter().map(|packet| packet.frame.as_slice())
    }
}

/// Counters that tcpdump prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    captured: u64,
    received: u64,
    dropped: u64,
}

impl Capture {
    pub(super) fn start(
        namespace: &Namespace,
        interface: &str,
        options: &CaptureOptions,
    ) -> Result<Self, NetError> {
        let scratch = Scratch::new()?;
        let mut command = namespace.command("tcpdump");
        command.args(["-n", "-i", interface, "-s", "0", "-j", "host"]);
        command.args(["--time-stamp-precision=nano", "-B", &options.buffer_kib.to_string()]);
        // tcpdump stays root, since only root can access the scratch folder.
        command.args(["-Z", "root", "-w"]).arg(capture_file(&scratch));
        if options.immediate {
            // With one write for each frame, the file is complete at any moment.
            command.args(["--immediate-mode", "-U"]);
        }
        // Use -Q instead of "inbound" in the filter: libpcap itself filters the first frames, and
        // does not know their direction.
        if !options.outgoing {
            command.args(["-Q", "in"]);
        }
        if !options.filter.is_empty() {
            command.arg(&options.filter);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let start = |source| NetError::Start { program: "ip netns exec tcpdump".into(), source };
        let mut child = command.spawn().map_err(start)?;
        let (sender, receiver) = mpsc::channel();
        let stderr = child.stderr.take();
        std::thread::spawn(move || {
            let lines = stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines());
            // Ends when tcpdump exits or the receiver is dropped.
            let _ended = lines.map_while(Result::ok).try_for_each(|line| sender.send(line));
        });
        let tcpdump = Tcpdump { child, lines: receiver };
        tcpdump
            .wait_for("tcpdump being ready", |line| line.contains("listening on").then_some(()))?;
        let link = (namespace.clone(), interface.to_owned());
        let sent_before = sent_packets(&link)?;
        Ok(Self { tcpdump, scratch, link, sent_before })
    }

    /// Ends the capture and reads the file. First waits until tcpdump has written all frames that
    /// the kernel delivered, and at least `expected` frames, for up to 10 s.
    ///
    /// The sender must have finished. Fewer frames than expected are not an error here, since the
    /// test can explain better which ones are missing.
    ///
    /// # Errors
    /// Fails if tcpdump has died or its file cannot be read.
    pub fn finish(self, expected: u64) -> Result<Captured, NetError> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let counts = self.tcpdump.read_counts()?;
            // The kernel's count includes frames that the interface sent, even if they are not
            // captured. A removed interface sends none.
            let sent = sent_packets(&self.link).unwrap_or(0).saturating_sub(self.sent_before);
            let delivered = counts.received.saturating_sub(sent);
            if counts.captured + counts.dropped >= expected.max(delivered)
                || Instant::now() > deadline
            {
                return self.read(counts.dropped);
            }
            std::thread::sleep(POLL);
        }
    }

    fn read(mut self, dropped: u64) -> Result<Captured, NetError> {
        self.tcpdump.signal(Signal::INT);
        self.tcpdump.child.wait()?;
        let packets = pcap::read(&capture_file(&self.scratch))?;
        Ok(Captured { packets, dropped, scratch: self.scratch })
    }
}

impl Tcpdump {
    /// Makes tcpdump print its counters.
    fn read_counts(&self) -> Result<Counts, NetError> {
        self.signal(Signal::USR1);
        self.wait_for("tcpdump printing its counters", parse_counts)
    }

    /// Waits for a line of tcpdump's output that `accept` accepts.
    fn wait_for<T>(&self, what: &str, accept: impl Fn(&str) -> Option<T>) -> Result<T, NetError> {
        let deadline = Instant::now() + TIMEOUT;
        let mut last_line = String::from("nothing");
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let seconds = TIMEOUT.as_secs();
                return Err(NetError::Timeout {
                    what: what.to_owned(),
                    seconds,
                    last_output: last_line,
                });
            };
            if let Some(found) = accept(&line) {
                return Ok(found);
            }
            last_line = line;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // If tcpdump has exited, the following wait times out.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn sent_packets((namespace, interface): &(Namespace, String)) -> Result<u64, NetError> {
    namespace.counters(interface).map(|counters| counters.tx_packets)
}

fn capture_file(scratch: &Scratch) -> PathBuf {
    scratch.file("capture.pcap")
}

/// Parses `tcpdump: 5 packets captured, 6 packets received by filter, 1 packet dropped by kernel`.
fn parse_counts(line: &str) -> Option<Counts> {
    let number = |ending: &str| {
        line.split([',', ':']).map(str::trim).find_map(|part| {
            let (number, rest) = part.split_once(' ')?;
            rest.ends_with(ending).then(|| number.parse().ok())?
        })
    };
    Some(Counts {
        captured: number("captured")?,
        received: number("received by filter")?,
        dropped: number("dropped by kernel")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcpdump_counters_are_parsed() {
        let line = "tcpdump: 1 packet captured, 6 packets received by filter, \
                    5 packets dropped by kernel";
        assert_eq!(parse_counts(line), Some(Counts { captured: 1, received: 6, dropped: 5 }));
        assert_eq!(parse_counts("tcpdump: listening on veth1"), None);
    }
}
