//! Commands that send, simulate and show streams: `run`, `sim`, `frames`, `send`, `line-rate`.

mod control;
pub(crate) mod frames;
pub(crate) mod line_rate;
mod live;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod sim;
mod table;
pub(crate) mod trex;

use std::fmt::Display;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::ExitCode;

use wirestorm_control::base::rate::Rate;
use wirestorm_control::base::time::Duration;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_control::plan::traffic::{
    PlanError, PlanErrors, Port, TrafficPlan, parse_time, read_document,
};
use wirestorm_control::{emulation, traffic};

pub(crate) use live::bar;
pub(crate) use table::{clipped, shortened};

use crate::status;

/// The speed of ports that nobody told: what percentages and bit rates are of in `sim` and
/// `frames`.
const SPEED: &str = "10G";

/// A plan of either kind.
enum AnyPlan {
    /// Of flows of frames.
    Traffic(TrafficPlan),
    /// Of clients and servers.
    Emulation(EmulationPlan),
}

/// Reads a plan from a file, or from standard input for `-`. What the plan names is found from
/// where it is itself.
fn read_any_plan(path: &Path) -> Result<AnyPlan, String> {
    let text = read_text(path)?;
    let failed = |errors: PlanErrors| listed(path, &errors);
    let folder = path.parent().unwrap_or(Path::new(""));
    let document = read_document(&text);
    if document.as_ref().is_ok_and(EmulationPlan::is_meant) {
        return emulation::read_plan(&text, folder).map(AnyPlan::Emulation).map_err(failed);
    }
    if document.is_ok_and(|document| document.is_null()) {
        return Err(format!(
            "{}: found nothing, expected a plan: fields `ports` and `flows` of frames to be sent, \
             or `ports` and `templates` of clients and servers",
            path.display()
        ));
    }
    traffic::read_plan(&text, folder).map(AnyPlan::Traffic).map_err(failed)
}

/// Whether a text is, or means to be, a plan of flows of frames.
pub(crate) fn is_of_flows(text: &str) -> bool {
    read_document(text).is_ok_and(|document| {
        document.get("flows").is_some() && !EmulationPlan::is_meant(&document)
    })
}

/// Reads a plan of flows of frames.
fn read_plan(path: &Path) -> Result<TrafficPlan, String> {
    match read_any_plan(path)? {
        AnyPlan::Traffic(plan) => Ok(plan),
        AnyPlan::Emulation(_) => {
            let name = path.display();
            Err(format!(
                "{name}: a plan of clients and servers, which `wirestorm emulate {name}` runs"
            ))
        }
    }
}

/// What is wrong with a plan, a line each.
pub(crate) fn listed(path: &Path, errors: &PlanErrors) -> String {
    let line = |error: &PlanError| match error.is_of_whole() {
        true => format!("{}: {}", path.display(), error.message),
        false => format!("{}: {error}", path.display()),
    };
    errors.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Reads a file, or standard input for `-`.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let name = path.display();
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => format!("{name}: a directory, expected a file"),
        _ => format!("{name}: {error}"),
    })?;
    if is_capture(&bytes) {
        return Err(format!(
            "{name}: a capture, which `wirestorm replay {name}` sends; flows in it are what \
             `conversation` of a plan plays"
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("{name}: found bytes that are no UTF-8 at offset {at}, expected a text")
    })
}

/// Whether a file begins as pcap or pcapng does, in either order of bytes.
fn is_capture(bytes: &[u8]) -> bool {
    const PCAPNG: u32 = 0x0a0d_0d0a;
    /// With microseconds, and with nanoseconds.
    const PCAP: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];
    let Some(first) = bytes.first_chunk() else { return false };
    let orders = [u32::from_le_bytes(*first), u32::from_be_bytes(*first)];
    orders.contains(&PCAPNG) || PCAP.iter().any(|magic| orders.contains(magic))
}

/// The interface of each port, where `--port` says it.
pub(crate) fn bind(ports: &[Port], bindings: &[String]) -> Result<Vec<Option<String>>, String> {
    let mut interfaces: Vec<Option<String>> = vec![None; ports.len()];
    for binding in bindings {
        let Some((name, interface)) = binding.split_once('=') else {
            return Err(format!("--port {binding:?}: expected NAME=INTERFACE"));
        };
        let Some(place) = ports.iter().position(|port| port.name == name) else {
            let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
            return Err(format!("--port {binding:?}: the plan's ports are {}", names.join(", ")));
        };
        if let Some(other) = interfaces[place].replace(interface.to_owned()) {
            return Err(format!("--port {binding:?}: {name} is {other} already"));
        }
    }
    Ok(interfaces)
}

/// Reads a time with its unit.
pub(crate) fn read_time(option: &str, text: &str) -> Result<Duration, String> {
    parse_time(text).ok_or_else(|| {
        format!("{option} {text:?}: expected a time with its unit, such as 30s, 500ms or 2min")
    })
}

/// Reads bits a second.
fn read_speed(option: &str, text: &str) -> Result<Rate, String> {
    Rate::parse_per_second(text, 1)
        .map_err(|error| format!("{option} {text:?}: {error}; expected bits a second, such as 10G"))
}

/// Reads what rates are multiplied by.
fn read_multiplier(option: &str, text: &str) -> Result<Multiplier, String> {
    Multiplier::parse(text).ok_or_else(|| {
        format!(
            "{option} {text:?}: expected a factor such as 2 or 0.5, more than 0, or what all flows \
             of a port are to send together: 50%, 10kpps, 1gbps (frames with FCS), 1gbpsl1 (all of the wire)"
        )
    })
}

/// Says what is wrong with the input, and the status for it.
pub(crate) fn usage(message: impl Display) -> ExitCode {
    eprintln!("wirestorm: {message}");
    ExitCode::from(status::USAGE)
}
