//! Schema of the telemetry: the lists of the YANG modules `open-traffic-generator-port`, `-flow` and
//! `-lag`, and where their values come from.
//!
//! Each flow has a list of tagged metrics inside. Each list is in a container of its own.

use std::sync::{Arc, LazyLock};

use wirestorm_otg::proto::flow_metric::transmit;
use wirestorm_otg::proto::lag_metric::oper_status;
use wirestorm_otg::proto::port_metric::link;
use wirestorm_otg::proto::{FlowMetric, LagMetric, MetricLatency};

use super::tagged::{Tag, Tagged};
use crate::otg::PortTelemetry;

/// Revision of the modules.
pub(super) const REVISION: &str = "0.1.0";

/// A topmost list of the schema, and the container around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) module: &'static str,
    pub(super) container: &'static str,
    pub(super) name: &'static str,
}

/// Index of the list of ports.
pub(super) const PORTS: usize = 0;
/// Index of the list of flows.
pub(super) const FLOWS: usize = 1;
/// Index of the list of link aggregation groups.
pub(super) const LAGS: usize = 2;

/// Index of the list of tagged metrics, inside of the list of flows.
pub(super) const TAGGED: usize = 3;

/// The topmost lists.
pub(super) const LISTS: [List; 3] = [
    List { module: "open-traffic-generator-port", container: "ports", name: "port" },
    List { module: "open-traffic-generator-flow", container: "flows", name: "flow" },
    List { module: "open-traffic-generator-lag", container: "lags", name: "lag" },
];

/// Keys of a topmost list, and of a list inside of it.
pub(super) const KEYS: [&str; 2] = ["name", "name-value-pairs"];

/// Value of a leaf.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `counter64` and `timeticks64`.
    Unsigned(u64),
    /// `ieeefloat32`.
    Float(f32),
    /// `decimal64`.
    Decimal(f64),
    Bool(bool),
    Text(Arc<str>),
    /// Name of an enumeration.
    Name(&'static str),
    /// Entries of a list without key.
    Tags(Arc<[Tag]>),
}

/// A leaf of a list, by its path below the entry of the list.
pub(super) struct Leaf<T> {
    path: &'static str,
    /// Returns the value; `None` if there is none.
    pub(super) value: fn(&T) -> Option<Value>,
}

const fn leaf<T>(path: &'static str, value: fn(&T) -> Option<Value>) -> Leaf<T> {
    Leaf { path, value }
}

/// Leaves of a port. `data-integrity` has no values.
pub(super) static PORT_LEAVES: [Leaf<PortTelemetry>; 11] = [
    leaf("name", |it| text(it.metric.name())),
    leaf("state/name", |it| text(it.metric.name())),
    leaf("state/link", |it| {
        Some(Value::Name(if it.metric.link() == link::Enum::Up { "UP" } else { "DOWN" }))
    }),
    leaf("state/out-rate", |it| bits(it.metric.bytes_tx_rate)),
    leaf("state/in-rate", |it| bits(it.metric.bytes_rx_rate)),
    leaf("state/speed", |it| it.speed_bps.map(|bps| Value::Unsigned(speed(bps)))),
    leaf("state/last-change", |it| it.metric.last_change.map(Value::Unsigned)),
    leaf("state/counters/out-octets", |it| it.metric.bytes_tx.map(Value::Unsigned)),
    leaf("state/counters/in-octets", |it| it.metric.bytes_rx.map(Value::Unsigned)),
    leaf("state/counters/out-frames", |it| it.metric.frames_tx.map(Value::Unsigned)),
    leaf("state/counters/in-frames", |it| it.metric.frames_rx.map(Value::Unsigned)),
];

/// Leaves of a flow.
pub(super) static FLOW_LEAVES: [Leaf<FlowMetric>; 19] = [
    leaf("name", |it| text(it.name())),
    leaf("state/name", |it| text(it.name())),
    leaf("state/transmit", |it| Some(Value::Bool(it.transmit() == transmit::Enum::Started))),
    leaf("state/loss-pct", |it| it.loss.map(Value::Float)),
    leaf("state/out-frame-rate", |it| it.frames_tx_rate.map(Value::Float)),
    leaf("state/in-frame-rate", |it| it.frames_rx_rate.map(Value::Float)),
    leaf("state/out-rate", |it| it.tx_rate_bps.map(Value::Float)),
    leaf("state/in-rate", |it| it.rx_rate_bps.map(Value::Float)),
    leaf("state/out-l1-rate", |it| it.tx_l1_rate_bps.map(Value::Float)),
    leaf("state/in-l1-rate", |it| it.rx_l1_rate_bps.map(Value::Float)),
    leaf("state/minimum-latency", |it| latency(it, |it| it.minimum_ns)),
    leaf("state/maximum-latency", |it| latency(it, |it| it.maximum_ns)),
    leaf("state/average-latency", |it| latency(it, |it| it.average_ns)),
    leaf("state/first-timestamp", |it| {
        it.timestamps.as_ref()?.first_timestamp_ns.map(Value::Decimal)
    }),
    leaf("state/last-timestamp", |it| {
        it.timestamps.as_ref()?.last_timestamp_ns.map(Value::Decimal)
    }),
    leaf("state/counters/in-octets", |it| it.bytes_rx.map(Value::Unsigned)),
    leaf("state/counters/in-pkts", |it| it.frames_rx.map(Value::Unsigned)),
    leaf("state/counters/out-octets", |it| it.bytes_tx.map(Value::Unsigned)),
    leaf("state/counters/out-pkts", |it| it.frames_tx.map(Value::Unsigned)),
];

/// Leaves of a link aggregation group.
pub(super) static LAG_LEAVES: [Leaf<LagMetric>; 10] = [
    leaf("name", |it| text(it.name())),
    leaf("state/name", |it| text(it.name())),
    leaf("state/oper-status", |it| {
        let is_up = it.oper_status() == oper_status::Enum::Up;
        Some(Value::Name(if is_up { "UP" } else { "DOWN" }))
    }),
    leaf("state/out-rate", |it| bits(it.bytes_tx_rate)),
    leaf("state/in-rate", |it| bits(it.bytes_rx_rate)),
    leaf("state/counters/member-ports-up", |it| {
        it.member_ports_up.map(|count| Value::Unsigned(count.into()))
    }),
    leaf("state/counters/out-octets", |it| it.bytes_tx.map(Value::Unsigned)),
    leaf("state/counters/in-octets", |it| it.bytes_rx.map(Value::Unsigned)),
    leaf("state/counters/out-frames", |it| it.frames_tx.map(Value::Unsigned)),
    leaf("state/counters/in-frames", |it| it.frames_rx.map(Value::Unsigned)),
];

/// Leaves of a tagged metric, and its list `tags`, which has a value as a whole.
pub(super) static TAGGED_LEAVES: [Leaf<Tagged>; 7] = [
    leaf("name-value-pairs", |it| Some(Value::Text(Arc::clone(&it.pairs)))),
    leaf("state/name-value-pairs", |it| Some(Value::Text(Arc::clone(&it.pairs)))),
    leaf("state/tags", |it| Some(Value::Tags(Arc::clone(&it.tags)))),
    leaf("state/counters/in-octets", |it| it.octets_in.map(Value::Unsigned)),
    leaf("state/counters/in-pkts", |it| it.packets_in.map(Value::Unsigned)),
    leaf("state/counters/out-octets", |it| it.octets_out.map(Value::Unsigned)),
    leaf("state/counters/out-pkts", |it| it.packets_out.map(Value::Unsigned)),
];

/// Leaves of the modules that never have a value of their own here. Paths to them are valid.
const PORT_LEAVES_WITHOUT_VALUE: [&str; 2] =
    ["state/data-integrity/in-total-frames", "state/data-integrity/in-error-frames"];
const TAGGED_LEAVES_WITHOUT_VALUE: [&str; 10] = [
    "state/tags/tag-name",
    "state/tags/tag-value/value-type",
    "state/tags/tag-value/value-as-string",
    "state/tags/tag-value/value-as-hex",
    "state/tags/tag-value/value-as-bool",
    "state/tags/tag-value/value-as-counter64",
    "state/tags/tag-value/value-as-float32",
    "state/tags/tag-value/value-as-ipv4",
    "state/tags/tag-value/value-as-ipv6",
    "state/tags/tag-value/value-as-mac",
];

fn text(text: &str) -> Option<Value> {
    Some(Value::Text(text.into()))
}

fn bits(bytes: Option<f32>) -> Option<Value> {
    bytes.map(|bytes| Value::Float(bytes * 8.0))
}

fn latency(flow: &FlowMetric, which: fn(&MetricLatency) -> Option<f64>) -> Option<Value> {
    // The cast saturates.
    which(flow.latency.as_ref()?).map(|ns| Value::Unsigned(ns.round() as u64))
}

/// Returns the speed in the unit of `open-traffic-generator-port`: "(i) 100 Gbps is 100 * 1024 *
/// 1024 / 8 = 13107200 KBps, (ii) 1.6 Tbps is 1.6 * 1024 * 1024 * 1024 / 8 = 214748365 KBps, (iii) 10
/// Mbps is 10 * 1024 / 8 = 1280 KBps".
fn speed(bps: u64) -> u64 {
    let bps = bps as f64;
    let value = if bps >= 1e12 {
        bps / 1e12 * 1024.0 * 1024.0 * 1024.0
    } else if bps >= 1e9 {
        bps / 1e9 * 1024.0 * 1024.0
    } else {
        bps / 1e6 * 1024.0
    };
    (value / 8.0).round() as u64
}

/// A set of leaves of a list: bit `n` stands for leaf `n`.
pub(super) type Leaves = u64;

/// A node of the schema.
#[derive(Debug)]
pub(super) struct Node {
    /// Names from the root; empty for the root.
    pub(super) path: Vec<&'static str>,
    /// Name of the key, for a list with a key.
    pub(super) key: Option<&'static str>,
    /// The leaf that has the value of this node.
    pub(super) leaf: Option<usize>,
    /// Leaves with values at this node and below, without those of lists below.
    pub(super) leaves: Leaves,
    pub(super) children: Vec<Node>,
}

/// The schema. Child `n` of the root is the container of list `n`, whose only child is the list.
pub(super) static ROOT: LazyLock<Node> = LazyLock::new(|| {
    let topmost = |index: usize, with_value, without_value| {
        let List { container, name, .. } = LISTS[index];
        list_in_container(&[], [container, name], KEYS[0], with_value, without_value)
    };
    let ports = PORT_LEAVES.iter().map(|it| it.path).collect();
    let flows = FLOW_LEAVES.iter().map(|it| it.path).collect();
    let lags = LAG_LEAVES.iter().map(|it| it.path).collect();
    let tagged = TAGGED_LEAVES.iter().map(|it| it.path).collect();
    let ports = topmost(PORTS, ports, &PORT_LEAVES_WITHOUT_VALUE);
    let mut flows = topmost(FLOWS, flows, &[]);
    let lags = topmost(LAGS, lags, &[]);
    let flow = &mut flows.children[0];
    flow.children.push(list_in_container(
        &flow.path,
        ["tagged-metrics", "tagged-metric"],
        KEYS[1],
        tagged,
        &TAGGED_LEAVES_WITHOUT_VALUE,
    ));
    Node { path: Vec::new(), key: None, leaf: None, leaves: 0, children: vec![ports, flows, lags] }
});

impl Node {
    /// Returns the name; an empty one for the root.
    pub(super) fn name(&self) -> &'static str {
        self.path.last().copied().unwrap_or_default()
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// Returns the list with a key below this node, if there is one.
    pub(super) fn list_below(&self) -> Option<&Self> {
        self.children.iter().find_map(|child| match child.key {
            Some(_) => Some(child),
            None => child.list_below(),
        })
    }
}

/// Returns the node of the list with this index.
pub(super) fn list(index: usize) -> &'static Node {
    if index == TAGGED {
        let flow = list(FLOWS);
        return &flow.children[flow.children.len() - 1].children[0];
    }
    &ROOT.children[index].children[0]
}

/// Returns the nodes of the leaves with values of the list with this index, by leaf.
pub(super) fn leaf_nodes(index: usize) -> &'static [&'static Node] {
    static NODES: LazyLock<[Vec<&'static Node>; 4]> = LazyLock::new(|| {
        [PORTS, FLOWS, LAGS, TAGGED].map(|index| {
            let mut nodes = Vec::new();
            collect(list(index), &mut nodes);
            nodes.sort_by_key(|node| node.leaf);
            nodes
        })
    });
    &NODES[index]
}

/// Adds the nodes with a value below a list, without those of lists below.
fn collect(node: &'static Node, nodes: &mut Vec<&'static Node>) {
    if node.leaf.is_some() {
        nodes.push(node);
    }
    for child in node.children.iter().filter(|child| child.key.is_none()) {
        collect(child, nodes);
    }
}

/// The leaf with a value, if it is one, and its path.
type LeafPath = (Option<usize>, &'static str);

/// Returns the container of a list, from the path of its parent, its name and that of the list, and
/// the paths of the leaves below an entry.
fn list_in_container(
    parent: &[&'static str],
    [container, name]: [&'static str; 2],
    key: &'static str,
    with_value: Vec<&'static str>,
    without_value: &[&'static str],
) -> Node {
    let with_value = with_value.into_iter().enumerate().map(|(leaf, path)| (Some(leaf), path));
    let without_value = without_value.iter().map(|path| (None, *path));
    let paths: Vec<LeafPath> = with_value.chain(without_value).collect();
    let path = |names: &[&'static str]| [parent, names].concat();
    let list = Node { key: Some(key), ..node(path(&[container, name]), &paths) };
    Node { path: path(&[container]), key: None, leaf: None, leaves: 0, children: vec![list] }
}

/// Returns a node with its children, from the leaves at it and below with their paths.
fn node(path: Vec<&'static str>, below: &[LeafPath]) -> Node {
    let mut groups: Vec<(&str, Vec<LeafPath>)> = Vec::new();
    for (leaf, rest) in below.iter().filter(|(_, rest)| !rest.is_empty()) {
        let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, group)) => group.push((*leaf, rest)),
            None => groups.push((name, vec![(*leaf, rest)])),
        }
    }
    let child = |(name, below): (&'static str, Vec<LeafPath>)| {
        let path = path.iter().copied().chain([name]).collect();
        node(path, &below)
    };
    let children = groups.into_iter().map(child).collect();
    let leaf = below.iter().find(|(_, rest)| rest.is_empty()).and_then(|(leaf, _)| *leaf);
    let leaves = below.iter().filter_map(|(leaf, _)| *leaf).fold(0, |all, leaf| all | 1 << leaf);
    Node { path, key: None, leaf, leaves, children }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_follow_the_formula_of_the_module() {
        assert_eq!(speed(100_000_000_000), 13_107_200);
        assert_eq!(speed(1_600_000_000_000), 214_748_365);
        assert_eq!(speed(10_000_000), 1_280);
    }

    #[test]
    fn leaves_are_found_by_their_index() {
        assert_eq!(leaf_nodes(PORTS).len(), PORT_LEAVES.len());
        let flows = FLOW_LEAVES.iter().map(|it| it.path).collect::<Vec<_>>();
        let tagged = TAGGED_LEAVES.iter().map(|it| it.path).collect::<Vec<_>>();
        for (index, expected) in [(FLOWS, flows), (TAGGED, tagged)] {
            let list = list(index);
            let nodes = leaf_nodes(index);
            let below = |node: &&Node| node.path[list.path.len()..].join("/");
            assert_eq!(nodes.iter().map(below).collect::<Vec<_>>(), expected);
            assert!(nodes.iter().enumerate().all(|(leaf, node)| node.leaf == Some(leaf)));
            assert_eq!(list.leaves.count_ones() as usize, expected.len());
        }
        assert_eq!(list(FLOWS).key, Some("name"));
        assert_eq!(list(TAGGED).key, Some("name-value-pairs"));
    }
}
