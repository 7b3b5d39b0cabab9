//! Configurations and their frames.

use std::num::NonZeroU64;

use wirestorm_base::time::Duration;
use wirestorm_model::stream::Stream;
use wirestorm_otg::proto::Config;
use wirestorm_otg::{Lowered, Resolve, from_json, lower};
use wirestorm_sim::streams::{SimulationOptions, simulate};

/// Returns a configuration of `tests/fixtures`, without warnings.
pub(crate) fn fixture(name: &str) -> Config {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let text = std::fs::read_to_string(format!("{directory}/{name}.json")).unwrap();
    let (config, warnings) = from_json(&text).unwrap();
    assert_eq!(warnings, [], "{name}");
    config
}

/// Decodes two ports and these flows. Flows leave by `p1` unless they say otherwise.
pub(crate) fn with_flows(flows: &str) -> Config {
    let text = format!(
        r#"{{"ports": [{{"name": "p1"}}, {{"name": "p2"}}], "flows": {}}}"#,
        flows.replace("TX_RX", r#""tx_rx": {"port": {"tx_name": "p1", "rx_names": ["p2"]}}"#)
    );
    let (config, warnings) = from_json(&text).unwrap();
    assert_eq!(warnings, []);
    config
}

/// Decodes two ports and a flow with these headers and other fields.
pub(crate) fn with_flow(packet: &str, more: &str) -> Config {
    with_flows(&format!(r#"[{{"name": "f", TX_RX, "packet": {packet} {more}}}]"#))
}

/// Translates a configuration that has no errors.
pub(crate) fn lowered(config: &Config) -> Lowered {
    lower(config, &Resolve::default()).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Returns the errors of a configuration.
pub(crate) fn errors(config: &Config) -> Vec<String> {
    let errors = lower(config, &Resolve::default()).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

/// Returns the first frames of a stream.
pub(crate) fn frames(stream: &Stream, count: u64) -> Vec<Vec<u8>> {
    let options = SimulationOptions {
        frames_max: count,
        workers: NonZeroU64::MIN,
        duration_max: Duration::MAX,
    };
    let simulation = simulate(std::slice::from_ref(stream), &options).unwrap();
    simulation.frames.into_iter().map(|frame| frame.bytes).collect()
}

/// Returns the first frames of the only flow of a configuration.
pub(crate) fn frames_of(config: &Config, count: u64) -> Vec<Vec<u8>> {
    frames(&lowered(config).plan.flows[0].stream, count)
}

/// Returns the first frames of a packet.
pub(crate) fn packet_frames(packet: &str, count: u64) -> Vec<Vec<u8>> {
    frames_of(&with_flow(packet, ""), count)
}

/// Returns bytes as a number in network order.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Returns hexadecimal digits as bytes.
pub(crate) fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        digits.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
