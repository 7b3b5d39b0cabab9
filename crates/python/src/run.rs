//! A run in a thread of its own, which Python waits for, watches and ends.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wirestorm_control::backend::{Backend, UnknownBackend};
use wirestorm_control::base::rate::Decimal;
use wirestorm_control::base::time::Duration;
use wirestorm_control::plan::replay::parse_catch_up;
use wirestorm_control::plan::traffic::{AskedRate, Port, TrafficPlan, parse_rate};
use wirestorm_control::run::Plan;
use wirestorm_control::traffic::StreamOptions;
use wirestorm_control::{Command, FlowCommand, MeasuredSnapshot, Snapshot, Subscription};

use crate::background::{Background, written};
use crate::errors::{run_error, run_failure, value_error};
use crate::{parse, read_duration, read_multiplier};

/// A run of a plan. It ends with its last frame, when it is stopped, or when nothing refers to
/// it any more.
#[pyclass(frozen, module = "wirestorm._native")]
pub(crate) struct Run {
    /// The names of the plan's flows.
    flows: Vec<String>,
    run: Background,
    load: Arc<Mutex<Load>>,
}

/// How a run sends, whatever it sends, in the words of the command line's flags.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct How {
    duration: Option<String>,
    backend: String,
    workers: u16,
    catch_up: String,
    multiplier: String,
    tolerance_percent: f64,
    force_interface: bool,
    beside_others: bool,
    is_visible: bool,
    per_vlan: bool,
}

/// Threads that share a plan's flows, as on the command line.
const WORKERS_MAX: u16 = 64;

impl How {
    fn options(&self, ports: usize) -> PyResult<StreamOptions> {
        let Self { duration, backend, workers, catch_up, multiplier, .. } = self;
        let workers = *workers;
        if !(1..=WORKERS_MAX).contains(&workers) {
            return Err(value_error(format!("workers {workers}: expected 1 to {WORKERS_MAX}")));
        }
        let tolerance = self.tolerance_percent;
        if !(tolerance.is_finite() && tolerance >= 0.0) {
            let message = format!("tolerance_percent {tolerance}: expected a number from 0 on");
            return Err(value_error(message));
        }
        let policy = parse_catch_up(catch_up)
            .map_err(|error| value_error(format!("catch_up {catch_up:?}: {error}")))?;
        Ok(StreamOptions {
            interfaces: vec![None; ports],
            backend: read_backend(backend)?,
            workers,
            policy,
            duration: read_duration("duration", duration.as_deref())?,
            multiplier: read_multiplier(multiplier)?,
            force_interface: self.force_interface,
            is_visible: self.is_visible,
            per_vlan: self.per_vlan,
            tolerance_ppm: tolerance * 1e4,
        })
    }
}

/// How busy the workers were.
#[derive(Default)]
struct Load {
    /// When the present second began, and the CPU time taken before it.
    since: (Duration, Duration),
    /// Percent of a CPU in each of the last seconds, the latest first.
    history: VecDeque<f64>,
}

impl Load {
    /// Seconds that are kept.
    const SECONDS: usize = 20;

    /// Notes the CPU time of snapshots until the run is over.
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
    /// Starts sending a plan. `interfaces` are those of its ports by name, where they are not the
    /// plan's own.
    #[new]
    fn new(
        py: Python<'_>,
        plan: &str,
        folder: PathBuf,
        interfaces: BTreeMap<String, String>,
        how: How,
    ) -> PyResult<Self> {
        let mut plan = parse(py, plan, &folder)?;
        bind(&mut plan.ports, interfaces)?;
        Self::start(py, plan, how)
    }

    /// The names of its flows.
    #[getter]
    fn flows(&self) -> Vec<String> {
        self.flows.clone()
    }

    /// Waits until frames leave, or nothing will.
    fn wait_started(&self, py: Python<'_>) {
        self.run.wait_started(py);
    }

    /// Waits for the end, at most so many seconds; returns whether it has come.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> bool {
        self.run.wait_done(py, timeout_s)
    }

    /// Ends sending; returns at once.
    fn stop(&self) {
        self.run.handle().stop();
    }

    /// Asks something of flows, by name: `pause`, `resume`, `start`, `stop`; `rate` with a rate
    /// such as 1Mpps, `scale` with a factor of the plan's rate. It happens 25 ms later.
    #[pyo3(signature = (flows, order, value=None))]
    fn give(&self, flows: Vec<String>, order: &str, value: Option<&str>) -> PyResult<()> {
        self.command(&flows, read_command(order, value.unwrap_or_default())?)
    }

    /// What has been sent so far, None before the first frame: elapsed_s, packets, bytes, failed,
    /// and flows by name with their packets, bytes, frames left out; frames received, all arrivals'
    /// bytes, frames duplicated, reordered and their mean delay in nanoseconds.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(progress) = self.run.latest() else { return Ok(None) };
        let told = PyDict::new(py);
        told.set_item("elapsed_s", progress.elapsed.as_secs_f64())?;
        told.set_item("packets", progress.transmitted.sent)?;
        told.set_item("bytes", progress.transmitted.sent_bytes)?;
        told.set_item("failed", progress.transmitted.failed)?;
        let flows = PyDict::new(py);
        for (name, flow) in self.flows.iter().zip(&progress.flows) {
            let left = (flow.sent.frames, flow.sent.bytes, flow.sent.unsent);
            let MeasuredSnapshot { frames, bytes, duplicated, reordered, delay_mean_ns } =
                flow.received;
            let arrived = (frames, bytes, duplicated, reordered, delay_mean_ns);
            flows.set_item(name, (left, arrived))?;
        }
        told.set_item("flows", flows)?;
        Ok(Some(told))
    }

    /// How busy the workers were in each of the last 20 seconds, the latest first: percent of a CPU.
    #[getter]
    fn load(&self) -> Vec<f64> {
        let load = self.load.lock().unwrap_or_else(PoisonError::into_inner);
        load.history.iter().copied().collect()
    }

    /// What was measured so far of a flow, by its name: as in the result, a list of JSON with an
    /// object for each port. None of a run that has not begun or has ended; empty of flows that
    /// are not measured.
    fn measured(&self, py: Python<'_>, flow: &str) -> PyResult<Option<String>> {
        let place = self.place(flow)?;
        let measured = py.detach(|| self.run.handle().measured(place));
        measured.map(|measured| written(py, serde_json::to_string(&measured))).transpose()
    }

    /// The result as a document of the form wirestorm.result/2. Raises RunError or PlanError where
    /// the run did not begin, RunError where it has not ended.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.run.result(py, run_failure)
    }
}

impl Run {
    /// Commands flows, by name.
    pub(crate) fn command(&self, flows: &[String], command: FlowCommand) -> PyResult<()> {
        let flows = flows.iter().map(|name| self.place(name)).collect::<PyResult<Vec<_>>>()?;
        self.run.command(Command::Flows { flows, command })
    }

    fn place(&self, flow: &str) -> PyResult<usize> {
        let place = self.flows.iter().position(|name| name == flow);
        place.ok_or_else(|| value_error(format!("{flow:?} is none of the run's flows")))
    }

    /// Starts sending a plan whose ports have their interfaces.
    pub(crate) fn start(py: Python<'_>, plan: TrafficPlan, how: How) -> PyResult<Self> {
        let options = how.options(plan.ports.len())?;
        let flows = plan.flows.iter().map(|flow| flow.stream.name.clone()).collect();
        let plan = Plan::Streams { plan: Arc::new(plan), options };
        let (run, snapshots) = Background::begin(plan, how.beside_others);
        run.start();
        let load = Arc::<Mutex<Load>>::default();
        let own = Arc::clone(&load);
        let watch = move || Load::watch(&own, &snapshots);
        let spawned = std::thread::Builder::new().name("wirestorm-load".into()).spawn(watch);
        spawned
            .map(|_| Self { flows, run, load })
            .map_err(|error| run_error(py, &format!("cannot start a thread: {error}")))
    }
}

/// Gives ports of a plan their interfaces.
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
            Some(AskedRate::Speed(speed)) => Ok(FlowCommand::SetSpeed(speed)),
            Some(AskedRate::Percentage(_)) => Err(value_error(format!(
                "rate {value:?}: a percentage is for plans; expected 1Mpps, 10G-l1, 10G-l2 or max"
            ))),
            None => Err(value_error(format!(
                "rate {value:?}: expected a rate such as 1Mpps, 10G-l1, 10G-l2 or max"
            ))),
        },
        "scale" => match Decimal::parse(value) {
            Ok(Decimal { digits: numerator @ 1.., denominator }) => {
                Ok(FlowCommand::Scale { numerator, denominator })
            }
            _ => Err(value_error(format!("factor {value:?}: expected a number more than 0"))),
        },
        other => Err(value_error(format!("there is no command {other:?}"))),
    }
}
