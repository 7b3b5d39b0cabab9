//! Properties that hold for any input. The targets in `fuzz/` generate inputs with libFuzzer; a
//! test of this crate replays the inputs in `fuzz/corpus`.

pub mod capture_decoder;
pub mod conversations;
pub mod dissect_and_edit;
pub mod flow_collector;
pub mod fragments;
pub mod host;
pub mod http2;
pub mod indexer_and_worker;
pub mod option_values;
pub mod otg;
pub mod pktgen;
pub mod plan_emulation;
pub mod plan_traffic;
pub mod program_content;
pub mod ptp;
pub mod receive;
pub mod segments;
pub mod tcpprep_cache;
#[cfg(feature = "server")]
pub mod trex_rpc;

use arbitrary::{Arbitrary, Unstructured};

/// Checks one input.
pub type Target = fn(&[u8]);

/// Targets with the names of their folders in `fuzz/corpus`.
pub const TARGETS: &[(&str, Target)] = &[
    ("capture_decoder", capture_decoder::run),
    ("conversations", conversations::run),
    ("dissect_and_edit", dissect_and_edit::run),
    ("flow_collector", flow_collector::run),
    ("fragments", fragments::run),
    ("host", host::run),
    ("http2", http2::run),
    ("indexer_and_worker", indexer_and_worker::run),
    ("program_content", program_content::run),
    ("ptp", ptp::run),
    ("pktgen", pktgen::run),
    ("plan_emulation", plan_emulation::run),
    ("plan_traffic", plan_traffic::run),
    ("option_values", option_values::run),
    ("otg", otg::run),
    ("receive", receive::run),
    ("segments", segments::run),
    ("tcpprep_cache", tcpprep_cache::run),
    #[cfg(feature = "server")]
    ("trex_rpc", trex_rpc::run),
];

/// Builds a value from an input like libFuzzer's macro; `None` if the input is too short.
fn arbitrary_input<'a, T: Arbitrary<'a>>(input: &'a [u8]) -> Option<T> {
    if input.len() < T::size_hint(0).0 {
        return None;
    }
    T::arbitrary_take_rest(Unstructured::new(input)).ok()
}
