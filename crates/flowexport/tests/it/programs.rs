//! Programs that export or collect flows.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use wirestorm_flowexport::FlowRecord;
use wirestorm_testkit::require;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

/// Longest wait for a program.
const PATIENCE: Duration = Duration::from_secs(30);
/// Wait for a datagram before looking whether the program has ended.
const POLL: Duration = Duration::from_millis(50);

/// A program that ends with its test.
pub(crate) struct Program {
    /// Process number, which is also that of its group.
    id: u32,
    /// Gets a message at its end.
    ended: mpsc::Receiver<()>,
    has_ended: bool,
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.has_ended() {
            // Its plugins are in its process group.
            let group = format!("-{}", self.id);
            drop(Command::new("kill").args(["-KILL", "--", &group]).status());
            let _ = self.ended.recv_timeout(PATIENCE);
        }
    }
}

pub(crate) fn start(command: &mut Command) -> Program {
    spawned(command.stderr(Stdio::null())).0
}

/// Starts a program. Returns it with its standard error, if that is a pipe.
fn spawned(command: &mut Command) -> (Program, Option<ChildStderr>) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (id, errors) = (child.id(), child.stderr.take());
    let (end, ended) = mpsc::channel();
    std::thread::spawn(move || {
        // The test may have ended before the program.
        drop(child.wait());
        let _ = end.send(());
    });
    (Program { id, ended, has_ended: false }, errors)
}

/// Returns a command that also finds programs for administrators.
pub(crate) fn command(tool: &str) -> Command {
    Command::new(require::find_tool(tool).expect("the test has required it"))
}

impl Program {
    fn has_ended(&mut self) -> bool {
        self.has_ended |= self.ended.try_recv().is_ok();
        self.has_ended
    }

    /// Sends SIGINT to the program.
    fn interrupt(&self) {
        let pid = self.id.to_string();
        let status = Command::new("kill").args(["-INT", &pid]).status().expect("kill");
        assert!(status.success());
    }

    fn wait(mut self) {
        if !self.has_ended() {
            self.ended.recv_timeout(PATIENCE).expect("the program ends");
            self.has_ended = true;
        }
    }
}

/// A UDP socket that receives what a program exports.
pub(crate) struct Receiver {
    socket: UdpSocket,
    pub(crate) port: u16,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(POLL)).expect("a timeout");
        let port = socket.local_addr().expect("an address").port();
        Self { socket, port }
    }

    /// Passes datagrams to `receive` until the program has ended and no datagram is left.
    pub(crate) fn drain(&self, program: Program, receive: impl FnMut(SocketAddr, &[u8])) {
        self.drain_until(program, || false, receive);
    }

    /// Same as [`Self::drain`], and interrupts the program once `is_done` is true.
    pub(crate) fn drain_until(
        &self,
        mut program: Program,
        is_done: impl Fn() -> bool,
        mut receive: impl FnMut(SocketAddr, &[u8]),
    ) {
        let mut is_interrupted = false;
        let deadline = Instant::now() + PATIENCE;
        let mut buffer = [0; 65_536];
        loop {
            let has_ended = program.has_ended();
            if !has_ended && !is_interrupted && is_done() {
                program.interrupt();
                is_interrupted = true;
            }
            loop {
                match self.socket.recv_from(&mut buffer) {
                    Ok((length, from)) => receive(from, &buffer[..length]),
                    Err(error)
                        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                    {
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            if has_ended {
                return;
            }
            assert!(Instant::now() < deadline, "the exporter does not end");
        }
    }
}

/// nfdump's collector, which writes records to a folder.
pub(crate) struct Nfcapd {
    program: Program,
    folder: PathBuf,
    socket: UdpSocket,
    port: u16,
}

impl Nfcapd {
    pub(crate) fn start(folder: &Path) -> Self {
        let free = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        std::fs::create_dir(folder).expect("a folder");
        // One file for all: it rotates at the end only.
        let mut nfcapd = command("nfcapd");
        nfcapd.args(["-b", "127.0.0.1", "-t", "86400", "-p", &port.to_string(), "-w"]).arg(folder);
        let (program, errors) = spawned(nfcapd.stderr(Stdio::piped()));
        let (started, starts) = mpsc::channel();
        let errors = BufReader::new(errors.expect("a pipe"));
        std::thread::spawn(move || {
            // Reads to the end, so that nfcapd never waits for space in the pipe.
            for line in errors.lines().map_while(Result::ok) {
                if line.starts_with("Startup") {
                    let _ = started.send(());
                }
            }
        });
        starts.recv_timeout(PATIENCE).expect("nfcapd starts");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        Self { program, folder: folder.to_owned(), socket, port }
    }

    /// Sends a datagram, and waits until nfcapd has taken it from its socket.
    pub(crate) fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, ("127.0.0.1", self.port)).expect("nfcapd listens");
        let deadline = Instant::now() + PATIENCE;
        while queued(self.port) != Some(0) {
            assert!(Instant::now() < deadline, "nfcapd does not receive");
            std::thread::yield_now();
        }
    }

    /// Ends the collector and returns its records in the order of arrival.
    pub(crate) fn finish(self) -> Vec<Stored> {
        self.program.interrupt();
        self.program.wait();
        stored(&self.folder)
    }
}

/// Returns the records of the only file that nfcapd or nfpcapd wrote to a folder.
pub(crate) fn stored(folder: &Path) -> Vec<Stored> {
    let file = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|name| name.to_string_lossy().len() == 12))
        .expect("a file of records");
    let output = Command::new("nfdump")
        .env("TZ", "UTC")
        .args(["-q", "-o", "raw", "-r"])
        .arg(file)
        .output()
        .expect("nfdump");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.split("Flow Record:").skip(1).map(Stored::parse).collect()
}

/// Returns the bytes that wait in a UDP socket on 127.0.0.1; `None` if there is none.
fn queued(port: u16) -> Option<u64> {
    let sockets = std::fs::read_to_string("/proc/net/udp").expect("/proc");
    let address = format!("0100007F:{port:04X}");
    let line = sockets.lines().find(|line| line.split_whitespace().nth(1) == Some(&address))?;
    let (_, received) = line.split_whitespace().nth(4)?.split_once(':')?;
    u64::from_str_radix(received, 16).ok()
}

/// A flow record, as nfdump prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) key: FlowKey,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
    pub(crate) input_interface: u32,
    pub(crate) output_interface: u32,
    pub(crate) tcp_flags: u16,
    pub(crate) type_of_service: u8,
}

impl Stored {
    fn parse(text: &str) -> Self {
        let field = |name: &str| -> Option<&str> {
            let line = text.lines().find_map(|line| {
                let (key, value) = line.split_once('=')?;
                (key.trim() == name).then_some(value)
            })?;
            line.split_whitespace().next()
        };
        let number = |name: &str| -> u64 {
            let word = field(name).unwrap_or("0");
            match word.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => word.parse(),
            }
            .unwrap_or_else(|error| panic!("{name}: {word}: {error}"))
        };
        let protocol = number("proto") as u8;
        let address = |name| field(name).expect("an address").parse().expect("an address");
        let key = match (address("src addr"), address("dst addr")) {
            (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) => {
                FlowKey::ipv4(source.octets(), destination.octets(), protocol)
            }
            (std::net::IpAddr::V6(source), std::net::IpAddr::V6(destination)) => {
                FlowKey::ipv6(source.octets(), destination.octets(), protocol)
            }
            other => panic!("{other:?}"),
        };
        let ports = match protocol {
            protocol::ICMP | protocol::ICMPV6 => {
                // "ICMP = 8.0 type.code"
                let both = field("ICMP").expect("type and code");
                let (kind, code) = both.split_once('.').expect("type and code");
                (kind.parse().expect("a type"), code.parse().expect("a code"))
            }
            _ => (number("src port") as u16, number("dst port") as u16),
        };
        Self {
            key: key.with_ports(ports.0, ports.1),
            packets: number("in packets"),
            bytes: number("in bytes"),
            first_ms: number("first"),
            last_ms: number("last"),
            input_interface: number("input") as u32,
            output_interface: number("output") as u32,
            tcp_flags: number("tcp flags") as u16,
            type_of_service: number("src tos") as u8,
        }
    }

    /// Returns what nfdump should print for a record.
    pub(crate) fn of(flow: &FlowRecord) -> Self {
        let milliseconds = |time: Option<wirestorm_base::time::Instant>| {
            time.unwrap_or_default().as_nanos() / 1_000_000
        };
        Self {
            key: flow.key.without_vlan(),
            packets: flow.packets,
            bytes: flow.bytes,
            first_ms: milliseconds(flow.first),
            last_ms: milliseconds(flow.last),
            input_interface: flow.input_interface,
            output_interface: flow.output_interface,
            tcp_flags: flow.tcp_flags,
            type_of_service: flow.type_of_service,
        }
    }
}
