//! Messages between a director and its agents: JSON documents.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wirestorm_api::port::{LinkState, Port};
use wirestorm_api::run::{PlanSource, RunOptions, RunState};
use wirestorm_bus::nats::Key;
use wirestorm_bus::subject::Site;
use wirestorm_bus::{BusError, Message};
use wirestorm_control::result::RunResult;
use wirestorm_control::sync::exchange::Exchange;
use wirestorm_control::sync::ptp::PtpSource;
use wirestorm_control::sync::{ReferenceReading, TransportKind};

use super::content::Content;

/// Shortest and longest lease.
pub(super) const LEASES_NS: RangeInclusive<u64> = 100_000_000..=600_000_000_000;

/// Exchanges with another clock that a comparison needs.
pub(super) const EXCHANGES_MIN: usize = 50;

/// A signed command of a director.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignedOrder {
    /// [`Order`] as JSON text, exactly as it was signed.
    order: String,
    /// Public key of the director.
    key: String,
    /// Signature of `order` in Base64 (Ed25519).
    signature: String,
}

/// A command of a director, with what makes it valid once only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    /// Agent that it is for.
    pub(super) agent: String,
    /// Director, for messages.
    pub(super) director: String,
    /// Test.
    pub(super) test: String,
    /// Revision of the agent's lease: a later holder has a higher one.
    pub(super) fence: u64,
    /// Number of the order in the test for this agent, from 1. A repeated one has the same answer.
    pub(super) number: u64,
    /// Time of the order in ns since the Unix epoch, increasing for each director.
    pub(super) issued_unix_ns: u64,
    /// What to do.
    pub(super) command: Command,
}

/// What an agent is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Command {
    /// Report facts about these interfaces.
    Describe(Vec<String>),
    /// Compare the clock with those of other agents, from now to the end of the test.
    Compare(Vec<Peer>),
    /// Fetch contents from the object store, and keep them until the end of the test. The answer comes
    /// at once; reports show the progress.
    Fetch(Vec<Content>),
    /// Prepare runs. They stop by themselves `lease_ns` after the last renewed lease.
    Prepare {
        /// Runs.
        parts: Vec<Part>,
        /// Duration of a lease in ns.
        lease_ns: u64,
    },
    /// Report the state of runs and clocks.
    Report,
    /// Start all runs at this time of the agent's clock, in ns.
    Arm {
        /// Time of the start.
        at_ns: i64,
    },
    /// End the reception of a run: all other machines have sent their frames.
    Sent {
        /// Name of the run.
        run: String,
        /// Frames for each port of the plan, by index.
        frames: Vec<u64>,
    },
    /// Stop all runs.
    Stop,
    /// Forget the test: its runs are over, and their results are in the log.
    Release,
}

/// Another agent whose clock is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peer {
    /// Its name.
    pub(super) agent: String,
    /// Addresses of its reflector. The one with the shortest round trip counts.
    pub(super) addresses: Vec<SocketAddr>,
    /// Time between two exchanges in ns.
    pub(super) interval_ns: u64,
}

/// The part of a run on one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    /// Name of the run in the test.
    pub(super) run: String,
    /// What to run.
    pub(super) plan: PartPlan,
    /// SHA-256 of each file by its name in the plan. There are no other files.
    pub(super) files: BTreeMap<String, String>,
    /// Interface of each port of the plan on this node.
    pub(super) ports: BTreeMap<String, String>,
    /// Options.
    pub(super) options: RunOptions,
    /// Ports of the plan on other nodes; `None` if all are here.
    pub(super) elsewhere: Option<ElsewherePart>,
    /// Intervals of time series, if the run needs others than the default ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) series: Option<SeriesPart>,
    /// Whether the part only receives. It sends nothing, so it may last longer than the lease, until
    /// the senders on other nodes have stopped.
    pub(super) only_receives: bool,
}

/// Plan of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum PartPlan {
    /// The plan itself.
    Source(PlanSource),
    /// SHA-256 of the plan's text, a content.
    Text(String),
}

/// Intervals of time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeriesPart {
    /// Length of an interval in ns.
    pub(super) interval_ns: u64,
    /// Maximum number of intervals.
    pub(super) intervals_max: usize,
}

/// Ports of a plan on other nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ElsewherePart {
    /// Names of the ports, with the expected drift of their clocks against this node's, in ppm.
    pub(super) ports: BTreeMap<String, f64>,
    /// First stream ID.
    pub(super) first_stream: u32,
    /// Length of a segment of delays in ns.
    pub(super) segment_ns: u64,
    /// Time without arrivals, after all have sent their frames, after which the missing ones count as
    /// lost, in ns.
    pub(super) drain_ns: u64,
}

/// Answer to an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Answer {
    /// The order is carried out.
    Done(Box<Report>),
    /// The order is refused, and nothing has changed.
    Refused {
        /// Reason, with what to do about it.
        reason: String,
    },
}

/// State of an agent in a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Report {
    /// Clock of the agent, in ns since the Unix epoch as far as it knows.
    pub(super) now_ns: i64,
    /// Addresses by which other agents reach its reflector.
    pub(super) reflector: Vec<SocketAddr>,
    /// Runs.
    pub(super) runs: BTreeMap<String, RunReport>,
    /// Compared clocks.
    pub(super) peers: BTreeMap<String, PeerReport>,
    /// Last reading of the agent's clock beside its reference; `None` without a reference.
    pub(super) reference: Option<ReferenceReading>,
    /// PTP session; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ptp: Option<PtpReport>,
    /// Contents.
    pub(super) fetch: FetchReport,
    /// Facts about interfaces that the director asked for last, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) interfaces: BTreeMap<String, InterfaceReport>,
}

/// Contents that an agent fetches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FetchReport {
    /// Number of contents that the last order names and that are not there yet.
    pub(super) missing: usize,
    /// Content that could not be fetched, or was refused.
    pub(super) error: Option<FetchError>,
}

/// Why a content is not on an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FetchError {
    /// SHA-256 of the content, as the order names it.
    pub(super) sha256: String,
    /// Reason.
    pub(super) reason: String,
}

/// Facts about an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InterfaceReport {
    /// MAC address; `None` if it is no Ethernet interface.
    pub(super) mac: Option<[u8; 6]>,
    /// Speed in bit/s, as the driver reports it.
    pub(super) speed_bps: Option<u64>,
}

/// State of a run on an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunReport {
    /// State.
    pub(super) state: RunState,
    /// Error, or what it waits for.
    pub(super) message: Option<String>,
    /// Frames sent by each flow, in plan order; empty for other kinds.
    pub(super) sent: Vec<u64>,
    /// Frames received of each flow, in plan order.
    pub(super) received: Vec<u64>,
    /// Whether everything is sent, so `sent` is final.
    pub(super) has_sent_all: bool,
    /// Whether the result is in the log.
    pub(super) is_logged: bool,
}

/// Offset of the clock of another agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerReport {
    /// Address of the path with the shortest round trip.
    pub(super) address: SocketAddr,
    /// Number of exchanges on it.
    pub(super) exchanges: usize,
    /// Offset of the other clock now, in ns; `None` with too few exchanges, and during a run.
    pub(super) offset: Option<OffsetReport>,
}

/// State of a PTP session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PtpReport {
    /// Interface, transport and domain, in words.
    pub(super) session: String,
    /// Whether the agent is the master.
    pub(super) is_master: bool,
    /// The clock that the agent's is compared with; `None` while a slave has no master.
    pub(super) source: Option<PtpSource>,
    /// Why the interface cannot be used; `None` if it can.
    pub(super) problem: Option<String>,
    /// Number of recent exchanges with this clock.
    pub(super) exchanges: usize,
    /// Offset of this clock now; `None` with too few exchanges, and during a run. 0 for a master.
    pub(super) offset: Option<OffsetReport>,
}

/// Offset of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OffsetReport {
    /// Other clock minus own clock, in ns.
    pub(super) offset_ns: f64,
    /// Error if the path is symmetric, in ns.
    pub(super) half_width_ns: f64,
    /// Error in any case, in ns.
    pub(super) bound_ns: f64,
    /// Drift of the other clock, in ppm.
    pub(super) drift_ppm: f64,
}

/// Presence of an agent, published each second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Presence {
    /// Name.
    pub agent: String,
    /// Version of Wirestorm.
    pub version: String,
    /// Host name.
    pub host: String,
    /// Addresses of its reflector.
    pub reflector: Vec<SocketAddr>,
    /// Interfaces that it lends; empty for all.
    pub interfaces: Vec<String>,
    /// These interfaces as they were last seen.
    #[serde(default)]
    pub ports: Vec<PortPresence>,
    /// Test that it takes part in, if any.
    pub test: Option<String>,
}

/// What happened on an agent: a test began or was stopped, or an order was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Agent.
    pub agent: String,
    /// What happened.
    pub text: String,
}

/// An interface of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortPresence {
    /// Interface, with its namespace.
    pub interface: String,
    /// State of the link.
    pub link: LinkState,
    /// Speed in bit/s, as the driver reports it.
    pub speed_bps: Option<u64>,
}

impl OffsetReport {
    /// Returns the offset as the other clock would report it.
    pub(super) fn reversed(self) -> Self {
        Self { offset_ns: -self.offset_ns, drift_ppm: -self.drift_ppm, ..self }
    }

    /// Returns the offset against another clock that is compared with the same one. Errors add up.
    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            offset_ns: self.offset_ns - other.offset_ns,
            half_width_ns: self.half_width_ns + other.half_width_ns,
            bound_ns: self.bound_ns + other.bound_ns,
            drift_ppm: self.drift_ppm - other.drift_ppm,
        }
    }
}

impl Presence {
    /// Reads the presence in a message. An agent reports itself alone: its subject has its name, and
    /// the bus lets no other agent publish there. Returns `None` for other messages.
    pub(crate) fn read(message: &Message, site: &Site) -> Option<Self> {
        let presence: Self = decode(&message.payload).ok()?;
        let subject = site.agent_status(&presence.agent).ok()?;
        (subject == message.subject).then_some(presence)
    }
}

impl From<Port> for PortPresence {
    fn from(port: Port) -> Self {
        Self { interface: port.interface, link: port.link, speed_bps: port.speed_bps }
    }
}

/// Request of an agent for a new lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaseRequest {
    /// Agent.
    pub(super) agent: String,
    /// Fencing token of its orders.
    pub(super) fence: u64,
}

/// Answer to a request for a new lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaseAnswer {
    /// Whether the agent may continue.
    pub(super) granted: bool,
}

/// A record of the log of results.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Record {
    /// Result of a run that is over.
    Result(RunRecord),
    /// What a run has measured so far. It has the measurements of some flows only, with the segments
    /// of delay that are new since the last record of these flows.
    Checkpoint(RunRecord),
    /// A run without a result.
    Failed {
        /// Name of the run.
        run: String,
        /// Iteration, from 1.
        iteration: u32,
        /// Error.
        error: String,
    },
    /// New exchanges with a reflector of another agent, as both clocks read them.
    Exchanges {
        /// The other agent.
        peer: String,
        /// Address of its reflector.
        address: SocketAddr,
        /// The exchanges; this agent is the near end.
        exchanges: Vec<Exchange>,
    },
    /// New readings of the agent's clock beside its reference.
    References {
        /// The reference, in words.
        source: String,
        /// The readings.
        readings: Vec<ReferenceReading>,
    },
    /// New exchanges of the agent's PTP session.
    Ptp {
        /// Network of the session.
        transport: TransportKind,
        /// The clock, which is the far end.
        source: PtpSource,
        /// Whether the agent has this clock itself, so that there are no exchanges.
        is_master: bool,
        /// The exchanges; this agent is the near end.
        exchanges: Vec<Exchange>,
    },
    /// New readings of a clock with a known error beside the real one of the machine.
    Truth {
        /// Identifier of the machine since it was started.
        boot: String,
        /// The readings, whose error is 0.
        readings: Vec<ReferenceReading>,
    },
    /// All exchanges and readings up to the end of an iteration are in the log.
    Compared {
        /// Iteration, from 1.
        iteration: u32,
    },
}

/// A result, or a part of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRecord {
    /// Name of the run.
    pub(super) run: String,
    /// Iteration, from 1.
    pub(super) iteration: u32,
    /// First departure, or the start of a receiver, by the agent's clock in ns; `None` if the run did
    /// not start.
    pub(super) started_ns: Option<i64>,
    /// Node time minus monotonic clock of the agent, in ns.
    pub(super) node_offset_ns: i64,
    /// The result.
    pub(super) result: Box<RunResult>,
}

impl SignedOrder {
    /// Signs an order.
    ///
    /// # Errors
    /// The key has no private part.
    pub(super) fn new(order: &Order, key: &Key) -> Result<Self, BusError> {
        let order = encode(order);
        let order = String::from_utf8_lossy(&order).into_owned();
        let signature = BASE64_STANDARD.encode(key.sign(order.as_bytes())?);
        Ok(Self { order, key: key.public(), signature })
    }

    /// Returns the order, and the key of its director.
    ///
    /// # Errors
    /// The director is not one of the trusted keys, or the signature or the order is wrong.
    pub(super) fn open(&self, trusted: &[String]) -> Result<(Order, &str), String> {
        if !trusted.contains(&self.key) {
            return Err(format!(
                "key {} is no director that this agent trusts: start the agent with \
                 --trust-director {}",
                self.key, self.key
            ));
        }
        let signature = BASE64_STANDARD.decode(&self.signature).unwrap_or_default();
        if !Key::is_signed(&self.key, self.order.as_bytes(), &signature) {
            return Err("the signature does not fit the order".to_owned());
        }
        let order = decode(self.order.as_bytes())?;
        Ok((order, &self.key))
    }
}

/// Returns a message as JSON.
pub(super) fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    // The types here have no map with other keys than text, so there is no error.
    serde_json::to_vec(message).unwrap_or_default()
}

/// Reads a message.
///
/// # Errors
/// It is no JSON of this type.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("the message is not valid: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            agent: "tokyo".into(),
            director: "desk".into(),
            test: "t1".into(),
            fence: 7,
            number: 1,
            issued_unix_ns: 1_795_000_000_000_000_000,
            command: Command::Stop,
        }
    }

    #[test]
    fn order_of_a_trusted_director_is_opened() {
        let key = Key::generate();
        let signed = SignedOrder::new(&order(), &key).unwrap();
        let received: SignedOrder = decode(&encode(&signed)).unwrap();
        assert_eq!(received.open(&[key.public()]).unwrap(), (order(), key.public().as_str()));
    }

    #[test]
    fn agents_report_themselves_alone() {
        let site = Site::new("lab").unwrap();
        let document = serde_json::json!({
            "agent": "tx", "version": "1", "host": "h", "reflector": [], "interfaces": [],
            "test": null,
        });
        let message = |agent: &str| Message {
            subject: site.agent_status(agent).unwrap(),
            payload: document.to_string().into(),
            reply: None,
        };
        assert_eq!(Presence::read(&message("tx"), &site).unwrap().agent, "tx");
        assert!(Presence::read(&message("rx"), &site).is_none());
    }

    #[test]
    fn changed_orders_and_other_keys_are_refused() {
        let (key, other) = (Key::generate(), Key::generate());
        let signed = SignedOrder::new(&order(), &key).unwrap();
        let error = signed.open(&[other.public()]).unwrap_err();
        assert!(error.contains("--trust-director"), "{error}");
        let mut changed = signed.clone();
        changed.order = changed.order.replace("\"fence\":7", "\"fence\":8");
        assert!(changed.open(&[key.public()]).unwrap_err().contains("signature"));
        let forged = SignedOrder { key: other.public(), ..signed };
        assert!(forged.open(&[key.public(), other.public()]).is_err());
    }
}
