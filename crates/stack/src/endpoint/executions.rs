//! Flows that programs ask for, and wait for.

use alloc::collections::{BTreeMap, VecDeque};

use wirestorm_wire::flow::FlowKey;

/// The place of a flow in the table of its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Tcp(u32),
    Udp(u32),
}

/// A flow that another one's program asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Who asks, as whose key will tell: what is asked for comes a little later.
    pub(super) parent: Place,
    pub(super) key: FlowKey,
    /// The template of who asks.
    pub(super) template: u16,
    /// Of which group; `None`: of the same template.
    pub(super) group: Option<u16>,
}

/// Who has asked, and who waits for whom.
#[derive(Debug, Default)]
pub(super) struct Executions {
    /// Who has asked and has nothing yet.
    pub(super) asked: VecDeque<Asked>,
    children: BTreeMap<Place, Place>,
    parents: BTreeMap<Place, Place>,
}

impl Executions {
    /// A flow waits for the end of another one.
    pub(super) fn begin(&mut self, parent: Place, child: Place) {
        self.children.insert(parent, child);
        self.parents.insert(child, parent);
    }

    /// A flow is over. Returns the one that has waited for it.
    #[inline]
    pub(super) fn end(&mut self, flow: Place) -> Option<Place> {
        if self.parents.is_empty() {
            return None;
        }
        if let Some(child) = self.children.remove(&flow) {
            self.parents.remove(&child);
        }
        let parent = self.parents.remove(&flow)?;
        self.children.remove(&parent);
        Some(parent)
    }
}
