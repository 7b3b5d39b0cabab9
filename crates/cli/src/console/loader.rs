//! Plans and profiles for the console, read as by `run` and `emulate`.

use std::collections::BTreeMap;
use std::path::Path;

use wirestorm_api::plan::PlanPort;
use wirestorm_api::run::{TrexProfile, TrexStreams};
use wirestorm_console::{LoadRequest, LoadedPlan, PlanLoader};
use wirestorm_control::files::HostFiles;
use wirestorm_control::plan::load::{LoadedPlan as Plan, PlanFile, PlanKind, Profile};
use wirestorm_control::plan::traffic::Port;

use crate::traffic::trex::{Evaluated, ProfileArguments, TrexOnlyOptions, evaluate};

/// Reads plans and profiles of this machine.
pub(super) struct Loader;

impl PlanLoader for Loader {
    fn load(&self, request: LoadRequest<'_>) -> Result<LoadedPlan, String> {
        let LoadRequest { file: path, tunables, .. } = request;
        let file = open(path)?;
        let kind = file.kind();
        if kind == PlanKind::Trex {
            return trex(request, file);
        }
        let unused = TrexOnlyOptions { tunables: !tunables.is_empty(), ..Default::default() };
        unused.reject(path)?;
        let text = file.into_text().unwrap_or_default();
        // Read again for the names of the ports, and for errors with the name of the file.
        let unknown = if kind == PlanKind::Emulation { kind } else { PlanKind::Streams };
        let ports = match open(path)?.load_or(unknown).map_err(|error| error.to_string())? {
            Plan::Streams(plan) => plan_ports(&plan.ports),
            Plan::Emulation(plan) => plan_ports(&plan.ports),
            Plan::Trex(_) => Vec::new(),
        };
        Ok(LoadedPlan::Text { text, ports })
    }
}

fn open(path: &Path) -> Result<PlanFile<'_>, String> {
    PlanFile::open(path, &HostFiles).map_err(|error| error.to_string())
}

fn plan_ports(ports: &[Port]) -> Vec<PlanPort> {
    let port = |port: &Port| PlanPort { name: port.name.clone(), interface: port.location.clone() };
    ports.iter().map(port).collect()
}

/// Reads a profile: streams for each port, or a stateful profile.
fn trex(request: LoadRequest<'_>, file: PlanFile<'_>) -> Result<LoadedPlan, String> {
    let LoadRequest { file: path, ports, tunables } = request;
    let name = path.display();
    let Plan::Trex(profile) = file.load_or(PlanKind::Trex).map_err(|error| error.to_string())?
    else {
        return Err(format!("{name}: expected a TRex profile"));
    };
    let mut streams = BTreeMap::new();
    // A profile without ports runs once, because only its result shows its kind.
    let none = [(0, String::new())];
    let numbered = if ports.is_empty() { &none } else { ports };
    for (number, port) in numbered {
        let arguments =
            ProfileArguments { tunables, direction: (number & 1) as u8, port_id: *number };
        let json =
            |text: &str| serde_json::from_str(text).map_err(|error| format!("{name}: {error}"));
        match evaluate(path, profile.clone(), &arguments)? {
            Evaluated::Help(text) => return Ok(LoadedPlan::Help(text)),
            Evaluated::Profile(Profile::Stateful(text)) => {
                let profile = TrexProfile { profile: json(&text)?, ipv6: false };
                return Ok(LoadedPlan::TrexProfile(profile));
            }
            Evaluated::Profile(Profile::Streams(text)) => {
                let of_port = TrexStreams { interface: port.clone(), streams: Some(json(&text)?) };
                streams.insert(number.to_string(), of_port);
            }
            Evaluated::Profile(Profile::Captures(_)) => {
                return Err(format!(
                    "{name}: a profile of captures does not work on a server; use \
                     `wirestorm emulate {name}` on the machine with the interfaces"
                ));
            }
            Evaluated::Profile(Profile::Python) => {
                return Err(format!("{name}: the profile gave another profile in Python"));
            }
        }
    }
    if ports.is_empty() {
        streams.clear();
    }
    Ok(LoadedPlan::TrexStreams(streams))
}
