//! Ports, their layer 1, and link aggregation groups.

use std::collections::BTreeMap;

use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_model::stream::Member;
use wirestorm_plan::traffic::Port;

use super::problems::{ConfigError, Problems};
use crate::proto::lag_protocol::choice::Enum as Protocol;
use crate::proto::{Config, Lag, Layer1};

/// A port as the configuration describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Name in the configuration.
    pub name: String,
    /// Interface, such as `eth1` or `netns/a:veth0`; `None` if the configuration has none.
    pub location: Option<String>,
    /// Line rate of `layer1` in bits per second.
    pub speed: Option<Rate>,
    /// Whether the port receives frames for any address.
    pub promiscuous: bool,
    /// MTU of `layer1` in bytes.
    pub mtu: Option<u32>,
}

/// A link aggregation group. Only static groups are supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LagSettings {
    /// Name in the configuration.
    pub name: String,
    /// Indices of the member ports; 1 to 64. They share the frames of flows.
    pub ports: Vec<usize>,
    /// Number of members that must be up for the group to be up.
    pub min_links: u32,
}

/// Indices by name.
#[derive(Debug, Default)]
pub(super) struct Names {
    indices: BTreeMap<String, usize>,
}

impl Names {
    /// Adds a name; it must be new.
    pub(super) fn add(
        &mut self,
        name: &str,
        index: usize,
        path: impl FnOnce() -> String,
        problems: &mut Problems,
    ) {
        if name.is_empty() {
            problems.error(ConfigError::new(path(), "found an empty name"));
        } else if self.indices.insert(name.to_owned(), index).is_some() {
            problems.error(ConfigError::new(path(), format!("found {name:?} a second time")));
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.indices.get(name).copied()
    }

    /// Returns the index of a port that the configuration names.
    pub(super) fn port(&self, name: &str, path: impl Into<String>) -> Result<usize, ConfigError> {
        self.find(name, "port", path)
    }

    pub(super) fn find(
        &self,
        name: &str,
        kind: &str,
        path: impl Into<String>,
    ) -> Result<usize, ConfigError> {
        self.get(name).ok_or_else(|| {
            ConfigError::new(
                path,
                format!("found {name:?}, which is no {kind} of this configuration"),
            )
        })
    }
}

/// Reads the ports with their layer 1.
pub(super) fn read(config: &Config, problems: &mut Problems) -> (Vec<PortSettings>, Names) {
    let mut names = Names::default();
    let mut ports = Vec::with_capacity(config.ports.len());
    for (index, port) in config.ports.iter().enumerate() {
        names.add(port.name(), index, || format!("ports[{index}].name"), problems);
        ports.push(PortSettings {
            name: port.name().to_owned(),
            location: port.location.clone().filter(|location| !location.is_empty()),
            speed: None,
            promiscuous: true,
            mtu: None,
        });
    }
    for (index, layer1) in config.layer1.iter().enumerate() {
        let path = format!("layer1[{index}]");
        let speed = problems.take(speed(layer1, &path)).flatten();
        for (member, name) in layer1.port_names.iter().enumerate() {
            let port = names.port(name, format!("{path}.port_names[{member}]"));
            let Some(port) = problems.take(port).and_then(|port| ports.get_mut(port)) else {
                continue;
            };
            port.speed = speed;
            port.promiscuous = layer1.promiscuous.unwrap_or(true);
            port.mtu = layer1.mtu;
        }
    }
    (ports, names)
}

/// Parses the name of a speed, such as `speed_10_gbps`.
fn speed(layer1: &Layer1, path: &str) -> Result<Option<Rate>, ConfigError> {
    if layer1.speed.is_none() {
        return Ok(None);
    }
    let name = layer1.speed().as_str_name();
    let unknown = || ConfigError::new(format!("{path}.speed"), format!("found {name}"));
    let mut parts = name.split('_');
    let number = parts.nth(1).and_then(|part| part.parse::<u64>().ok()).ok_or_else(unknown)?;
    let unit = match parts.next_back() {
        Some("gbps") => 1_000_000_000,
        Some("mbps") => 1_000_000,
        _ => return Err(unknown()),
    };
    let rate = Rate::new(number.saturating_mul(unit), Duration::from_secs(1));
    rate.map(Some).map_err(|_| unknown())
}

/// Returns the ports of the plan.
pub(super) fn planned(ports: &[PortSettings]) -> Vec<Port> {
    let planned = ports.iter().map(|port| {
        let mut planned = Port::on_interface(String::new(), port.name.clone(), port.speed);
        planned.location = port.location.clone();
        planned
    });
    planned.collect()
}

/// Reads the link aggregation groups.
pub(super) fn lags(
    config: &Config,
    ports: &Names,
    problems: &mut Problems,
) -> (Vec<LagSettings>, Names) {
    let mut names = Names::default();
    let mut lags = Vec::with_capacity(config.lags.len());
    for (index, lag) in config.lags.iter().enumerate() {
        let path = format!("lags[{index}]");
        names.add(lag.name(), index, || format!("{path}.name"), problems);
        lags.push(self::lag(lag, ports, &path, problems));
    }
    (lags, names)
}

fn lag(lag: &Lag, ports: &Names, path: &str, problems: &mut Problems) -> LagSettings {
    let protocol = lag.protocol.as_ref().map_or(Protocol::Lacp, |protocol| protocol.choice());
    if protocol == Protocol::Lacp {
        let message = "LACP is not supported: expected protocol.choice static";
        problems.error(ConfigError::new(format!("{path}.protocol"), message));
    }
    let mut members = Vec::with_capacity(lag.ports.len());
    if lag.ports.len() > Member::MEMBERS_MAX {
        let message =
            format!("found {} ports, expected at most {}", lag.ports.len(), Member::MEMBERS_MAX);
        problems.error(ConfigError::new(format!("{path}.ports"), message));
    }
    for (index, port) in lag.ports.iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        if port.macsec.is_some() {
            problems.error(super::problems::unsupported(format!("{path}.macsec")));
        }
        let member = problems.take(ports.port(port.port_name(), format!("{path}.port_name")));
        if member.is_some_and(|member| members.contains(&member)) {
            let message = format!("found {:?} a second time", port.port_name());
            problems.error(ConfigError::new(format!("{path}.port_name"), message));
        }
        members.extend(member);
    }
    if members.is_empty() {
        problems.error(ConfigError::new(format!("{path}.ports"), "found no port"));
    }
    LagSettings { name: lag.name().to_owned(), ports: members, min_links: lag.min_links() }
}
