//! Two interfaces joined by an imperfect link, frame by frame, in this process.
//!
//! ```text
//! a's receiving half -> impairments, frames held -> b's sending half      a thread
//! b's receiving half -> impairments, frames held -> a's sending half      another
//! ```

mod direction;
mod report;

use std::io;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use wirestorm_base::time::Duration;
use wirestorm_engine::impairment::{HeldOptions, ImpairmentCounters, Link};
use wirestorm_io::clock;
use wirestorm_plan::backend::Backend;
use wirestorm_wire::impairment::Impairment;

use crate::port::{BothWays, Interfaces, OpenError, Usage, are_one_pair};
use crate::replay::Control;
use crate::workers::Workers;
use direction::Direction;

pub use report::{DirectionReport, LinkResult, SCHEMA};

/// What joins two interfaces.
#[derive(Clone, Debug)]
pub struct BridgeOptions {
    /// Both interfaces, by name.
    pub interfaces: [String; 2],
    /// What is done to frames from the first to the second, and from the second to the first.
    pub impairments: [Impairment; 2],
    /// What carries the frames.
    pub backend: Backend,
    /// When it ends.
    pub duration: Duration,
    /// Where chance comes from.
    pub seed: u64,
    /// Frames held at most, in each direction.
    pub held_max: usize,
    /// Whether to join also an interface that carries the default route.
    pub force_interface: bool,
}

/// How far a link has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct BridgeProgress {
    /// Since the start.
    pub elapsed: Duration,
    /// Both directions.
    pub directions: [ImpairmentCounters; 2],
}

/// Why nothing was joined.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// An interface does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What leaves one would come back by the other.
    #[error(
        "{0} and {1} are the two ends of one veth pair: every frame would go round between them for \
         ever; give an end of another pair, or of another cable"
    )]
    Loop(String, String),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Joins the interfaces until the time is over, or somebody says stop; `observe` is called about
/// ten times a second.
///
/// # Errors
/// Where nothing could begin. Once it has, what goes wrong is in the result.
pub fn run(
    options: &BridgeOptions,
    control: &Control,
    mut observe: impl FnMut(&BridgeProgress),
) -> Result<LinkResult, BridgeError> {
    let names = options.interfaces.each_ref().map(String::as_str);
    let interfaces = Interfaces::open(&names, options.force_interface, None, None)?;
    if let [a, b] = interfaces.links.as_slice()
        && are_one_pair(a, b)
    {
        return Err(BridgeError::Loop(a.0.to_string(), b.0.to_string()));
    }
    let mut ports = Vec::new();
    for (interface, link) in &interfaces.links {
        let port = BothWays::open(options.backend, interface, link, Usage::Bridge);
        ports.push(
            port.map_err(|reason| OpenError::Port { interface: interface.to_string(), reason })?,
        );
    }
    let (mut transmit, mut receive, mut choices) = (Vec::new(), Vec::new(), Vec::new());
    for port in ports {
        // The sending half is of the other direction.
        transmit.insert(0, port.transmit);
        receive.push(port.receive);
        choices.push(port.choice);
    }
    let snapshots = [Mutex::default(), Mutex::default()];
    let (start, ended) = std::thread::scope(|scope| {
        let halves = receive.into_iter().zip(transmit).enumerate();
        let openers = halves.map(|(index, (receive, transmit))| {
            let longest = wirestorm_base::port::Transmit::capabilities(&transmit).frame_length_max;
            let held = HeldOptions { frames: options.held_max, frame_length_max: longest };
            // Chance on the way back is another.
            let seed = options.seed.wrapping_mul(2).wrapping_add(index as u64);
            let direction = Direction {
                receive: [receive],
                transmit,
                link: Link::new(options.impairments[index], seed, held),
                duration: options.duration,
                interfaces: &interfaces,
                index,
                stop: &control.stop,
                snapshot: &snapshots[index],
            };
            move || Ok(move |start| direction.work(start))
        });
        let workers = Workers::open(scope, "link", &control.stop, openers, BridgeError::Thread)?;
        let start = workers.start(false);
        workers.watch(|| {
            let direction = |it: &Mutex<_>| it.lock().map(|it| *it).unwrap_or_default();
            let elapsed = clock::now().saturating_since(start);
            observe(&BridgeProgress { elapsed, directions: snapshots.each_ref().map(direction) });
        });
        Ok::<_, BridgeError>((start, workers.join()))
    })?;
    let elapsed = clock::now().saturating_since(start);
    let [a, b] = names;
    let ways = [(a, b), (b, a)].into_iter().zip(&ended).zip(&choices);
    Ok(LinkResult {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        elapsed_s: elapsed.as_secs_f64(),
        seed: options.seed,
        directions: ways.map(|((way, ended), choice)| ended.report(way, choice)).collect(),
        interrupted: control.stop.load(Ordering::Relaxed),
        errors: ended.iter().filter_map(|ended| ended.error.clone()).collect(),
        notes: interfaces.notes().collect(),
    })
}
