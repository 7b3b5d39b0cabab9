//! What a path selects.

use std::collections::BTreeMap;

use super::schema::{Leaves, Node};

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
    /// Node and name of the entry, if the path has no wildcards and names an entry.
    pub(super) exact: Option<(&'static Node, String)>,
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
    /// All selected leaves.
    pub(super) leaves: Leaves,
    /// The topmost selected nodes; empty if nodes above the list are selected.
    pub(super) nodes: Vec<&'static Node>,
}

impl ListSelection {
    /// Returns what the path selects of an entry.
    pub(super) fn of(&self, name: &str) -> &Selected {
        self.named.get(name).unwrap_or(&self.others)
    }
}
