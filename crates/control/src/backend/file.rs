//! Output to a capture file. This backend is not in [`BACKENDS`](super::BACKENDS), because it needs
//! no interface.

use std::path::Path;

use wirestorm_io::pcap::PcapTransmit;

use super::{Descriptor, TransmitPort};
use crate::backend::Choice;

/// The capture file backend.
pub(crate) static FILE: Descriptor = Descriptor {
    name: "pcap",
    summary: "a capture file",
    has_interface: false,
    ..Descriptor::TRANSMIT_ONLY
};

/// Creates a capture file and returns a port that writes it.
///
/// # Errors
/// Returns the system error.
pub(crate) fn create(path: &Path) -> Result<(TransmitPort, Choice), String> {
    let port = PcapTransmit::create(path).map_err(|error| error.to_string())?;
    Ok((port.into(), Choice { backend: &FILE, why: "requested with --write".into() }))
}
