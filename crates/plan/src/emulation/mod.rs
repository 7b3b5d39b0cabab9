//! Plans of emulated clients and servers: who connects to whom, how often, and what both say, as
//! it is written in YAML or JSON, and as it was understood.

mod client;
mod control;
mod names;
mod program;
mod tcp;

use std::collections::BTreeSet;

use serde_json::Value;

pub use client::{AddressRange, Client, Load};
pub use names::{Label, TIMES_MAX, VARIABLES_MAX};
pub use program::{Comparison, Counted, Name, Step, When};
pub use tcp::{Congestion, Tcp};

use crate::document::error::{PlanError, PlanErrors, Problems};
use crate::document::place::Place;
use crate::document::port::{Port, read_ports};

const PLAN: [&str; 2] = ["ports", "templates"];
const TEMPLATE: [&str; 4] = ["name", "client", "server", "tcp"];
const SERVER: [&str; 3] = ["tx", "port", "program"];

/// A plan of clients and servers, understood.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulationPlan {
    /// Where they live.
    pub ports: Vec<Port>,
    /// What they do; one or more.
    pub templates: Vec<Template>,
}

/// Connections of one kind; with a client, a server, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Its name, of no other template.
    pub name: String,
    /// Who makes them.
    pub client: Option<Client>,
    /// Who waits for them.
    pub server: Option<Server>,
    /// How TCP behaves, on both sides.
    pub tcp: Tcp,
    /// Where it stands in the plan.
    pub path: String,
}

/// Who waits for connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The port that it lives on, by its place in the plan.
    pub transmit: usize,
    /// The TCP port that it listens at, at every address.
    pub listen: u16,
    /// What it says.
    pub program: Vec<Step>,
}

impl EmulationPlan {
    /// Whether a document is a plan of this kind, or means to be one.
    pub fn is_meant(document: &Value) -> bool {
        document.get("templates").is_some()
    }

    /// Reads a plan in YAML or JSON.
    ///
    /// # Errors
    /// All that is wrong with it, each with its path.
    pub fn parse(text: &str) -> Result<Self, PlanErrors> {
        let document = crate::document::read(text)?;
        let root = Place::root(&document);
        let fields = root.fields(&PLAN)?;
        let mut problems = Problems::default();
        let ports = problems.take(fields.need("ports", "a list of ports"));
        let ports = ports.map_or_else(Vec::new, |it| read_ports(&it, &mut problems));
        let templates = problems.take(fields.need("templates", "a list of templates"));
        let templates = templates
            .map_or_else(Vec::new, |templates| read_templates(&templates, &ports, &mut problems));
        problems.finish(Self { ports, templates })
    }
}

fn read_templates(place: &Place<'_>, ports: &[Port], problems: &mut Problems) -> Vec<Template> {
    let Some(items) = problems.take(place.items("templates")) else { return Vec::new() };
    if items.is_empty() {
        problems.take::<()>(Err(place.error("no template", "at least one")));
    }
    let mut templates: Vec<Template> = Vec::new();
    let mut listening = BTreeSet::new();
    for item in items {
        let Some(template) = problems.take(read_template(&item, ports)) else { continue };
        if templates.iter().any(|other| other.name == template.name) {
            let found = format!("a second template {:?}", template.name);
            problems.take::<()>(Err(item.error(found, "a name of its own")));
        }
        if let Some(server) = &template.server
            && !listening.insert((server.transmit, server.listen))
        {
            let message = format!(
                "another template has a server at port {} of {:?} already",
                server.listen, ports[server.transmit].name
            );
            problems.take::<()>(Err(item.says(message)));
        }
        templates.push(template);
    }
    templates
}

fn read_template(place: &Place<'_>, ports: &[Port]) -> Result<Template, PlanError> {
    let fields = place.fields(&TEMPLATE)?;
    let name = fields.need("name", "a name")?.text("a name")?.to_owned();
    let client = fields.get("client").map(|it| client::read(&it, ports)).transpose()?;
    let server = fields.get("server").map(|it| read_server(&it, ports)).transpose()?;
    if client.is_none() && server.is_none() {
        return Err(place.error("neither", "client, server, or both"));
    }
    let tcp = fields.get("tcp").map_or(Ok(Tcp::default()), |it| tcp::read(&it))?;
    Ok(Template { name, client, server, tcp, path: place.path() })
}

fn read_server(place: &Place<'_>, ports: &[Port]) -> Result<Server, PlanError> {
    let fields = place.fields(&SERVER)?;
    let transmit = read_port(&fields.need("tx", "the name of a port")?, ports)?;
    let listen = fields.need("port", "the number of a port, such as 80")?;
    let listen = listen.integer(1, u16::MAX.into())? as u16;
    let program = program::read(&fields.need("program", "a list of steps")?)?;
    Ok(Server { transmit, listen, program })
}

/// The place of a port that is named.
fn read_port(place: &Place<'_>, ports: &[Port]) -> Result<usize, PlanError> {
    let name = place.text("the name of a port")?;
    ports.iter().position(|port| port.name == name).ok_or_else(|| {
        let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
        let expected = match names.as_slice() {
            [] => "a port of the plan, which has none".to_owned(),
            names => format!("one of the plan's ports: {}", names.join(", ")),
        };
        place.wrong(expected)
    })
}

#[cfg(test)]
mod tests;
