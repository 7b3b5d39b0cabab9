//! Arbitrary text as a plan of clients and servers: errors with messages, or programs of which a
//! few flows run against each other.

use std::path::PathBuf;

use wirestorm_base::time::Duration;
use wirestorm_control::emulation::{Part, SimulationOptions, WatchOptions, simulate};
use wirestorm_plan::emulation::EmulationPlan;

use crate::arbitrary_input;

/// Number of flows of each template.
const FLOWS: u64 = 4;

/// Checks one input.
pub fn run(input: &[u8]) {
    let Some(text) = arbitrary_input::<&str>(input) else { return };
    let plan = match EmulationPlan::parse(text) {
        Ok(plan) => plan,
        Err(errors) => {
            assert!(errors.iter().count() > 0);
            for error in errors.iter() {
                assert!(!error.path.is_empty() && !error.message.is_empty());
            }
            return;
        }
    };
    // Skip TLS: keys and certificates take long to generate, and may be files.
    if plan.templates.iter().any(|template| template.tls.is_some()) {
        return;
    }
    let options = SimulationOptions {
        files: std::sync::Arc::new(wirestorm_plan::files::NoFiles),
        folder: PathBuf::new(),
        output: None,
        part: Part::Full,
        limit: Some(FLOWS),
        duration: Duration::from_micros(5_000),
        drain_timeout: Duration::from_micros(5_000),
        watch: WatchOptions::default(),
        round_trip: Duration::from_micros(100),
        flows_max: 20,
        seed: 1,
    };
    match simulate(&plan, &options) {
        Ok((result, _)) => {
            for port in &result.ports {
                let connections = port.connections.as_ref().unwrap();
                let (flows, tcp, udp) = (&connections.flows, &connections.tcp, &connections.udp);
                assert_eq!(flows.active, flows.syn_sent + flows.time_wait + flows.unfinished);
                let begun = tcp["connattempt"] + tcp["accepts"];
                let begun = begun + udp["connects"] + udp["accepts"];
                assert_eq!(begun, flows.closed + flows.failed + flows.active);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
