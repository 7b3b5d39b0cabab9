//! Runs of flows on a background thread. Python waits for them, reads progress and stops them.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wirestorm_control::backend::{Backend, UnknownBackend};
use wirestorm_control::base::rate::Decimal;
use wirestorm_control::base::time::Duration;
use wirestorm_control::plan::replay::parse_catch_up;
use wirestorm_control::plan::traffic::{Port, RequestedRate, TrafficPlan, parse_rate};
use wirestorm_control::run::Plan;
use wirestorm_control::traffic::{SeriesOptions, StreamOptions};
use wirestorm_control::{Command, FlowCommand, MeasuredSnapshot, Snapshot, Subscription};

use crate::background::{Background, to_json};
use crate::errors::{run_error, run_failure, value_error};
use crate::{parse, read_duration, read_multiplier};

/// A run of a plan.
///
/// It ends with its last frame, when it is stopped, or when no object refers to it.
#[pyclass(frozen, module = "wirestorm._native")]
pub(crate) struct Run {
    /// Names of the plan's flows.
    flows: Vec<String>,
    run: Background,
    load: Arc<Mutex<Load>>,
}

/// Options of a run, as strings in the syntax of the command line.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SendOptions {
    duration: Option<String>,
    backend: String,
    workers: u16,
    catch_up: String,
    multiplier: String,
    tolerance_percent: f64,
    force_interface: bool,
    shares_ports: bool,
    is_visible: bool,
    per_vlan: bool,
}

/// Maximum number of worker threads, as on the command line.
const WORKERS_MAX: u16 = 64;

impl SendOptions {
    fn options(&self, ports: usize) -> PyResult<StreamOptions> {
        let Self { duration, backend, workers, catch_up, multiplier, .. } = self;
        let workers = *workers;
        if !(1..=WORKERS_MAX).contains(&workers) {
            return Err(value_error(format!("workers {workers}: expected 1 to {WORKERS_MAX}")));
        }
        let tolerance = self.tolerance_percent;
        if !(tolerance.is_finite() && tolerance >= 0.0) {
            let message = format!("tolerance_percent {tolerance}: expected 0 or more");
            return Err(value_error(message));
        }
        let policy = parse_catch_up(catch_up)
            .map_err(|error| value_error(format!("catch_up {catch_up:?}: {error}")))?;
        Ok(StreamOptions {
            elsewhere: None,
            interfaces: vec![None; ports],
            backend: read_backend(backend)?,
            workers,
            policy,
            duration: read_duration("duration", duration.as_deref())?,
            multiplier: read_multiplier(multiplier)?,
            force_interface: self.force_interface,
            is_visible: self.is_visible,
            per_vlan: self.per_vlan,
            survives_outages: false,
            tolerance_ppm: tolerance * 1e4,
            series: SeriesOptions::default(),
        })
    }
}

/// CPU load of the workers.
#[derive(Default)]
struct Load {
    /// Start of the current second, and the CPU time until then.
    since: (Duration, Duration),
    /// Percent of a CPU in each of the last seconds, the latest first.
    history: VecDeque<f64>,
}

impl Load {
    /// Number of seconds kept.
    const SECONDS: usize = 20;

    /// Records the CPU time of the snapshots until the run is over.
    fn watch(load: &Mutex<Self>, snapshots: &Subscription) {
        while let Some(snapshot) = snapshots.next() {
            load.lock().unwrap_or_else(PoisonError::into_inner).note(&snapshot);
        }
    }

    fn note(&mut self, progress: &Snapshot) {
        let (then, before) = self.since;
        let elapsed_s = progress.elapsed.saturating_sub(then).as_secs_f64();
        if elapsed_s < 1.0 {
            return;
        }
        let busy_s = progress.worker_time.saturating_sub(before).as_secs_f64();
        self.history.truncate(Self::SECONDS - 1);
        self.history.push_front(100.0 * busy_s / elapsed_s);
        self.since = (progress.elapsed, progress.worker_time);
    }
}

#[pymethods]
impl Run {
    /// Starts to send a plan. `interfaces` overrides the interfaces of ports by name.
    #[new]
    fn new(
        py: Python<'_>,
        plan: &str,
        folder: PathBuf,
        interfaces: BTreeMap<String, String>,
        how: SendOptions,
    ) -> PyResult<Self> {
        let mut plan = parse(py, plan, &folder)?;
        bind(&mut plan.ports, interfaces)?;
        Self::start(py, plan, how)
    }

    /// Names of the plan's flows.
    #[getter]
    fn flows(&self) -> Vec<String> {
        self.flows.clone()
    }

    /// Waits until the run sends, or is over.
    fn wait_started(&self, py: Python<'_>) {
        self.run.wait_started(py);
    }

    /// Waits for the end, at most `timeout_s` seconds. Returns whether the run is over.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> bool {
        self.run.wait_done(py, timeout_s)
    }

    /// Stops the run. Returns at once.
    fn stop(&self) {
        self.run.handle().stop();
    }

    /// Sends a command to flows by name: `pause`, `resume`, `start` or `stop`; `rate` with a rate
    /// such as 1Mpps; `scale` with a factor of the plan's rate. It takes effect after 25 ms.
    #[pyo3(signature = (flows, order, value=None))]
    fn send_command(&self, flows: Vec<String>, order: &str, value: Option<&str>) -> PyResult<()> {
        self.command(&flows, read_command(order, value.unwrap_or_default())?)
    }

    /// Returns the progress, None before the first frame: elapsed_s, packets, bytes, failed, and
    /// flows by name.
    ///
    /// A flow has packets, bytes and skipped frames sent; frames and bytes received; duplicated and
    /// reordered frames; the mean delay in nanoseconds.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(progress) = self.run.latest() else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("elapsed_s", progress.elapsed.as_secs_f64())?;
        dict.set_item("packets", progress.transmitted.sent)?;
        dict.set_item("bytes", progress.transmitted.sent_bytes)?;
        dict.set_item("failed", progress.transmitted.failed)?;
        let flows = PyDict::new(py);
        for (name, flow) in self.flows.iter().zip(&progress.flows) {
            let left = (flow.sent.frames, flow.sent.bytes, flow.sent.unsent);
            let MeasuredSnapshot { frames, bytes, duplicated, reordered, delay_mean_ns, .. } =
                flow.received.unwrap_or_default();
            let arrived = (frames, bytes, duplicated, reordered, delay_mean_ns);
            flows.set_item(name, (left, arrived))?;
        }
        dict.set_item("flows", flows)?;
        Ok(Some(dict))
    }

    /// CPU load of the workers in each of the last 20 seconds, the latest first, in percent of a
    /// CPU.
    #[getter]
    fn load(&self) -> Vec<f64> {
        let load = self.load.lock().unwrap_or_else(PoisonError::into_inner);
        load.history.iter().copied().collect()
    }

    /// Returns the current measurements of a flow, a JSON list with an object for each port.
    ///
    /// None if the run has not begun or has ended. Empty if the flow is not measured.
    fn measured(&self, py: Python<'_>, flow: &str) -> PyResult<Option<String>> {
        let place = self.place(flow)?;
        let measured = py.detach(|| self.run.handle().measured(place));
        measured.map(|measured| to_json(py, serde_json::to_string(&measured))).transpose()
    }

    /// Returns the result as a wirestorm.result/2 document.
    ///
    /// Raises RunError or PlanError if the run did not begin, RunError if it has not ended.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.run.result(py, run_failure)
    }
}

impl Run {
    /// Sends a command to flows by name.
    pub(crate) fn command(&self, flows: &[String], command: FlowCommand) -> PyResult<()> {
        let flows = flows.iter().map(|name| self.place(name)).collect::<PyResult<Vec<_>>>()?;
        self.run.command(Command::Flows { flows, command })
    }

    fn place(&self, flow: &str) -> PyResult<usize> {
        let place = self.flows.iter().position(|name| name == flow);
        place.ok_or_else(|| value_error(format!("{flow:?} is none of the run's flows")))
    }

    /// Starts to send a plan whose ports have interfaces.
    pub(crate) fn start(py: Python<'_>, plan: TrafficPlan, how: SendOptions) -> PyResult<Self> {
        let options = how.options(plan.ports.len())?;
        let flows = plan.flows.iter().map(|flow| flow.stream.name.clone()).collect();
        let plan = Plan::Streams { plan: Arc::new(plan), options };
        let (run, snapshots) = Background::begin(plan, how.shares_ports);
        run.start();
        let load = Arc::<Mutex<Load>>::default();
        let watched = Arc::clone(&load);
        let watch = move || Load::watch(&watched, &snapshots);
        let spawned = std::thread::Builder::new().name("wirestorm-load".into()).spawn(watch);
        spawned
            .map(|_| Self { flows, run, load })
            .map_err(|error| run_error(py, &format!("cannot start a thread: {error}")))
    }
}

/// Sets the interfaces of a plan's ports by name.
pub(crate) fn bind(ports: &mut [Port], interfaces: BTreeMap<String, String>) -> PyResult<()> {
    for (name, interface) in interfaces {
        let Some(port) = ports.iter_mut().find(|port| port.name == name) else {
            let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
            let names = names.join(", ");
            let message = format!("ports: {name:?} is none of the plan's ports: {names}");
            return Err(value_error(message));
        };
        port.location = Some(interface);
    }
    Ok(())
}

pub(crate) fn read_backend(name: &str) -> PyResult<Backend> {
    name.parse().map_err(|error: UnknownBackend| value_error(error.to_string()))
}

fn read_command(name: &str, value: &str) -> PyResult<FlowCommand> {
    match name {
        "pause" => Ok(FlowCommand::Pause),
        "resume" => Ok(FlowCommand::Resume),
        "start" => Ok(FlowCommand::Start),
        "stop" => Ok(FlowCommand::Stop),
        "rate" => match parse_rate(value) {
            Some(RequestedRate::Speed(speed)) => Ok(FlowCommand::SetSpeed(speed)),
            Some(RequestedRate::Percentage(_)) => Err(value_error(format!(
                "rate {value:?}: found a percentage, expected 1Mpps, 10G-l1, 10G-l2 or max"
            ))),
            None => Err(value_error(format!(
                "rate {value:?}: expected a rate such as 1Mpps, 10G-l1, 10G-l2 or max"
            ))),
        },
        "scale" => match Decimal::parse(value) {
            Ok(Decimal { digits: numerator @ 1.., denominator }) => {
                Ok(FlowCommand::Scale { numerator, denominator })
            }
            _ => Err(value_error(format!("factor {value:?}: expected a number greater than 0"))),
        },
        other => Err(value_error(format!("unknown command {other:?}"))),
    }
}
