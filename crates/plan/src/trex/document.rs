//! The JSON document of streams: one object per stream, one field per key.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::TrexError;

/// A stream, with its fields in the layout of `STLProfile.to_json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamDocument {
    #[serde(alias = "stream_id")]
    pub(super) id: Option<i64>,
    pub(super) name: Option<Name>,
    pub(super) next: Option<Name>,
    pub(super) next_stream_id: Option<i64>,
    pub(super) enabled: bool,
    pub(super) self_start: bool,
    #[serde(default)]
    pub(super) start_paused: bool,
    pub(super) flags: u32,
    pub(super) action_count: u32,
    #[serde(default)]
    pub(super) random_seed: u32,
    pub(super) isg: f64,
    /// Core that sends the stream. It has no effect: every worker sends a share of each stream.
    #[serde(default, rename = "core_id")]
    pub(super) _core_id: i64,
    pub(super) mode: Value,
    pub(super) packet: Value,
    pub(super) vm: Value,
    pub(super) flow_stats: Value,
}

/// A stream nested in an object with its name, as in `add_stream` and in profile files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped {
    #[serde(alias = "stream_id")]
    id: Option<i64>,
    name: Option<Name>,
    next: Option<Name>,
    next_stream_id: Option<i64>,
    stream: Value,
}

/// A name, which some profiles give as a number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Name {
    Number(i64),
    Text(String),
}

impl Name {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ModeDocument {
    Continuous { rate: Value },
    SingleBurst { rate: Value, total_pkts: u32 },
    MultiBurst { rate: Value, pkts_per_burst: u32, count: u32, ibg: f64 },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateDocument {
    #[serde(rename = "type")]
    pub(super) unit: RateUnit,
    pub(super) value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum RateUnit {
    #[serde(rename = "pps")]
    Frames,
    #[serde(rename = "bps_L1")]
    BitsLayer1,
    #[serde(rename = "bps_L2")]
    BitsLayer2,
    #[serde(rename = "percentage")]
    Percentage,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PacketDocument {
    pub(super) binary: String,
    /// Metadata of the sender; no effect.
    #[serde(default, rename = "meta")]
    pub(super) _meta: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramDocument {
    pub(super) instructions: Vec<Value>,
    #[serde(default)]
    pub(super) cache: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowStatsDocument {
    pub(super) enabled: bool,
    pub(super) stream_id: Option<u32>,
    #[serde(default)]
    pub(super) vxlan: bool,
    #[serde(default)]
    pub(super) ieee_1588: bool,
    pub(super) rule_type: Option<RuleType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RuleType {
    Stats,
    Latency,
    Tpg,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Instruction {
    FlowVar {
        name: String,
        size: u8,
        op: Operation,
        step: u64,
        init_value: Option<u64>,
        min_value: Option<u64>,
        max_value: Option<u64>,
        value_list: Option<Vec<u64>>,
        #[serde(default = "default_true")]
        split_to_cores: bool,
        next_var: Option<String>,
    },
    FlowVarRandLimit {
        name: String,
        size: u8,
        limit: u64,
        seed: u64,
        min_value: u64,
        max_value: u64,
        #[serde(default = "default_true")]
        split_to_cores: bool,
        next_var: Option<String>,
    },
    TupleFlowVar {
        name: String,
        ip_min: u32,
        ip_max: u32,
        port_min: u16,
        port_max: u16,
        limit_flows: u32,
        flags: u16,
    },
    WriteFlowVar {
        name: String,
        pkt_offset: u16,
        add_value: i64,
        is_big_endian: bool,
    },
    WriteMaskFlowVar {
        name: String,
        pkt_offset: u16,
        pkt_cast_size: u16,
        mask: u32,
        shift: i32,
        add_value: i64,
        is_big_endian: bool,
    },
    TrimPktSize {
        name: String,
    },
    FixChecksumIpv4 {
        pkt_offset: u16,
    },
    FixChecksumHw {
        l2_len: u16,
        l3_len: u16,
        l4_type: u16,
    },
    FixChecksumIcmpv6 {
        l2_len: u16,
        l3_len: u16,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operation {
    Inc,
    Dec,
    Random,
}

const fn default_true() -> bool {
    true
}

/// Reads the streams of a document, each with its path.
pub(super) fn read(json: &str) -> Result<Vec<(String, StreamDocument)>, TrexError> {
    let document: Value = serde_json::from_str(json)
        .map_err(|error| TrexError::NotJson { reason: error.to_string() })?;
    let Value::Array(list) = document else {
        return Err(TrexError::value("document", json_type(&document), "a list of streams"));
    };
    let streams = list.into_iter().enumerate().map(|(index, value)| {
        let path = format!("[{index}]");
        if value.get("stream").is_none() {
            let words = deserialize_at(value, &path)?;
            return Ok((path, words));
        }
        let wrapped: Wrapped = deserialize_at(value, &path)?;
        let path = format!("{path}.stream");
        let mut words: StreamDocument = deserialize_at(wrapped.stream, &path)?;
        words.id = wrapped.id.or(words.id);
        words.name = wrapped.name.or(words.name);
        words.next = wrapped.next.or(words.next);
        words.next_stream_id = wrapped.next_stream_id.or(words.next_stream_id);
        Ok((path, words))
    });
    streams.collect()
}

/// Deserializes the value at `path`.
pub(super) fn deserialize_at<T: DeserializeOwned>(
    value: Value,
    path: &str,
) -> Result<T, TrexError> {
    serde_json::from_value(value)
        .map_err(|error| TrexError::Malformed { path: path.to_owned(), reason: error.to_string() })
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Decodes base 64 (RFC 4648 section 4). Ignores white space, and returns `None` for invalid text.
pub(in crate::trex) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let padding = digits.iter().rev().take_while(|digit| **digit == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in &digits[..digits.len() - padding] {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}
