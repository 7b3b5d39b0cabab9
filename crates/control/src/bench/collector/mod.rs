//! Trials of a collector: emulated exporters send, and a command counts what the collector stores.
//!
//! ```text
//! fleet ── datagrams ──> a socket for each exporter ──> collector ── stored records ──┐
//!                                                        --received-command <─────────┘
//! ```
//!
//! Exporters keep their sequence numbers, templates and sockets from the first trial to the last.

mod exporters;
mod stored;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use wirestorm_base::time::Duration;
use wirestorm_flowexport::Version;
use wirestorm_flowexport::exporter::{ExporterError, Family};
use wirestorm_io::namespace::Namespace;
use wirestorm_io::udp::UdpError;
use wirestorm_method::collector::Collector;
use wirestorm_method::trial::{
    OfferOutput, StepOutput, Trial, TrialError, TrialInput, TrialOutput,
};

use self::exporters::{Exporters, Sending, Sent};
use self::stored::StoredRecords;
use super::local::{Observer, Phase};
use super::session::FullTrial;
use super::stop::StopSignal;
use crate::host::Host;
use crate::lifecycle::{Delivery, RunError, RunErrorKind, RunHandle, RunState, Supervised};
use crate::result::{Kind, RunResult};

/// Test bed of a collector.
#[derive(Clone, Debug)]
pub struct CollectorBed {
    /// Address of the collector.
    pub target: SocketAddr,
    /// Namespace of the sockets.
    pub namespace: Namespace,
    /// Source addresses, which the exporters use round robin; empty for that of the route.
    pub sources: Vec<IpAddr>,
    /// First source port: each further exporter of an address has the next one. 0 for free ports.
    pub source_port: u16,
    /// Seed of the flows.
    pub seed: u64,
    /// Shell command that prints the number of records that the collector has stored so far.
    pub received_command: Option<String>,
    /// Time without further stored records after which a trial ends.
    pub quiet: Duration,
    /// Wait after each trial.
    pub settle: Duration,
}

/// Error of emulated exporters.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// A name of the parameters is unknown.
    #[error("{what} {found:?}: expected {expected}")]
    Name {
        /// Parameter.
        what: &'static str,
        /// Its value.
        found: String,
        /// Values that it may have.
        expected: &'static str,
    },
    /// The settings of the exporters do not fit together.
    #[error(transparent)]
    Exporter(#[from] ExporterError),
    /// A source port would exceed 65535.
    #[error(
        "--source-port {first}: {exporters} exporters need ports above 65535; use a smaller port \
         or more --source addresses"
    )]
    Ports {
        /// First port.
        first: u16,
        /// Number of exporters.
        exporters: u32,
    },
    /// A source and the target have different IP versions.
    #[error("--source {source_address}: expected the IP version of the target {target}")]
    IpVersion {
        /// Source.
        source_address: IpAddr,
        /// Target.
        target: SocketAddr,
    },
    /// A socket did not open.
    #[error("exporter {exporter}: {error}")]
    Socket {
        /// Number of the exporter, from 1.
        exporter: u32,
        /// Reason.
        error: UdpError,
    },
}

/// Executes trials of a collector.
pub struct CollectorTrial<O> {
    bed: CollectorBed,
    exporters: Exporters,
    stored: Option<StoredRecords>,
    host: Host,
    stop: StopSignal,
    observer: O,
}

impl<O: Observer> CollectorTrial<O> {
    /// Opens the sockets of the exporters that `method` describes.
    ///
    /// # Errors
    /// See [`CollectorError`].
    pub fn new(
        bed: CollectorBed,
        method: &Collector,
        host: Host,
        stop: StopSignal,
        observer: O,
    ) -> Result<Self, CollectorError> {
        let exporters = Exporters::open(&bed, method)?;
        let stored = bed.received_command.clone();
        let stored = stored.map(|command| StoredRecords::new(command, bed.quiet));
        Ok(Self { bed, exporters, stored, host, stop, observer })
    }

    /// Sends the records of a trial on a thread, and shows its progress.
    fn send(&mut self, load: u64, records: u64, length: Duration) -> Result<Sent, TrialError> {
        let run =
            self.host.registry().add(|id| Supervised::new(id, Kind::Streams, String::new(), 0));
        let snapshots = run.subscribe(Delivery::Latest);
        let handle = RunHandle::new(Arc::clone(&run));
        self.observer.phase(Phase::Traffic, Some(&handle));
        // A stop before this point had no handle to stop.
        if self.stop.is_stopped() {
            handle.stop();
        }
        let Self { exporters, observer, .. } = self;
        let sending = Sending { load, records, length };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("exporters".into());
            let sender = thread.spawn_scoped(scope, || {
                run.set_state(RunState::Running);
                let sent = exporters.send(&sending, &run);
                // Ends the subscription. The trial has no document of its own.
                run.end(match &sent {
                    Ok(_) => Ok(Arc::new(RunResult::default())),
                    Err(TrialError::Stopped) => {
                        Err(Arc::new(RunError::new(RunErrorKind::Abandoned, "stopped")))
                    }
                    Err(TrialError::Failed(error)) => {
                        Err(Arc::new(RunError::new(RunErrorKind::Input, error.clone())))
                    }
                });
                sent
            });
            let sender = sender
                .map_err(|error| TrialError::Failed(format!("cannot start a thread: {error}")))?;
            while let Some(snapshot) = snapshots.next() {
                observer.progress(Phase::Traffic, &snapshot);
            }
            let crashed = |_| TrialError::Failed("the thread of the exporters crashed".into());
            sender.join().map_err(crashed)?
        })
    }

    fn execute(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let [offer] = &*input.offers else {
            return Err(TrialError::Failed("a collector test has one kind of traffic".into()));
        };
        let [step] = &*offer.steps else {
            return Err(TrialError::Failed("a collector test has one step".into()));
        };
        let before = self.stored.as_ref().map(|stored| stored.count(&self.stop)).transpose()?;
        let (records, length) = (step.units(), step.duration());
        let Sent { mut output, seconds } = self.send(step.load, records, length)?;
        if let (Some(stored), Some(before)) = (&self.stored, before) {
            self.observer.phase(Phase::Collecting, None);
            output.stored = Some(stored.wait(before, output.records, &self.stop)?);
        }
        let output_of_step = StepOutput {
            intended: records,
            offered: output.records,
            // Without a count nothing is known to be lost.
            received: output.stored.unwrap_or(output.records).min(output.records),
            seconds,
            ..StepOutput::default()
        };
        let offers = vec![OfferOutput { steps: vec![output_of_step], ..OfferOutput::default() }];
        Ok(TrialOutput { offers, collector: Some(output), ..TrialOutput::default() })
    }
}

impl<O: Observer> Trial for CollectorTrial<O> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let started = std::time::Instant::now();
        let mut output = self.execute(input)?;
        if self.bed.settle > Duration::ZERO {
            self.observer.phase(Phase::Settling, None);
            if self.stop.wait(self.bed.settle) {
                return Err(TrialError::Stopped);
            }
        }
        output.elapsed_s = started.elapsed().as_secs_f64();
        Ok(output)
    }
}

impl<O: Observer> FullTrial for CollectorTrial<O> {
    fn take_result(&mut self) -> Option<Arc<RunResult>> {
        None
    }
}

/// Returns the version of a protocol name.
fn version(name: &str) -> Result<Version, CollectorError> {
    Ok(match name {
        "v5" => Version::NetflowV5,
        "v9" => Version::NetflowV9,
        "ipfix" => Version::Ipfix,
        "sflow" => Version::SflowV5,
        _ => {
            let expected = "v5, v9, ipfix or sflow";
            return Err(CollectorError::Name { what: "--protocol", found: name.into(), expected });
        }
    })
}

/// Returns the IP versions of a name.
fn family(name: &str, version: Version) -> Result<Family, CollectorError> {
    let wrong = |expected| CollectorError::Name { what: "--family", found: name.into(), expected };
    match name {
        "ipv4" => Ok(Family::Ipv4),
        _ if version == Version::NetflowV5 => Err(wrong("ipv4, as NetFlow v5 has no IPv6")),
        "ipv6" => Ok(Family::Ipv6),
        "both" => Ok(Family::Both),
        _ => Err(wrong("ipv4, ipv6 or both")),
    }
}
