//! Values of all leaves at one time.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::schema::{FLOW_LEAVES, LAG_LEAVES, Leaf, Leaves, PORT_LEAVES, TAGGED_LEAVES, Value};
use super::selection::ListSelection;
use super::tagged::Tagged;
use crate::otg::Telemetry;

/// Values of all leaves at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// Time in nanoseconds since the Unix epoch.
    pub(super) unix_ns: i64,
    /// Entries of each topmost list of the schema.
    pub(super) lists: [Entries; 3],
}

/// Entries of a list, in the order of the configuration or of the keys of tagged metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    entries: Vec<Entry>,
    by_name: BTreeMap<Arc<str>, usize>,
}

/// An entry of a list.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    /// Values by leaf; `None` for a leaf without value.
    pub(super) values: Vec<Option<Value>>,
    /// Entries of the list inside of it.
    pub(super) inner: Entries,
}

impl Tree {
    /// Creates the tree of the present metrics.
    pub(super) fn now(telemetry: &Telemetry) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ports = telemetry.ports.iter().map(|it| entry(it.metric.name(), it, &PORT_LEAVES));
        let flows = telemetry.flows.iter().map(|it| {
            let tagged = Tagged::of(&it.tagged_metrics);
            let inner = tagged.iter().map(|it| entry(&it.pairs, it, &TAGGED_LEAVES)).collect();
            Entry { inner, ..entry(it.name(), it, &FLOW_LEAVES) }
        });
        let lags = telemetry.lags.iter().map(|it| entry(it.name(), it, &LAG_LEAVES));
        Self {
            unix_ns: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            lists: [ports.collect(), flows.collect(), lags.collect()],
        }
    }
}

fn entry<T>(name: &str, metrics: &T, leaves: &[Leaf<T>]) -> Entry {
    let values = leaves.iter().map(|leaf| (leaf.value)(metrics)).collect();
    Entry { name: name.into(), values, inner: Entries::default() }
}

impl FromIterator<Entry> for Entries {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let by_name = entries.iter().enumerate().map(|(index, it)| (Arc::clone(&it.name), index));
        Self { by_name: by_name.collect(), entries }
    }
}

impl Entries {
    /// No entries.
    pub(super) const EMPTY: &'static Self = &Self { entries: Vec::new(), by_name: BTreeMap::new() };

    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(*self.by_name.get(name)?)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Returns the number of leaves, also of those without value.
    pub(super) fn size(&self) -> usize {
        self.entries.iter().map(|it| it.values.len() + it.inner.size()).sum()
    }

    /// Returns the entries of which a path may select leaves, or entries inside.
    pub(super) fn selected<'a>(
        &'a self,
        selection: &'a ListSelection,
    ) -> Box<dyn Iterator<Item = &'a Entry> + Send + 'a> {
        if self.entries.is_empty() {
            return Box::new(iter::empty());
        }
        if selection.others.is_empty() {
            // Many subscriptions to one entry each must not cost a walk over all entries.
            return Box::new(selection.named.keys().filter_map(|name| self.get(name)));
        }
        Box::new(self.entries.iter())
    }
}

/// Returns the indices of the leaves of a set.
pub(super) fn indices(leaves: Leaves) -> impl Iterator<Item = usize> + Send {
    (0..Leaves::BITS as usize).filter(move |index| leaves & (1 << index) != 0)
}
