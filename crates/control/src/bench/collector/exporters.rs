//! Emulated exporters: a fleet, a socket for each exporter, and the schedule.
//!
//! A datagram is due at the time of its first record, so its records are never early by more than a
//! datagram. A late exporter catches up, and the delay is reported.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use wirestorm_base::port::TransmitCounters;
use wirestorm_base::time::{Duration, Instant, NANOSECONDS_PER_SECOND};
use wirestorm_flowexport::exporter::{
    ExporterOptions, Fleet, FleetDatagram, FleetOptions, FlowGenerator, FlowGeneratorOptions,
};
use wirestorm_io::clock;
use wirestorm_io::udp::{DatagramBatch, UdpSender, is_queue_full};
use wirestorm_method::collector::Collector;
use wirestorm_method::trial::{CollectorOutput, StreamSent, TrialError};

use super::{CollectorBed, CollectorError, family, version};
use crate::lifecycle::{PortSnapshot, Snapshot, Supervised};

/// Time after the end of a trial in which exporters may still catch up.
const LATE_MAX: Duration = Duration::from_millis(10);
/// Longest wait for one datagram that the interface or the collector's host does not accept.
const BLOCKED_MAX: Duration = Duration::from_secs(2);
/// Interval of progress, and longest sleep.
const PROGRESS: Duration = Duration::from_millis(50);
/// Uptime of the first exporter at the start. The others boot later, a second apart.
const UPTIME: Duration = Duration::from_secs(86_400);

/// Exporters and what they have sent in the current trial.
pub(super) struct Exporters {
    fleet: Fleet,
    domains: u32,
    sockets: Vec<UdpSender>,
    batch: DatagramBatch,
    /// Datagrams of a batch, each at a multiple of the longest length.
    buffer: Vec<u8>,
    length_max: usize,
    /// Encoded datagrams of the batch that are not sent yet.
    encoded: VecDeque<FleetDatagram>,
    streams: Vec<StreamSent>,
    output: CollectorOutput,
    target: SocketAddr,
}

/// What to send.
pub(super) struct Sending {
    /// Records per second, at least 1.
    pub(super) load: u64,
    /// Records in total.
    pub(super) records: u64,
    pub(super) length: Duration,
}

/// What was sent.
pub(super) struct Sent {
    pub(super) output: CollectorOutput,
    /// Time from the start to the last departure, at least the length of the trial.
    pub(super) seconds: f64,
}

impl Exporters {
    /// Opens a socket for each exporter.
    pub(super) fn open(bed: &CollectorBed, method: &Collector) -> Result<Self, CollectorError> {
        let version = version(&method.protocol)?;
        let family = family(&method.family, version)?;
        let now = Instant::from_nanos(clock::realtime_nanos());
        let sources = addresses(bed, method.exporters)?;
        let exporter = ExporterOptions {
            version,
            agent: sources.first().map_or(Ipv4Addr::UNSPECIFIED.into(), SocketAddr::ip),
            boot: now.saturating_sub(UPTIME),
            datagram_length_max: method.datagram_length_max as usize,
            template_refresh_datagrams: method.template_refresh_datagrams,
            template_refresh_interval: method.template_refresh,
            ..ExporterOptions::default()
        };
        let options = FleetOptions {
            exporters: method.exporters,
            domains: method.domains,
            exporter: if exporter.agent.is_unspecified() {
                ExporterOptions { agent: ExporterOptions::default().agent, ..exporter }
            } else {
                exporter
            },
            boot_interval: Duration::from_secs(1),
            flows_per_stream: method.flows_per_stream,
        };
        let generator = FlowGeneratorOptions { seed: bed.seed, family, ..Default::default() };
        let fleet = Fleet::new(&options, FlowGenerator::new(generator))?;
        let mut sockets = Vec::with_capacity(sources.len());
        for (exporter, source) in (1..).zip(sources) {
            let socket = UdpSender::connect(&bed.namespace, source, bed.target);
            sockets.push(socket.map_err(|error| CollectorError::Socket { exporter, error })?);
        }
        let length_max = options.exporter.datagram_length_max;
        Ok(Self {
            fleet,
            domains: method.domains,
            sockets,
            batch: DatagramBatch::default(),
            buffer: vec![0; length_max * DatagramBatch::LENGTH_MAX],
            length_max,
            encoded: VecDeque::with_capacity(DatagramBatch::LENGTH_MAX),
            streams: Vec::new(),
            output: CollectorOutput::default(),
            target: bed.target,
        })
    }

    /// Sends the records of a trial, and publishes its progress.
    pub(super) fn send(&mut self, sending: &Sending, run: &Supervised) -> Result<Sent, TrialError> {
        self.begin();
        let start = clock::now();
        let deadline = start.saturating_add(sending.length).saturating_add(LATE_MAX);
        let mut published = start;
        let mut last = start;
        while self.output.records < sending.records {
            if run.controls.is_stopped() {
                return Err(TrialError::Stopped);
            }
            let mut now = clock::now();
            if now.saturating_since(published) >= PROGRESS {
                run.publish(self.snapshot(now.saturating_since(start), sending.length));
                published = now;
            }
            let due = start.saturating_add(sending.time_of(self.output.records));
            if due > now {
                now = clock::wait_until(due.min(now.saturating_add(PROGRESS)));
                if due > now {
                    continue;
                }
            }
            if now >= deadline {
                break;
            }
            let late_s = now.saturating_since(due).as_secs_f64();
            self.output.late_max_s = self.output.late_max_s.max(late_s);
            let due = sending.due(now.saturating_since(start));
            self.encode(due, sending.records)?;
            self.flush()?;
            last = clock::now();
        }
        run.publish(self.snapshot(last.saturating_since(start), sending.length));
        let seconds = last.saturating_since(start).as_secs_f64();
        let mut output = std::mem::take(&mut self.output);
        output.streams = std::mem::take(&mut self.streams);
        Ok(Sent { output, seconds: seconds.max(sending.length.as_secs_f64()) })
    }

    /// Starts a trial with zero counters.
    fn begin(&mut self) {
        self.output = CollectorOutput::default();
        let stream = |(number, exporter): (u32, &wirestorm_flowexport::exporter::Exporter)| {
            let of = number / self.domains.max(1);
            let socket = self.sockets.get(of as usize);
            StreamSent {
                exporter: of + 1,
                source: socket.map_or_else(String::new, |socket| socket.address().to_string()),
                domain: exporter.options().domain,
                ..StreamSent::default()
            }
        };
        self.streams = (0..).zip(self.fleet.streams()).map(stream).collect();
    }

    /// Encodes the datagrams whose first record is due, at most a batch.
    fn encode(&mut self, due: u64, records: u64) -> Result<(), TrialError> {
        let now = Instant::from_nanos(clock::realtime_nanos());
        let mut encoded = self.output.records;
        for place in self.buffer.chunks_exact_mut(self.length_max) {
            if encoded > due || encoded >= records {
                break;
            }
            let left = u32::try_from(records - encoded).unwrap_or(u32::MAX);
            let datagram = self.fleet.encode_at_most(left, now, place).ok_or_else(|| {
                TrialError::Failed("the exporters cannot encode a datagram".into())
            })?;
            encoded += u64::from(datagram.encoded.records);
            self.encoded.push_back(datagram);
        }
        Ok(())
    }

    /// Sends all encoded datagrams, so that no sequence number is left out.
    fn flush(&mut self) -> Result<(), TrialError> {
        let mut place = 0;
        let mut blocked_since = None;
        while let Some(first) = self.encoded.front() {
            let exporter = first.exporter;
            let socket = self.sockets.get(exporter as usize).ok_or_else(|| {
                TrialError::Failed(format!("exporter {} has no socket", exporter + 1))
            })?;
            let same = self.encoded.iter().take_while(|next| next.exporter == exporter);
            let places = self.buffer.chunks_exact(self.length_max).skip(place);
            let datagrams = places
                .zip(same)
                .map(|(bytes, next)| &bytes[..next.encoded.length.min(bytes.len())]);
            match socket.send(&mut self.batch, datagrams) {
                Ok(sent) => {
                    blocked_since = None;
                    place += sent;
                    for _ in 0..sent {
                        if let Some(datagram) = self.encoded.pop_front() {
                            self.count(&datagram);
                        }
                    }
                }
                // The message concerns an earlier datagram, and the next attempt sends this one.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    self.output.refused += 1;
                }
                Err(error) if is_queue_full(&error) => {
                    let now = clock::now();
                    let since = *blocked_since.get_or_insert(now);
                    if now.saturating_since(since) > BLOCKED_MAX {
                        return Err(self.failed(socket, &error));
                    }
                }
                Err(error) => return Err(self.failed(socket, &error)),
            }
        }
        Ok(())
    }

    fn failed(&self, socket: &UdpSender, error: &std::io::Error) -> TrialError {
        let (source, target) = (socket.address(), self.target);
        TrialError::Failed(format!(
            "cannot send from {source} to {target}: {error}; check the route and the firewall"
        ))
    }

    /// Counts a datagram that was sent.
    fn count(&mut self, datagram: &FleetDatagram) {
        let FleetDatagram { exporter, domain, encoded } = datagram;
        let (records, bytes) = (u64::from(encoded.records), encoded.length as u64);
        self.output.records += records;
        self.output.datagrams += 1;
        self.output.bytes += bytes;
        let number = exporter * self.domains + domain;
        if let Some(stream) = self.streams.get_mut(number as usize) {
            stream.records += records;
            stream.datagrams += 1;
            stream.bytes += bytes;
            stream.template_datagrams += u64::from(encoded.has_templates);
            stream.first_sequence.get_or_insert(encoded.sequence);
            stream.last_sequence = Some(encoded.sequence);
        }
    }

    /// Returns the progress. A frame is a datagram, without headers.
    fn snapshot(&self, elapsed: Duration, length: Duration) -> Snapshot {
        let transmitted = TransmitCounters {
            sent: self.output.datagrams,
            sent_bytes: self.output.bytes,
            ..TransmitCounters::default()
        };
        let port = PortSnapshot {
            name: "exporters".into(),
            interface: self.target.to_string(),
            transmitted,
            ..PortSnapshot::default()
        };
        let fraction = elapsed.as_secs_f64() / length.as_secs_f64().max(1e-9);
        Snapshot {
            elapsed,
            fraction: Some(fraction.min(1.0)),
            transmitted,
            ports: vec![port],
            ..Snapshot::default()
        }
    }
}

impl Sending {
    /// Returns the time at which a record is due, from the start.
    fn time_of(&self, record: u64) -> Duration {
        let nanoseconds =
            u128::from(record) * u128::from(NANOSECONDS_PER_SECOND) / u128::from(self.load.max(1));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// Returns the number of the last record that is due after a time, from 0.
    fn due(&self, elapsed: Duration) -> u64 {
        let records = u128::from(elapsed.as_nanos()) * u128::from(self.load)
            / u128::from(NANOSECONDS_PER_SECOND);
        u64::try_from(records).unwrap_or(u64::MAX)
    }
}

/// Returns the source address and port of each exporter.
fn addresses(bed: &CollectorBed, exporters: u32) -> Result<Vec<SocketAddr>, CollectorError> {
    let target = bed.target;
    let wrong = bed.sources.iter().find(|source| source.is_ipv6() != target.is_ipv6());
    if let Some(&source_address) = wrong {
        return Err(CollectorError::IpVersion { source_address, target });
    }
    let unspecified = match target {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let count = bed.sources.len().max(1);
    let address = |exporter: u32| {
        let number = exporter as usize;
        let address = bed.sources.get(number % count).copied().unwrap_or(unspecified);
        let port = match bed.source_port {
            0 => 0,
            first => {
                let port = usize::from(first) + number / count;
                let wrong = |_| CollectorError::Ports { first, exporters };
                u16::try_from(port).map_err(wrong)?
            }
        };
        Ok(SocketAddr::new(address, port))
    };
    (0..exporters).map(address).collect()
}
