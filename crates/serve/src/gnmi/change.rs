//! What Subscribe sends of an entry of a list.

use wirestorm_gnmi::gnmi::{Notification, Update};

use super::path::concrete;
use super::schema;
use super::selection::Selection;
use super::subscribe::List;
use super::tree::{Entry, indices};

/// What to send of an entry of a list.
pub(super) struct Change<'a> {
    pub(super) list: &'a List,
    pub(super) selection: &'a Selection,
    /// Index of the list of the schema.
    pub(super) index: usize,
    /// Whether to send all values, and not only those that have changed.
    pub(super) is_all: bool,
}

impl Change<'_> {
    /// Returns the notification of the change from one state of an entry to another; `None` if there
    /// is nothing to send.
    pub(super) fn of(
        &self,
        before: Option<&Entry>,
        after: Option<&Entry>,
        timestamp: i64,
    ) -> Option<Notification> {
        let name = &after.or(before)?.name;
        let leaves = self.selection.lists[self.index].of(name).leaves;
        let origin = &self.selection.origin;
        let path = |leaf: usize| concrete(schema::leaf_nodes(self.index)[leaf], Some(name), origin);
        let value = |entry: Option<&Entry>, leaf: usize| {
            entry.and_then(|entry| entry.values.get(leaf)?.clone())
        };
        let (mut update, mut delete) = (Vec::new(), Vec::new());
        let entry = schema::list(self.index);
        if after.is_none() && leaves == entry.leaves {
            delete.push(concrete(entry, Some(name), origin));
        } else {
            for leaf in indices(leaves) {
                match (value(before, leaf), value(after, leaf)) {
                    (old, Some(new)) if self.is_all || old.as_ref() != Some(&new) => {
                        let val = Some(self.list.form.leaf(&new));
                        update.push(Update { path: Some(path(leaf)), val, ..Update::default() });
                    }
                    (Some(_), None) => delete.push(path(leaf)),
                    _ => {}
                }
            }
        }
        let prefix = self.list.prefix.clone();
        let is_empty = update.is_empty() && delete.is_empty();
        (!is_empty).then(|| Notification {
            timestamp,
            prefix,
            update,
            delete,
            ..Notification::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_gnmi::gnmi::{Path, PathElem, Subscription, SubscriptionList};
    use wirestorm_otg::proto::FlowMetric;

    use super::super::schema::FLOWS;
    use super::super::tree::Tree;
    use super::*;
    use crate::otg::Telemetry;

    fn tree(frames_tx: Option<u64>) -> Tree {
        let name = Some("f".to_owned());
        let flow = FlowMetric { name, frames_tx, loss: Some(0.0), ..FlowMetric::default() };
        Tree::now(&Telemetry { flows: vec![flow], ..Telemetry::default() })
    }

    /// Returns the last elements of the updated and the deleted paths.
    fn change(path: &[&str], before: &Tree, after: &Tree, is_all: bool) -> [Vec<String>; 2] {
        let elem = |name: &&str| PathElem { name: (*name).to_owned(), ..PathElem::default() };
        let path = Some(Path { elem: path.iter().map(elem).collect(), ..Path::default() });
        let subscription = vec![Subscription { path, ..Subscription::default() }];
        let list = List::new(&SubscriptionList { subscription, ..Default::default() }).unwrap();
        let change =
            Change { list: &list, selection: &list.schedules[0].1[0], index: FLOWS, is_all };
        let [before, after] = [before, after].map(|tree| tree.lists[FLOWS].get("f"));
        let notification = change.of(before, after, 0).unwrap_or_default();
        let last = |path: &Path| path.elem.last().unwrap().name.clone();
        let updates = notification.update.iter().map(|it| last(it.path.as_ref().unwrap()));
        [updates.collect(), notification.delete.iter().map(last).collect()]
    }

    #[test]
    fn only_changed_values_are_sent() {
        let (one, two, none) = (tree(Some(1)), tree(Some(2)), tree(None));
        let nothing = Vec::<String>::new();
        assert_eq!(change(&[], &one, &two, false), [vec!["out-pkts".to_owned()], nothing.clone()]);
        assert_eq!(change(&[], &one, &one, false), [nothing.clone(), nothing.clone()]);
        assert_eq!(change(&[], &two, &none, false), [nothing.clone(), vec!["out-pkts".to_owned()]]);
        let [all, deleted] = change(&[], &one, &one, true);
        assert_eq!(all, ["name", "name", "transmit", "loss-pct", "out-pkts"]);
        assert!(deleted.is_empty());
    }

    #[test]
    fn an_entry_that_vanishes_is_deleted_as_far_as_it_was_selected() {
        let (one, empty) = (tree(Some(1)), Tree::default());
        let deleted = |path: &[&str]| change(path, &one, &empty, true)[1].clone();
        assert_eq!(deleted(&[]), ["flow"]);
        assert_eq!(deleted(&["flows", "flow"]), ["flow"]);
        assert_eq!(deleted(&["flows", "flow", "state", "counters"]), ["out-pkts"]);
    }
}
