//! What Subscribe sends because values have changed.

use std::iter::once;

use wirestorm_gnmi::gnmi::Notification;

use super::place::Place;
use super::schema::{LISTS, TAGGED, Value};
use super::selection::{ListSelection, Selected, Selection};
use super::subscribe::List;
use super::tree::{Entries, Entry, Tree, indices};

/// Returns the selected values that have changed since the last tree, or all of them: a notification
/// for each entry of a list, or `None` without changes.
pub(super) fn changes<'a>(
    list: &'a List,
    selection: &'a Selection,
    last: Option<&'a Tree>,
    tree: &'a Tree,
    is_all: bool,
) -> impl Iterator<Item = Option<Notification>> + Send + 'a {
    let change = Change { list, origin: &selection.origin, is_all, timestamp: tree.unix_ns };
    (0..LISTS.len()).flat_map(move |index| {
        let of_list = &selection.lists[index];
        let before = last.map(|last| &last.lists[index]);
        pairs(before, &tree.lists[index], of_list).flat_map(move |pair| {
            let name = &*pair.any.name;
            let selected = of_list.of(name);
            let own = change.of(index, &[name], selected, &pair);
            // The deletion of an entry covers the list inside of it.
            let is_deleted = pair.after.is_none() && selected.is_entry;
            let inner = selected.inner.as_deref().filter(|_| !is_deleted);
            let inner = inner.into_iter().flat_map(move |inner| {
                let [before, after] = [pair.before, pair.after].map(|it| it.map(|it| &it.inner));
                pairs(before, after.unwrap_or(Entries::EMPTY), inner).map(move |pair| {
                    let names = [name, &*pair.any.name];
                    change.of(TAGGED, &names, inner.of(names[1]), &pair)
                })
            });
            once(own).chain(inner)
        })
    })
}

/// An entry at the last time and now; `None` where it does not exist.
#[derive(Clone, Copy)]
struct Pair<'a> {
    before: Option<&'a Entry>,
    after: Option<&'a Entry>,
    /// One of both.
    any: &'a Entry,
}

/// Returns the entries of which a path may select something: those that exist, and then those that
/// have vanished.
fn pairs<'a>(
    before: Option<&'a Entries>,
    after: &'a Entries,
    selection: &'a ListSelection,
) -> impl Iterator<Item = Pair<'a>> + Send {
    let present = after.selected(selection).map(move |entry| {
        let before = before.and_then(|before| before.get(&entry.name));
        Pair { before, after: Some(entry), any: entry }
    });
    let vanished = before.into_iter().flat_map(|before| before.selected(selection));
    let vanished = vanished.filter(|entry| after.get(&entry.name).is_none());
    present.chain(vanished.map(|entry| Pair { before: Some(entry), after: None, any: entry }))
}

/// How to send changes.
#[derive(Clone, Copy)]
struct Change<'a> {
    list: &'a List,
    origin: &'a str,
    /// Whether to send all values, and not only those that have changed.
    is_all: bool,
    timestamp: i64,
}

impl Change<'_> {
    /// Returns the notification of the change of an entry, without the list inside of it; `None` if
    /// there is nothing to send.
    fn of(
        &self,
        index: usize,
        names: &[&str],
        selected: &Selected,
        pair: &Pair<'_>,
    ) -> Option<Notification> {
        fn value(entry: Option<&Entry>, leaf: usize) -> Option<&Value> {
            entry?.values.get(leaf)?.as_ref()
        }
        let place = Place { index, names, origin: self.origin, is_entry: selected.is_entry };
        let (mut update, mut delete) = (Vec::new(), Vec::new());
        if pair.after.is_none() && selected.is_entry {
            delete.push(place.entry());
        } else {
            for leaf in indices(selected.leaves) {
                match (value(pair.before, leaf), value(pair.after, leaf)) {
                    (old, Some(new)) if self.is_all || old != Some(new) => {
                        update.extend(place.updates(leaf, new, self.list.form));
                    }
                    (Some(old), None) => delete.extend(place.deletes(leaf, old)),
                    _ => {}
                }
            }
        }
        let prefix = self.list.prefix.clone();
        let is_empty = update.is_empty() && delete.is_empty();
        (!is_empty).then(|| Notification {
            timestamp: self.timestamp,
            prefix,
            update,
            delete,
            ..Notification::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_gnmi::gnmi::{Path, Subscription, SubscriptionList};
    use wirestorm_otg::proto::{
        FlowMetric, FlowMetricTag, FlowMetricTagValue, FlowTaggedMetric, PortMetric,
    };

    use super::super::path::tests::{path, text_of};
    use super::*;
    use crate::otg::{PortTelemetry, Telemetry};

    /// Returns a tree with a port `p` and a flow `f`.
    fn tree(frames_tx: Option<u64>, tagged: &[(&str, u64)]) -> Tree {
        let tagged = tagged.iter().map(|(hex, frames_rx)| {
            let value = FlowMetricTagValue { hex: Some((*hex).to_owned()), ..Default::default() };
            let tag = FlowMetricTag { name: Some("a".to_owned()), value: Some(value) };
            let frames_rx = Some(*frames_rx);
            FlowTaggedMetric { tags: vec![tag], frames_rx, ..FlowTaggedMetric::default() }
        });
        let flow = FlowMetric {
            name: Some("f".to_owned()),
            frames_tx,
            loss: Some(0.0),
            tagged_metrics: tagged.collect(),
            ..FlowMetric::default()
        };
        let metric = PortMetric { name: Some("p".to_owned()), ..PortMetric::default() };
        let port = PortTelemetry { metric, speed_bps: None };
        Tree::now(&Telemetry { ports: vec![port], flows: vec![flow], ..Telemetry::default() })
    }

    /// Returns the updated and the deleted paths below `/flows/flow[name=f]`.
    fn change(of: &str, before: &Tree, after: &Tree, is_all: bool) -> [Vec<String>; 2] {
        let subscription = vec![Subscription { path: Some(path(of)), ..Subscription::default() }];
        let list = List::new(&SubscriptionList { subscription, ..Default::default() }).unwrap();
        let selection = &list.schedules[0].1[0];
        let (mut updates, mut deletes) = (Vec::new(), Vec::new());
        let below =
            |path: &Path| text_of(path).strip_prefix("/flows/flow[name=f]").map(str::to_owned);
        for it in changes(&list, selection, Some(before), after, is_all).flatten() {
            updates.extend(it.update.iter().filter_map(|it| below(it.path.as_ref().unwrap())));
            deletes.extend(it.delete.iter().filter_map(below));
        }
        [updates, deletes]
    }

    const COUNTERS: &str = "/state/counters/out-pkts";
    const ONE: &str = "/tagged-metrics/tagged-metric[name-value-pairs=a=0x1]";
    const TWO: &str = "/tagged-metrics/tagged-metric[name-value-pairs=a=0x2]";

    #[test]
    fn only_changed_values_are_sent() {
        let [one, two, none] = [Some(1), Some(2), None].map(|frames| tree(frames, &[]));
        let nothing = Vec::<String>::new();
        let packets = vec![COUNTERS.to_owned()];
        assert_eq!(change("/", &one, &two, false), [packets.clone(), nothing.clone()]);
        assert_eq!(change("/", &one, &one, false), [nothing.clone(), nothing.clone()]);
        assert_eq!(change("/", &two, &none, false), [nothing.clone(), packets]);
        let [all, deleted] = change("/", &one, &one, true);
        let state = ["/state/name", "/state/transmit", "/state/loss-pct", COUNTERS];
        assert_eq!(all, [&["/name"][..], &state].concat());
        assert!(deleted.is_empty());
    }

    #[test]
    fn an_entry_that_vanishes_is_deleted_as_far_as_it_was_selected() {
        let (one, empty) = (tree(Some(1), &[("0x1", 1)]), Tree::default());
        let deleted = |path: &str| change(path, &one, &empty, true)[1].clone();
        assert_eq!(deleted("/"), [""]);
        assert_eq!(deleted("/flows/flow"), [""]);
        assert_eq!(deleted("/flows/flow/state/counters"), [COUNTERS]);
        assert_eq!(deleted("/flows/flow/tagged-metrics"), [ONE]);
        let counters = format!("{ONE}/state/counters/in-pkts");
        assert_eq!(deleted(".../counters"), [COUNTERS, &counters]);
    }

    #[test]
    fn entries_inside_of_entries_change_by_themselves() {
        let [before, after] = [[("0x1", 1)], [("0x1", 3)]].map(|it| tree(Some(1), &it));
        let nothing = Vec::<String>::new();
        for path in ["/", "/flows/flow[name=f]/tagged-metrics", ".../in-pkts"] {
            let updated = vec![format!("{ONE}/state/counters/in-pkts")];
            assert_eq!(change(path, &before, &after, false), [updated, nothing.clone()], "{path}");
        }
        for path in ["/flows/flow/state", "/flows/flow[name=g]", &format!("/flows/flow{TWO}")] {
            assert_eq!(change(path, &before, &after, false)[0], nothing, "{path}");
        }
        let other = tree(Some(1), &[("0x2", 1)]);
        let [updates, deletes] = change("/flows/flow", &before, &other, false);
        let below = ["/name-value-pairs", "/state/name-value-pairs", "", "/state/counters/in-pkts"];
        assert_eq!(updates, below.map(|it| format!("{TWO}{it}")));
        assert_eq!(deletes, [ONE]);
        // Without the entry, each of the tags has a path.
        let [updates, deletes] = change(".../tags", &before, &other, false);
        assert_eq!(updates, [format!("{TWO}/state/tags[tag-name=a]")]);
        assert_eq!(deletes, [format!("{ONE}/state/tags[tag-name=a]")]);
    }
}
