//! Hosts that answer what they are asked, frame by frame.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wirestorm_control::plan::traffic::parse_address;
use wirestorm_control::stack;
use wirestorm_control::wire::packet::MacAddress;

use crate::errors::value_error;

/// A host on an Ethernet, without VLAN tags, that answers ARP, neighbour discovery and pings.
#[pyclass(frozen, module = "wirestorm._native")]
pub(crate) struct Host(stack::Host);

#[pymethods]
impl Host {
    /// A host with addresses of both families, each with the length of its network's prefix.
    /// Raises ValueError where one is none.
    #[new]
    fn new(mac: &str, addresses: Vec<String>) -> PyResult<Self> {
        let mac: MacAddress =
            mac.parse().map_err(|error| value_error(format!("mac {mac:?}: {error}")))?;
        let parse = |text: &String| {
            parse_address(text).ok_or_else(|| {
                value_error(format!("address {text:?}: expected for instance 10.0.0.1/24"))
            })
        };
        let addresses = addresses.iter().map(parse).collect::<PyResult<_>>()?;
        Ok(Self(stack::Host { mac, addresses, ..stack::Host::default() }))
    }

    /// The frame that answers a frame, None where there is nothing to answer; both without FCS.
    fn answer<'py>(&self, py: Python<'py>, frame: &[u8]) -> Option<Bound<'py, PyBytes>> {
        match self.0.hear(frame) {
            stack::Heard::Question(answer) => Some(PyBytes::new(py, &answer)),
            _ => None,
        }
    }

    /// Frames that tell all neighbours where its addresses are.
    fn announcements<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.0.announcements().iter().map(|frame| PyBytes::new(py, frame)).collect()
    }
}
