//! tcpdump at an interface: a capture that no code of Wirestorm had a hand in.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Namespace, NetError};
use crate::Scratch;
use crate::pcap::{self, Packet};

/// How long tcpdump may take to be ready, and to write what it has.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often tcpdump is asked whether it has everything.
const POLL: Duration = Duration::from_millis(10);

/// How a capture is taken.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// The kernel's buffer in KiB. What comes faster than tcpdump writes waits there, and is
    /// dropped when it is full.
    pub buffer_kib: u32,
    /// Whether frames are handed over one by one. Then a capture ends without delay, but each
    /// frame takes 2 KiB or more of the buffer; otherwise frames are packed tightly, and the end
    /// may wait a second for the last of them.
    pub immediate: bool,
    /// Whether frames that leave the interface are captured too.
    pub outgoing: bool,
    /// tcpdump's filter expression; empty for everything.
    pub filter: String,
}

impl Default for CaptureOptions {
    /// Immediate, with room for a burst of some 30,000 frames of ordinary MTU.
    fn default() -> Self {
        Self { buffer_kib: 64 << 10, immediate: true, outgoing: false, filter: String::new() }
    }
}

impl CaptureOptions {
    /// For bursts of small frames faster than tcpdump can write: room for over a million.
    pub fn bulk() -> Self {
        Self { buffer_kib: 256 << 10, immediate: false, ..Self::default() }
    }
}

/// A running tcpdump. Dropping it ends it.
#[derive(Debug)]
pub struct Capture {
    tcpdump: Tcpdump,
    scratch: Scratch,
    /// The namespace and the interface.
    link: (Namespace, String),
    /// What the interface had sent when the capture began.
    sent_before: u64,
}

#[derive(Debug)]
struct Tcpdump {
    child: Child,
    said: Receiver<String>,
}

/// What tcpdump has written.
#[derive(Debug)]
pub struct Captured {
    /// Frames in order of arrival, with the kernel's nanosecond time stamps.
    pub packets: Vec<Packet>,
    /// Frames the kernel had no room for. A test that compares frames wants this to be zero.
    pub dropped: u64,
    scratch: Scratch,
}

impl Captured {
    /// The capture file; it lives as long as this value.
    pub fn path(&self) -> PathBuf {
        capture_file(&self.scratch)
    }

    /// The frames alone.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.packets.iter().map(|packet| packet.frame.as_slice())
    }
}

/// What tcpdump has counted.
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
        // As root throughout: the scratch folder is root's.
        command.args(["-Z", "root", "-w"]).arg(capture_file(&scratch));
        if options.immediate {
            // Together with a write for each frame the file is complete at any moment.
            command.args(["--immediate-mode", "-U"]);
        }
        // As an option, not as "inbound" in the filter: libpcap applies filters by itself to
        // the first frames, and knows nothing of directions there.
        if !options.outgoing {
            command.args(["-Q", "in"]);
        }
        if !options.filter.is_empty() {
            command.arg(&options.filter);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let start = |source| NetError::Start { program: "ip netns exec tcpdump".into(), source };
        let mut child = command.spawn().map_err(start)?;
        let (say, said) = mpsc::channel();
        let stderr = child.stderr.take();
        std::thread::spawn(move || {
            let lines = stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines());
            // Ends with tcpdump, or when nobody listens any more.
            let _ended = lines.map_while(Result::ok).try_for_each(|line| say.send(line));
        });
        let tcpdump = Tcpdump { child, said };
        tcpdump
            .wait_for("tcpdump being ready", |line| line.contains("listening on").then_some(()))?;
        let link = (namespace.clone(), interface.to_owned());
        let sent_before = counted_sent(&link)?;
        Ok(Self { tcpdump, scratch, link, sent_before })
    }

    /// Ends the capture once tcpdump has written every frame that the kernel has given it, and
    /// `expected` frames at least or 10 s of waiting for them; reads the file.
    ///
    /// The sender must be done. Fewer frames than expected is no error here: the test can say
    /// better what is missing.
    ///
    /// # Errors
    /// When tcpdump has died or its file cannot be read.
    pub fn finish(self, expected: u64) -> Result<Captured, NetError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let counts = self.tcpdump.ask()?;
            // The kernel's count has what the interface sent in it, wanted or not; an interface
            // that is gone sends nothing.
            let sent = counted_sent(&self.link).unwrap_or(0).saturating_sub(self.sent_before);
            let given = counts.received.saturating_sub(sent);
            if counts.captured + counts.dropped >= expected.max(given) || Instant::now() > deadline
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
    /// Has tcpdump tell its counts.
    fn ask(&self) -> Result<Counts, NetError> {
        self.signal(Signal::USR1);
        self.wait_for("tcpdump telling its counts", parse_counts)
    }

    /// Waits for a line of tcpdump's that `wanted` takes.
    fn wait_for<T>(&self, what: &str, wanted: impl Fn(&str) -> Option<T>) -> Result<T, NetError> {
        let deadline = Instant::now() + PATIENCE;
        let mut heard = String::from("nothing");
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.said.recv_timeout(left) else {
                let seconds = PATIENCE.as_secs();
                return Err(NetError::Timeout { what: what.to_owned(), seconds, heard });
            };
            if let Some(found) = wanted(&line) {
                return Ok(found);
            }
            heard = line;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // One that has ended is found out by its silence.
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

fn counted_sent((namespace, interface): &(Namespace, String)) -> Result<u64, NetError> {
    namespace.counters(interface).map(|counters| counters.tx_packets)
}

fn capture_file(scratch: &Scratch) -> PathBuf {
    scratch.file("capture.pcap")
}

/// Reads `tcpdump: 5 packets captured, 6 packets received by filter, 1 packet dropped by kernel`.
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
    fn tcpdumps_counts_are_understood() {
        let line = "tcpdump: 1 packet captured, 6 packets received by filter, \
                    5 packets dropped by kernel";
        assert_eq!(parse_counts(line), Some(Counts { captured: 1, received: 6, dropped: 5 }));
        assert_eq!(parse_counts("tcpdump: listening on veth1"), None);
    }
}
