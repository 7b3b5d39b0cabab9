//! A window that was reduced for nothing goes back to what it was.

use super::congestion::Congestion;
use super::connection::{Connection, Marks};
use super::rack::duplicate;
use super::ranges::SequenceRange;
use super::segment::Segment;
use super::sequence::SequenceNumber;

/// The window before a reduction for losses that may have been none: what came in another order.
#[derive(Clone, Debug)]
pub(super) struct Undo {
    before: Congestion,
    /// All that was sent again since is between these.
    from: SequenceNumber,
    until: SequenceNumber,
    /// Bytes of it of which the peer has not said that they came twice.
    open: u32,
}

impl Undo {
    /// Whether the peer may yet say that what was sent again came twice.
    pub(super) const fn is_open(&self) -> bool {
        self.open > 0
    }

    /// The window that would be restored.
    pub(super) fn window(&self) -> u32 {
        self.before.window()
    }
}

impl Connection {
    /// Remembers the window, which is about to be reduced. RFC 9438 section 4.9.2: "a CUBIC
    /// implementation MAY save the current value of the following variables before the congestion
    /// window is reduced." That of BBR follows from what it measures, and without RACK nobody looks
    /// at what came twice.
    #[cold]
    pub(super) fn remember_window(&mut self) {
        if self.marks.has(Marks::PACED) || !self.marks.has(Marks::RACK) {
            return;
        }
        let (before, from) = (self.congestion.clone(), self.unacknowledged);
        self.disorder_mut().undo = Some(Undo { before, from, until: from, open: 0 });
    }

    /// The reduction stays: another one followed, or for a reason that is none of order.
    #[cold]
    pub(super) fn forget_window(&mut self) {
        if let Some(disorder) = &mut self.disorder {
            disorder.undo = None;
        }
    }

    /// Data is sent again.
    #[cold]
    pub(super) fn note_resent(&mut self, range: SequenceRange) {
        if let Some(undo) = self.disorder.as_mut().and_then(|it| it.undo.as_mut()) {
            undo.open = undo.open.saturating_add(range.len());
            if undo.until.is_before(range.end) {
                undo.until = range.end;
            }
        }
    }

    /// Once the peer has told that all that was sent again came twice, "we conclude that all
    /// retransmissions in the previous window of data were spurious and no loss occurred" (RFC 3708
    /// section 3, B.1, which asks for a mark of each segment: here, as in Linux, it is how much of
    /// them that counts). Then what was known before is restored "if the current _cwnd_ is lower
    /// than _cwnd_prior_" (RFC 9438 section 4.9.2).
    #[cold]
    pub(super) fn note_needless(&mut self, segment: &Segment<'_>) {
        let unacknowledged = self.unacknowledged;
        let Some(disorder) = &mut self.disorder else { return };
        let Some(undo) = &mut disorder.undo else { return };
        // What is told two windows of data later is another duplicate, one of the network's.
        let since = unacknowledged.distance_from(undo.until).max(0) as u32;
        if since / 2 > undo.window() {
            disorder.undo = None;
            return;
        }
        let Some(twice) = duplicate(segment) else { return };
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
