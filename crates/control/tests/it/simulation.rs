//! Simulations of plans in virtual time, for the other modules.

use std::path::PathBuf;
use std::sync::Arc;

use wirestorm_base::time::Duration;
use wirestorm_control::emulation::{Part, SimulationOptions, WatchOptions, simulate};
use wirestorm_control::files::HostFiles;
use wirestorm_control::result::RunResult;
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_testkit::Scratch;
use wirestorm_wire::capture::Records;
use wirestorm_wire::conversation::{Conversation, ImportLimits, Importer};

/// Options of a full simulation: 1 s, a round trip of 2 ms, no capture.
pub(crate) fn options() -> SimulationOptions {
    SimulationOptions {
        files: Arc::new(HostFiles),
        output: None,
        part: Part::Full,
        limit: None,
        duration: Duration::from_secs(1),
        watch: WatchOptions::default(),
        drain_timeout: Duration::from_secs(2),
        round_trip: Duration::from_millis(2),
        flows_max: 1_000,
        seed: 1,
        folder: PathBuf::new(),
    }
}

/// Simulates a plan. Returns the result and the capture of the first port, which are the clients.
pub(crate) fn captured(plan: &EmulationPlan, options: SimulationOptions) -> (RunResult, Vec<u8>) {
    let scratch = Scratch::new().unwrap();
    let options = SimulationOptions { output: Some(scratch.file("out.pcap")), ..options };
    let (result, files) = simulate(plan, &options).unwrap();
    (result, std::fs::read(&files[0]).unwrap())
}

/// Returns the conversations of a capture in the order of their first packets.
pub(crate) fn conversations(capture: &[u8]) -> Vec<Conversation> {
    let mut importer = Importer::new(ImportLimits::default());
    for record in Records::new(capture) {
        let (header, frame) = record.unwrap();
        importer.take(&header, frame).unwrap();
    }
    importer.finish().flows.into_iter().map(|flow| flow.unwrap()).collect()
}
