//! Trials of a flow exporter: traffic on an interface, and a collector of its records.
//!
//! ```text
//! tx ── flows ──> device ──────────> rx (if it forwards)
//!                    └─ NetFlow, IPFIX, sFlow over UDP ──> collector thread ──> table of flows
//! ```
//!
//! The collector runs from the first trial to the last, because exporters send their templates
//! rarely. After the traffic of a trial it waits until the records of all flows have arrived, or none
//! arrives any more (RFC 6645 section 5.5).

mod collector;
mod differences;
mod sent;
mod traffic;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::time::Duration;
use wirestorm_flowexport::accuracy::{Accuracy, ExpectedField, Field, FieldAccuracy};
use wirestorm_flowexport::device_log;
use wirestorm_io::namespace::Namespace;
use wirestorm_io::udp::UdpError;
use wirestorm_method::trial::{
    ExportOutput, FieldOutput, FlowAmount, OfferOutput, StepOutput, Trial, TrialError, TrialInput,
    TrialOutput,
};

use self::collector::{CollectorThread, Fields, Trialled};
use self::differences::DIFFERENCES_MAX;
use self::sent::SentFlows;
use self::traffic::{Traffic, filler_key, filler_plan};
use super::local::{Observer, Phase, run_plan};
use super::session::FullTrial;
use super::stop::StopSignal;
use super::test_bed::InterfaceAddress;
use crate::backend::Backend;
use crate::host::Host;
use crate::result::RunResult;

/// Test bed of a flow exporter.
#[derive(Clone, Debug)]
pub struct FlowExporterBed {
    /// Interface that sends to the device.
    pub tx: String,
    /// Interface that receives what the device forwards; `None` for a probe.
    pub rx: Option<String>,
    /// Destination MAC address of generated frames; `None` for the interface `rx`, or a broadcast
    /// without it.
    pub destination_mac: Option<[u8; 6]>,
    /// Address of the sending interface, and the router, for a device that routes.
    pub address: Option<InterfaceAddress>,
    /// First source address of generated flows; each flow has the next one.
    pub first_source: Ipv4Addr,
    /// Destination address of generated flows.
    pub destination: Ipv4Addr,
    /// Number of source addresses; further packets repeat them.
    pub sources: u32,
    /// Capture to replay with new addresses in each pass; `None` for generated flows.
    pub capture: Option<PathBuf>,
    /// Address of the collector.
    pub collector: SocketAddr,
    /// Namespace of the collector.
    pub collector_namespace: Namespace,
    /// Idle Timeout of the device.
    pub idle_timeout: Duration,
    /// Time without export packets after which the records of a trial are complete.
    pub quiet: Duration,
    /// Largest number of flows of a trial whose keys are compared.
    pub keys_max: usize,
    /// Frames of one further flow after the traffic of a trial; 0: none. They push the last packets
    /// out of the buffers of exporters that read from libpcap.
    pub filler_frames: u64,
    /// Log file of the device.
    pub device_log: Option<PathBuf>,
    /// Wait after each trial.
    pub settle: Duration,
    /// Backend that sends frames.
    pub backend: Backend,
    /// Treatment of late frames.
    pub policy: DeparturePolicy,
    /// Whether to send on an interface that carries the default route.
    pub force_interface: bool,
}

/// Error of a test bed with a collector.
#[derive(Debug, thiserror::Error)]
pub enum FlowExporterError {
    /// The socket of the collector did not open.
    #[error("--collector {0}")]
    Collector(#[from] UdpError),
    /// The thread of the collector did not start.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The capture has no flows, or cannot be read.
    #[error("{0}")]
    Capture(String),
}

/// Executes trials of a flow exporter.
pub struct FlowExporterTrial<O> {
    bed: FlowExporterBed,
    traffic: Traffic,
    host: Host,
    stop: StopSignal,
    observer: O,
    collector: CollectorThread,
    /// Whether the cache of the device holds no flows of earlier traffic.
    is_prepared: bool,
    result: Option<Arc<RunResult>>,
}

impl<O: Observer> FlowExporterTrial<O> {
    /// Opens the collector, and reads the flows of the capture.
    ///
    /// # Errors
    /// See [`FlowExporterError`].
    pub fn new(
        bed: FlowExporterBed,
        host: Host,
        stop: StopSignal,
        observer: O,
    ) -> Result<Self, FlowExporterError> {
        let traffic = Traffic::open(&bed).map_err(FlowExporterError::Capture)?;
        let collector = CollectorThread::start(&bed.collector_namespace, bed.collector)?;
        Ok(Self { bed, traffic, host, stop, observer, collector, is_prepared: false, result: None })
    }

    /// Returns the address of the collector.
    pub const fn collector(&self) -> SocketAddr {
        self.collector.address()
    }

    /// Waits for the records of all flows, or until no more arrive.
    fn wait_for_records(&self, sent: FlowAmount) -> Result<(), TrialError> {
        /// Interval at which the records are counted. The collector cannot tell when they are
        /// complete.
        const LOOK_INTERVAL: Duration = Duration::from_millis(20);
        loop {
            if let Some(error) = self.collector.error() {
                return Err(TrialError::Failed(format!("the collector failed: {error}")));
            }
            if self.collector.has_all(sent) || self.collector.quiet_time() > self.bed.quiet {
                return Ok(());
            }
            if self.stop.wait(LOOK_INTERVAL) {
                return Err(TrialError::Stopped);
            }
        }
    }

    /// Sends the filler.
    fn fill(&mut self, phase: Phase) -> Result<(), TrialError> {
        if self.bed.filler_frames == 0 {
            return Ok(());
        }
        let filler = filler_plan(&self.bed).map_err(TrialError::Failed)?;
        let (host, stop) = (&self.host, &self.stop);
        run_plan(filler, host, stop, &mut self.observer, phase, |_| Ok(())).map(drop)
    }

    /// Waits until the device has exported flows of earlier traffic, which would count as flows of
    /// the first trial.
    fn prepare(&mut self) -> Result<(), TrialError> {
        self.collector.begin(self.bed.keys_max, None);
        self.fill(Phase::Learning)?;
        self.observer.phase(Phase::Learning, None);
        self.collector.end_of_traffic();
        // More records than any trial reports: wait until none arrives.
        let never = FlowAmount { flows: u64::MAX, packets: u64::MAX, bytes: u64::MAX };
        self.wait_for_records(never)?;
        self.is_prepared = true;
        Ok(())
    }

    fn execute(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let [offer] = &*input.offers else {
            return Err(TrialError::Failed("a flow exporter test has one kind of traffic".into()));
        };
        let [step] = &*offer.steps else {
            return Err(TrialError::Failed("a flow exporter test has one step".into()));
        };
        let plan = self.traffic.plan(&self.bed, offer, step).map_err(TrialError::Failed)?;
        let log_start = self.bed.device_log.as_deref().map(length);
        let expected = self.traffic.expected_fields(&self.bed, offer, step);
        let fields = expected.map(|expected| Fields {
            destination: self.bed.destination.into(),
            filler: filler_key(&self.bed),
            accuracy: Accuracy::new(expected),
        });
        self.collector.begin(self.bed.keys_max, fields);
        let result =
            run_plan(plan, &self.host, &self.stop, &mut self.observer, Phase::Traffic, |_| Ok(()))?;
        let sent = self.traffic.sent(&self.bed, offer, &result);
        self.collector.end_of_traffic();
        self.fill(Phase::Collecting)?;
        self.observer.phase(Phase::Collecting, None);
        self.wait_for_records(sent.amount())?;
        let trialled = self.collector.end();
        let mut export = export(&trialled, &sent, &self.bed);
        export.forwarding_lost = forwarding_lost(&result, sent.amount());
        if let (Some(path), Some(start)) = (&self.bed.device_log, log_start) {
            export.device_log = read_log(path, start).map_err(TrialError::Failed)?;
        }
        let seconds = self.traffic.seconds(step, &result);
        let output = StepOutput {
            intended: self.traffic.intended(step, seconds),
            // Flows without all packets are a shortfall of the tester.
            offered: export.sent.flows.saturating_sub(self.traffic.incomplete_flows(&result)),
            received: export.captured.flows,
            seconds,
            ..StepOutput::default()
        };
        let mut notes = result.notes.clone();
        if export.collector_dropped > 0 {
            notes.push(format!(
                "{} export packets were lost in the collector of the tester",
                export.collector_dropped
            ));
        }
        self.result = Some(result);
        Ok(TrialOutput {
            offers: vec![OfferOutput { steps: vec![output], ..OfferOutput::default() }],
            export: Some(export),
            notes,
            ..TrialOutput::default()
        })
    }
}

impl<O: Observer> Trial for FlowExporterTrial<O> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let started = std::time::Instant::now();
        self.result = None;
        if !self.is_prepared {
            self.prepare()?;
        }
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

impl<O: Observer> FullTrial for FlowExporterTrial<O> {
    fn take_result(&mut self) -> Option<Arc<RunResult>> {
        self.result.take()
    }
}

/// Returns the accuracy of the fields.
fn fields(accuracy: &Accuracy) -> Vec<FieldOutput> {
    let output = |(expected, found): (&ExpectedField, &FieldAccuracy)| {
        let text = |value| expected.field.text(value);
        // Times are only present or not.
        let is_time = matches!(expected.field, Field::First | Field::Last);
        let values = found.values.filter(|_| !is_time);
        FieldOutput {
            name: expected.field.name().to_owned(),
            present: found.present,
            missing: found.missing,
            out_of_range: found.out_of_range,
            least: values.map(|(least, _)| text(least)),
            greatest: values.map(|(_, greatest)| text(greatest)),
            values_sent: found.found_values.map(|_| expected.values()),
            values_found: found.found_values,
        }
    };
    accuracy.fields().map(output).collect()
}

/// Compares what was sent with what the records report.
fn export(trialled: &Trialled, sent: &SentFlows, bed: &FlowExporterBed) -> ExportOutput {
    let mut table = trialled.table.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let amount = sent.amount();
    let is_by_key = amount.flows <= bed.keys_max as u64 && table.refused() == 0;
    let of = |amount: wirestorm_flowexport::flow_table::Amount| FlowAmount {
        flows: amount.flows,
        packets: amount.packets,
        bytes: amount.bytes,
    };
    let mut export = ExportOutput {
        sent: amount,
        is_by_key,
        protocol: trialled.protocol.into(),
        records: trialled.records,
        datagrams: trialled.datagrams,
        datagram_bytes: trialled.bytes,
        control_records: trialled.control_records,
        sequence_lost: trialled.sequence_lost,
        sequence_restarts: trialled.sequence_restarts,
        unknown_template_sets: trialled.unknown_template_sets,
        malformed: trialled.malformed,
        collector_dropped: trialled.dropped,
        cache_flows_max: amount.flows.checked_sub(trialled.records_at_stop),
        export_rate: trialled.export_rate(bed.idle_timeout),
        ..ExportOutput::default()
    };
    if let Some(Fields { accuracy, .. }) = &trialled.fields {
        export.fields = fields(accuracy);
        export.checked_records = accuracy.records();
        export.accurate_records = accuracy.accurate_records();
    }
    if is_by_key {
        let filler = filler_key(bed);
        // The filler may be one of the unexpected flows.
        let comparison = table.compare(sent.flows(), DIFFERENCES_MAX + 1);
        export.differences = differences::list(&comparison, filler);
        export.captured = of(comparison.captured);
        export.unexpected = of(comparison.unexpected);
        if let Some(filler) = table.find(filler) {
            // A capture may have flows with this key, which are then expected.
            let unexpected = &mut export.unexpected;
            unexpected.flows = unexpected.flows.saturating_sub(1);
            unexpected.packets = unexpected.packets.saturating_sub(filler.packets);
            unexpected.bytes = unexpected.bytes.saturating_sub(filler.bytes);
        }
        export.missing_flows = comparison.missing_flows;
        export.split_flows = comparison.split_flows;
        export.packets_differ = comparison.packets_differ;
        export.bytes_differ = comparison.bytes_differ;
    } else {
        export.captured = FlowAmount {
            flows: trialled.records.min(amount.flows),
            packets: trialled.packets.min(amount.packets),
            bytes: trialled.octets.min(amount.bytes),
        };
        export.missing_flows = amount.flows - export.captured.flows;
    }
    export
}

/// Returns the packets that the device did not forward; `None` without a receiving interface.
fn forwarding_lost(result: &RunResult, sent: FlowAmount) -> Option<u64> {
    let measured = result.flows.iter().filter_map(|flow| flow.lost).reduce(|a, b| a + b);
    measured.or_else(|| {
        let received = result.ports.iter().find_map(|port| port.rx.as_ref())?;
        Some(sent.packets.saturating_sub(received.packets))
    })
}

/// Returns the length of a file; 0 if it does not exist yet.
fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Reads the figures that a device logged since `start`.
fn read_log(path: &Path, start: u64) -> Result<device_log::Figures, String> {
    /// Bytes of a log that are read. A longer part keeps its end.
    const PART_MAX: u64 = 16 << 20;
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let end = file.metadata()?.len();
        // A file that became shorter was replaced.
        let start = if end < start { 0 } else { start };
        file.seek(SeekFrom::Start(start.max(end.saturating_sub(PART_MAX))))?;
        let mut bytes = Vec::new();
        file.take(PART_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().map_err(|error| format!("--device-log {}: {error}", path.display()))?;
    Ok(device_log::read(&text))
}
