//! Conversion of errors to the exceptions of `wirestorm.errors`.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wirestorm_control::RunError;
use wirestorm_control::emulation::EmulationError;
use wirestorm_control::plan::traffic::PlanErrors;
use wirestorm_control::traffic::{SimulateError, TrafficError};

/// Builds a `ValueError` for an invalid argument.
pub(crate) fn value_error(message: String) -> PyErr {
    PyValueError::new_err(message)
}

/// Builds a `PlanError` with the path and message of each error.
pub(crate) fn plan_error(py: Python<'_>, errors: &PlanErrors) -> PyErr {
    let errors: Vec<_> =
        errors.iter().map(|error| (error.path.clone(), error.message.clone())).collect();
    exception(py, "PlanError", (errors,))
}

/// Builds a `PlanError` from an error whose text begins with its path.
pub(crate) fn plan_error_of(py: Python<'_>, error: &impl std::error::Error) -> PyErr {
    let text = error.to_string();
    let (path, message) = text.split_once(": ").unwrap_or(("streams", &text));
    exception(py, "PlanError", (vec![(path.to_owned(), message.to_owned())],))
}

/// Builds a `RunError` with a message.
pub(crate) fn run_error(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "RunError", (message,))
}

pub(crate) fn simulate_error(py: Python<'_>, error: &SimulateError) -> PyErr {
    match error {
        SimulateError::Plan(errors) => plan_error(py, errors),
        other => run_error(py, &other.to_string()),
    }
}

/// Converts the error of a run that has no result.
pub(crate) fn run_failure(py: Python<'_>, error: &Arc<RunError>) -> PyErr {
    if let Some(TrafficError::Plan(errors)) = error.downcast_ref() {
        return plan_error(py, errors);
    }
    // Their texts name flags of the command line, which Python does not have.
    if let Some(TrafficError::Unbound(port)) = error.downcast_ref() {
        return unbound(py, port);
    }
    if let Some(EmulationError::Unbound(port)) = error.downcast_ref() {
        return unbound(py, port);
    }
    run_error(py, &with_python_names(&error.to_string()))
}

fn unbound(py: Python<'_>, port: &str) -> PyErr {
    let message = format!(
        "port {port:?} has no interface: bind it with ports={{{port:?}: \"INTERFACE\"}}, \
         or give it a location"
    );
    run_error(py, &message)
}

/// Replaces flags of the command line by the Python arguments.
fn with_python_names(message: &str) -> String {
    message.replace("--force-interface", "force_interface=True")
}

fn exception<'py, A>(py: Python<'py>, name: &str, arguments: A) -> PyErr
where
    A: pyo3::call::PyCallArgs<'py>,
{
    let made = py
        .import("wirestorm.errors")
        .and_then(|module| module.getattr(name))
        .and_then(|class| class.call1(arguments));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
