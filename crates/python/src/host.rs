//! Hosts that answer ARP, neighbour solicitations and pings, frame by frame.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wirestorm_control::plan::traffic::parse_address;
use wirestorm_control::stack;
use wirestorm_control::wire::packet::MacAddress;

use crate::errors::value_error;

/// A host on untagged Ethernet that answers ARP, neighbour discovery and pings.
#[pyclass(frozen, module = "wirestorm._native")]
pub(crate) struct Host(stack::Host);

#[pymethods]
impl Host {
    /// Creates a host with a MAC address and IPv4 or IPv6 addresses, each with its prefix length.
    ///
    /// Raises ValueError for an invalid address.
    #[new]
    fn new(mac: &str, addresses: Vec<String>) -> PyResult<Self> {
        let mac: MacAddress =
            mac.parse().map_err(|error| value_error(format!("mac {mac:?}: {error}")))?;
        let parse = |text: &String| {
            parse_address(text).ok_or_else(|| {
                value_error(format!(
                    "address {text:?}: expected an address with prefix length, such as 10.0.0.1/24"
                ))
            })
        };
        let addresses = addresses.iter().map(parse).collect::<PyResult<_>>()?;
        Ok(Self(stack::Host { mac, addresses, ..stack::Host::default() }))
    }

    /// Returns the answer to a frame, None if it needs no answer. Frames are without FCS.
    fn answer<'py>(&self, py: Python<'py>, frame: &[u8]) -> Option<Bound<'py, PyBytes>> {
        match self.0.handle_frame(frame) {
            stack::HostEvent::Reply(answer) => Some(PyBytes::new(py, &answer)),
            _ => None,
        }
    }

    /// Returns gratuitous ARP frames and unsolicited neighbour advertisements for its addresses.
    fn announcements<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.0.announcements().iter().map(|frame| PyBytes::new(py, frame)).collect()
    }
}
