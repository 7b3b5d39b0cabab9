//! Run of all devices: one thread and one port for each device.

use std::io;
use std::slice;
use std::sync::Mutex;

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::port::{PortError, Transmit, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::{Breath, WorkerState};
use wirestorm_engine::stream::{Generator, Share};
use wirestorm_io::clock::{self, RealtimeOffset};
use wirestorm_model::stream::{Speed, Stream};
use wirestorm_plan::pktgen::{LoweredDevice, TimestampPosition};

use super::stamp::Stamping;
use crate::backend::Choice;
use crate::backend::{self, Backend, PortVisitor, TransmitPort};
use crate::lifecycle::{Context, Controls, Start};
use crate::port::{Interfaces, OpenError, PortOptions};
use crate::work::{
    Stamped, departures, drain, final_counters, generator_options, rest, wait_while_paused,
};
use crate::workers::Workers;

/// Options for sending that scripts do not set.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Backend that sends and receives frames.
    pub backend: Backend,
    /// Treatment of late frames.
    pub policy: DeparturePolicy,
    /// Maximum duration of a run.
    pub duration: Duration,
    /// Whether to send on an interface that carries the default route.
    pub force_interface: bool,
    /// Maximum relative rate error in parts per million.
    pub tolerance_ppm: f64,
}

/// Error of starting devices.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// An interface does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A frame exceeds the maximum length of the interface.
    #[error(
        "{device}: a frame of {length} bytes without FCS exceeds the maximum of {interface}, \
         {length_max}: reduce pkt_size or increase the interface's MTU"
    )]
    TooLong {
        /// Device.
        device: String,
        /// Longest frame of the device in bytes.
        length: usize,
        /// Interface to send on.
        interface: String,
        /// Maximum frame length of the interface in bytes.
        length_max: usize,
    },
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Outcome of a device.
pub(super) struct DeviceOutcome {
    /// `None` if the device sends nothing.
    pub(super) sent: Option<PortOutcome>,
    /// Time since the common start, without pauses.
    pub(super) elapsed: Duration,
    /// Part of `elapsed` in which the device waited.
    pub(super) idle: Duration,
    pub(super) error: Option<PortError>,
}

/// Counters of a device's port.
pub(super) struct PortOutcome {
    pub(super) choice: Choice,
    pub(super) transmitted: TransmitCounters,
    pub(super) departures: Option<Stamped>,
}

/// Outcome of a run of all devices, in device order.
pub(super) struct RunOutcome {
    pub(super) start: Instant,
    pub(super) outcomes: Vec<DeviceOutcome>,
    /// Notes on interfaces and CPUs.
    pub(super) notes: Vec<String>,
}

/// Counters of a device so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeviceProgress {
    pub(super) transmitted: TransmitCounters,
    /// CPU time of the thread.
    pub(super) time: Duration,
}

/// Interval at which a thread checks its interface and reads the wall clock.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Runs all devices. Calls `observe` about ten times a second.
pub(super) fn run(
    devices: &[LoweredDevice],
    options: &DeviceOptions,
    context: &Context,
    mut observe: impl FnMut(&[DeviceProgress]),
) -> Result<RunOutcome, DeviceError> {
    let mut names: Vec<&str> = devices.iter().map(|device| device.interface.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let lease = context.lease_request();
    let interfaces =
        Interfaces::open(&names, options.force_interface, &lease, Some(options.backend))?;
    let controls = context.controls();
    let senders = senders(devices, &interfaces, &names, options, controls)?;
    let cpus = context.host.cpus().reserve(options.backend, senders.len());

    let (start, mut outcomes) = std::thread::scope(|scope| {
        let openers = senders.iter().enumerate().map(|(index, sender)| {
            let cpus = &cpus;
            move || {
                cpus.apply();
                let (port, choice) = sender.open(cpus.sender(index))?;
                Ok(move |start| (sender.device, sender.work(port, choice, start)))
            }
        });
        let workers = Workers::open(scope, "pktgen", &controls.stop, openers, DeviceError::Thread)?;
        let start = workers.start(Start { at: None }, senders.iter().any(Sender::is_paced));
        workers.watch(|| observe(&progress(devices.len(), &senders)));
        Ok::<_, DeviceError>((start, workers.join()))
    })?;

    for device in 0..devices.len() {
        if !outcomes.iter().any(|(known, _)| *known == device) {
            let (elapsed, idle) = (Duration::ZERO, Duration::ZERO);
            outcomes.push((device, DeviceOutcome { sent: None, elapsed, idle, error: None }));
        }
    }
    outcomes.sort_by_key(|(device, _)| *device);
    let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
    Ok(RunOutcome { start, outcomes, notes: interfaces.notes().chain(cpus.note()).collect() })
}

/// Creates a sender for each device that sends.
fn senders<'a>(
    devices: &'a [LoweredDevice],
    interfaces: &'a Interfaces,
    names: &[&str],
    options: &'a DeviceOptions,
    controls: &'a Controls,
) -> Result<Vec<Sender<'a>>, DeviceError> {
    let mut senders: Vec<Sender<'a>> = Vec::new();
    for (index, device) in devices.iter().enumerate() {
        let Some(stream) = device.streams.first() else { continue };
        // `names` is sorted, and `interfaces` has the same order.
        let Ok(place) = names.binary_search(&device.interface.as_str()) else { continue };
        let (interface, link) = &interfaces.links[place];
        let length_max = link.frame_length_max();
        if stream.template.len() > length_max {
            return Err(DeviceError::TooLong {
                device: device.name.clone(),
                length: stream.template.len(),
                interface: interface.to_string(),
                length_max,
            });
        }
        let queue = senders.iter().filter(|other| other.place == place).count();
        senders.push(Sender {
            device: index,
            stream,
            stamps: device.stamps,
            interfaces,
            place,
            // Fits: the number of devices is small.
            queue: queue as u32,
            options,
            controls,
            progress: Mutex::default(),
        });
    }
    Ok(senders)
}

fn progress(devices: usize, senders: &[Sender<'_>]) -> Vec<DeviceProgress> {
    let mut progress = vec![DeviceProgress::default(); devices];
    for sender in senders {
        progress[sender.device] = sender.progress.lock().map(|it| *it).unwrap_or_default();
    }
    progress
}

/// Context of a device's thread.
struct Sender<'a> {
    /// Index of the device.
    device: usize,
    stream: &'a Stream,
    stamps: Option<TimestampPosition>,
    interfaces: &'a Interfaces,
    /// Index of the device's interface in `interfaces`.
    place: usize,
    /// Interface queue, for ports that use a single queue.
    queue: u32,
    options: &'a DeviceOptions,
    controls: &'a Controls,
    progress: Mutex<DeviceProgress>,
}

impl Sender<'_> {
    fn is_paced(&self) -> bool {
        self.stream.transmission.speed != Speed::Max
    }

    fn open(&self, cpu: Option<usize>) -> Result<(TransmitPort, Choice), OpenError> {
        let (interface, link) = &self.interfaces.links[self.place];
        let options = PortOptions {
            policy: self.options.policy,
            paced: self.is_paced(),
            cpu,
            queue: self.queue,
            // Each frame has its own sequence number, so stored frames cannot be reused.
            store_bytes: 0,
            is_visible: false,
            resident: None,
            needs_no_process: false,
        };
        backend::open(self.options.backend, interface, link, &options)
            .map_err(|reason| OpenError::Port { interface: interface.to_string(), reason })
    }

    fn work(&self, mut port: TransmitPort, choice: Choice, start: Instant) -> DeviceOutcome {
        let (policy, duration) = (self.options.policy, self.options.duration);
        let options = generator_options(Share::ALL, policy, duration);
        let mut generator = Generator::new(slice::from_ref(self.stream), options, start);
        let mut idle = Duration::ZERO;
        let mut paused = Duration::ZERO;
        let ended = self.send(&mut generator, &mut port, &mut idle, &mut paused);
        let handed_over = clock::now();
        let stop = &self.controls.stop;
        let ended = ended.and_then(|()| drain(slice::from_mut(&mut port), stop, |_| {}));
        let now = clock::now();
        if self.is_paced() {
            // Frames that the port holds wait for their due time.
            idle = idle.saturating_add(now.saturating_since(handed_over));
        }
        let elapsed = now.saturating_since(start).saturating_sub(paused);
        let departures = departures(generator.departures().clone(), slice::from_ref(&port));
        let transmitted = final_counters(&mut port, ended.is_err());
        self.publish(transmitted);
        DeviceOutcome {
            sent: Some(PortOutcome { choice, transmitted, departures }),
            elapsed,
            idle: idle.min(elapsed),
            error: ended.err().map(|error| self.interfaces.settle(error)),
        }
    }

    /// Sends until all frames are sent or the run stops. Adds waiting time to `idle` and pauses to
    /// `paused`.
    fn send(
        &self,
        generator: &mut Generator,
        port: &mut TransmitPort,
        idle: &mut Duration,
        paused: &mut Duration,
    ) -> Result<(), PortError> {
        let holds_departure = port.capabilities().holds_departure;
        let mut watch = self.interfaces.watch().swap_remove(self.place);
        let mut looked = clock::now();
        let mut realtime = RealtimeOffset::read();
        loop {
            let now = clock::now();
            let state = self.breathe(generator, now, realtime, port)?.state;
            if state == WorkerState::Done || self.controls.is_stopped() {
                return Ok(());
            }
            if now.saturating_since(looked) >= LOOK_INTERVAL {
                looked = now;
                realtime = RealtimeOffset::read();
                watch.check()?;
                self.publish(port.transmitted());
            }
            if self.controls.is_paused() {
                let span = wait_while_paused(self.controls);
                generator.postpone(span);
                *paused = paused.saturating_add(span);
                continue;
            }
            rest(state, now, holds_departure);
            if matches!(state, WorkerState::Waiting(_)) {
                *idle = idle.saturating_add(clock::now().saturating_since(now));
            }
        }
    }

    fn publish(&self, transmitted: TransmitCounters) {
        if let Ok(mut progress) = self.progress.lock() {
            *progress = DeviceProgress { transmitted, time: clock::thread_time() };
        }
    }

    /// Runs one iteration on the concrete port type, which avoids dispatch for each frame.
    fn breathe(
        &self,
        generator: &mut Generator,
        now: Instant,
        realtime: RealtimeOffset,
        port: &mut TransmitPort,
    ) -> Result<Breath, PortError> {
        port.visit(Breathe { generator, stamps: self.stamps, now, realtime })
    }
}

/// One iteration of a generator on a port that writes timestamps.
struct Breathe<'a> {
    generator: &'a mut Generator,
    stamps: Option<TimestampPosition>,
    now: Instant,
    realtime: RealtimeOffset,
}

impl PortVisitor for Breathe<'_> {
    type Output = Result<Breath, PortError>;

    #[inline]
    fn visit<P: Transmit>(self, port: &mut P) -> Self::Output {
        let Self { generator, stamps, now, realtime } = self;
        generator.breathe(now, &mut Stamping { port, stamps, now, realtime })
    }
}
