//! Tagged metrics of flows: counters by a key of the names and values of tags.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use wirestorm_otg::proto::{FlowMetricTag, FlowTaggedMetric};

/// Counters of a flow for the same values of its tags.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tagged {
    /// Names and values of the tags, the key: `port=0x1234&rx_name=p2`.
    pub(super) pairs: Arc<str>,
    /// Tags in the order of the key.
    pub(super) tags: Arc<[Tag]>,
    pub(super) octets_in: Option<u64>,
    pub(super) packets_in: Option<u64>,
    pub(super) octets_out: Option<u64>,
    pub(super) packets_out: Option<u64>,
}

/// Name and value of a tag.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tag {
    pub(super) name: String,
    value: TagValue,
}

#[derive(Clone, Debug, PartialEq)]
enum TagValue {
    Text(String),
    /// With `0x`.
    Hex(String),
}

impl Tagged {
    /// Returns the tagged metrics of a flow in the order of their keys.
    pub(super) fn of(metrics: &[FlowTaggedMetric]) -> Vec<Self> {
        let mut by_pairs: BTreeMap<Arc<str>, Self> = BTreeMap::new();
        for metric in metrics {
            let new = Self::new(metric);
            match by_pairs.get_mut(&new.pairs) {
                // Names of ports may differ in case alone.
                Some(known) => known.add(&new),
                None => {
                    by_pairs.insert(Arc::clone(&new.pairs), new);
                }
            }
        }
        by_pairs.into_values().collect()
    }

    fn new(metric: &FlowTaggedMetric) -> Self {
        let mut tags: Vec<Tag> = metric.tags.iter().map(Tag::new).collect();
        tags.sort_by(|a, b| a.name.cmp(&b.name));
        // "metric tags MUST be arranged in alphabetical order of the tag name. And tag value(s) in
        // lowercase only."
        let pair = |tag: &Tag| {
            let (TagValue::Text(value) | TagValue::Hex(value)) = &tag.value;
            format!("{}={}", tag.name, value.to_lowercase())
        };
        Self {
            pairs: tags.iter().map(pair).collect::<Vec<_>>().join("&").into(),
            tags: tags.into(),
            octets_in: metric.bytes_rx,
            packets_in: metric.frames_rx,
            octets_out: metric.bytes_tx,
            packets_out: metric.frames_tx,
        }
    }

    fn add(&mut self, other: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        self.octets_in = sum(self.octets_in, other.octets_in);
        self.packets_in = sum(self.packets_in, other.packets_in);
        self.octets_out = sum(self.octets_out, other.octets_out);
        self.packets_out = sum(self.packets_out, other.packets_out);
    }
}

impl Tag {
    fn new(tag: &FlowMetricTag) -> Self {
        let value = tag.value.clone().unwrap_or_default();
        let value = match value.hex {
            Some(hex) => TagValue::Hex(hex),
            None => TagValue::Text(value.str.unwrap_or_default()),
        };
        Self { name: tag.name().to_owned(), value }
    }

    /// Returns the entry of the list `tags` as JSON; `prefix` is the module of its members with a
    /// colon, or empty.
    pub(super) fn json(&self, prefix: &str) -> Json {
        let value = match &self.value {
            TagValue::Text(text) => json!({"value-type": "STRING", "value-as-string": text}),
            TagValue::Hex(text) => json!({"value-type": "HEX", "value-as-hex": text}),
        };
        Json::Object(Map::from_iter([
            (format!("{prefix}tag-name"), self.name.as_str().into()),
            (format!("{prefix}tag-value"), value),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_otg::proto::FlowMetricTagValue;

    use super::*;

    fn metric(tags: &[(&str, FlowMetricTagValue)], frames_rx: u64) -> FlowTaggedMetric {
        let tag = |(name, value): &(&str, FlowMetricTagValue)| FlowMetricTag {
            name: Some((*name).to_owned()),
            value: Some(value.clone()),
        };
        FlowTaggedMetric {
            tags: tags.iter().map(tag).collect(),
            frames_rx: Some(frames_rx),
            bytes_rx: Some(64 * frames_rx),
            ..FlowTaggedMetric::default()
        }
    }

    fn hex(value: &str) -> FlowMetricTagValue {
        FlowMetricTagValue { hex: Some(value.to_owned()), ..FlowMetricTagValue::default() }
    }

    fn text(value: &str) -> FlowMetricTagValue {
        FlowMetricTagValue { str: Some(value.to_owned()), ..FlowMetricTagValue::default() }
    }

    #[test]
    fn the_key_has_the_names_in_order_and_the_values_in_lower_case() {
        let tagged = Tagged::of(&[metric(&[("vlan", hex("0x12AB")), ("rx_name", text("P2"))], 7)]);
        assert_eq!(tagged.len(), 1);
        assert_eq!(&*tagged[0].pairs, "rx_name=p2&vlan=0x12ab");
        assert_eq!((tagged[0].packets_in, tagged[0].octets_in), (Some(7), Some(448)));
        assert_eq!((tagged[0].packets_out, tagged[0].octets_out), (None, None));
        let tags: Vec<Json> = tagged[0].tags.iter().map(|tag| tag.json("m:")).collect();
        assert_eq!(
            json!(tags),
            json!([
                {
                    "m:tag-name": "rx_name",
                    "m:tag-value": {"value-type": "STRING", "value-as-string": "P2"},
                },
                {
                    "m:tag-name": "vlan",
                    "m:tag-value": {"value-type": "HEX", "value-as-hex": "0x12AB"},
                },
            ])
        );
    }

    #[test]
    fn metrics_with_the_same_key_are_added() {
        let of = |port: &str, frames_rx| metric(&[("rx_name", text(port))], frames_rx);
        let tagged = Tagged::of(&[of("b", 1), of("P", 2), of("p", 3)]);
        let counts: Vec<_> = tagged.iter().map(|it| (&*it.pairs, it.packets_in)).collect();
        assert_eq!(counts, [("rx_name=b", Some(1)), ("rx_name=p", Some(5))]);
    }
}
