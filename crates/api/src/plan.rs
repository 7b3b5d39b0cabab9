//! Plans on the server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ErrorAt;

/// A stored plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StoredPlan {
    /// Name.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the last change in nanoseconds since the Unix epoch.
    pub changed_unix_ns: u64,
}

/// Kind of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanKind {
    /// Flows of frames.
    Streams,
    /// Clients and servers.
    Emulation,
    /// Profile of TRex.
    Trex,
}

/// What a plan contains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanSummary {
    /// Kind; null if the document is not a plan.
    pub kind: Option<PlanKind>,
    /// Ports, in plan order.
    pub ports: Vec<PlanPort>,
    /// Names of the flows or templates, in plan order.
    pub flows: Vec<String>,
    /// Errors. A plan with errors does not run.
    pub errors: Vec<ErrorAt>,
}

/// A port of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanPort {
    /// Name in the plan.
    pub name: String,
    /// Interface that the plan names; null if a run must bind the port.
    pub interface: Option<String>,
}

/// The first frames of the flows of a plan of streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowFrames {
    /// Name of the flow.
    pub flow: String,
    /// Its first frames.
    pub frames: Vec<Frame>,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Frame {
    /// Time after the start in nanoseconds; null at full speed.
    pub time_ns: Option<u64>,
    /// Bytes without FCS, in hexadecimal.
    pub bytes: String,
    /// Headers, outermost first.
    pub headers: Vec<FrameHeader>,
}

/// A header of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FrameHeader {
    /// Protocol, such as `ipv4`; `payload` for the bytes after the last header.
    pub protocol: String,
    /// Offset of the first byte in the frame.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
    /// Fields in the order of their bytes.
    pub fields: Vec<FrameField>,
}

/// A field of a header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FrameField {
    /// Name, as in plans.
    pub name: String,
    /// Offset of the first bit in the frame.
    pub bit_offset: usize,
    /// Length in bits.
    pub bits: usize,
    /// Value, in the notation of the field.
    pub value: String,
}
