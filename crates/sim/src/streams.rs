//! Streams in virtual time: computes which frames leave a port, and when, without waiting.

use std::num::NonZeroU64;

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::port::{PortError, Receive};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::WorkerState;
use wirestorm_engine::stream::{Generator, GeneratorOptions, Share, StreamCounters};
use wirestorm_model::stream::Stream;
use wirestorm_wire::capture::{EncodeError, LinkType, PcapWriter};

use crate::memory::{WireOptions, wire};

/// Limits of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulationOptions {
    /// Maximum number of frames. Each worker sends an equal share and at least one frame; the first
    /// worker also sends the remainder.
    pub frames_max: u64,
    /// Workers that share the streams.
    pub workers: NonZeroU64,
    /// Frames due at or after this time since the start are not sent.
    pub duration_max: Duration,
}

/// Result of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    /// Frames in order of departure; frames of the same instant in the order of workers.
    pub frames: Vec<SimulatedFrame>,
    /// Counters of each stream, in the order of the plan.
    pub counters: Vec<StreamCounters>,
}

/// Frame with its departure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedFrame {
    /// Departure since the start.
    pub departure: Instant,
    /// Frame without FCS.
    pub bytes: Vec<u8>,
}

/// Sends streams over a wire in memory. Virtual time follows the schedule and starts at zero.
///
/// Frames of streams without a rate ([`Speed::Max`](wirestorm_model::stream::Speed::Max)) all leave
/// at once.
///
/// # Errors
/// Returns errors of the port, of which a wire in memory has none.
///
/// # Panics
/// Panics if a plan is not valid; see [`Generator::new`].
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
            first_number: 0,
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
        let iteration = generator.breathe(Instant::ZERO, &mut transmit)?;
        receive.receive(wire_options.frames, &mut batch)?;
        for received in batch.drain(..) {
            let bytes = receive.frame(&received).to_vec();
            simulation.frames.push(SimulatedFrame { departure: received.arrival, bytes });
            receive.release(received);
        }
        if iteration.state == WorkerState::Done {
            break;
        }
    }
    for (sum, counters) in simulation.counters.iter_mut().zip(generator.counters()) {
        sum.frames += counters.frames;
        sum.bytes += counters.bytes;
        sum.unsent += counters.unsent;
        // Every worker counts all starts.
        sum.starts = sum.starts.max(counters.starts);
    }
    Ok(())
}

impl Simulation {
    /// Encodes the frames as a pcap file.
    ///
    /// # Errors
    /// Returns an error if a frame leaves after the year 2106.
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
