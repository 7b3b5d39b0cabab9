//! The native module `wirestorm._native` of the Python package `wirestorm`.
//!
//! It takes plans as text and returns results as JSON or plain values. The package
//! `python/wirestorm` has the public classes, and the type stubs of this module.

mod background;
mod emulation;
mod errors;
mod host;
mod interface;
mod lease;
mod run;
mod trex;

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wirestorm_control::base::rate::{Layer, Rate};
use wirestorm_control::base::time::Duration;
use wirestorm_control::files::HostFiles;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::load;
use wirestorm_control::plan::traffic::{self, TrafficPlan, parse_time};
use wirestorm_control::traffic::{Preview, SimulateOptions, preview, simulate};
use wirestorm_control::wire::layout;

use errors::{plan_error, simulate_error, value_error};

/// Native part of wirestorm. Use the package `wirestorm`, which is typed and documented.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::emulation::{Emulation, trex_emulate};
    #[pymodule_export]
    use super::host::Host;
    #[pymodule_export]
    use super::interface::interface;
    #[pymodule_export]
    use super::lease::{Lease, lease};
    #[pymodule_export]
    use super::run::Run;
    #[pymodule_export]
    use super::trex::{trex_load, trex_start, trex_update};
    #[pymodule_export]
    use super::{check, document, frames, headers, line_rate, simulation};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Raises PlanError if a plan in YAML or JSON is invalid.
///
/// Here and below, relative paths in the plan start at `folder`.
#[pyfunction]
fn check(py: Python<'_>, plan: &str, folder: PathBuf) -> PyResult<()> {
    parse(py, plan, &folder).map(drop)
}

/// Converts a plan in YAML or JSON to JSON, without validation.
#[pyfunction]
fn document(py: Python<'_>, plan: &str) -> PyResult<String> {
    let document = traffic::read_document(plan).map_err(|error| plan_error(py, &error.into()))?;
    Ok(document.to_string())
}

/// Returns the first frames of each flow: flow name, time since the start in ns, bytes without FCS.
#[pyfunction]
fn frames<'py>(
    py: Python<'py>,
    plan: &str,
    folder: PathBuf,
    count: u64,
    speed: &str,
) -> PyResult<Vec<(String, u64, Bound<'py, PyBytes>)>> {
    let plan = parse(py, plan, &folder)?;
    let speed = read_speed(speed)?;
    let previews = py.detach(|| preview(&plan, count, speed));
    let entry = |preview: Preview| {
        let name = plan.flows[preview.flow].stream.name.clone();
        (name, preview.departure.as_nanos(), PyBytes::new(py, &preview.frame))
    };
    Ok(previews.map_err(|errors| plan_error(py, &errors))?.into_iter().map(entry).collect())
}

/// Writes the frames of a plan to capture files. Returns name, file, frames and bytes of each port.
#[pyfunction]
// The Python function has one keyword for each argument.
#[expect(clippy::too_many_arguments)]
fn simulation(
    py: Python<'_>,
    plan: &str,
    folder: PathBuf,
    output: PathBuf,
    packets: Option<u64>,
    duration: Option<&str>,
    speed: &str,
    multiplier: &str,
) -> PyResult<Vec<(String, PathBuf, u64, u64)>> {
    let plan = parse(py, plan, &folder)?;
    let options = SimulateOptions {
        output,
        packets: packets.unwrap_or(u64::MAX),
        duration: read_duration("duration", duration)?,
        speed: read_speed(speed)?,
        multiplier: read_multiplier(multiplier)?,
    };
    let simulated = py.detach(|| simulate(&plan, &options));
    let simulated = simulated.map_err(|error| simulate_error(py, &error))?;
    Ok(simulated.into_iter().map(|it| (it.port, it.file, it.packets, it.bytes)).collect())
}

/// Returns the maximum frame rate of a speed, with preamble and inter-frame gap.
#[pyfunction]
fn line_rate(speed: &str, frame_size: u64) -> PyResult<f64> {
    let fcs = Layer::FrameWithFcs.overhead();
    let bytes = frame_size.checked_sub(fcs).filter(|bytes| (14..=65_535).contains(bytes));
    let Some(bytes) = bytes else {
        let message = format!("a frame with FCS of {frame_size} bytes: expected 18 to 65539");
        return Err(value_error(message));
    };
    let frames = read_speed(speed)?.scaled(1, (bytes + Layer::Wire.overhead()) * 8);
    frames.map(Rate::per_second).map_err(|error| value_error(error.to_string()))
}

/// A header: name, description, field names, and the name of its item list if it has one.
type HeaderWords = (&'static str, &'static str, Vec<&'static str>, Option<&'static str>);

/// Returns the headers that a packet can have: name, description, field names, and the name of the
/// item list.
#[pyfunction]
fn headers() -> Vec<HeaderWords> {
    let entry = |layout: &&'static layout::Layout| {
        let fields = layout.fields.iter().map(|field| field.name).collect();
        let items = Some(layout.items.name).filter(|name| !name.is_empty());
        (layout.name, layout.description, fields, items)
    };
    layout::all().iter().map(entry).collect()
}

fn parse(py: Python<'_>, plan: &str, folder: &Path) -> PyResult<TrafficPlan> {
    load::streams(plan, folder, &HostFiles).map_err(|errors| plan_error(py, &errors))
}

fn read_speed(text: &str) -> PyResult<Rate> {
    Rate::parse_per_second(text, 1).map_err(|error| {
        value_error(format!("speed {text:?}: {error}; expected bits per second, such as 10G"))
    })
}

fn read_multiplier(text: &str) -> PyResult<Multiplier> {
    Multiplier::parse(text).ok_or_else(|| {
        let expected =
            "expected a factor such as 2, 50%, or a rate such as 10kpps, 1gbps or 1gbpsl1";
        value_error(format!("multiplier {text:?}: {expected}"))
    })
}

fn read_duration(name: &str, text: Option<&str>) -> PyResult<Duration> {
    let Some(text) = text else { return Ok(Duration::MAX) };
    parse_time(text).ok_or_else(|| {
        let expected = "expected a time with its unit, such as 30s, 500ms or 2min";
        value_error(format!("{name} {text:?}: {expected}"))
    })
}
