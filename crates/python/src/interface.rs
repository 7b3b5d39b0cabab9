//! Properties of an interface.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wirestorm_control::link::{Link, LinkKind};
use wirestorm_control::namespace::InterfaceName;
use wirestorm_control::wire::packet::MacAddress;

use crate::errors::run_error;

/// Returns the current properties of an interface, such as eth1 or netns/NAME:veth0.
///
/// A property that the driver does not report is None. Raises RunError if the interface does not
/// exist.
#[pyfunction]
pub(crate) fn interface<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let opened = name
        .parse::<InterfaceName>()
        .map_err(|error| error.to_string())
        .and_then(|name| Link::open(&name).map_err(|error| error.to_string()));
    let link = opened.map_err(|message| run_error(py, &message))?;
    let dict = PyDict::new(py);
    dict.set_item("name", &link.name)?;
    dict.set_item("index", link.index)?;
    dict.set_item("mac", link.mac.map(|mac| MacAddress(mac).to_string()))?;
    dict.set_item("mtu", link.mtu)?;
    dict.set_item("is_up", link.up)?;
    dict.set_item("has_carrier", link.running)?;
    dict.set_item("is_promiscuous", link.promiscuous)?;
    dict.set_item("is_virtual", link.kind != LinkKind::Physical)?;
    dict.set_item("driver", link.driver.as_ref().map(|driver| &driver.name))?;
    dict.set_item("bus", link.driver.as_ref().map(|driver| &driver.bus))?;
    dict.set_item("speed_bps", link.speed.map(|rate| rate.per_second() as u64))?;
    dict.set_item("counters", counters(py, &link)?)?;
    Ok(dict)
}

fn counters<'py>(py: Python<'py>, link: &Link) -> PyResult<Bound<'py, PyDict>> {
    let counted = &link.counters;
    let dict = PyDict::new(py);
    for (name, value) in [
        ("rx_packets", counted.receive_packets),
        ("tx_packets", counted.transmit_packets),
        ("rx_bytes", counted.receive_bytes),
        ("tx_bytes", counted.transmit_bytes),
        ("rx_errors", counted.receive_errors),
        ("tx_errors", counted.transmit_errors),
        ("rx_dropped", counted.receive_dropped),
        ("tx_dropped", counted.transmit_dropped),
        ("rx_missed", counted.receive_missed),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
