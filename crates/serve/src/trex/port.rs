//! A port as TRex's clients see it: owner, profiles, addresses.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;
use wirestorm_control::wire::packet::MacAddress;

use super::capture_port::SharedCapturePort;
use super::captures::RxQueue;
use super::frame_socket::FrameSocket;
use super::responder::Responder;
use super::rpc::RpcError;
use super::transmission::Transmission;

/// Name of the profile that every port has.
pub(super) const DEFAULT_PROFILE: &str = "_";

/// Owner of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) user: String,
    pub(super) session: u32,
    /// Token of requests that change the port.
    pub(super) handler: String,
}

/// State of a profile, or of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PortState {
    Idle,
    Streams,
    Paused,
    Transmitting,
    /// Sends a capture that `push_remote` named.
    Replaying,
}

impl PortState {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::Streams => "STREAMS",
            Self::Paused => "PAUSE",
            Self::Transmitting => "TX",
            Self::Replaying => "PCAP_TX",
        }
    }
}

/// Streams that start and stop together.
#[derive(Default)]
pub(super) struct Profile {
    /// Streams as the client sent them, by ID.
    pub(super) streams: BTreeMap<u32, Arc<Value>>,
    pub(super) run: Option<Arc<Transmission>>,
    /// Whether a request is starting it.
    pub(super) is_starting: bool,
}

impl Profile {
    pub(super) fn state(&self) -> PortState {
        match &self.run {
            Some(run) if run.is_paused.load(Ordering::Relaxed) => PortState::Paused,
            Some(_) => PortState::Transmitting,
            None if self.streams.is_empty() => PortState::Idle,
            None => PortState::Streams,
        }
    }
}

/// Frames and bytes that a port sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) frames: u64,
    /// Without FCS.
    pub(super) bytes: u64,
    pub(super) failed: u64,
}

impl Sent {
    pub(super) const fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.failed += other.failed;
    }
}

/// Addresses of a port.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    /// Destination MAC address of its frames.
    pub(super) destination: Option<MacAddress>,
    /// IPv4 address, next hop, and whether that has answered.
    pub(super) ipv4: Option<(Ipv4Addr, Ipv4Addr, bool)>,
    /// IPv6 address; `None` inside for a link-local one.
    pub(super) ipv6: Option<Option<Ipv6Addr>>,
    /// VLAN IDs, outer first.
    pub(super) vlans: Vec<u16>,
}

/// A port.
pub(super) struct Port {
    pub(super) owner: Option<Owner>,
    pub(super) profiles: BTreeMap<String, Profile>,
    /// A capture that is being sent.
    pub(super) replay: Option<Arc<Transmission>>,
    pub(super) is_service: bool,
    pub(super) is_filtered: bool,
    pub(super) layers: Layers,
    /// Sockets that keep the interface in promiscuous or all-multicast mode.
    pub(super) promiscuous: Option<FrameSocket>,
    pub(super) is_multicast: bool,
    pub(super) rx_queue: Option<RxQueue>,
    pub(super) capture_port: Option<SharedCapturePort>,
    pub(super) responder: Option<Responder>,
    /// What ended runs sent.
    pub(super) sent: Sent,
    /// Received bytes that the kernel did not count.
    pub(super) uncounted_bytes: u64,
    /// Frames and bytes received, and frames and bytes that the other port sent, when the bytes were
    /// compared last.
    pub(super) compared: Option<[u64; 4]>,
    /// Link state and speed that was published last.
    pub(super) published_link: Option<(bool, u64)>,
}

impl Port {
    pub(super) fn new(destination: Option<MacAddress>) -> Self {
        Self {
            owner: None,
            profiles: BTreeMap::from([(DEFAULT_PROFILE.to_owned(), Profile::default())]),
            replay: None,
            is_service: false,
            is_filtered: false,
            layers: Layers { destination, ..Layers::default() },
            promiscuous: None,
            is_multicast: false,
            rx_queue: None,
            capture_port: None,
            responder: None,
            sent: Sent::default(),
            uncounted_bytes: 0,
            compared: None,
            published_link: None,
        }
    }

    pub(super) fn state(&self) -> PortState {
        if self.replay.is_some() {
            return PortState::Replaying;
        }
        self.profiles.values().map(Profile::state).max().unwrap_or(PortState::Idle)
    }

    /// Returns the runs of the port.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Arc<Transmission>> {
        self.profiles.values().filter_map(|profile| profile.run.as_ref()).chain(&self.replay)
    }

    /// Checks that the port has one of these states.
    pub(super) fn check_idle(&self, command: &str) -> Result<(), RpcError> {
        match self.state() {
            PortState::Idle | PortState::Streams => Ok(()),
            state => Err(RpcError::execution(format!(
                "command '{command}' cannot be executed on current state: '{}'",
                state.name()
            ))),
        }
    }

    /// Returns a profile.
    pub(super) fn profile(&self, name: &str) -> Result<&Profile, RpcError> {
        self.profiles.get(name).ok_or_else(|| unknown_profile(name))
    }

    /// Returns a profile, to change it.
    pub(super) fn profile_mut(&mut self, name: &str) -> Result<&mut Profile, RpcError> {
        self.profiles.get_mut(name).ok_or_else(|| unknown_profile(name))
    }

    /// Returns the names of the profiles that a parameter names; `*` names all.
    pub(super) fn selected(&self, name: &str) -> Vec<String> {
        match name {
            "*" => self.profiles.keys().cloned().collect(),
            name => vec![name.to_owned()],
        }
    }
}

fn unknown_profile(name: &str) -> RpcError {
    RpcError::execution(format!("profile_id {name} does not exists"))
}

/// Returns the error of a command that the state of a profile does not allow.
pub(super) fn wrong_state(command: &str, state: PortState, profile: &str) -> RpcError {
    let state = state.name();
    RpcError::execution(format!(
        "command '{command}' cannot be executed on current state: '{state} on profile_id({profile})."
    ))
}
