//! A capture file that is written. No interface has it, so it is in no list.

use std::path::Path;

use wirestorm_io::pcap::PcapTransmit;

use super::{Descriptor, TransmitPort};
use crate::port::Choice;

/// A capture file.
pub(crate) static FILE: Descriptor = Descriptor {
    name: "pcap",
    summary: "a capture file",
    has_interface: false,
    ..Descriptor::SENDS_ON_REQUEST
};

/// A port that writes a capture file.
///
/// # Errors
/// What the system said.
pub(crate) fn create(path: &Path) -> Result<(TransmitPort, Choice), String> {
    let port = PcapTransmit::create(path).map_err(|error| error.to_string())?;
    Ok((port.into(), Choice { backend: &FILE, why: "asked for with --write".into() }))
}
