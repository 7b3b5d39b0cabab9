//! Reports of the sources that this machine has.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use wirestorm_base::time::Duration;
use wirestorm_clock::ptp::identity::{ClockIdentity, PortIdentity};
use wirestorm_clock::source::chrony::{REPLY_BYTES, Tracking, tracking_request};
use wirestorm_clock::source::kernel::KernelClock;
use wirestorm_clock::source::phc::{PhcOffset, PhcReading};
use wirestorm_clock::source::ptp4l::{DATA_SETS, Ptp4lStatus, request};
use wirestorm_io::adjtimex::Adjtimex;
use wirestorm_io::clock::realtime_nanos;
use wirestorm_io::local_datagram::LocalDatagram;
use wirestorm_io::phc::{self, HardwareClock};

pub use wirestorm_clock::source::{SourceKind, SourceReport, Sources};

/// Time that a daemon has for an answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// UDP port of chronyd's commands.
const CHRONY_PORT: u16 = 323;
/// Answers that may come before the one that was asked for.
const ANSWERS_MAX: usize = 16;

/// Where to look for sources.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// Socket of chronyd. If it cannot be used, chronyd is asked over UDP.
    pub chrony: PathBuf,
    /// UDP port of chronyd on this machine.
    pub chrony_port: u16,
    /// Sockets of ptp4l in the order of preference; the second one is read only.
    pub ptp4l: Vec<PathBuf>,
    /// PTP domain of ptp4l.
    pub domain: u8,
    /// Error of the hardware clocks in ns, which the kernel does not know.
    pub phc_error_ns: Option<u64>,
}

impl Default for SourceOptions {
    /// Returns the sockets of Debian's packages.
    fn default() -> Self {
        Self {
            chrony: "/run/chrony/chronyd.sock".into(),
            chrony_port: CHRONY_PORT,
            ptp4l: vec!["/var/run/ptp4l".into(), "/var/run/ptp4lro".into()],
            domain: 0,
            phc_error_ns: None,
        }
    }
}

/// Asks all sources. Takes some seconds at most, if daemons do not answer.
pub fn gather(options: &SourceOptions) -> Sources {
    let kernel = Adjtimex::read();
    let tai_offset = kernel.as_ref().map_or(0, |state| state.tai);
    let mut sources: Vec<SourceReport> = phc::devices()
        .iter()
        .map(|path| hardware(path, tai_offset, options.phc_error_ns))
        .collect();
    sources.push(ptp4l(options));
    sources.push(chrony(options));
    sources.push(match kernel {
        Ok(state) => KernelClock {
            status: state.status,
            error_max_us: state.maxerror,
            error_estimate_us: state.esterror,
            tai_offset: state.tai,
        }
        .report(),
        Err(error) => SourceReport::failed(SourceKind::Kernel, "adjtimex", error.to_string()),
    });
    Sources::choose(sources)
}

fn hardware(path: &Path, tai_offset: i32, error_ns: Option<u64>) -> SourceReport {
    let name = path.display().to_string();
    let read = || {
        let clock = HardwareClock::open(path)?;
        Ok::<_, io::Error>((clock.name(), clock.read()?))
    };
    let failed = |problem| SourceReport::failed(SourceKind::Phc, &name, problem);
    match read() {
        Ok((hardware, readings)) => {
            let readings: Vec<PhcReading> = readings
                .iter()
                .map(|it| PhcReading { before: it.before, device: it.device, after: it.after })
                .collect();
            match PhcOffset::best(&readings) {
                Some(offset) => offset.report(&name, hardware, tai_offset, error_ns),
                None => failed("the driver returned impossible readings".to_owned()),
            }
        }
        Err(error) => failed(error.to_string()),
    }
}

/// Asks chronyd over its socket, then over UDP.
fn chrony(options: &SourceOptions) -> SourceReport {
    let path = options.chrony.display().to_string();
    let local = chrony_local(&options.chrony);
    if let Ok(tracking) = local {
        return tracking.report(&path);
    }
    let address = format!("127.0.0.1:{}", options.chrony_port);
    match chrony_udp(options.chrony_port) {
        Ok(tracking) => tracking.report(&address),
        Err(udp) => {
            let local = local.map_or_else(|error| error.to_string(), |_| String::new());
            let problem = format!("chronyd does not answer: {path}: {local}; {address}: {udp}");
            SourceReport::failed(SourceKind::Chrony, &path, problem)
        }
    }
}

fn chrony_local(path: &Path) -> io::Result<Tracking> {
    let daemon = LocalDatagram::connect(path, PATIENCE)?;
    daemon.send(&tracking_request(1))?;
    read_tracking(|buffer| daemon.receive(buffer))
}

fn chrony_udp(port: u16) -> io::Result<Tracking> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_read_timeout(Some(StdDuration::from_nanos(PATIENCE.as_nanos())))?;
    socket.send(&tracking_request(1))?;
    read_tracking(|buffer| socket.recv(buffer))
}

fn read_tracking(receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<Tracking> {
    let mut buffer = [0; 2 * REPLY_BYTES];
    let length = receive(&mut buffer)?;
    Tracking::read(buffer.get(..length).unwrap_or_default(), 1).map_err(io::Error::other)
}

/// Asks ptp4l over the first socket that answers.
fn ptp4l(options: &SourceOptions) -> SourceReport {
    let mut problems = Vec::new();
    for path in &options.ptp4l {
        let name = path.display().to_string();
        match ptp4l_status(path, options.domain) {
            Ok(status) => return status.report(&name, realtime_nanos() as i64),
            Err(error) => problems.push(format!("{name}: {error}")),
        }
    }
    let name = options.ptp4l.first().map(|path| path.display().to_string()).unwrap_or_default();
    let problem = format!("ptp4l does not answer: {}", problems.join("; "));
    SourceReport::failed(SourceKind::Ptp4l, &name, problem)
}

fn ptp4l_status(path: &Path, domain: u8) -> io::Result<Ptp4lStatus> {
    let daemon = LocalDatagram::connect(path, PATIENCE)?;
    // ptp4l drops messages from its own identity, which is made of a MAC address.
    let [a, b, c, d] = std::process::id().to_be_bytes();
    let client = PortIdentity { clock: ClockIdentity([0, 0, 0, 0, a, b, c, d]), port: 1 };
    let mut status = Ptp4lStatus::default();
    let mut buffer = [0; 1_500];
    for (sequence, id) in (0..).zip(DATA_SETS) {
        daemon.send(&request(client, domain, sequence, id))?;
        let mut is_answered = false;
        for _ in 0..ANSWERS_MAX {
            let length = daemon.receive(&mut buffer)?;
            is_answered = status.take(buffer.get(..length).unwrap_or_default()) == Some(id);
            if is_answered {
                break;
            }
        }
        if !is_answered {
            return Err(io::Error::other("other answers than asked for"));
        }
    }
    Ok(status)
}
