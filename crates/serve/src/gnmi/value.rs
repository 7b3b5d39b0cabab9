//! Values in the encodings of gNMI.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value as Json};
use wirestorm_gnmi::gnmi::typed_value::Value as Typed;
use wirestorm_gnmi::gnmi::{Encoding, TypedValue};

use super::schema::{LISTS, Node, Value};
use super::selection::ListSelection;
use super::tree::{Entry, Tree};

/// A supported encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Values of their own type.
    Proto,
    /// JSON with numbers.
    Json,
    /// JSON of RFC 7951.
    JsonIetf,
}

impl Form {
    pub(super) const ENCODINGS: [Encoding; 3] =
        [Encoding::Proto, Encoding::Json, Encoding::JsonIetf];

    /// Returns the form of an encoding; `None` for one that is not supported.
    pub(super) fn of(encoding: i32) -> Option<Self> {
        match Encoding::try_from(encoding).ok()? {
            Encoding::Proto => Some(Self::Proto),
            Encoding::Json => Some(Self::Json),
            Encoding::JsonIetf => Some(Self::JsonIetf),
            Encoding::Bytes | Encoding::Ascii => None,
        }
    }

    /// Encodes the value of a leaf.
    pub(super) fn leaf(self, value: &Value) -> TypedValue {
        let value = match (self, value) {
            (Self::Json | Self::JsonIetf, value) => return self.json(&self.scalar(value)),
            (Self::Proto, Value::Unsigned(value)) => Typed::UintVal(*value),
            // "ieeefloat32: An IEEE 32-bit floating point number, 4 octets, big endian."
            (Self::Proto, Value::Float(value)) => Typed::BytesVal(value.to_be_bytes().to_vec()),
            (Self::Proto, Value::Decimal(value)) => Typed::DoubleVal(*value),
            (Self::Proto, Value::Bool(value)) => Typed::BoolVal(*value),
            (Self::Proto, Value::Text(value)) => Typed::StringVal(value.as_ref().to_owned()),
            (Self::Proto, Value::Name(value)) => Typed::StringVal((*value).to_owned()),
        };
        TypedValue { value: Some(value) }
    }

    /// Encodes JSON.
    pub(super) fn json(self, json: &Json) -> TypedValue {
        let bytes = json.to_string().into_bytes();
        let value = match self {
            Self::JsonIetf => Typed::JsonIetfVal(bytes),
            Self::Json | Self::Proto => Typed::JsonVal(bytes),
        };
        TypedValue { value: Some(value) }
    }

    fn scalar(self, value: &Value) -> Json {
        let number = |value: f64| Number::from_f64(value).map_or(Json::Null, Json::Number);
        let is_ietf = self == Self::JsonIetf;
        match value {
            // RFC 7951 section 6.1: a number of 64 bits is a string.
            Value::Unsigned(value) if is_ietf => value.to_string().into(),
            Value::Unsigned(value) => (*value).into(),
            // Section 6.6: binary is base64.
            Value::Float(value) if is_ietf => STANDARD.encode(value.to_be_bytes()).into(),
            // The shortest decimal number that gives the same bits.
            Value::Float(value) => number(value.to_string().parse().unwrap_or(f64::NAN)),
            Value::Decimal(value) if is_ietf => decimal(*value).into(),
            Value::Decimal(value) => number(*value),
            Value::Bool(value) => (*value).into(),
            Value::Text(value) => value.as_ref().into(),
            Value::Name(value) => (*value).into(),
        }
    }

    /// Returns the JSON of a node of an entry; `None` without values.
    pub(super) fn node(self, node: &Node, entry: &Entry) -> Option<Json> {
        let list = LISTS.iter().find(|it| it.container == node.path[0])?;
        self.below(node, entry, self.prefix(list.module).as_deref())
    }

    /// Returns the JSON of a node above the lists, with the selected entries alone.
    pub(super) fn above(self, node: &Node, tree: &Tree, lists: &[ListSelection; 3]) -> Json {
        let mut members = Map::new();
        for (index, list) in LISTS.iter().enumerate() {
            if lists[index].others.leaves == 0 {
                continue;
            }
            let prefix = self.prefix(list.module).unwrap_or_default();
            let container = match node.path.first() {
                None => &node.children[index],
                Some(name) if *name == list.container => node,
                Some(_) => continue,
            };
            let entries: Vec<Json> = tree.lists[index]
                .all()
                .filter_map(|entry| self.below(&container.children[0], entry, None))
                .collect();
            if entries.is_empty() {
                continue;
            }
            if node.path.is_empty() {
                let inner = Map::from_iter([(list.name.to_owned(), Json::Array(entries))]);
                members.insert(format!("{prefix}{}", list.container), Json::Object(inner));
            } else {
                members.insert(format!("{prefix}{}", list.name), Json::Array(entries));
            }
        }
        Json::Object(members)
    }

    fn prefix(self, module: &str) -> Option<String> {
        // RFC 7951 section 4: the names of the topmost members have their module.
        (self == Self::JsonIetf).then(|| format!("{module}:"))
    }

    fn below(self, node: &Node, entry: &Entry, prefix: Option<&str>) -> Option<Json> {
        if node.is_leaf() {
            if node.leaves == 0 {
                return None;
            }
            let value = entry.values.get(node.leaves.trailing_zeros() as usize)?;
            return value.as_ref().map(|value| self.scalar(value));
        }
        let mut members = Map::new();
        for child in &node.children {
            if let Some(value) = self.below(child, entry, None) {
                members.insert(format!("{}{}", prefix.unwrap_or_default(), child.name()), value);
            }
        }
        (!members.is_empty()).then_some(Json::Object(members))
    }
}

/// Returns the canonical form of a `decimal64` with 2 fraction digits (RFC 7950 section 9.3.2).
fn decimal(value: f64) -> String {
    let text = format!("{value:.2}");
    match text.strip_suffix('0') {
        Some(shorter) => shorter.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wirestorm_otg::proto::{FlowMetric, MetricTimestamp, PortMetric, flow_metric};

    use super::super::path;
    use super::super::schema::{self, FLOWS};
    use super::*;
    use crate::otg::{PortTelemetry, Telemetry};

    fn tree() -> Tree {
        let flow = FlowMetric {
            name: Some("f".to_owned()),
            transmit: Some(flow_metric::transmit::Enum::Started.into()),
            frames_tx: Some(u64::MAX),
            frames_tx_rate: Some(0.1),
            timestamps: Some(MetricTimestamp {
                first_timestamp_ns: Some(1e18),
                last_timestamp_ns: Some(1.25),
            }),
            ..FlowMetric::default()
        };
        let metric = PortMetric { name: Some("p".to_owned()), ..PortMetric::default() };
        let port = PortTelemetry { metric, speed_bps: Some(10_000_000) };
        Tree::now(&Telemetry { ports: vec![port], flows: vec![flow], ..Telemetry::default() })
    }

    #[test]
    fn json_ietf_follows_rfc_7951() {
        let tree = tree();
        let flow = tree.lists[FLOWS].get("f").unwrap();
        let state = &schema::list(FLOWS).children[1];
        let module = "open-traffic-generator-flow";
        let rate = STANDARD.encode(0.1_f32.to_be_bytes());
        assert_eq!(
            Form::JsonIetf.node(state, flow).unwrap(),
            json!({
                (format!("{module}:name")): "f",
                (format!("{module}:transmit")): true,
                (format!("{module}:out-frame-rate")): rate,
                (format!("{module}:first-timestamp")): "1000000000000000000.0",
                (format!("{module}:last-timestamp")): "1.25",
                (format!("{module}:counters")): {"out-pkts": u64::MAX.to_string()},
            })
        );
        let all = path::select(None, None).unwrap().lists;
        let root = Form::JsonIetf.above(&schema::ROOT, &tree, &all);
        assert_eq!(root["open-traffic-generator-port:ports"]["port"][0]["state"]["speed"], "1280");
        assert_eq!(root["open-traffic-generator-flow:flows"]["flow"][0]["name"], "f");
        let flows = Form::JsonIetf.above(&schema::ROOT.children[FLOWS], &tree, &all);
        assert_eq!(flows["open-traffic-generator-flow:flow"][0]["state"]["transmit"], true);
    }

    #[test]
    fn json_has_numbers_and_no_modules() {
        let tree = tree();
        let flow = tree.lists[FLOWS].get("f").unwrap();
        assert_eq!(
            Form::Json.node(schema::list(FLOWS), flow).unwrap(),
            json!({
                "name": "f",
                "state": {
                    "name": "f",
                    "transmit": true,
                    "out-frame-rate": 0.1,
                    "first-timestamp": 1e18,
                    "last-timestamp": 1.25,
                    "counters": {"out-pkts": u64::MAX},
                },
            })
        );
        let all = path::select(None, None).unwrap().lists;
        let empty = Form::Json.above(&schema::ROOT, &Tree::default(), &all);
        assert_eq!(empty, json!({}));
    }

    #[test]
    fn proto_has_values_of_their_types() {
        let typed = |value| Form::Proto.leaf(&value).value.unwrap();
        assert_eq!(typed(Value::Float(1.5)), Typed::BytesVal(vec![0x3f, 0xc0, 0, 0]));
        assert_eq!(typed(Value::Unsigned(7)), Typed::UintVal(7));
        assert_eq!(typed(Value::Decimal(0.5)), Typed::DoubleVal(0.5));
        assert_eq!(typed(Value::Name("UP")), Typed::StringVal("UP".to_owned()));
        assert_eq!(
            Form::JsonIetf.leaf(&Value::Unsigned(7)).value.unwrap(),
            Typed::JsonIetfVal(b"\"7\"".to_vec())
        );
    }
}
