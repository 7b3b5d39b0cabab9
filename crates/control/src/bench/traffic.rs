//! Traffic that trials refer to by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wirestorm_plan::files::Files;
use wirestorm_plan::load;
use wirestorm_plan::traffic::{TrafficPlan, read_document};

use super::clients::ClientsTraffic;

/// Traffic by name. The names `ipv4` and `ipv6` are built in: UDP without a VLAN tag.
pub type NamedTraffic = BTreeMap<String, TrafficDefinition>;

/// What the frames of a traffic are.
#[derive(Clone, Debug)]
pub enum TrafficDefinition {
    /// UDP frames with these headers.
    Headers(Headers),
    /// The flows of a plan. Their rates keep their proportions.
    Plan(PlanTraffic),
    /// The connections of a plan of clients and servers.
    Clients(Box<ClientsTraffic>),
    /// The frames of a capture, in a loop.
    Capture(PathBuf),
}

/// Headers of UDP frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Whether the frames are IPv6.
    pub is_ipv6: bool,
    /// VLAN ID; `None` without a tag.
    pub vlan: Option<u16>,
    /// Priority of the tag (PCP), 0 to 7.
    pub pcp: u8,
    /// DSCP, 0 to 63.
    pub dscp: u8,
}

/// A plan of flows that send continuously and are all measured.
#[derive(Clone, Debug)]
pub struct PlanTraffic {
    document: Value,
    folder: PathBuf,
}

impl PlanTraffic {
    /// Reads a plan. Captures in it are relative to `folder`.
    ///
    /// The ports of the plan, in their order, are the interfaces of the test bed: the sending and the
    /// receiving one of each pair. A flow without `rx` arrives at the other port of a plan with two
    /// ports.
    ///
    /// # Errors
    /// Returns the errors of the plan, or the flow that cannot take any load.
    pub fn read(text: &str, folder: &Path, files: &dyn Files) -> Result<Self, String> {
        let document = read_document(text).map_err(|error| error.to_string())?;
        // The plan as the user wrote it, for errors with its own paths.
        load::streams(text, folder, files).map_err(|errors| errors.to_string())?;
        let mut traffic = Self { document, folder: folder.to_owned() };
        let ports: Vec<Value> = traffic.list("ports").map(|port| port["name"].clone()).collect();
        for flow in traffic.document["flows"].as_array_mut().into_iter().flatten() {
            continuous(flow)?;
            flow["metrics"] = json!({"enable": true});
            if let ([first, second], Value::Null) = (&*ports, &flow["rx"]) {
                flow["rx"] = if flow["tx"] == *first { second.clone() } else { first.clone() };
            }
            if flow["rx"].is_null() {
                let name = &flow["name"];
                return Err(format!(
                    "flow {name}: found no `rx`, expected the port where it arrives"
                ));
            }
        }
        traffic.plan(1.0, &[], files)?;
        Ok(traffic)
    }

    /// Returns the number of ports that send.
    pub(super) fn senders(&self) -> usize {
        let mut ports: Vec<&str> = self.list("flows").filter_map(|it| it["tx"].as_str()).collect();
        ports.sort_unstable();
        ports.dedup();
        ports.len()
    }

    /// Returns the number of ports.
    pub(super) fn ports(&self) -> usize {
        self.list("ports").count()
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.document[name].as_array().into_iter().flatten()
    }

    /// Returns the plan with flows that last for a time, on these interfaces.
    pub(super) fn plan(
        &self,
        seconds: f64,
        interfaces: &[&str],
        files: &dyn Files,
    ) -> Result<TrafficPlan, String> {
        let mut document = self.document.clone();
        for flow in document["flows"].as_array_mut().into_iter().flatten() {
            flow["duration"] = json!({"fixed_seconds": seconds});
        }
        let ports = document["ports"].as_array_mut().into_iter().flatten();
        for (port, interface) in ports.zip(interfaces) {
            port["location"] = json!(interface);
        }
        let plan = load::streams(&document.to_string(), &self.folder, files);
        plan.map_err(|errors| errors.to_string())
    }
}

/// Checks that a flow can take any load, and removes its duration.
fn continuous(flow: &mut Value) -> Result<(), String> {
    let name = flow["name"].clone();
    let wrong = |found: &str| {
        Err(format!(
            "flow {name}: found {found}, expected a flow that sends continuously at a rate; the \
             method sets its load and duration"
        ))
    };
    if flow["duration"].get("burst").is_some() {
        return wrong("bursts");
    }
    if !flow["next"].is_null() {
        return wrong("`next`");
    }
    if flow["start"].as_str().is_some_and(|start| start != "immediate") {
        return wrong("another start than immediate");
    }
    if flow["rate"] == json!("max") {
        return wrong("the rate max");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::HostFiles;

    fn read(flow: &str) -> Result<PlanTraffic, String> {
        let text = format!(
            "ports: [{{name: left}}, {{name: right}}]\nflows:\n  - {{name: f, tx: left, packet: \
             [{{ethernet: {{}}}}, {{ipv4: {{}}}}, {{udp: {{}}}}], size: 128, {flow}}}"
        );
        PlanTraffic::read(&text, Path::new("."), &HostFiles)
    }

    #[test]
    fn flows_of_a_plan_are_measured_and_last_as_long_as_the_trial() {
        let traffic = read("rate: 1kpps, duration: 3s").unwrap();
        let plan = traffic.plan(0.5, &["eth1", "eth2"], &HostFiles).unwrap();
        let flow = &plan.flows[0];
        assert!(flow.stream.is_measured);
        assert_eq!(&*flow.rx_ports, [1]);
        assert_eq!(flow.duration.map(|it| it.as_secs_f64()), Some(0.5));
        assert_eq!(plan.ports[1].location.as_deref(), Some("eth2"));
        assert_eq!((traffic.senders(), traffic.ports()), (1, 2));
    }

    #[test]
    fn flows_with_their_own_schedule_are_refused() {
        for (flow, found) in [
            ("rate: max", "the rate max"),
            ("start: paused", "another start"),
            ("duration: {burst: {packets: 5}}", "bursts"),
        ] {
            let error = read(flow).unwrap_err();
            assert!(error.contains(found) && error.contains("\"f\""), "{error}");
        }
        assert!(read("rate: fast").unwrap_err().contains("flows[0].rate"));
    }
}
