//! Next hops and peers of a port whose Ethernet address changes during a run.

use wirestorm_base::time::Instant;
use wirestorm_stack::endpoint::{Endpoint, LinkHeader};

use crate::emulation::resolve::destinations::NextHopTable;

/// Changes of neighbours' Ethernet addresses that affected a port's flows.
#[derive(Debug, Default)]
pub(in crate::emulation) struct NeighbourChanges {
    port: String,
    start: Instant,
    /// Notes about the first changes.
    notes: Vec<String>,
    /// Number of further changes.
    more: u64,
}

impl NeighbourChanges {
    /// Maximum number of changes with a note of their own.
    const NOTES_MAX: usize = 10;

    pub(in crate::emulation) fn new(port: &str, start: Instant) -> Self {
        Self { port: port.to_owned(), start, notes: Vec::new(), more: 0 }
    }

    /// Applies pending changes to the flows of the endpoint.
    #[inline]
    pub(in crate::emulation) fn update(
        &mut self,
        by: &NextHopTable,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        for it in by.moves.take() {
            let number = by.next_hops.get(&(it.tags.clone(), it.address)).map_or(0, |it| it.0);
            let mut flows = match number {
                0 | LinkHeader::FIXED => 0,
                number => endpoint.set_next_hop_mac(number, it.to),
            };
            // If several neighbours share the old address, a peer's flows cannot be identified.
            if it.was_alone {
                flows = flows.saturating_add(endpoint.set_peer_mac(&it.tags, it.from, it.to));
            }
            if flows == 0 && matches!(number, 0 | LinkHeader::FIXED) {
                continue;
            }
            if self.notes.len() == Self::NOTES_MAX {
                self.more += 1;
                continue;
            }
            let after = now.saturating_since(self.start).as_secs_f64();
            self.notes.push(format!(
                "{}: {} moved from {} to {} after {after:.1} s; {flows} existing flows use the new \
                 Ethernet address",
                self.port, it.address, it.from, it.to
            ));
        }
    }

    /// Returns the notes for the result.
    pub(in crate::emulation) fn notes(&self) -> impl Iterator<Item = String> {
        let more = (self.more > 0)
            .then(|| format!("{}: next hops moved {} more times", self.port, self.more));
        self.notes.iter().cloned().chain(more)
    }
}
