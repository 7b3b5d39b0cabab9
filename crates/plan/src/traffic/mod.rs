//! Traffic plans: flows of frames and their ports, in YAML or JSON with the vocabulary of Open
//! Traffic Generator.

mod advance_order;
mod bytes;
mod captured_packet;
mod duration;
mod flow;
mod multiply;
mod packet;
mod pattern;
mod schema;
mod size;
mod template;

pub use duration::FlowDuration;
pub use flow::Flow;
pub use schema::schema;
pub use size::{FRAME_WITH_FCS_MAX, FrameSize};
pub use template::AutoAddresses;

pub use crate::document::address::parse_address;
pub use crate::document::error::{PlanError, PlanErrors};
pub use crate::document::port::Port;
pub use crate::document::rate::{RequestedRate, parse as parse_rate};
pub use crate::document::schema::time as time_schema;
pub use crate::document::time::parse_time;

use crate::document;
use crate::document::error::ErrorCollector;
use crate::document::port::{PORT, read_ports};
use crate::document::value_at::ValueAt;
use crate::multiplier::Multiplier;
use serde_json::Value;
use wirestorm_base::rate::Rate;
use wirestorm_model::stream::{Mode, Stream};

const PLAN: [&str; 2] = ["ports", "flows"];

/// A parsed traffic plan.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficPlan {
    /// Ports that send or receive.
    pub ports: Vec<Port>,
    /// Flows of frames.
    pub flows: Vec<Flow>,
}

/// Parses YAML or JSON to a generic value, without reading it as a plan.
///
/// # Errors
/// Returns an error if the text is neither YAML nor JSON.
pub fn read_document(text: &str) -> Result<Value, PlanError> {
    document::read(text)
}

impl TrafficPlan {
    /// Reads a plan in YAML or JSON. A flow from a capture is an error.
    ///
    /// # Errors
    /// Returns all errors of the plan, each with its path.
    pub fn parse(text: &str) -> Result<Self, PlanErrors> {
        Self::parse_with(text, |_, _| Err("this reader cannot load captures".to_owned()))
    }

    /// Reads a plan in YAML or JSON. `load` returns a frame of a capture: an Ethernet frame without
    /// FCS, or the reason why there is none. Its arguments are the file name as in the plan and the
    /// packet number from 1.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(
        text: &str,
        mut load: impl FnMut(&str, u64) -> Result<Vec<u8>, String>,
    ) -> Result<Self, PlanErrors> {
        let document = document::read(text)?;
        let root = ValueAt::root(&document);
        let fields = root.fields(&PLAN)?;
        let mut problems = ErrorCollector::default();
        let ports = problems.take(fields.required("ports", "a list of ports"));
        let ports = ports.map_or_else(Vec::new, |it| read_ports(&it, &PORT, &mut problems));
        let flows = problems.take(fields.required("flows", "a list of flows"));
        let flows = flows.map(|flows| flow::read_flows(&flows, &ports, &mut load, &mut problems));
        let flows = flows.unwrap_or_default();
        problems.finish(Self { ports, flows })
    }

    /// Returns the streams of a port, each with the index of its flow in the plan. `next` of a
    /// stream indexes the returned list.
    ///
    /// The plan's `speed` takes precedence over `bits_per_second`, the line rate of the port. A
    /// multiplier does not change the duration of flows that last for a time.
    ///
    /// # Errors
    /// Returns an error if the multiplier or a rate needs the unknown line rate, or if a multiplied
    /// rate is out of range. The next flow must leave the same port.
    pub fn streams(
        &self,
        port: usize,
        bits_per_second: Option<Rate>,
        multiplier: Multiplier,
    ) -> Result<Vec<(usize, Stream)>, PlanErrors> {
        let mut problems = ErrorCollector::default();
        let speed = self.ports.get(port).and_then(|port| port.speed).or(bits_per_second);
        let chosen: Vec<usize> =
            (0..self.flows.len()).filter(|&index| self.flows[index].tx_port == port).collect();
        let mut streams = Vec::new();
        for &index in &chosen {
            let flow = &self.flows[index];
            let mut stream = flow.stream.clone();
            let error = |field: &str, message: &str| PlanError {
                path: format!("{}.{field}", flow.path),
                message: message.to_owned(),
            };
            match problems.take(flow.rate.on_port(speed).map_err(|text| error("rate", text))) {
                Some(speed) => stream.transmission.speed = speed,
                None => continue,
            }
            streams.push((index, stream));
        }
        if multiplier != Multiplier::ONE {
            let outcome = multiply::multiply(&mut streams, multiplier, speed);
            let path = self.ports.get(port).map_or_else(String::new, |port| port.name.clone());
            problems.take(outcome.map_err(|message| PlanError {
                path: format!("multiplier, port {path}"),
                message,
            }));
        }
        for (index, stream) in &mut streams {
            let flow = &self.flows[*index];
            let error = |field: &str, message: &str| PlanError {
                path: format!("{}.{field}", flow.path),
                message: message.to_owned(),
            };
            if let Some(time) = flow.duration {
                stream.transmission.mode = Mode::Time { duration: time };
            }
            if let Some(next) = stream.transmission.next {
                let place = chosen.iter().position(|&other| other == next);
                let message = "found a flow of another port, expected one of the same";
                stream.transmission.next =
                    problems.take(place.ok_or_else(|| error("next", message)));
            }
        }
        problems.finish(streams)
    }
}
