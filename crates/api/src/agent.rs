//! Agents that a server reaches over its bus.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::port::LinkState;

/// Agents of the bus of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// Site of the bus; null without a bus.
    pub site: Option<String>,
    /// Why the list is empty or not current, and what to do; null if it is current.
    pub reason: Option<String>,
    /// Agents by name.
    pub agents: Vec<Agent>,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Name, as in tests.
    pub name: String,
    /// Host name of its machine.
    pub host: String,
    /// Version of Wirestorm.
    pub version: String,
    /// State.
    pub state: AgentState,
    /// ID of the test that uses it; null if none does.
    pub test: Option<String>,
    /// Time since its last message in seconds. It sends one each second.
    pub seen_s: f64,
    /// Addresses that answer clock comparisons.
    pub reflector: Vec<String>,
    /// Interfaces that it lends, as they were before the last run began.
    pub interfaces: Vec<AgentInterface>,
}

/// State of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// A test can use it.
    Idle,
    /// A test uses it.
    Busy,
    /// No message for more than 5 s.
    Lost,
}

/// An interface of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentInterface {
    /// Interface, with its namespace.
    pub interface: String,
    /// State of the link.
    pub link: LinkState,
    /// Link speed in bit/s, as the driver reports it.
    pub speed_bps: Option<u64>,
}
