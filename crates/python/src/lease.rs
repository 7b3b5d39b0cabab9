//! Locks that keep other processes from using interfaces.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use wirestorm_control::host;

use crate::background::HOST;
use crate::errors::run_error;

/// Keeps other processes from transmitting on an interface until it is released or deleted.
#[pyclass(frozen, module = "wirestorm._native")]
pub(crate) struct Lease(Mutex<Option<host::Lease>>);

#[pymethods]
impl Lease {
    /// Unlocks the interface as soon as no run of this process uses it.
    fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Locks an interface, such as eth1 or netns/NAME:veth0. Runs of this process can still use it.
///
/// Raises RunError with the process if another process has locked it.
#[pyfunction]
pub(crate) fn lease(py: Python<'_>, interface: &str) -> PyResult<Lease> {
    let taken = HOST.reserve(interface, "");
    let lease = taken.map_err(|error| run_error(py, &error.to_string()))?;
    Ok(Lease(Mutex::new(Some(lease))))
}
