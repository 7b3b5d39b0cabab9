//! A run in a thread of its own, which Python waits for, watches and ends.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wirestorm_control::base::rate::Decimal;
use wirestorm_control::base::time::Duration;
use wirestorm_control::plan::backend::Backend;
use wirestorm_control::plan::replay::parse_catch_up;
use wirestorm_control::plan::traffic::{AskedRate, TrafficPlan, parse_rate};
use wirestorm_control::port::cpu;
use wirestorm_control::replay::Control;
use wirestorm_control::traffic::{
    self, Order, Progress, Received, RunOptions, SharedPorts, Steering, TrafficError, TrafficResult,
};

use crate::errors::{run_error, traffic_error, value_error};
use crate::{parse, read_duration, read_multiplier};

/// What those runs of this process share that are said to go beside others.
static SHARED_PORTS: LazyLock<Arc<SharedPorts>> = LazyLock::new(Arc::default);

/// CPUs of in-kernel senders of all runs of this process.
static SENDERS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// CPUs that a run's in-kernel senders have to themselves, as long as this lives.
struct Reserved(Vec<usize>);

impl Reserved {
    /// Keeps the calling thread off the CPUs of other runs' senders, and others off those that
    /// its own will have.
    fn new(plan: &TrafficPlan, options: &RunOptions) -> Self {
        let mut taken = SENDERS.lock().unwrap_or_else(PoisonError::into_inner);
        let free: Vec<usize> =
            cpu::allowed().into_iter().filter(|it| !taken.contains(it)).collect();
        if !taken.is_empty() && !free.is_empty() {
            // Where it is refused, two senders share a CPU: slower, but right.
            let _ = cpu::restrict_to(&free);
        }
        let sends = |port: &usize| plan.flows.iter().any(|flow| flow.transmit == *port);
        let ports = (0..plan.ports.len()).filter(sends).count();
        let senders = cpu::of_senders(options.backend(), ports * usize::from(options.workers));
        taken.extend(&senders);
        Self(senders)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut taken = SENDERS.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|cpu| !self.0.contains(cpu));
    }
}

/// A run of a plan. It ends with its last frame, when it is stopped, or when nothing refers to
/// it any more.
#[pyclass(frozen, module = "wirestorm._native")]
pub(crate) struct Run {
    /// The names of the plan's flows.
    flows: Vec<String>,
    shared: Arc<Shared>,
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
    force_interface: bool,
    beside_others: bool,
    is_visible: bool,
    by_tag: bool,
}

/// Threads that share a plan's flows, as on the command line.
const WORKERS_MAX: u16 = 64;

impl How {
    fn options(self, ports: usize) -> PyResult<RunOptions> {
        let Self { duration, backend, workers, catch_up, multiplier, .. } = &self;
        let workers = *workers;
        if !(1..=WORKERS_MAX).contains(&workers) {
            return Err(value_error(format!("workers {workers}: expected 1 to {WORKERS_MAX}")));
        }
        let policy = parse_catch_up(catch_up)
            .map_err(|error| value_error(format!("catch_up {catch_up:?}: {error}")))?;
        Ok(RunOptions {
            interfaces: vec![None; ports],
            backend: read_backend(backend)?,
            workers,
            policy,
            duration: read_duration(duration.as_deref())?,
            multiplier: read_multiplier(multiplier)?,
            force_interface: self.force_interface,
            shared: self.beside_others.then(|| Arc::clone(&SHARED_PORTS)),
            is_visible: self.is_visible,
            by_tag: self.by_tag,
        })
    }
}

/// What the run's thread and Python's tell each other.
#[derive(Default)]
struct Shared {
    control: Control,
    steering: Steering,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    progress: Option<Progress>,
    load: Load,
    outcome: Option<Result<TrafficResult, Failure>>,
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

    fn note(&mut self, progress: &Progress) {
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

/// Why there is no result.
enum Failure {
    /// The run did not begin.
    NotBegun(TrafficError),
    /// A defect: the words of a panic.
    Panic(String),
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
        bind(&mut plan, interfaces)?;
        Self::start(py, plan, how)
    }

    /// The names of its flows.
    #[getter]
    fn flows(&self) -> Vec<String> {
        self.flows.clone()
    }

    /// Waits until frames leave, or nothing will.
    fn wait_started(&self, py: Python<'_>) {
        let begun = |state: &State| state.progress.is_some() || state.outcome.is_some();
        py.detach(|| self.shared.wait(None, begun));
    }

    /// Waits for the end, at most so many seconds; returns whether it has come.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> bool {
        let timeout = timeout_s.map(|it| StdDuration::try_from_secs_f64(it).unwrap_or_default());
        py.detach(|| self.shared.wait(timeout, |state| state.outcome.is_some()))
    }

    /// Ends sending; returns at once.
    fn stop(&self) {
        self.shared.control.stop.store(true, Ordering::Relaxed);
    }

    /// Asks something of flows, by name: `pause`, `resume`, `start`, `stop`; `rate` with a rate
    /// such as 1Mpps, `scale` with a factor of the plan's rate. It happens 25 ms later.
    #[pyo3(signature = (flows, order, value=None))]
    fn give(&self, flows: Vec<String>, order: &str, value: Option<&str>) -> PyResult<()> {
        self.order(&flows, read_order(order, value.unwrap_or_default())?)
    }

    /// What has been sent so far, None before the first frame: elapsed_s, packets, bytes, failed,
    /// and flows by name with their packets, bytes, frames left out; frames received, all arrivals'
    /// bytes, frames duplicated, reordered and their mean delay in nanoseconds.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(progress) = self.shared.lock().progress.clone() else { return Ok(None) };
        let told = PyDict::new(py);
        told.set_item("elapsed_s", progress.elapsed.as_secs_f64())?;
        told.set_item("packets", progress.transmitted.sent)?;
        told.set_item("bytes", progress.transmitted.sent_bytes)?;
        told.set_item("failed", progress.transmitted.failed)?;
        let flows = PyDict::new(py);
        for ((name, sent), got) in self.flows.iter().zip(&progress.flows).zip(&progress.received) {
            let left = (sent.frames, sent.bytes, sent.unsent);
            let Received { frames, bytes, duplicated, reordered, delay_mean_ns } = *got;
            let arrived = (frames, bytes, duplicated, reordered, delay_mean_ns);
            flows.set_item(name, (left, arrived))?;
        }
        told.set_item("flows", flows)?;
        Ok(Some(told))
    }

    /// How busy the workers were in each of the last 20 seconds, the latest first: percent of a CPU.
    #[getter]
    fn load(&self) -> Vec<f64> {
        self.shared.lock().load.history.iter().copied().collect()
    }

    /// What was measured so far of a flow, by its name: as in the result, a list of JSON with an
    /// object for each port. None of a run that has not begun or has ended; empty of flows that
    /// are not measured.
    fn measured(&self, py: Python<'_>, flow: &str) -> PyResult<Option<String>> {
        let place = self.place(flow)?;
        let live = match &*self.shared.lock() {
            State { progress: Some(progress), outcome: None, .. } => progress.live.clone(),
            _ => return Ok(None),
        };
        let measured = py.detach(|| live.measured(place));
        written(py, serde_json::to_string(&measured)).map(Some)
    }

    /// The result as a document of the form wirestorm.run/1. Raises RunError or PlanError where
    /// the run did not begin, RunError where it has not ended.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        match &self.shared.lock().outcome {
            None => Err(run_error(py, "the run has not ended: wait for it, or stop it")),
            Some(Err(Failure::NotBegun(error))) => Err(traffic_error(py, error)),
            Some(Err(Failure::Panic(words))) => Err(run_error(py, words)),
            Some(Ok(result)) => written(py, serde_json::to_string(result)),
        }
    }
}

impl Run {
    /// Asks something of flows, by name.
    pub(crate) fn order(&self, flows: &[String], order: Order) -> PyResult<()> {
        let places = flows.iter().map(|name| self.place(name)).collect::<PyResult<Vec<_>>>()?;
        self.shared.steering.give(&places, order);
        Ok(())
    }

    fn place(&self, flow: &str) -> PyResult<usize> {
        let place = self.flows.iter().position(|name| name == flow);
        place.ok_or_else(|| value_error(format!("{flow:?} is none of the run's flows")))
    }

    /// Starts sending a plan whose ports have their interfaces.
    pub(crate) fn start(py: Python<'_>, plan: TrafficPlan, how: How) -> PyResult<Self> {
        let options = how.options(plan.ports.len())?;
        let flows = plan.flows.iter().map(|flow| flow.stream.name.clone()).collect();
        let shared = Arc::<Shared>::default();
        let run = Self { flows, shared: Arc::clone(&shared) };
        // Not Python's thread: a run keeps its own off the CPUs of in-kernel senders.
        let spawned = std::thread::Builder::new().name("wirestorm-run".into()).spawn(move || {
            let run = || {
                let _reserved = Reserved::new(&plan, &options);
                traffic::run(&plan, &options, &shared.control, &shared.steering, |progress| {
                    shared.change(|state| {
                        state.load.note(progress);
                        state.progress = Some(progress.clone());
                    });
                })
            };
            let outcome = match catch_unwind(AssertUnwindSafe(run)) {
                Ok(outcome) => outcome.map_err(Failure::NotBegun),
                Err(panic) => Err(Failure::Panic(words(&*panic))),
            };
            shared.change(|state| state.outcome = Some(outcome));
        });
        match spawned {
            Ok(_) => Ok(run),
            Err(error) => Err(run_error(py, &format!("cannot start a thread: {error}"))),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A state is written in one step: a panic elsewhere leaves none half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until `is_so`, at most for `timeout`; returns whether it is.
    fn wait(&self, timeout: Option<StdDuration>, is_so: impl Fn(&State) -> bool) -> bool {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.lock();
        while !is_so(&state) {
            state = match deadline.map(|it| it.saturating_duration_since(Instant::now())) {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(StdDuration::ZERO) => return false,
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }
}

/// Gives ports of the plan their interfaces.
fn bind(plan: &mut TrafficPlan, interfaces: BTreeMap<String, String>) -> PyResult<()> {
    for (name, interface) in interfaces {
        let Some(port) = plan.ports.iter_mut().find(|port| port.name == name) else {
            let names: Vec<_> = plan.ports.iter().map(|port| port.name.as_str()).collect();
            let names = names.join(", ");
            let message = format!("ports: {name:?} is none of the plan's ports: {names}");
            return Err(value_error(message));
        };
        port.location = Some(interface);
    }
    Ok(())
}

fn read_backend(name: &str) -> PyResult<Backend> {
    match name {
        "auto" => Ok(Backend::Auto),
        "memory" => Ok(Backend::Memory),
        "af_packet" => Ok(Backend::AfPacket),
        "af_xdp" => Ok(Backend::AfXdp),
        "xdp" => Ok(Backend::Xdp),
        other => Err(value_error(format!(
            "backend {other:?}: expected auto, memory, af_packet, af_xdp or xdp"
        ))),
    }
}

fn read_order(order: &str, value: &str) -> PyResult<Order> {
    match order {
        "pause" => Ok(Order::Pause),
        "resume" => Ok(Order::Resume),
        "start" => Ok(Order::Start),
        "stop" => Ok(Order::Stop),
        "rate" => match parse_rate(value) {
            Some(AskedRate::Speed(speed)) => Ok(Order::SetSpeed(speed)),
            Some(AskedRate::Percentage(_)) => Err(value_error(format!(
                "rate {value:?}: a percentage is for plans; expected 1Mpps, 10G-l1, 10G-l2 or max"
            ))),
            None => Err(value_error(format!(
                "rate {value:?}: expected a rate such as 1Mpps, 10G-l1, 10G-l2 or max"
            ))),
        },
        "scale" => match Decimal::parse(value) {
            Ok(Decimal { digits: numerator @ 1.., denominator }) => {
                Ok(Order::Scale { numerator, denominator })
            }
            _ => Err(value_error(format!("factor {value:?}: expected a number more than 0"))),
        },
        other => Err(value_error(format!("there is no order {other:?}"))),
    }
}

fn written(py: Python<'_>, document: serde_json::Result<String>) -> PyResult<String> {
    document.map_err(|error| run_error(py, &format!("the result is no JSON: {error}")))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a defect in wirestorm ended the run: {}", text.unwrap_or_default())
}
