//! What a path selects.

use std::collections::BTreeMap;

use super::schema::{FLOWS, Leaves, Node};

/// What a path selects.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// The path, for messages.
    pub(super) text: String,
    /// Origin of the path, if its prefix has none.
    pub(super) origin: String,
    /// Selected nodes above the lists: the root, or containers of lists.
    pub(super) above: Vec<&'static Node>,
    /// What the path selects of each list.
    pub(super) lists: [ListSelection; 3],
    /// What the path names, if it has no wildcards before the name of an entry.
    pub(super) exact: Option<Exact>,
}

impl Selection {
    /// Returns whether the path selects values of tagged metrics.
    pub(super) fn has_tagged(&self) -> bool {
        let flows = &self.lists[FLOWS];
        let mut selected = flows.named.values().chain([&flows.others]);
        selected.any(|it| it.inner.as_ref().is_some_and(|inner| !inner.is_empty()))
    }
}

/// What a path names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exact {
    /// Whether a leaf is named, of one entry.
    pub(super) is_leaf: bool,
    /// Name of the container of the list, and of the list.
    pub(super) list: [&'static str; 2],
    /// Name of the entry, and of the one of the list inside of it, if the path names it.
    pub(super) name: String,
    pub(super) inner: Option<String>,
}

/// What a path selects of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct ListSelection {
    /// What it selects of entries with names in the path.
    pub(super) named: BTreeMap<String, Selected>,
    /// What it selects of all others.
    pub(super) others: Selected,
}

/// What a path selects of an entry of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Selected {
    /// Whether it selects the entry as a whole.
    pub(super) is_entry: bool,
    /// All selected leaves.
    pub(super) leaves: Leaves,
    /// The topmost selected nodes; empty if nodes above the list are selected.
    pub(super) nodes: Vec<&'static Node>,
    /// What it selects of the list inside of the entry; `None` for nothing.
    pub(super) inner: Option<Box<ListSelection>>,
}

impl ListSelection {
    /// Selects all entries of a list.
    pub(super) fn all(list: &'static Node) -> Self {
        Self { named: BTreeMap::new(), others: Selected::all(list) }
    }

    /// Returns what the path selects of an entry.
    pub(super) fn of(&self, name: &str) -> &Selected {
        self.named.get(name).unwrap_or(&self.others)
    }

    /// Returns whether it selects no values.
    pub(super) fn is_empty(&self) -> bool {
        self.others.is_empty() && self.named.values().all(Selected::is_empty)
    }
}

impl Selected {
    /// Selects an entry of a list as a whole, because of a node above.
    fn all(list: &'static Node) -> Self {
        let inner = list.list_below().map(|list| Box::new(ListSelection::all(list)));
        Self { is_entry: true, leaves: list.leaves, nodes: Vec::new(), inner }
    }

    /// Returns whether it selects no values.
    pub(super) fn is_empty(&self) -> bool {
        self.leaves == 0 && self.inner.as_ref().is_none_or(|inner| inner.is_empty())
    }
}
