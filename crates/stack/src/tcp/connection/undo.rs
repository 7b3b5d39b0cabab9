//! Undo of congestion window reductions that turn out to be spurious.

use super::rack::dsack_block;
use super::{Connection, StateFlags};
use crate::tcp::congestion::Congestion;
use crate::tcp::ranges::SequenceRange;
use crate::tcp::segment::Segment;
use crate::tcp::sequence::SequenceNumber;

/// Congestion state before a reduction that may be spurious because of reordering.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Undo {
    before: Congestion,
    /// All data retransmitted since then lies between these numbers.
    from: SequenceNumber,
    until: SequenceNumber,
    /// Retransmitted bytes for which the peer has not reported a duplicate.
    open: u32,
}

impl Undo {
    /// Whether duplicate reports for retransmitted data are outstanding.
    pub(in crate::tcp) const fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Congestion window that an undo restores.
    pub(in crate::tcp) fn window(&self) -> u32 {
        self.before.window()
    }
}

impl Connection {
    /// Saves the congestion state before a reduction.
    ///
    /// RFC 9438 section 4.9.2: "a CUBIC implementation MAY save the current value of the following
    /// variables before the congestion window is reduced." BBR derives its window from
    /// measurements, and without RACK duplicates are not evaluated.
    #[cold]
    pub(in crate::tcp) fn save_undo_state(&mut self) {
        if self.marks.has(StateFlags::PACED) || !self.marks.has(StateFlags::RACK) {
            return;
        }
        let (before, from) = (self.congestion.clone(), self.unacknowledged);
        self.loss_state_mut().undo = Some(Undo { before, from, until: from, open: 0 });
    }

    /// Discards the saved state: another reduction followed, or its reason was not a loss.
    #[cold]
    pub(in crate::tcp) fn discard_undo_state(&mut self) {
        if let Some(disorder) = &mut self.disorder {
            disorder.undo = None;
        }
    }

    /// Records a retransmission.
    #[cold]
    pub(in crate::tcp) fn note_retransmission(&mut self, range: SequenceRange) {
        if let Some(undo) = self.disorder.as_mut().and_then(|it| it.undo.as_mut()) {
            undo.open = undo.open.saturating_add(range.len());
            if undo.until.is_before(range.end) {
                undo.until = range.end;
            }
        }
    }

    /// Restores the congestion state once the peer has reported all retransmitted data as
    /// duplicate.
    ///
    /// RFC 3708 section 3, B.1: then "we conclude that all retransmissions in the previous window
    /// of data were spurious and no loss occurred". The RFC marks each segment; this counts bytes,
    /// as Linux counts segments. RFC 9438 section 4.9.2 restores the state "if the current _cwnd_
    /// is lower than _cwnd_prior_".
    #[cold]
    pub(in crate::tcp) fn undo_if_spurious(&mut self, segment: &Segment<'_>) {
        let unacknowledged = self.unacknowledged;
        let Some(disorder) = &mut self.disorder else { return };
        let Some(undo) = &mut disorder.undo else { return };
        // A report two windows later is about a packet that the network duplicated.
        let since = unacknowledged.distance_from(undo.until).max(0) as u32;
        if since / 2 > undo.window() {
            disorder.undo = None;
            return;
        }
        let Some(twice) = dsack_block(segment) else { return };
        let is_of_it = !twice.start.is_before(undo.from) && !undo.until.is_before(twice.end);
        if !is_of_it {
            return;
        }
        let was_open = undo.open;
        undo.open = was_open.saturating_sub(twice.len());
        if was_open == 0 || undo.open > 0 {
            return;
        }
        if let Some(Undo { before, .. }) = disorder.undo.take()
            && self.congestion.window() < before.window()
        {
            self.congestion = before;
            self.congestion.set_segment_size(self.data_size());
        }
    }
}
