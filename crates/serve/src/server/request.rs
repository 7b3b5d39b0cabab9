//! Conversion of requests to plans.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use wirestorm_api::error::{ErrorAt, ErrorCode, ErrorDocument};
use wirestorm_api::plan::{PlanKind, PlanPort, PlanSummary};
use wirestorm_api::run::{PlanSource, RunOptions, TrexProfile, TrexStreams};
use wirestorm_control::backend::Backend;
use wirestorm_control::base::departure::DeparturePolicy;
use wirestorm_control::base::time::Duration;
use wirestorm_control::emulation::{EmulationOptions, FlowChoice, WatchOptions};
use wirestorm_control::files::Files;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_control::plan::load::{self, LoadError, LoadedPlan, PlanFile};
use wirestorm_control::plan::replay::parse_catch_up;
use wirestorm_control::plan::traffic::{PlanError, PlanErrors, Port, TrafficPlan, parse_time};
use wirestorm_control::plan::trex::stateful::{self, StatefulOptions};
use wirestorm_control::run::Plan;
use wirestorm_control::traffic::{
    Elsewhere, SegmentOptions, SeriesOptions, StreamOptions, TrexPort, plan_of_trex,
};
use wirestorm_control::wire::prefix::Prefix;
use wirestorm_store::record::RecordKind;

use super::load::LoadSource;
use super::replay;

/// Name of a plan without a file, in messages and results.
pub(super) const PLAN: &str = "plan";

/// Returns an error for one value of the request.
pub(super) fn invalid(path: &str, message: impl Into<String>) -> ErrorDocument {
    let error = ErrorAt { path: path.to_owned(), message: message.into() };
    let message = "the request is not valid".to_owned();
    ErrorDocument { code: ErrorCode::Invalid, message, errors: vec![error] }
}

/// Returns the errors of a plan.
fn of_plan(errors: &PlanErrors) -> ErrorDocument {
    let message = "the plan has errors".to_owned();
    ErrorDocument { code: ErrorCode::Plan, message, errors: errors_at(errors) }
}

/// Returns errors with their places in the document.
pub(super) fn errors_at(errors: &PlanErrors) -> Vec<ErrorAt> {
    let error_at = |error: &PlanError| {
        let path = if error.is_document_error() { String::new() } else { error.path.clone() };
        ErrorAt { path, message: error.message.clone() }
    };
    errors.iter().map(error_at).collect()
}

fn of_load(error: &LoadError) -> ErrorDocument {
    match error {
        LoadError::Wrong { errors, .. } => of_plan(errors),
        other => ErrorDocument::new(ErrorCode::Plan, other.to_string()),
    }
}

/// Plan of a request, with what the server must know about it.
pub(crate) struct Resolved {
    /// Plan with its options.
    pub(crate) plan: Plan,
    /// Kind in the history.
    pub(crate) kind: RecordKind,
    /// Interfaces of its ports.
    pub(crate) interfaces: Vec<String>,
    /// Names of its flows, in plan order; empty unless it is a plan of streams.
    pub(crate) flows: Arc<[String]>,
    /// Name of the plan, for the result.
    pub(crate) source: String,
    /// Text of the plan, for the history.
    pub(crate) text: Option<String>,
    /// What its load follows from.
    pub(crate) load: LoadSource,
}

/// What a request needs from the server.
pub(super) struct Resolver<'a> {
    /// Files of the plan.
    pub(super) files: &'a dyn Files,
    /// Returns the text of a stored plan.
    pub(super) stored: &'a dyn Fn(&str) -> Result<String, ErrorDocument>,
    /// Returns the interface of a port of the server.
    pub(super) interface: &'a dyn Fn(&str) -> Result<String, ErrorDocument>,
    /// What a run on several machines has beyond the request.
    pub(super) part: &'a PartOptions,
}

/// What a run on several machines has beyond the request of a user.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartOptions {
    /// Ports of a plan of streams on other machines; `None` if all are here.
    pub(crate) elsewhere: Option<ElsewherePorts>,
    /// Intervals of the time series of a plan of streams; `None` for the default ones.
    pub(crate) series: Option<SeriesOptions>,
    /// Destinations that frames may have; empty for all.
    pub(crate) destinations: Vec<Prefix>,
}

/// Ports of a plan of streams on other machines.
#[derive(Clone, Debug)]
pub(crate) struct ElsewherePorts {
    /// Names of the ports in the plan, with the segments of delays of flows that they send.
    pub(crate) ports: BTreeMap<String, SegmentOptions>,
    /// First stream ID, the same on all machines.
    pub(crate) first_stream: u32,
    /// As in [`Elsewhere`].
    pub(crate) drain: Duration,
}

impl ElsewherePorts {
    /// Returns the ports by their indices in a plan.
    fn of(&self, plan: &TrafficPlan) -> Result<Elsewhere, ErrorDocument> {
        let index = |(name, segments): (&String, &SegmentOptions)| {
            let index = plan.ports.iter().position(|port| port.name == *name);
            let unknown = || invalid("elsewhere", format!("the plan has no port {name:?}"));
            Ok((index.ok_or_else(unknown)?, *segments))
        };
        Ok(Elsewhere {
            ports: self.ports.iter().map(index).collect::<Result<_, _>>()?,
            first_stream: self.first_stream,
            drain: self.drain,
        })
    }
}

impl Resolver<'_> {
    /// Converts a request to a plan.
    ///
    /// # Errors
    /// The plan, an option or a port is not valid.
    pub(super) fn resolve(
        &self,
        source: PlanSource,
        ports: &BTreeMap<String, String>,
        options: &RunOptions,
    ) -> Result<Resolved, ErrorDocument> {
        match source {
            PlanSource::Text(text) => self.text(PLAN.to_owned(), text, ports, options),
            PlanSource::Document(document) => {
                // The history shows it to people.
                let text = format!("{document:#}");
                self.text(PLAN.to_owned(), text, ports, options)
            }
            PlanSource::Stored(name) => {
                let text = (self.stored)(&name)?;
                self.text(name, text, ports, options)
            }
            PlanSource::TrexStreams(streams) => self.trex_streams(&streams, options),
            PlanSource::TrexProfile(profile) => self.trex_profile(&profile, ports, options),
            PlanSource::Replay(request) => {
                replay::resolve(*request, options, ports, self.interface)
            }
        }
    }

    fn text(
        &self,
        name: String,
        text: String,
        ports: &BTreeMap<String, String>,
        options: &RunOptions,
    ) -> Result<Resolved, ErrorDocument> {
        match read(&text, self.files)? {
            LoadedPlan::Streams(plan) => {
                let interfaces = self.bind(&plan.ports, ports)?;
                let elsewhere = self.part.elsewhere.as_ref().map(|it| it.of(&plan)).transpose()?;
                let mut resolved =
                    streams(plan, interfaces, options, name, Some(text), true, elsewhere)?;
                if let (Plan::Streams { options, .. }, Some(series)) =
                    (&mut resolved.plan, self.part.series)
                {
                    options.series = series;
                }
                Ok(resolved)
            }
            LoadedPlan::Emulation(_) if self.part.elsewhere.is_some() => {
                let message = "the ports of clients and servers must be on one node: use a plan of \
                               clients for one node, and a plan of servers for the other";
                Err(ErrorDocument::new(ErrorCode::Plan, message))
            }
            LoadedPlan::Emulation(plan) => {
                let interfaces = self.bind(&plan.ports, ports)?;
                emulation(plan, interfaces, options, name, Some(text))
            }
            LoadedPlan::Trex(_) => {
                let message = "this is a profile of TRex; send it as trex_streams or trex_profile";
                Err(ErrorDocument::new(ErrorCode::Plan, message))
            }
        }
    }

    fn trex_streams(
        &self,
        streams_of_ports: &BTreeMap<String, TrexStreams>,
        options: &RunOptions,
    ) -> Result<Resolved, ErrorDocument> {
        let mut ports = Vec::new();
        for (number, TrexStreams { interface, streams }) in streams_of_ports {
            let place = format!("plan.trex_streams.{number}");
            let number = number.parse().map_err(|_| {
                invalid(&place, format!("found port {number:?}, expected a port number"))
            })?;
            let interface = (self.interface)(interface)?;
            ports.push(TrexPort {
                number,
                interface,
                streams: streams.as_ref().map(Value::to_string),
            });
        }
        let multiplier = multiplier(options)?;
        let plan = plan_of_trex(&ports, multiplier)
            .map_err(|error| ErrorDocument::new(ErrorCode::Plan, error.to_string()))?;
        let interfaces = ports.iter().map(|port| port.interface.clone()).collect();
        // The rates are multiplied already.
        let source = "trex".to_owned();
        let resolved = streams(plan, interfaces, options, source, None, false, None)?;
        Ok(Resolved { load: LoadSource::Trex(ports), ..resolved })
    }

    fn trex_profile(
        &self,
        profile: &TrexProfile,
        ports: &BTreeMap<String, String>,
        options: &RunOptions,
    ) -> Result<Resolved, ErrorDocument> {
        // The pairs have the names of the plan's ports: clients, servers, clients1, servers1 ...
        let pairs = u32::try_from(ports.len().div_ceil(2)).unwrap_or(u32::MAX).max(1);
        let stateful = StatefulOptions { ipv6: profile.ipv6, pairs };
        let plan = stateful::read(&profile.profile.to_string(), &stateful)
            .map_err(|errors| of_plan(&errors))?;
        let interfaces = self.bind(&plan.ports, ports)?;
        emulation(plan, interfaces, options, "trex".to_owned(), None)
    }

    /// Returns the interface of each port of a plan.
    fn bind(
        &self,
        ports: &[Port],
        bindings: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, ErrorDocument> {
        if let Some(unknown) =
            bindings.keys().find(|name| !ports.iter().any(|it| it.name == **name))
        {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            let message = format!("the plan's ports are {}", names.join(", "));
            return Err(invalid(&format!("ports.{unknown}"), message));
        }
        let interface = |port: &Port| {
            let elsewhere = self.part.elsewhere.as_ref();
            if elsewhere.is_some_and(|it| it.ports.contains_key(&port.name)) {
                return Ok(String::new());
            }
            let named = bindings.get(&port.name).or(port.location.as_ref()).ok_or_else(|| {
                let message = "the plan names no interface for this port: bind it to one";
                invalid(&format!("ports.{}", port.name), message)
            })?;
            (self.interface)(named)
        };
        ports.iter().map(interface).collect()
    }
}

/// Reads the text of a plan.
fn read(text: &str, files: &dyn Files) -> Result<LoadedPlan, ErrorDocument> {
    let file = WithPlan { text, files };
    load::load(Path::new(PLAN), &file).map_err(|error| of_load(&error))
}

/// Files beside the text of a plan.
#[derive(Debug)]
struct WithPlan<'a> {
    text: &'a str,
    files: &'a dyn Files,
}

impl Files for WithPlan<'_> {
    fn open(&self, path: &Path) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        match path.as_os_str() == PLAN {
            true => Ok(Box::new(std::io::Cursor::new(self.text.to_owned()))),
            false => self.files.open(path),
        }
    }

    fn open_capture(&self, path: &Path) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        self.files.open_capture(path)
    }

    fn entry(&self, path: &Path) -> std::io::Result<wirestorm_control::files::Entry> {
        self.files.entry(path)
    }

    fn output(&self, path: &Path) -> std::io::Result<PathBuf> {
        self.files.output(path)
    }
}

/// Returns what the text of a plan contains, and its errors.
pub(super) fn summary(text: &str, files: &dyn Files) -> PlanSummary {
    let mut summary =
        PlanSummary { kind: None, ports: Vec::new(), flows: Vec::new(), errors: Vec::new() };
    let with_plan = WithPlan { text, files };
    let kind = PlanFile::open(Path::new(PLAN), &with_plan).map(|file| file.kind());
    summary.kind = kind.ok().and_then(|kind| match kind {
        load::PlanKind::Streams => Some(PlanKind::Streams),
        load::PlanKind::Emulation => Some(PlanKind::Emulation),
        load::PlanKind::Trex => Some(PlanKind::Trex),
        load::PlanKind::Unknown => None,
    });
    let port = |port: &Port| PlanPort { name: port.name.clone(), interface: port.location.clone() };
    match read(text, files) {
        Ok(LoadedPlan::Streams(plan)) => {
            summary.ports = plan.ports.iter().map(port).collect();
            summary.flows = plan.flows.into_iter().map(|flow| flow.stream.name).collect();
        }
        Ok(LoadedPlan::Emulation(plan)) => {
            summary.ports = plan.ports.iter().map(port).collect();
            summary.flows = plan.templates.iter().map(|it| it.name.clone()).collect();
        }
        Ok(LoadedPlan::Trex(_)) => {}
        Err(document) if document.errors.is_empty() => {
            summary.errors.push(ErrorAt { path: String::new(), message: document.message });
        }
        Err(document) => summary.errors = document.errors,
    }
    summary
}

/// Returns a plan of streams from its text.
pub(super) fn streams_of(text: &str, files: &dyn Files) -> Result<TrafficPlan, ErrorDocument> {
    match read(text, files)? {
        LoadedPlan::Streams(plan) => Ok(plan),
        _ => Err(ErrorDocument::new(ErrorCode::Plan, "expected a plan with `flows`")),
    }
}

/// Returns the options that only clients have, and whether they are given.
pub(super) fn of_clients(options: &RunOptions) -> [(&'static str, bool); 7] {
    [
        ("drain_timeout", options.drain_timeout.is_some()),
        ("link_down_timeout", options.link_down_timeout.is_some()),
        ("rx_coalesce", options.rx_coalesce.is_some()),
        ("interval", options.interval.is_some()),
        ("flows_max", options.flows_max.is_some()),
        ("seed", options.seed.is_some()),
        ("verify_checksums", options.verify_checksums.is_some()),
    ]
}

fn streams(
    plan: TrafficPlan,
    interfaces: Vec<String>,
    options: &RunOptions,
    source: String,
    text: Option<String>,
    with_multiplier: bool,
    elsewhere: Option<Elsewhere>,
) -> Result<Resolved, ErrorDocument> {
    refuse(&of_clients(options), "streams")?;
    let per_vlan = options.per_vlan.unwrap_or(false);
    if per_vlan && !plan.flows.iter().any(|flow| flow.stream.is_measured) {
        let message = "has no effect without a measured flow: measure one or remove it";
        return Err(invalid("options.per_vlan", message));
    }
    let workers = workers(options)?;
    let policy = policy(options)?;
    let tolerance = tolerance(options)?;
    let stream_options = StreamOptions {
        elsewhere,
        interfaces: interfaces.iter().cloned().map(Some).collect(),
        backend: backend(options)?,
        workers,
        policy,
        duration: time("duration", options.duration.as_deref())?.unwrap_or(Duration::MAX),
        multiplier: if with_multiplier { multiplier(options)? } else { Multiplier::ONE },
        force_interface: options.force_interface.unwrap_or(false),
        is_visible: false,
        per_vlan,
        survives_outages: false,
        tolerance_ppm: tolerance * 1e4,
        series: SeriesOptions::default(),
    };
    let flows = plan.flows.iter().map(|flow| flow.stream.name.clone()).collect();
    let plan = Arc::new(plan);
    Ok(Resolved {
        load: LoadSource::Plan(Arc::clone(&plan)),
        plan: Plan::Streams { plan, options: stream_options },
        kind: RecordKind::Streams,
        interfaces: interfaces.into_iter().filter(|interface| !interface.is_empty()).collect(),
        flows,
        source,
        text,
    })
}

/// Default time for open connections to finish, as on the command line.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Default of the maximum receive delay under load, as on the command line.
const RX_COALESCE: Duration = Duration::from_micros(50);
/// Default interval of time series, as on the command line.
const INTERVAL: Duration = Duration::from_secs(1);
/// Default and maximum of concurrent connections on each port, as on the command line.
const FLOWS: u32 = 1_000_000;
const FLOWS_MAX: u32 = 16_000_000;

fn emulation(
    mut plan: EmulationPlan,
    interfaces: Vec<String>,
    options: &RunOptions,
    source: String,
    text: Option<String>,
) -> Result<Resolved, ErrorDocument> {
    let of_streams = [
        ("workers", options.workers.is_some()),
        ("catch_up", options.catch_up.is_some()),
        ("per_vlan", options.per_vlan.is_some()),
        ("tolerance", options.tolerance.is_some()),
    ];
    refuse(&of_streams, "emulation")?;
    let load = match multiplier(options)? {
        Multiplier::Factor(factor) => {
            plan.multiply(factor).map_err(|error| of_plan(&error.into()))?;
            LoadSource::Clients(factor)
        }
        _ => {
            let message = "found a total load, expected a factor such as 2 or 0.5";
            return Err(invalid("options.multiplier", message));
        }
    };
    let interval = time("interval", options.interval.as_deref())?.unwrap_or(INTERVAL);
    if interval < Duration::from_millis(1) {
        return Err(invalid("options.interval", "expected 1ms or more"));
    }
    let flows_max = options.flows_max.unwrap_or(FLOWS);
    if !(1..=FLOWS_MAX).contains(&flows_max) {
        let message = format!("found {flows_max}, expected 1 to {FLOWS_MAX}");
        return Err(invalid("options.flows_max", message));
    }
    let or = |name, text: &Option<String>, default| {
        time(name, text.as_deref()).map(|time| time.unwrap_or(default))
    };
    let emulation_options = EmulationOptions {
        interfaces: interfaces.iter().cloned().map(Some).collect(),
        folder: PathBuf::new(),
        backend: backend(options)?,
        duration: or("duration", &options.duration, Duration::MAX)?,
        drain_timeout: or("drain_timeout", &options.drain_timeout, DRAIN_TIMEOUT)?,
        drain_timeout_flag: Some("drain_timeout".to_owned()),
        link_down_timeout: or(
            "link_down_timeout",
            &options.link_down_timeout,
            EmulationOptions::LINK_DOWN_TIMEOUT,
        )?,
        rx_coalesce: or("rx_coalesce", &options.rx_coalesce, RX_COALESCE)?,
        watch: WatchOptions { interval, flows: FlowChoice::default() },
        flows_max: flows_max as usize,
        seed: options.seed.unwrap_or_else(EmulationOptions::random_seed),
        force_interface: options.force_interface.unwrap_or(false),
        verify_checksums: options.verify_checksums.unwrap_or(false),
        is_visible: false,
    };
    Ok(Resolved {
        plan: Plan::Emulation { plan: Arc::new(plan), options: emulation_options },
        kind: RecordKind::Emulation,
        interfaces,
        flows: Arc::default(),
        source,
        text,
        load,
    })
}

/// Refuses options that runs of a kind do not have. `options`: name, and whether it is given.
pub(super) fn refuse(options: &[(&str, bool)], kind: &str) -> Result<(), ErrorDocument> {
    match options.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!("runs of kind {kind} have no such option: remove it");
            Err(invalid(&format!("options.{name}"), message))
        }
    }
}

pub(super) fn time(name: &str, text: Option<&str>) -> Result<Option<Duration>, ErrorDocument> {
    let Some(text) = text else { return Ok(None) };
    parse_time(text).map(Some).ok_or_else(|| {
        let message =
            format!("found {text:?}, expected a time with its unit, such as 30s or 500ms");
        invalid(&format!("options.{name}"), message)
    })
}

fn multiplier(options: &RunOptions) -> Result<Multiplier, ErrorDocument> {
    let Some(text) = &options.multiplier else { return Ok(Multiplier::ONE) };
    parse_multiplier("options.multiplier", text)
}

/// Parses a multiplier that is at a path of the request.
pub(super) fn parse_multiplier(path: &str, text: &str) -> Result<Multiplier, ErrorDocument> {
    Multiplier::parse(text).ok_or_else(|| {
        let message = format!(
            "found {text:?}, expected a factor such as 2 or 0.5, or a total load: 50%, 10kpps, \
             1gbps or 1gbpsl1"
        );
        invalid(path, message)
    })
}

pub(super) fn backend(options: &RunOptions) -> Result<Backend, ErrorDocument> {
    let Some(name) = &options.backend else { return Ok(Backend::Auto) };
    name.parse().map_err(|error: wirestorm_control::backend::UnknownBackend| {
        invalid("options.backend", error.to_string())
    })
}

/// Returns the number of sending threads.
pub(super) fn workers(options: &RunOptions) -> Result<u16, ErrorDocument> {
    let workers = options.workers.unwrap_or(1);
    if !(1..=64).contains(&workers) {
        return Err(invalid("options.workers", format!("found {workers}, expected 1 to 64")));
    }
    Ok(workers)
}

/// Returns the treatment of late frames.
pub(super) fn policy(options: &RunOptions) -> Result<DeparturePolicy, ErrorDocument> {
    match &options.catch_up {
        None => Ok(DeparturePolicy::default()),
        Some(text) => {
            parse_catch_up(text).map_err(|error| invalid("options.catch_up", error.to_string()))
        }
    }
}

/// Returns the allowed rate error in percent.
pub(super) fn tolerance(options: &RunOptions) -> Result<f64, ErrorDocument> {
    let tolerance = options.tolerance.unwrap_or(1.0);
    if !(tolerance.is_finite() && (0.0..=100.0).contains(&tolerance)) {
        let message = format!("found {tolerance}, expected a percentage of 0 to 100");
        return Err(invalid("options.tolerance", message));
    }
    Ok(tolerance)
}
