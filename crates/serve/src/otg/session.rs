//! The configuration of a user, and what runs because of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use wirestorm_api::lease::LeaseRequest;
use wirestorm_api::port::LinkState;
use wirestorm_control::base::rate::Rate;
use wirestorm_control::base::time::Duration;
use wirestorm_otg::proto::state_traffic_flow_transmit::state::Enum as Transmit;
use wirestorm_otg::proto::{self, control_state, state_port, state_port_capture, state_protocol};
use wirestorm_otg::{Lowered, Resolve, Warning, lower, update};

use super::captures::Captures;
use super::devices::Devices;
use super::egress::Egress;
use super::error::OtgError;
use super::links::Links;
use super::traffic::{RunHost, Traffic};
use crate::server::{Identity, Server};

/// Session of leases that configurations take.
const SESSION: &str = "otg";

/// The configuration of a user.
pub(super) struct Session {
    pub(super) server: Arc<Server>,
    pub(super) user: Identity,
    pub(super) config: proto::Config,
    pub(super) loaded: Option<Loaded>,
}

/// A configuration with ports.
pub(super) struct Loaded {
    pub(super) lowered: Lowered,
    resolve: Resolve,
    /// Port of the server, and interface, of each port.
    pub(super) ports: Vec<LoadedPort>,
    pub(super) traffic: Traffic,
    pub(super) captures: Captures,
    pub(super) devices: Devices,
    pub(super) links: Links,
    pub(super) egress: Egress,
    /// Members that `protocol.lacp` has taken out of their link aggregation groups.
    pub(super) members_out: BTreeSet<usize>,
}

/// A port of a configuration.
pub(super) struct LoadedPort {
    /// Name of the server's port.
    pub(super) location: String,
    pub(super) interface: String,
}

/// Warnings of a request: settings without effect.
pub(super) type Warnings = Vec<String>;

pub(super) type Answer<T> = Result<T, OtgError>;

impl Session {
    pub(super) fn new(server: Arc<Server>, user: &Identity) -> Self {
        let user = Identity { session: SESSION.into(), ..user.clone() };
        Self { server, user, config: proto::Config::default(), loaded: None }
    }

    /// Replaces the configuration. Ends all traffic, captures and devices of the old one first.
    ///
    /// # Errors
    /// The new configuration is not valid, or a port is not available. Then there is none.
    pub(super) fn set_config(
        &mut self,
        user: &Identity,
        config: proto::Config,
    ) -> Answer<Warnings> {
        self.unload();
        // Role and limits may have changed.
        self.user = Identity { session: SESSION.into(), ..user.clone() };
        self.config = proto::Config::default();
        let preempts = config.options.as_ref().and_then(|it| it.port_options.as_ref());
        let force = preempts.and_then(|it| it.location_preemption).unwrap_or(false);
        let mut resolve = Resolve::default();
        let mut ports: Vec<LoadedPort> = Vec::with_capacity(config.ports.len());
        for (index, port) in config.ports.iter().enumerate() {
            match self.take_port(index, port, force, &mut resolve) {
                Ok(port) => ports.push(port),
                Err(error) => {
                    self.release(&ports);
                    return Err(error);
                }
            }
        }
        let lowered = match lower(&config, &resolve) {
            Ok(lowered) => lowered,
            Err(errors) => {
                self.release(&ports);
                return Err(errors.into());
            }
        };
        let warnings = texts(&lowered.warnings);
        let egress = Egress::start(&self.server, &self.user, &lowered.egress, &ports);
        let egress = match egress {
            Ok(egress) => egress,
            Err(error) => {
                self.release(&ports);
                return Err(error);
            }
        };
        if !ports.is_empty() {
            self.loaded = Some(Loaded {
                traffic: Traffic::new(lowered.flows.len()),
                captures: Captures::new(ports.len()),
                devices: Devices::default(),
                links: Links::new(ports.iter().map(|port| port.interface.as_str())),
                egress,
                members_out: BTreeSet::new(),
                lowered,
                resolve,
                ports,
            });
        }
        self.config = config;
        Ok(warnings)
    }

    /// Leases the port of the server that a port of the configuration names.
    fn take_port(
        &self,
        index: usize,
        port: &proto::Port,
        force: bool,
        resolve: &mut Resolve,
    ) -> Answer<LoadedPort> {
        let location = port.location().to_owned();
        let at = |error: OtgError| OtgError {
            messages: error
                .messages
                .iter()
                .map(|message| format!("ports[{index}].location: {message}"))
                .collect(),
            ..error
        };
        if location.is_empty() {
            let names: Vec<String> = self.server.ports().into_iter().map(|it| it.name).collect();
            return Err(at(OtgError::invalid(format!(
                "found nothing, expected a port of the server: {}",
                names.join(", ")
            ))));
        }
        let facts = self.server.port(&self.user, &location).map_err(|error| at(error.into()))?;
        if facts.link == LinkState::Down {
            return Err(at(OtgError::invalid(format!("{location}: {}", facts.backend_reason))));
        }
        let request = LeaseRequest { force, ttl_s: None };
        self.server.acquire(&self.user, &location, &request).map_err(|error| at(error.into()))?;
        let speed = facts.speed_bps.and_then(|bps| Rate::new(bps, Duration::from_secs(1)).ok());
        if let Some(speed) = speed {
            resolve.set_speed(port.name(), speed);
        }
        Ok(LoadedPort { location, interface: facts.interface })
    }

    fn release(&self, ports: &[LoadedPort]) {
        for port in ports {
            // An administrator may have taken it.
            let _ = self.server.release(&self.user, &port.location);
        }
    }

    /// Ends all that runs because of the configuration, and releases its ports.
    pub(super) fn unload(&mut self) {
        let Some(mut loaded) = self.loaded.take() else { return };
        loaded.traffic.stop_all();
        loaded.captures.stop_all();
        loaded.devices.stop();
        let Loaded { ports, links, egress, .. } = loaded;
        drop((links, egress));
        self.release(&ports);
    }

    /// Returns the configuration with ports.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn loaded(&mut self) -> Answer<&mut Loaded> {
        self.loaded.as_mut().ok_or_else(|| OtgError::invalid("no configuration: set one first"))
    }

    /// Changes rates and sizes of flows, at once also of those that send.
    ///
    /// # Errors
    /// The update is not valid; nothing changes then.
    pub(super) fn update_config(&mut self, change: &proto::ConfigUpdate) -> Answer<Warnings> {
        let update::Updated { config, flows } = update::update(&self.config, change)?;
        let loaded = self.loaded()?;
        let lowered = lower(&config, &loaded.resolve).map_err(OtgError::from)?;
        loaded.traffic.update(&loaded.lowered, &lowered, &flows)?;
        let warnings = texts(&lowered.warnings);
        loaded.lowered = lowered;
        self.config = config;
        Ok(warnings)
    }

    /// Adds or removes flows; `new` is the changed configuration. Flows that send continue.
    ///
    /// # Errors
    /// The change is not valid; nothing changes then.
    pub(super) fn change_config(&mut self, new: proto::Config) -> Answer<Warnings> {
        let loaded = self.loaded()?;
        let lowered = lower(&new, &loaded.resolve)?;
        let before = std::mem::replace(&mut loaded.lowered, lowered);
        loaded.traffic.rearrange(&before, &loaded.lowered);
        let warnings = texts(&loaded.lowered.warnings);
        self.config = new;
        Ok(warnings)
    }

    /// Changes a state.
    ///
    /// # Errors
    /// The state is not valid, not supported, or cannot be reached.
    pub(super) fn set_control_state(&mut self, state: &proto::ControlState) -> Answer<Warnings> {
        match state.choice() {
            control_state::choice::Enum::Traffic => {
                let transmit = state.traffic.as_ref().and_then(|it| it.flow_transmit.as_ref());
                let transmit = transmit
                    .ok_or_else(|| OtgError::invalid("traffic.flow_transmit: found nothing"))?;
                self.transmit(&transmit.flow_names, transmit.state())
            }
            control_state::choice::Enum::Port => {
                let Some(port) = &state.port else {
                    return Err(OtgError::invalid("port: found nothing"));
                };
                match (port.choice(), &port.capture, &port.link) {
                    (state_port::choice::Enum::Capture, Some(capture), _) => self.capture(capture),
                    (state_port::choice::Enum::Link, _, Some(link)) => self.set_links(link),
                    _ => Err(OtgError::invalid("port: found nothing, expected link or capture")),
                }
            }
            control_state::choice::Enum::Protocol => {
                let Some(protocol) = &state.protocol else {
                    return Err(OtgError::invalid("protocol: found nothing"));
                };
                match (protocol.choice(), &protocol.all, &protocol.lacp) {
                    (state_protocol::choice::Enum::Lacp, _, Some(lacp)) => self.set_members(lacp),
                    (state_protocol::choice::Enum::All, Some(all), _) => {
                        use proto::state_protocol_all::state::Enum as State;
                        match all.state() {
                            State::Stop => self.loaded()?.devices.stop(),
                            State::Start | State::Unspecified => self.start_devices()?,
                        }
                        Ok(Vec::new())
                    }
                    (choice, ..) => {
                        let name = choice.as_str_name();
                        Err(OtgError::invalid(format!("protocol.{name}: not supported")))
                    }
                }
            }
            control_state::choice::Enum::Unspecified => {
                Err(OtgError::invalid("choice: found nothing, expected port, protocol or traffic"))
            }
        }
    }

    /// Reads the links of the ports. Brings up those that another user has taken.
    pub(super) fn update_links(&mut self) {
        let Some(loaded) = &mut self.loaded else { return };
        for (index, port) in loaded.ports.iter().enumerate() {
            // If another user has taken the port, it is not for this one to keep it down.
            let is_lost = || self.server.usable_interface(&self.user, &port.location).is_err();
            if loaded.links.is_taken_down(index) && is_lost() {
                // The interface may be gone.
                let _ = loaded.links.set(index, true);
            }
        }
        loaded.links.update();
    }

    /// Starts the hosts of the devices, if they do not run.
    pub(super) fn start_devices(&mut self) -> Answer<()> {
        let loaded = self.loaded()?;
        loaded.devices.start(&loaded.lowered, &loaded.ports)
    }

    /// Starts, stops, pauses or resumes flows; all without names.
    fn transmit(&mut self, names: &[String], state: Transmit) -> Answer<Warnings> {
        let flows = self.flows(names)?;
        match state {
            Transmit::Start | Transmit::Resume => {
                if self.loaded()?.lowered.interfaces.iter().any(|it| !it.addresses.is_empty()) {
                    self.start_devices()?;
                    self.resolve_neighbours()?;
                }
                let (server, user) = (Arc::clone(&self.server), self.user.clone());
                let loaded = self.loaded()?;
                let interfaces: Vec<String> =
                    loaded.ports.iter().map(|port| port.interface.clone()).collect();
                let out = loaded.ports_out();
                let host = RunHost { server: &server, user: &user, interfaces: &interfaces, out };
                if state == Transmit::Start {
                    loaded.egress.clear();
                    loaded.traffic.start(&host, &loaded.lowered, &flows)?;
                } else {
                    loaded.traffic.resume(&host, &loaded.lowered, &flows)?;
                }
            }
            Transmit::Stop => self.loaded()?.traffic.stop(&flows),
            Transmit::Pause => self.loaded()?.traffic.pause(&flows)?,
            Transmit::Unspecified => {
                let message = "state: found nothing, expected start, stop, pause or resume";
                return Err(OtgError::invalid(format!("traffic.flow_transmit.{message}")));
            }
        }
        Ok(Vec::new())
    }

    /// Returns the indices of flows; of all flows without names.
    fn flows(&mut self, names: &[String]) -> Answer<BTreeSet<usize>> {
        let flows = &self.loaded()?.lowered.flows;
        if names.is_empty() {
            return Ok((0..flows.len()).collect());
        }
        let place = |name: &String| {
            flows.iter().position(|flow| flow.name == *name).ok_or_else(|| {
                OtgError::invalid(format!("flow_names: found {name:?}, which is no flow"))
            })
        };
        names.iter().map(place).collect()
    }

    /// Resolves the next hops of flows between devices.
    fn resolve_neighbours(&mut self) -> Answer<()> {
        let loaded = self.loaded.as_mut();
        let Some(loaded) = loaded.filter(|loaded| !loaded.lowered.unresolved.is_empty()) else {
            return Ok(());
        };
        for next_hop in &loaded.lowered.unresolved {
            let interface = &loaded.lowered.interfaces[next_hop.interface];
            let mac =
                loaded.devices.resolve(next_hop.interface, next_hop.address).map_err(|reason| {
                    OtgError::invalid(format!(
                        "{} of device {}: {reason}",
                        interface.name, interface.device
                    ))
                })?;
            loaded.resolve.set_neighbour(&*interface.name, next_hop.address, mac);
        }
        loaded.lowered = lower(&self.config, &loaded.resolve)?;
        Ok(())
    }

    /// Starts or stops captures of ports; of all ports with a capture without names.
    fn capture(&mut self, state: &proto::StatePortCapture) -> Answer<Warnings> {
        let (server, user) = (Arc::clone(&self.server), self.user.clone());
        let loaded = self.loaded()?;
        let names = &state.port_names;
        let mut chosen = Vec::new();
        for (index, port) in loaded.lowered.ports.iter().enumerate() {
            let has_capture = loaded.lowered.captures.iter().any(|it| it.ports.contains(&index));
            if names.contains(&port.name) || names.is_empty() && has_capture {
                chosen.push(index);
            }
        }
        if let Some(unknown) =
            names.iter().find(|name| !loaded.lowered.ports.iter().any(|it| it.name == **name))
        {
            let message = format!("port_names: found {unknown:?}, which is no port");
            return Err(OtgError::invalid(message));
        }
        for index in chosen {
            match state.state() {
                state_port_capture::state::Enum::Start => {
                    let settings =
                        loaded.lowered.captures.iter().find(|it| it.ports.contains(&index));
                    let location = &loaded.ports[index].location;
                    loaded.captures.start(&server, &user, index, location, settings)?;
                }
                _ => loaded.captures.stop(index),
            }
        }
        Ok(Vec::new())
    }

    /// Stops the capture of a port and returns its file.
    ///
    /// # Errors
    /// There is no such port, or it was not captured.
    pub(super) fn get_capture(&mut self, request: &proto::CaptureRequest) -> Answer<Vec<u8>> {
        let loaded = self.loaded()?;
        let name = request.port_name();
        let index = loaded.lowered.ports.iter().position(|port| port.name == name);
        let index = index.ok_or_else(|| {
            OtgError::invalid(format!("port_name: found {name:?}, which is no port"))
        })?;
        loaded.captures.file(index)
    }
}

impl Loaded {
    /// Returns the indices of ports by their names; of all ports without names.
    pub(super) fn ports_named(&self, names: &[String], path: &str) -> Answer<BTreeSet<usize>> {
        let ports = &self.lowered.ports;
        if names.is_empty() {
            return Ok((0..ports.len()).collect());
        }
        let place = |name: &String| {
            let place = ports.iter().position(|port| port.name == *name);
            place.ok_or_else(|| {
                OtgError::invalid(format!("{path}: found {name:?}, which is no port"))
            })
        };
        names.iter().map(place).collect()
    }
}

pub(super) fn texts(warnings: &[Warning]) -> Warnings {
    warnings.iter().map(ToString::to_string).collect()
}
