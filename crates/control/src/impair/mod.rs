//! Joins two interfaces by an impaired link. This process forwards each frame.
//!
//! ```text
//! a's receiving half -> impairments, frames held -> b's sending half      a thread
//! b's receiving half -> impairments, frames held -> a's sending half      another
//! ```

mod direction;
mod report;

use std::io;
use std::sync::Mutex;

use wirestorm_base::port::TransmitCounters;
use wirestorm_base::time::Duration;
use wirestorm_engine::impairment::{DelayQueueOptions, Link};
use wirestorm_io::clock;
use wirestorm_model::impairment::Impairment;

use crate::backend::{Backend, open_duplex};
use crate::lifecycle::{Abandoned, Context, PortSnapshot, Snapshot};
use crate::port::{Interfaces, OpenError, Usage, are_one_pair};
use crate::result::{Achieved, RunResult, Target};
use crate::workers::Workers;
use direction::{Direction, DirectionSnapshot};

/// Options of an impaired link.
#[derive(Clone, Debug)]
pub struct ImpairOptions {
    /// Names of both interfaces.
    pub interfaces: [String; 2],
    /// Impairments from the first interface to the second, and from the second to the first.
    pub impairments: [Impairment; 2],
    /// Backend that sends and receives frames.
    pub backend: Backend,
    /// Maximum duration.
    pub duration: Duration,
    /// Seed of the random number generator.
    pub seed: u64,
    /// Maximum number of delayed frames in each direction.
    pub buffer_frames: usize,
    /// Whether to use an interface that carries the default route.
    pub force_interface: bool,
}

/// Error that prevents the link.
#[derive(Debug, thiserror::Error)]
pub enum ImpairError {
    /// An interface does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Both interfaces are the ends of one veth pair.
    #[error(
        "{0} and {1} are the two ends of one veth pair: frames would loop between them forever; \
         use interfaces of different pairs or cables"
    )]
    Loop(String, String),
    /// The run was stopped before it started.
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Runs the link on the calling supervisor thread until the duration is over or the run stops.
///
/// # Errors
/// Fails if the link cannot start. Later errors are part of the result.
pub(crate) fn run(options: &ImpairOptions, context: &Context) -> Result<RunResult, ImpairError> {
    let controls = context.controls();
    let backend = context.receiving_backend(options.backend)?;
    let names = options.interfaces.each_ref().map(String::as_str);
    let interfaces =
        Interfaces::open(&names, options.force_interface, &context.lease_request(), None)?;
    if let [a, b] = interfaces.links.as_slice()
        && are_one_pair(a, b)
    {
        return Err(ImpairError::Loop(a.0.to_string(), b.0.to_string()));
    }
    let _frames = context.need_frames(&interfaces)?;
    let mut ports = Vec::new();
    for (interface, link) in &interfaces.links {
        let port = open_duplex(backend, interface, link, &Usage::Bridge);
        ports.push(
            port.map_err(|reason| OpenError::Port { interface: interface.to_string(), reason })?,
        );
    }
    let (mut transmit, mut receive, mut choices) = (Vec::new(), Vec::new(), Vec::new());
    for port in ports {
        // The transmit half of this port belongs to the other direction.
        transmit.insert(0, port.transmit);
        receive.push(port.receive);
        choices.push(port.choice);
    }
    let snapshots = [Mutex::default(), Mutex::default()];
    let (start, ended) = std::thread::scope(|scope| {
        let halves = receive.into_iter().zip(transmit).enumerate();
        let openers = halves.map(|(index, (receive, transmit))| {
            let longest = wirestorm_base::port::Transmit::capabilities(&transmit).frame_length_max;
            let held =
                DelayQueueOptions { frames: options.buffer_frames, frame_length_max: longest };
            // Each direction has its own random sequence.
            let seed = options.seed.wrapping_mul(2).wrapping_add(index as u64);
            let direction = Direction {
                receive: [receive],
                transmit,
                link: Link::new(options.impairments[index], seed, held),
                duration: options.duration,
                interfaces: &interfaces,
                index,
                stop: &controls.stop,
                snapshot: &snapshots[index],
            };
            move || Ok(move |start| direction.work(start))
        });
        let workers = Workers::open(scope, "link", &controls.stop, openers, ImpairError::Thread)?;
        let start = workers.start(context.wait_for_start()?, false);
        context.running(start);
        workers.watch(|| {
            let direction =
                |it: &Mutex<DirectionSnapshot>| it.lock().map(|it| *it).unwrap_or_default();
            let directions = snapshots.each_ref().map(direction);
            // The frames that a port sends belong to the direction that starts at the other port.
            let port = |place: usize| PortSnapshot {
                name: names[place].to_owned(),
                interface: names[place].to_owned(),
                transmitted: directions[1 - place].transmitted,
                received: directions[place].received,
                impairment: Some(directions[1 - place].impairment),
                ..PortSnapshot::default()
            };
            let mut transmitted = TransmitCounters::default();
            directions.iter().for_each(|it| transmitted.merge(&it.transmitted));
            let worker_time = directions[0].time + directions[1].time;
            let elapsed = clock::now().saturating_since(start);
            let part = || elapsed.as_secs_f64() / options.duration.as_secs_f64().max(1e-9);
            let fraction = (options.duration != Duration::MAX).then(|| part().min(1.0));
            let ports = vec![port(0), port(1)];
            context.publish(Snapshot {
                elapsed,
                fraction,
                transmitted,
                ports,
                worker_time,
                ..Snapshot::default()
            });
        });
        Ok::<_, ImpairError>((start, workers.join()))
    })?;
    let elapsed = clock::now().saturating_since(start);
    let ports = report::ports(names, &choices, &ended, elapsed);
    let mut sent = TransmitCounters::default();
    ended.iter().for_each(|ended| sent.merge(&ended.transmitted));
    let tx = report::transmit(&sent, elapsed);
    let mut result = RunResult {
        target: Target {
            duration_s: (options.duration != Duration::MAX).then(|| options.duration.as_secs_f64()),
            seed: Some(options.seed),
            ..Target::default()
        },
        achieved: Achieved { tx, ..Achieved::default() },
        ports,
        errors: ended.iter().filter_map(|ended| ended.error.clone()).collect(),
        notes: interfaces.notes().collect(),
        ..context.result(Some(start))
    };
    result.times.elapsed_s = elapsed.as_secs_f64();
    Ok(result)
}
