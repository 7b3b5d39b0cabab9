//! Paths of requests, and what they select.
//!
//! A path is a pattern over the nodes of the [schema]: `*` is one element, `...` any
//! number of them, and a list without key stands for all of its entries. [`select`] walks the schema
//! with the set of positions that the pattern can be at, so its time does not depend on how many
//! wildcards there are.

use std::fmt::Write as _;

use wirestorm_gnmi::gnmi::{Path, PathElem};

use super::schema::{self, KEYS, LISTS, Node, TAGGED};
use super::selection::{Exact, ListSelection, Selected, Selection};

/// Maximum number of elements of a path, with its prefix. The schema has 8 levels.
const ELEMENTS_MAX: usize = 16;
/// Longest name and key of an element in bytes: a prefix counts for each of 1,000 paths.
const NAME_BYTES_MAX: usize = 1_024;
/// Longest path in messages, in characters.
const TEXT_CHARACTERS_MAX: usize = 256;
/// Origins of paths to this schema. pygnmi makes an origin of the module of the first element, so
/// the modules are origins as well.
const ORIGINS: [&str; 5] = [
    "",
    "openconfig",
    "open-traffic-generator",
    LISTS[schema::PORTS].module,
    LISTS[schema::FLOWS].module,
];

/// Error of a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathError {
    /// The form of gNMI 0.3.
    #[error("path: found the field `element`, which is deprecated: use `elem`")]
    Deprecated,
    /// More than [`ELEMENTS_MAX`] elements.
    #[error("path: found {0} elements with the prefix, expected at most {ELEMENTS_MAX}")]
    Long(usize),
    /// A name or a key has more than [`NAME_BYTES_MAX`].
    #[error("path: found a name or a key of {0} bytes, expected at most {NAME_BYTES_MAX}")]
    LongName(usize),
    /// No origin of this schema.
    #[error(
        "path: found origin {0:?}, expected none, \"openconfig\" or \"open-traffic-generator\""
    )]
    Origin(String),
    /// The prefix and the path have different origins.
    #[error("path: found origin {path:?}, and {prefix:?} in the prefix, expected one of them")]
    Origins { prefix: String, path: String },
    /// The schema has no such node.
    #[error("{path}: no such node; known there: {known}")]
    Unknown { path: String, known: String },
    /// A node has other keys.
    #[error("{path}: found the key {found:?}, expected {expected}")]
    Key { path: String, found: String, expected: String },
}

/// Resolves a path.
///
/// # Errors
/// See [`PathError`].
pub(super) fn select(prefix: Option<&Path>, path: Option<&Path>) -> Result<Selection, PathError> {
    let empty = Path::default();
    let (prefix, path) = (prefix.unwrap_or(&empty), path.unwrap_or(&empty));
    let origin = origin(prefix, path)?;
    for path in [prefix, path] {
        #[expect(deprecated, reason = "the field must be empty")]
        if !path.element.is_empty() {
            return Err(PathError::Deprecated);
        }
    }
    let count = prefix.elem.len() + path.elem.len();
    if count > ELEMENTS_MAX {
        return Err(PathError::Long(count));
    }
    let elements: Vec<Element<'_>> =
        prefix.elem.iter().chain(&path.elem).map(Element::new).collect();
    let parts = elements.iter().flat_map(|it| it.elem.key.iter().flat_map(|(a, b)| [a, b]));
    let longest = parts.chain(elements.iter().map(|it| &it.elem.name)).map(String::len).max();
    if let Some(longest) = longest.filter(|longest| *longest > NAME_BYTES_MAX) {
        return Err(PathError::LongName(longest));
    }
    let nodes = check(&elements)?;
    let mut selection = Selection {
        text: text(&elements),
        origin,
        above: Vec::new(),
        lists: Default::default(),
        exact: exact(&elements, &nodes),
    };
    let pattern = Pattern { elements: &elements };
    let start = pattern.start();
    if pattern.is_end(start) {
        selection.above.push(&schema::ROOT);
    }
    for (index, container) in schema::ROOT.children.iter().enumerate() {
        let here = pattern.step(start, container, None);
        if !pattern.is_end(start) && pattern.is_end(here) {
            selection.above.push(container);
        }
        let is_all = pattern.is_end(start) || pattern.is_end(here);
        selection.lists[index] = match is_all {
            true => ListSelection::all(schema::list(index)),
            false => pattern.entries(schema::list(index), here),
        };
    }
    Ok(selection)
}

/// Returns the origin of a path whose prefix has none.
fn origin(prefix: &Path, path: &Path) -> Result<String, PathError> {
    for origin in [&prefix.origin, &path.origin] {
        if !ORIGINS.contains(&origin.as_str()) {
            return Err(PathError::Origin(origin.clone()));
        }
    }
    if prefix.origin.is_empty() {
        return Ok(path.origin.clone());
    }
    if !path.origin.is_empty() && path.origin != prefix.origin {
        let (prefix, path) = (prefix.origin.clone(), path.origin.clone());
        return Err(PathError::Origins { prefix, path });
    }
    Ok(String::new())
}

/// An element of a path.
#[derive(Clone, Copy, Debug)]
struct Element<'a> {
    /// Name without module.
    name: &'a str,
    elem: &'a PathElem,
}

impl<'a> Element<'a> {
    fn new(elem: &'a PathElem) -> Self {
        // A name may be qualified as in RFC 7951 section 4.
        let name = match elem.name.split_once(':') {
            Some((module, name)) if LISTS.iter().any(|it| it.module == module) => name,
            _ => &elem.name,
        };
        Self { name, elem }
    }

    /// Returns the keys and their values, without wildcards.
    fn keys(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let keys = self.elem.key.iter().filter(|(_, value)| *value != "*");
        keys.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns whether the name and the names of the keys fit a node.
    fn fits(self, node: &Node) -> bool {
        let has_name = self.name == "*" || self.name == node.name();
        has_name && self.elem.key.keys().all(|key| Some(key.as_str()) == node.key)
    }
}

/// A path as a pattern. A set of positions has bit `n` for the position before element `n`.
struct Pattern<'a> {
    elements: &'a [Element<'a>],
}

type Positions = u64;

impl Pattern<'_> {
    fn start(&self) -> Positions {
        self.closed(1)
    }

    /// Returns whether the pattern has matched.
    fn is_end(&self, positions: Positions) -> bool {
        positions & (1 << self.elements.len()) != 0
    }

    /// Adds the positions after `...`, which may stand for no element.
    fn closed(&self, mut positions: Positions) -> Positions {
        for (index, element) in self.elements.iter().enumerate() {
            if element.name == "..." && positions & (1 << index) != 0 {
                positions |= 1 << (index + 1);
            }
        }
        positions
    }

    /// Returns the positions after a node. `entry` is the name of the list's entry, or `None` for one
    /// that the path does not name; without `entry`, the values of keys do not matter.
    fn step(&self, before: Positions, node: &Node, entry: Option<Option<&str>>) -> Positions {
        let mut after = 0;
        for (index, element) in self.elements.iter().enumerate() {
            if before & (1 << index) == 0 {
                continue;
            }
            if element.name == "..." {
                after |= 1 << index;
            } else if element.fits(node)
                && entry.is_none_or(|entry| element.keys().all(|(_, value)| entry == Some(value)))
            {
                after |= 1 << (index + 1);
            }
        }
        self.closed(after)
    }

    /// Returns what is selected of a list; `before` are the positions after its container.
    fn entries(&self, list: &'static Node, before: Positions) -> ListSelection {
        let of = |name: Option<&str>| {
            let mut selected = Selected::default();
            let at_list = self.step(before, list, Some(name));
            selected.is_entry = self.is_end(at_list);
            self.collect(list, at_list, &mut selected);
            selected
        };
        if before == 0 {
            return ListSelection::default();
        }
        let keys = self.elements.iter().flat_map(|it| it.keys());
        let names = keys.filter(|(key, _)| Some(*key) == list.key).map(|(_, name)| name);
        let named = names.map(|name| (name.to_owned(), of(Some(name)))).collect();
        ListSelection { named, others: of(None) }
    }

    /// Adds what is selected of a node of an entry.
    fn collect(&self, node: &'static Node, positions: Positions, selected: &mut Selected) {
        if self.is_end(positions) {
            selected.leaves |= node.leaves;
            selected.nodes.push(node);
            if let Some(list) = node.list_below() {
                selected.inner = Some(Box::new(ListSelection::all(list)));
            }
        } else if positions != 0 {
            for child in &node.children {
                if child.key.is_some() {
                    selected.inner = Some(Box::new(self.entries(child, positions)));
                } else {
                    self.collect(child, self.step(positions, child, None), selected);
                }
            }
        }
    }

    /// Adds the nodes at which the pattern ends.
    fn ends(&self, node: &'static Node, positions: Positions, nodes: &mut Vec<&'static Node>) {
        if self.is_end(positions) {
            nodes.push(node);
        }
        for child in &node.children {
            let after = self.step(positions, child, None);
            if after != 0 {
                self.ends(child, after, nodes);
            }
        }
    }
}

/// Returns the nodes of the schema that a path names.
///
/// # Errors
/// There are none, or a key is wrong.
fn check(elements: &[Element<'_>]) -> Result<Vec<&'static Node>, PathError> {
    let mut before = vec![&*schema::ROOT];
    for count in 1..=elements.len() {
        let pattern = Pattern { elements: &elements[..count] };
        let mut nodes = Vec::new();
        pattern.ends(&schema::ROOT, pattern.start(), &mut nodes);
        if nodes.is_empty() {
            return Err(mismatch(elements, count - 1, &before));
        }
        before = nodes;
    }
    Ok(before)
}

/// Returns the error of the element with this index; `before` are the nodes that the elements before
/// name.
fn mismatch(elements: &[Element<'_>], index: usize, before: &[&'static Node]) -> PathError {
    let element = elements[index];
    let children: Vec<&Node> = before.iter().flat_map(|node| &node.children).collect();
    let named = children.iter().find(|child| element.name == "*" || child.name() == element.name);
    if let Some(node) = named {
        let path = text(&elements[..=index]);
        let wrong = |key: &&String| Some(key.as_str()) != node.key;
        let found = element.elem.key.keys().find(wrong).cloned().unwrap_or_default();
        let expected = node.key.map_or_else(|| "no keys".to_owned(), |key| format!("{key:?}"));
        return PathError::Key { path, found, expected };
    }
    let mut known: Vec<&str> = children.iter().map(|node| node.name()).collect();
    known.sort_unstable();
    known.dedup();
    let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
    PathError::Unknown { path: text(&elements[..=index]), known }
}

/// Returns what a path names, if it has no wildcards before the name of an entry.
fn exact(elements: &[Element<'_>], nodes: &[&'static Node]) -> Option<Exact> {
    let [node] = nodes else { return None };
    let is_wildcard = |it: &Element<'_>| it.name == "*" || it.name == "...";
    if elements.iter().any(is_wildcard) {
        return None;
    }
    // Each list is in a container of its own.
    let name_at = |depth: usize| Some(elements.get(depth)?.keys().next()?.1.to_owned());
    let (name, inner) = (name_at(1)?, name_at(3));
    let is_leaf =
        node.is_leaf() && (inner.is_some() || !node.path.starts_with(&schema::list(TAGGED).path));
    Some(Exact { is_leaf, list: [node.path[0], node.path[1]], name, inner })
}

/// Returns a path as text.
fn text(elements: &[Element<'_>]) -> String {
    let mut text = String::new();
    for element in elements {
        // Writing to a string cannot fail.
        let _ = write!(text, "/{}", element.elem.name);
        for (key, value) in &element.elem.key {
            let _ = write!(text, "[{key}={value}]");
        }
    }
    if let Some((end, _)) = text.char_indices().nth(TEXT_CHARACTERS_MAX) {
        text.truncate(end);
        text.push('…');
    }
    if text.is_empty() { "/".to_owned() } else { text }
}

/// Returns the path of a node; `names` are those of the entries that it is in, the outermost first.
pub(super) fn concrete(node: &Node, names: &[&str], origin: &str) -> Path {
    let elem = |(depth, name): (usize, &&str)| {
        // Each list is in a container of its own.
        let key = (depth % 2 == 1).then(|| KEYS.iter().zip(names).nth(depth / 2)).flatten();
        let key = key.map(|(key, name)| ((*key).to_owned(), (*name).to_owned()));
        PathElem { name: (*name).to_owned(), key: key.into_iter().collect() }
    };
    Path {
        origin: origin.to_owned(),
        elem: node.path.iter().enumerate().map(elem).collect(),
        ..Path::default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::schema::{FLOWS, PORTS};
    use super::*;

    /// Returns a path as text.
    pub(in super::super) fn text_of(path: &Path) -> String {
        text(&path.elem.iter().map(Element::new).collect::<Vec<_>>())
    }

    /// Parses `/flows/flow[name=f]/state`.
    pub(in super::super) fn path(text: &str) -> Path {
        let elem = |text: &str| {
            let (name, keys) = text.split_once('[').unwrap_or((text, ""));
            let keys = keys.trim_end_matches(']').split("][").filter_map(|it| it.split_once('='));
            let key = keys.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
            PathElem { name: name.to_owned(), key }
        };
        let elem = text.split('/').filter(|it| !it.is_empty()).map(elem).collect();
        Path { elem, ..Path::default() }
    }

    fn selected(text: &str) -> Selection {
        select(None, Some(&path(text))).unwrap()
    }

    /// Returns the names of the selected leaves of an entry.
    fn leaves(text: &str, list: usize, entry: &str) -> Vec<String> {
        names(selected(text).lists[list].of(entry), list)
    }

    /// Returns the names of the selected leaves of a tagged metric.
    fn tagged(text: &str, flow: &str, pairs: &str) -> Vec<String> {
        let inner = selected(text).lists[FLOWS].of(flow).inner.clone();
        inner.map(|inner| names(inner.of(pairs), TAGGED)).unwrap_or_default()
    }

    fn names(selected: &Selected, list: usize) -> Vec<String> {
        let nodes = schema::leaf_nodes(list).iter().filter(|it| it.leaves & selected.leaves != 0);
        nodes.map(|it| it.path[schema::list(list).path.len()..].join("/")).collect()
    }

    #[test]
    fn a_key_selects_one_entry() {
        let counters = ["in-octets", "in-pkts", "out-octets", "out-pkts"];
        let counters = counters.map(|name| format!("state/counters/{name}"));
        let text = "/flows/flow[name=f]/state/counters";
        assert_eq!(leaves(text, FLOWS, "f"), counters);
        assert!(leaves(text, FLOWS, "g").is_empty());
        assert!(leaves(text, PORTS, "f").is_empty());
        assert_eq!(selected(text).exact.unwrap().name, "f");
        assert_eq!(leaves("/flows/flow[name=*]/state/counters", FLOWS, "g"), counters);
        assert_eq!(leaves("/flows/flow/state/counters", FLOWS, "g"), counters);
        assert!(selected("/flows/flow/state/counters").exact.is_none());
    }

    #[test]
    fn wildcards_select_over_lists() {
        for text in ["/*/*/state/counters/out-octets", "/.../out-octets", ".../counters/out-octets"]
        {
            assert_eq!(leaves(text, FLOWS, "f"), ["state/counters/out-octets"], "{text}");
            assert_eq!(leaves(text, PORTS, "p"), ["state/counters/out-octets"], "{text}");
        }
        assert_eq!(leaves("/*/*[name=x]/state/name", PORTS, "x"), ["state/name"]);
        assert!(leaves("/*/*[name=x]/state/name", PORTS, "y").is_empty());
        assert_eq!(leaves(".../flow[name=x]/.../transmit", FLOWS, "x"), ["state/transmit"]);
        assert!(leaves(".../flow[name=x]/.../transmit", FLOWS, "y").is_empty());
        for text in ["/", "/flows", "/flows/flow", "/...", "/flows/...", "/*", "/*/*"] {
            assert_eq!(leaves(text, FLOWS, "f").len(), schema::FLOW_LEAVES.len(), "{text}");
        }
    }

    #[test]
    fn the_topmost_nodes_are_known() {
        let nodes = |text: &str| -> Vec<String> {
            let selection = selected(text);
            let above = selection.above.iter().map(|it| it.path.join("/"));
            let below = selection.lists[FLOWS].others.nodes.iter().map(|it| it.path.join("/"));
            above.chain(below).collect()
        };
        assert_eq!(nodes("/"), [""]);
        assert_eq!(nodes("/flows"), ["flows"]);
        assert_eq!(nodes("/*"), ["ports", "flows", "lags"]);
        assert_eq!(nodes("/flows/flow"), ["flows/flow"]);
        assert_eq!(nodes("/flows/flow/state/*"), {
            let children = &schema::list(FLOWS).children[1].children;
            children.iter().map(|it| it.path.join("/")).collect::<Vec<_>>()
        });
    }

    #[test]
    fn an_error_names_the_place_and_what_is_known() {
        let error = |text: &str| select(None, Some(&path(text))).unwrap_err().to_string();
        assert_eq!(error("/lacp"), "/lacp: no such node; known there: flows, lags, ports");
        assert_eq!(
            error("/flows/flow[name=f]/state/counters/in-frames"),
            "/flows/flow[name=f]/state/counters/in-frames: no such node; known there: in-octets, \
             in-pkts, out-octets, out-pkts"
        );
        assert_eq!(
            error("/flows/flow[id=f]"),
            "/flows/flow[id=f]: found the key \"id\", expected \"name\""
        );
        assert_eq!(
            error("/flows[name=f]"),
            "/flows[name=f]: found the key \"name\", expected no keys"
        );
        assert_eq!(
            error("/flows/*/state/name/x"),
            "/flows/*/state/name/x: no such node; known there: nothing"
        );
        assert!(error("/.../foo").starts_with("/.../foo: no such node; known there: average-"));
    }

    #[test]
    fn a_prefix_comes_first_and_modules_are_optional() {
        let prefix = path("/open-traffic-generator-flow:flows/flow[name=f]");
        let selection = select(Some(&prefix), Some(&path("state/transmit"))).unwrap();
        assert_eq!(selection.lists[FLOWS].of("f").leaves.count_ones(), 1);
        let node = selection.lists[FLOWS].of("f").nodes[0];
        assert_eq!(concrete(node, &["f"], ""), path("/flows/flow[name=f]/state/transmit"));
    }

    #[test]
    fn a_list_inside_of_a_list_has_a_key_of_its_own() {
        let below = "/flows/flow[name=f]/tagged-metrics/tagged-metric[name-value-pairs=a=1&b=2]";
        let counter = format!("{below}/state/counters/in-pkts");
        assert_eq!(tagged(&counter, "f", "a=1&b=2"), ["state/counters/in-pkts"]);
        assert!(tagged(&counter, "f", "a=1").is_empty());
        assert!(tagged(&counter, "g", "a=1&b=2").is_empty());
        assert!(leaves(&counter, FLOWS, "f").is_empty());
        let node = schema::leaf_nodes(TAGGED)[4];
        assert_eq!(concrete(node, &["f", "a=1&b=2"], ""), path(&counter));
        let exact = selected(&counter).exact.unwrap();
        let inner = Some("a=1&b=2".to_owned());
        let (list, name) = (["flows", "flow"], "f".to_owned());
        assert_eq!(exact, Exact { is_leaf: true, list, name, inner });
        let exact = selected("/flows/flow[name=f]/tagged-metrics/tagged-metric/name-value-pairs");
        assert!(!exact.exact.unwrap().is_leaf, "it is the leaf of all entries");
    }

    #[test]
    fn wildcards_and_missing_keys_select_over_lists_inside_of_lists() {
        for (text, f, g) in [
            ("/flows/flow/tagged-metrics/tagged-metric/state/tags", true, true),
            ("/flows/*/tagged-metrics/*/state/tags", true, true),
            (".../tags", true, true),
            ("/flows/flow[name=f]/.../tags", true, false),
            ("/flows/flow[name=f]/tagged-metrics/*[name-value-pairs=*]/*/tags", true, false),
            (".../*[name=f]/.../tagged-metric/state/tags", true, false),
            (".../tags/tag-name", false, false),
            (".../tags/*", false, false),
        ] {
            let expected =
                |is_selected: bool| if is_selected { vec!["state/tags"] } else { vec![] };
            assert_eq!(tagged(text, "f", "a=1"), expected(f), "{text}");
            assert_eq!(tagged(text, "g", "a=1"), expected(g), "{text}");
            assert_eq!(selected(text).has_tagged(), f, "{text}");
        }
        let text = "/flows/flow/tagged-metrics/tagged-metric[name-value-pairs=a=1]";
        assert_eq!(tagged(text, "f", "a=1").len(), schema::TAGGED_LEAVES.len());
        assert!(tagged(text, "f", "b=1").is_empty());
        for text in ["/", "/flows", "/flows/flow", "/flows/flow/tagged-metrics", "/..."] {
            assert_eq!(tagged(text, "f", "a=1").len(), schema::TAGGED_LEAVES.len(), "{text}");
        }
        for text in ["/ports", "/flows/flow/state", "/flows/flow/name", ".../transmit"] {
            assert!(!selected(text).has_tagged(), "{text}");
        }
    }

    #[test]
    fn an_entry_is_selected_by_itself_and_by_nodes_above() {
        let entries = |text: &str| {
            let flow = selected(text).lists[FLOWS].of("f").clone();
            (flow.is_entry, flow.inner.is_some_and(|inner| inner.of("a=1").is_entry))
        };
        for text in ["/", "/flows", "/flows/flow", "/flows/flow[name=f]", "/flows/*", "..."] {
            assert_eq!(entries(text), (true, true), "{text}");
        }
        for text in ["/flows/flow/tagged-metrics", "/flows/flow/tagged-metrics/tagged-metric"] {
            assert_eq!(entries(text), (false, true), "{text}");
        }
        let text = "/flows/flow/tagged-metrics/tagged-metric/state";
        assert_eq!(entries(text), (false, false));
    }

    #[test]
    fn origins_are_checked() {
        let with = |origin: &str| Path { origin: origin.to_owned(), ..path("/flows") };
        assert_eq!(select(None, Some(&with("openconfig"))).unwrap().origin, "openconfig");
        assert_eq!(select(Some(&with("openconfig")), None).unwrap().origin, "");
        assert!(matches!(select(None, Some(&with("cli"))), Err(PathError::Origin(_))));
        let both = select(Some(&with("openconfig")), Some(&with("open-traffic-generator")));
        assert!(matches!(both, Err(PathError::Origins { .. })));
    }

    #[test]
    fn paths_are_bounded() {
        let text = "/.../*".repeat(ELEMENTS_MAX / 2);
        assert!(leaves(&text, FLOWS, "f").is_empty(), "nodes at the lowest level have no values");
        let text = "/...".repeat(ELEMENTS_MAX);
        assert_eq!(leaves(&text, FLOWS, "f").len(), schema::FLOW_LEAVES.len());
        let error = select(None, Some(&path(&"x".repeat(NAME_BYTES_MAX)))).unwrap_err().to_string();
        assert!(error.len() < 2 * TEXT_CHARACTERS_MAX, "{error}");
        let long = path(&format!("/flows/flow[name={}]", "x".repeat(NAME_BYTES_MAX + 1)));
        assert_eq!(select(None, Some(&long)).unwrap_err(), PathError::LongName(1_025));
        let text = "/...".repeat(ELEMENTS_MAX + 1);
        assert_eq!(
            select(None, Some(&path(&text))).unwrap_err(),
            PathError::Long(ELEMENTS_MAX + 1)
        );
    }
}
