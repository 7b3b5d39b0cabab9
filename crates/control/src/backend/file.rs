//! A capture file that is written. No interface has it, so it is in no list.

use std::path::Path;

use wirestorm_io::pcap::PcapTransmit;

use super::{Descriptor, Probe, TransmitPort};
use crate::inventory::Grade;
use crate::port::Choice;

/// A capture file.
pub(crate) static FILE: Descriptor = Descriptor {
    name: "pcap",
    summary: "a capture file",
    has_interface: false,
    is_shared: false,
    owns_cpu: false,
    knows_partial_checksums: true,
    feeds_kernel: false,
    privileges: &[],
    link_layers: (&[], "none"),
    rank: u8::MAX,
    probe: |_, _| Probe::NotConsidered,
    probe_both_ways: None,
    refusal: |_, _| None,
    repair: |_, _| None,
    finding: |_, _| (Grade::Missing, "not for interfaces"),
    open: |_, _, _| Err("a capture file is written with --write".into()),
    open_both_ways: |_, _, _, _| Err("a capture file is only written".into()),
};

/// A port that writes a capture file.
///
/// # Errors
/// What the system said.
pub(crate) fn create(path: &Path) -> Result<(TransmitPort, Choice), String> {
    let port = PcapTransmit::create(path).map_err(|error| error.to_string())?;
    Ok((port.into(), Choice { backend: &FILE, why: "asked for with --write".into() }))
}
