//! Values in the encodings of gNMI.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value as Json};
use wirestorm_gnmi::gnmi::typed_value::Value as Typed;
use wirestorm_gnmi::gnmi::{Encoding, TypedValue};

use super::schema::{LISTS, Node, Value};
use super::selection::ListSelection;
use super::tree::{Entries, Entry, Tree};

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
            (Self::Json | Self::JsonIetf, value) | (_, value @ Value::Tags(_)) => {
                return self.json(&self.scalar(value, ""));
            }
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

    /// Encodes JSON, which values that are no scalars have in each form.
    pub(super) fn json(self, json: &Json) -> TypedValue {
        let bytes = json.to_string().into_bytes();
        let value = match self {
            Self::JsonIetf | Self::Proto => Typed::JsonIetfVal(bytes),
            Self::Json => Typed::JsonVal(bytes),
        };
        TypedValue { value: Some(value) }
    }

    /// Returns the JSON of a value; `prefix` is for the topmost members.
    fn scalar(self, value: &Value, prefix: &str) -> Json {
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
            Value::Tags(tags) => tags.iter().map(|tag| tag.json(prefix)).collect(),
        }
    }

    /// Returns the JSON of a node of an entry; `None` without values.
    pub(super) fn node(self, node: &Node, entry: &Entry) -> Option<Json> {
        let list = LISTS.iter().find(|it| it.container == node.path[0])?;
        self.below(node, entry, &self.prefix(list.module))
    }

    /// Returns the JSON of a node above the lists, with the selected entries alone.
    pub(super) fn above(self, node: &Node, tree: &Tree, lists: &[ListSelection; 3]) -> Json {
        let mut members = Map::new();
        for (index, list) in LISTS.iter().enumerate() {
            if lists[index].is_empty() {
                continue;
            }
            let prefix = self.prefix(list.module);
            let container = match node.path.first() {
                None => &node.children[index],
                Some(name) if *name == list.container => node,
                Some(_) => continue,
            };
            let Some(entries) = self.entries(&container.children[0], &tree.lists[index]) else {
                continue;
            };
            if node.path.is_empty() {
                let inner = Map::from_iter([(list.name.to_owned(), entries)]);
                members.insert(format!("{prefix}{}", list.container), Json::Object(inner));
            } else {
                members.insert(format!("{prefix}{}", list.name), entries);
            }
        }
        Json::Object(members)
    }

    /// Returns the module of a topmost member with a colon; nothing in JSON without modules.
    pub(super) fn prefix(self, module: &str) -> String {
        match self {
            // RFC 7951 section 4: the names of the topmost members have their module.
            Self::JsonIetf | Self::Proto => format!("{module}:"),
            Self::Json => String::new(),
        }
    }

    /// Returns the entries of a list; `None` without values.
    fn entries(self, list: &Node, entries: &Entries) -> Option<Json> {
        let entries = entries.all().filter_map(|entry| self.below(list, entry, ""));
        let entries: Vec<Json> = entries.collect();
        (!entries.is_empty()).then_some(Json::Array(entries))
    }

    /// Returns the JSON of a node of an entry; `prefix` is for the topmost members.
    fn below(self, node: &Node, entry: &Entry, prefix: &str) -> Option<Json> {
        if let Some(leaf) = node.leaf {
            let value = entry.values.get(leaf)?.as_ref()?;
            return Some(self.scalar(value, prefix));
        }
        let mut members = Map::new();
        for child in &node.children {
            let value = match child.key {
                Some(_) => self.entries(child, &entry.inner),
                None => self.below(child, entry, ""),
            };
            if let Some(value) = value {
                members.insert(format!("{prefix}{}", child.name()), value);
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
    use wirestorm_otg::proto::{
        FlowMetric, FlowMetricTag, FlowMetricTagValue, FlowTaggedMetric, MetricTimestamp,
        PortMetric, flow_metric,
    };

    use super::super::path;
    use super::super::schema::{self, FLOWS, TAGGED};
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
    fn a_list_inside_of_a_list_is_an_array_inside_of_an_array() {
        let tag = |name: &str, value: FlowMetricTagValue| FlowMetricTag {
            name: Some(name.to_owned()),
            value: Some(value),
        };
        let hex = FlowMetricTagValue { hex: Some("0x7".to_owned()), ..Default::default() };
        let text = FlowMetricTagValue { str: Some("p2".to_owned()), ..Default::default() };
        let tagged = FlowTaggedMetric {
            tags: vec![tag("vlan", hex), tag("rx_name", text)],
            frames_rx: Some(3),
            bytes_rx: Some(192),
            ..FlowTaggedMetric::default()
        };
        let name = Some("f".to_owned());
        let tagged_metrics = vec![tagged];
        let flow = FlowMetric { name, tagged_metrics, ..FlowMetric::default() };
        let tree = Tree::now(&Telemetry { flows: vec![flow], ..Telemetry::default() });
        let module = "open-traffic-generator-flow:";
        let tags = |prefix: &str| {
            json!([
                {
                    (format!("{prefix}tag-name")): "rx_name",
                    (format!("{prefix}tag-value")):
                        {"value-type": "STRING", "value-as-string": "p2"},
                },
                {
                    (format!("{prefix}tag-name")): "vlan",
                    (format!("{prefix}tag-value")): {"value-type": "HEX", "value-as-hex": "0x7"},
                },
            ])
        };
        let pairs = "rx_name=p2&vlan=0x7";
        let entry = |prefix: &str| {
            json!({
                (format!("{prefix}name-value-pairs")): pairs,
                (format!("{prefix}state")): {
                    "name-value-pairs": pairs,
                    "tags": tags(""),
                    "counters": {"in-octets": "192", "in-pkts": "3"},
                },
            })
        };
        let all = path::select(None, None).unwrap().lists;
        let root = Form::JsonIetf.above(&schema::ROOT, &tree, &all);
        let flow = &root[format!("{module}flows")]["flow"][0];
        assert_eq!(flow["tagged-metrics"], json!({"tagged-metric": [entry("")]}));
        let flow = tree.lists[FLOWS].get("f").unwrap();
        let container = &schema::list(FLOWS).children[2];
        assert_eq!(
            Form::JsonIetf.node(container, flow).unwrap(),
            json!({ (format!("{module}tagged-metric")): [entry("")] })
        );
        let tagged = flow.inner.get(pairs).unwrap();
        let list = schema::list(TAGGED);
        assert_eq!(Form::JsonIetf.node(list, tagged).unwrap(), entry(module));
        let node = schema::leaf_nodes(TAGGED)[2];
        assert_eq!(Form::JsonIetf.node(node, tagged).unwrap(), tags(module));
        assert_eq!(Form::Json.node(node, tagged).unwrap(), tags(""));
        assert_eq!(Form::Json.node(&node.children[0], tagged), None);
        let counters = &list.children[1].children[2];
        assert_eq!(
            Form::Json.node(counters, tagged).unwrap(),
            json!({"in-octets": 192, "in-pkts": 3})
        );
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
