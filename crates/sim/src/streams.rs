//! Streams in virtual time: what would leave a port, and when, without waiting for it.

use std::num::NonZeroU64;

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::port::{PortError, Receive};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::WorkerState;
use wirestorm_engine::stream::{Generator, GeneratorOptions, Share, StreamCounters};
use wirestorm_model::stream::Stream;
use wirestorm_wire::capture::{EncodeError, LinkType, PcapWriter};

use crate::memory::{WireOptions, wire};

/// How far a simulation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulationOptions {
    /// Frames in all. Each worker sends an equal share of them, the first one what is left over,
    /// but every worker at least one.
    pub frames_max: u64,
    /// Workers that share the streams.
    pub workers: NonZeroU64,
    /// Nothing is due this long after the start or later.
    pub duration_max: Duration,
}

/// What left.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    /// In the order of their times, those of one instant in the order of workers.
    pub frames: Vec<SimulatedFrame>,
    /// What was sent of each stream, in the order of the plan.
    pub counters: Vec<StreamCounters>,
}

/// A frame that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedFrame {
    /// When, from the start on.
    pub departure: Instant,
    /// Without FCS.
    pub bytes: Vec<u8>,
}

/// Sends streams over a wire in memory; the time is that of the schedule, from zero on.
///
/// Streams without a schedule, as fast as the port takes them, all leave at once.
///
/// # Errors
/// The port's, of which a wire in memory has none.
///
/// # Panics
/// Where a plan is not valid; see [`Generator::new`].
pub fn simulate(streams: &[Stream], options: &SimulationOptions) -> Result<Simulation, PortError> {
    let workers = options.workers.get();
    let mut simulation =
        Simulation { frames: Vec::new(), counters: vec![StreamCounters::default(); streams.len()] };
    for index in 0..workers {
        let left_over = if index == 0 { options.frames_max % workers } else { 0 };
        let generator_options = GeneratorOptions {
            share: Share { index, workers },
            policy: DeparturePolicy::default(),
            duration_max: options.duration_max,
            frames_max: (options.frames_max / workers).max(1) + left_over,
            virtual_time: true,
            horizon: Duration::MAX,
            numbered_from: 0,
        };
        run(streams, generator_options, &mut simulation)?;
    }
    simulation.frames.sort_by_key(|frame| frame.departure);
    Ok(simulation)
}

fn run(
    streams: &[Stream],
    options: GeneratorOptions,
    simulation: &mut Simulation,
) -> Result<(), PortError> {
    let longest = streams.iter().map(|stream| stream.template.len()).max().unwrap_or(0);
    let wire_options = WireOptions { frame_length_max: longest.max(1), ..WireOptions::default() };
    let (mut transmit, mut receive) = wire(wire_options);
    let mut generator = Generator::new(streams, options, Instant::ZERO);
    let mut batch = Vec::new();
    loop {
        let breath = generator.breathe(Instant::ZERO, &mut transmit)?;
        receive.receive(wire_options.frames, &mut batch)?;
        for received in batch.drain(..) {
            let bytes = receive.frame(&received).to_vec();
            simulation.frames.push(SimulatedFrame { departure: received.arrival, bytes });
            receive.release(received);
        }
        if breath.state == WorkerState::Done {
            break;
        }
    }
    for (sum, counters) in simulation.counters.iter_mut().zip(generator.counters()) {
        sum.frames += counters.frames;
        sum.bytes += counters.bytes;
        sum.unsent += counters.unsent;
        // Every worker sees every start.
        sum.starts = sum.starts.max(counters.starts);
    }
    Ok(())
}

impl Simulation {
    /// A capture file of the frames.
    ///
    /// # Errors
    /// Where a frame leaves after the year 2106.
    pub fn pcap(&self) -> Result<Vec<u8>, EncodeError> {
        let writer = PcapWriter::new(LinkType::EN10MB);
        let mut file = writer.header().to_vec();
        for SimulatedFrame { departure, bytes } in &self.frames {
            let length = bytes.len() as u32;
            file.extend_from_slice(&writer.record_header(*departure, length, length)?);
            file.extend_from_slice(bytes);
        }
        Ok(file)
    }
}
