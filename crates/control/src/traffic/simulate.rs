//! Simulation in virtual time: writes the frames of each port with exact departure times to capture
//! files.

use std::io;
use std::path::{Path, PathBuf};

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::port::{PortError, Transmit};
use wirestorm_base::rate::Rate;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::WorkerState;
use wirestorm_engine::stream::{Generator, GeneratorOptions, Share};
use wirestorm_io::pcap::PcapTransmit;
use wirestorm_model::stream::{Mode, Speed, Transmission};
use wirestorm_plan::Multiplier;
use wirestorm_plan::traffic::{Flow, PlanError, PlanErrors, TrafficPlan};
use wirestorm_plan::trex::{LowerOptions, TrexError};
use wirestorm_sim::streams::{self, SimulationOptions};

/// Options of a simulation.
#[derive(Clone, Debug)]
pub struct SimulateOptions {
    /// Output file. With several transmitting ports, each has its own file with the port name
    /// before the extension.
    pub output: PathBuf,
    /// Maximum number of frames for each port.
    pub packets: u64,
    /// Maximum virtual time.
    pub duration: Duration,
    /// Speed in bit/s of ports without `speed` in the plan.
    pub speed: Rate,
    /// Multiplier of the rates of the flows.
    pub multiplier: Multiplier,
}

/// Error that prevented or ended a simulation.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The plan is invalid for these ports.
    #[error(transparent)]
    Plan(#[from] PlanErrors),
    /// The TRex streams are invalid.
    #[error(transparent)]
    Trex(#[from] TrexError),
    /// An output file cannot be created.
    #[error("{path}: {error}")]
    Create {
        /// Output file.
        path: PathBuf,
        /// System error.
        error: io::Error,
    },
    /// Writing an output file failed.
    #[error(transparent)]
    Write(#[from] PortError),
}

/// Frames of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulated {
    /// Name in the plan.
    pub port: String,
    /// Output file.
    pub file: PathBuf,
    /// Number of frames.
    pub packets: u64,
    /// Bytes without FCS.
    pub bytes: u64,
}

/// Writes the frames of each port of a plan to capture files.
///
/// # Errors
/// See [`SimulateError`].
pub fn simulate(
    plan: &TrafficPlan,
    options: &SimulateOptions,
) -> Result<Vec<Simulated>, SimulateError> {
    let sends = |port: &usize| plan.flows.iter().any(|flow| flow.tx_port == *port);
    let ports: Vec<usize> = (0..plan.ports.len()).filter(sends).collect();
    let mut simulated = Vec::new();
    for &index in &ports {
        let name = &plan.ports[index].name;
        let streams = plan.streams(index, Some(options.speed), options.multiplier)?;
        if options.packets == u64::MAX {
            let endless =
                streams.iter().find(|(_, stream)| is_endless_at_top_speed(&stream.transmission));
            endless.map_or(Ok(()), |(flow, _)| Err(endless_at_top_speed(&plan.flows[*flow])))?;
        }
        let streams: Vec<_> = streams.into_iter().map(|(_, stream)| stream).collect();
        let file = if ports.len() == 1 {
            options.output.clone()
        } else {
            with_port_name(&options.output, name)
        };
        let mut port = PcapTransmit::create(&file)
            .map_err(|error| SimulateError::Create { path: file.clone(), error })?;
        let generator_options = GeneratorOptions {
            share: Share::ALL,
            policy: DeparturePolicy::default(),
            duration_max: options.duration,
            frames_max: options.packets,
            virtual_time: true,
            horizon: Duration::ZERO,
            first_number: 0,
        };
        let mut generator = Generator::new(&streams, generator_options, Instant::ZERO);
        while generator.breathe(Instant::ZERO, &mut port)?.state != WorkerState::Done {}
        port.flush()?;
        let counters = port.transmitted();
        simulated.push(Simulated {
            port: name.clone(),
            file,
            packets: counters.sent,
            bytes: counters.sent_bytes,
        });
    }
    Ok(simulated)
}

/// Returns whether all frames of an endless stream leave at the same instant.
fn is_endless_at_top_speed(transmission: &Transmission) -> bool {
    let is_bounded = matches!(transmission.mode, Mode::Burst { .. } | Mode::Bursts { .. });
    transmission.speed == Speed::Max && (!is_bounded || transmission.next.is_some())
}

fn endless_at_top_speed(flow: &Flow) -> PlanErrors {
    let message = "found max, at which no time passes in a simulation, so that no duration ends \
                   it; expected a rate, such as 100%, or a number of packets to simulate";
    PlanErrors::from(PlanError { path: format!("{}.rate", flow.path), message: message.into() })
}

/// Writes the frames of TRex streams, given as the JSON of the TRex client, to a capture file.
///
/// # Errors
/// See [`SimulateError`].
pub fn simulate_trex(
    json: &str,
    trex: &LowerOptions,
    options: &SimulateOptions,
) -> Result<Simulated, SimulateError> {
    let streams = wirestorm_plan::trex::lower(json, trex)?;
    let simulation_options = SimulationOptions {
        frames_max: options.packets,
        workers: trex.cores,
        duration_max: options.duration,
    };
    let simulation = streams::simulate(&streams, &simulation_options)?;
    let file = options.output.clone();
    let create = |error| SimulateError::Create { path: file.clone(), error };
    let bytes = simulation.pcap().map_err(|error| create(io::Error::other(error)))?;
    std::fs::write(&file, bytes).map_err(create)?;
    Ok(Simulated {
        port: "0".into(),
        file,
        packets: simulation.frames.len() as u64,
        bytes: simulation.frames.iter().map(|frame| frame.bytes.len() as u64).sum(),
    })
}

/// Inserts a name before the extension: `out.pcap` for port `a` becomes `out.a.pcap`.
pub(crate) fn with_port_name(path: &Path, name: &str) -> PathBuf {
    let extension = path.extension().map(|it| it.to_string_lossy().into_owned());
    let extension = extension.map_or_else(|| name.to_owned(), |it| format!("{name}.{it}"));
    path.with_extension(extension)
}
