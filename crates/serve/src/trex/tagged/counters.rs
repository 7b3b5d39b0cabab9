//! Counters of a tagged packet group at a receiving port, as TRex counts them.
//!
//! TRex numbers the frames of a group from the moment that groups are enabled, over all runs. At
//! each tag it expects the number behind the highest one that arrived there. The engine numbers the
//! frames of a run, and keeps a window for each VLAN tag of the run. So a run's frames begin at the
//! `base` of its group, and the counters of the engine's window are corrected by the distance
//! between the two expected numbers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wirestorm_control::result::TagReport;

use super::table::{Tag, TagTable};
use crate::trex::counters::FCS;
use crate::trex::rpc::RpcError;

/// Maximum number of pairs of group and tag that count at a port; the same as in a run of the engine.
const PAIRS_MAX: usize = 1 << 16;
/// Maximum number of unknown tags that a port lists, as in TRex.
const UNKNOWN_MAX: usize = 10;

/// Where a frame counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    /// Number of a tag.
    Tag(u16),
    Unknown,
    Untagged,
}

impl Slot {
    fn of(tag: Option<Tag>, table: &TagTable) -> Self {
        match tag {
            None => Self::Untagged,
            Some(tag) => table.number(tag).map_or(Self::Unknown, Self::Tag),
        }
    }
}

/// What a run counted of a flow under a tag, by the engine's sequence window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    packets: u64,
    bytes: u64,
    missing: u64,
    gaps: u64,
    duplicated: u64,
    reordered: u64,
    too_late: u64,
}

impl Window {
    pub(super) const fn of(report: &TagReport) -> Self {
        let &TagReport { packets, bytes, missing, gaps, duplicated, reordered, too_late, .. } =
            report;
        Self { packets, bytes, missing, gaps, duplicated, reordered, too_late }
    }

    /// Returns the number behind the highest one that arrived: each lower one has either arrived or
    /// is missing.
    const fn next_expected(&self) -> u64 {
        (self.packets + self.missing).saturating_sub(self.duplicated + self.too_late)
    }
}

/// Counters of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    packets: u64,
    bytes: u64,
    missing: u64,
    gaps: u64,
    duplicated: u64,
    reordered: u64,
}

impl Counters {
    pub(super) fn document(&self, slot: Slot) -> Value {
        match slot {
            Slot::Unknown => json!({"pkts": self.packets, "bytes": self.bytes}),
            _ => json!({
                "pkts": self.packets,
                "bytes": self.bytes,
                "seq_err": self.missing,
                "seq_err_too_big": self.gaps,
                "seq_err_too_small": self.duplicated + self.reordered,
                "dup": self.duplicated,
                "ooo": self.reordered,
            }),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    counters: Counters,
    /// Number behind the highest one that arrived, counted from the base of the first run.
    next_expected: u64,
}

impl Record {
    /// Adds the growth of a window. `base`: number of the first frame of the run in the group. A
    /// group with a multicast destination has no expected number before its first frame.
    fn add(&mut self, before: &Window, now: &Window, base: u64, is_multicast: bool) {
        let counters = &mut self.counters;
        let is_first = counters.packets == 0;
        let packets = now.packets - before.packets;
        counters.packets += packets;
        counters.bytes += now.bytes.saturating_sub(before.bytes) + FCS * packets;
        counters.duplicated += now.duplicated.saturating_sub(before.duplicated);
        let late = now.too_late.saturating_sub(before.too_late);
        counters.reordered += now.reordered.saturating_sub(before.reordered) + late;
        let ahead = match is_multicast && is_first {
            true => 0,
            false => signed(base + before.next_expected()) - signed(self.next_expected),
        };
        let missing = signed(now.missing) - signed(before.missing) - signed(late) + ahead;
        counters.missing = counters.missing.saturating_add_signed(missing);
        let mut gaps = now.gaps.saturating_sub(before.gaps);
        if gaps == 0 && ahead > 0 {
            // The engine expected the frame that TRex did not expect.
            gaps = 1;
        } else if ahead < 0 && missing <= 0 {
            // The engine did not expect the first frame, which TRex expected.
            gaps = gaps.saturating_sub(1);
        }
        counters.gaps += gaps;
        self.next_expected = self.next_expected.max(base + now.next_expected());
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// What a port received of all groups.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Records by group and slot.
    records: BTreeMap<(u32, Slot), Record>,
    /// Unknown tags with their groups, in the order of their first arrival.
    unknown: Vec<(Tag, u32)>,
    /// Frames of pairs beyond [`PAIRS_MAX`].
    uncounted: u64,
}

impl Received {
    /// Adds the growth of the window of a tag.
    pub(super) fn add(&mut self, table: &TagTable, group: u32, tag: Option<Tag>, growth: &Growth) {
        let slot = Slot::of(tag, table);
        if let (Slot::Unknown, Some(tag)) = (slot, tag)
            && self.unknown.len() < UNKNOWN_MAX
            && !self.unknown.contains(&(tag, group))
        {
            self.unknown.push((tag, group));
        }
        let key = (group, slot);
        if self.records.len() >= PAIRS_MAX && !self.records.contains_key(&key) {
            self.uncounted += growth.packets();
            return;
        }
        let Growth { before, now, base, is_multicast } = growth;
        self.records.entry(key).or_default().add(before, now, *base, *is_multicast);
    }

    /// Checks that all frames count.
    ///
    /// # Errors
    /// There were too many pairs of group and tag.
    pub(super) fn check(&self) -> Result<(), RpcError> {
        match self.uncounted {
            0 => Ok(()),
            frames => Err(RpcError::execution(format!(
                "{frames} frames do not count: they belong to more than {PAIRS_MAX} pairs of \
                 tpgid and tag. Enable fewer groups or send fewer tags."
            ))),
        }
    }

    /// Returns the counters of a slot.
    pub(super) fn counters(&self, group: u32, slot: Slot) -> Counters {
        self.records.get(&(group, slot)).map_or_else(Counters::default, |it| it.counters)
    }

    /// Returns the counters of the tags from `first` on that equal those of `first`, under the name
    /// of their numbers, as TRex compresses them. `last` is not included.
    pub(super) fn section(&self, group: u32, first: u16, last: u16) -> Map<String, Value> {
        let counters = |number: u16| self.counters(group, Slot::Tag(number));
        let found = counters(first);
        let next = (first + 1..last).find(|number| counters(*number) != found).unwrap_or(last);
        let name = match next - 1 {
            only if only == first => first.to_string(),
            end => format!("{first}-{end}"),
        };
        Map::from_iter([(name, found.document(Slot::Tag(first)))])
    }

    /// Clears counters. As in TRex, the next number that is expected there is 0 then.
    pub(super) fn clear(&mut self, group: u32, slots: impl IntoIterator<Item = Slot>) {
        for slot in slots {
            self.records.remove(&(group, slot));
        }
    }

    /// Clears all counters and keeps the expected numbers.
    pub(super) fn restart(&mut self) {
        self.records.values_mut().for_each(|record| record.counters = Counters::default());
        self.unknown.clear();
        self.uncounted = 0;
    }

    /// Returns the unknown tags in TRex's format.
    pub(super) fn unknown(&self) -> Value {
        let document = |(tag, group): &(Tag, u32)| json!({"tag": tag.document(), "tpgid": group});
        self.unknown.iter().map(document).collect()
    }

    pub(super) fn clear_unknown(&mut self) {
        self.unknown.clear();
    }
}

/// Growth of the window of a tag in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub(super) before: Window,
    pub(super) now: Window,
    /// Number of the run's first frame in its group.
    pub(super) base: u64,
    /// Whether the frames have a multicast destination.
    pub(super) is_multicast: bool,
}

impl Growth {
    /// Returns whether frames arrived. Older counters, which another request read, are no growth.
    pub(super) const fn has_frames(&self) -> bool {
        self.packets() > 0
    }

    /// Returns the number of frames that arrived.
    const fn packets(&self) -> u64 {
        self.now.packets.saturating_sub(self.before.packets)
    }

    /// Returns the number behind the highest one that arrived, in the group.
    pub(super) const fn next_expected(&self) -> u64 {
        self.base + self.now.next_expected()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window in which the frames from `first` to before `next` arrived.
    fn window(first: u64, next: u64) -> Window {
        let packets = next - first;
        Window {
            packets,
            bytes: 60 * packets,
            missing: first,
            gaps: u64::from(first > 0),
            ..Window::default()
        }
    }

    struct Port {
        received: Received,
        table: TagTable,
    }

    impl Port {
        fn new() -> Self {
            let tag = |vlan: u16| json!({"type": "Dot1Q", "value": {"vlan": vlan}});
            Self {
                received: Received::default(),
                table: TagTable::read(&[tag(1), tag(2)]).unwrap(),
            }
        }

        fn add(&mut self, vlan: u16, base: u64, before: Window, now: Window, is_multicast: bool) {
            let growth = Growth { before, now, base, is_multicast };
            self.received.add(&self.table, 0, Some(Tag::Dot1Q(vlan)), &growth);
        }

        /// Returns the packets, and TRex's counters of gaps.
        fn found(&self, number: u16) -> [u64; 3] {
            let found = self.received.counters(0, Slot::Tag(number)).document(Slot::Tag(number));
            ["pkts", "seq_err", "seq_err_too_big"].map(|name| found[name].as_u64().unwrap())
        }
    }

    #[test]
    fn numbers_go_on_over_runs_as_in_trex() {
        let (mut port, none) = (Port::new(), Window::default());
        port.add(1, 0, none, window(0, 100), false);
        port.add(1, 100, none, window(0, 50), false);
        assert_eq!(port.found(0), [150, 0, 0]);
        // The next run sends under another tag, where number 0 is expected.
        port.add(2, 150, none, window(0, 10), false);
        assert_eq!(port.found(1), [10, 150, 1]);
        // The last 5 frames of this run are lost, which the next one shows.
        port.add(2, 160, none, window(0, 15), false);
        port.add(2, 180, none, window(0, 20), false);
        assert_eq!(port.found(1), [45, 155, 2]);
    }

    #[test]
    fn frames_under_other_tags_are_gaps() {
        let (mut port, none) = (Port::new(), Window::default());
        port.add(1, 0, none, window(0, 100), false);
        port.add(2, 0, none, window(100, 200), false);
        assert_eq!((port.found(0), port.found(1)), ([100, 0, 0], [100, 100, 1]));
        // VLAN 9 takes the number of VLAN 1 over in mid-run, where number 100 is expected.
        let change = json!({"type": "Dot1Q", "value": {"vlan": 9}, "tag_id": 0});
        port.table = port.table.with_changes(&[change]).unwrap();
        port.add(9, 0, none, window(100, 150), false);
        assert_eq!(port.found(0), [150, 0, 0]);
    }

    #[test]
    fn cleared_tag_expects_number_0_unless_its_frames_are_multicast() {
        for (is_multicast, expected) in [(false, [10, 40, 1]), (true, [10, 0, 0])] {
            let (mut port, none) = (Port::new(), Window::default());
            port.add(1, 0, none, window(0, 40), is_multicast);
            port.received.clear(0, [Slot::Tag(0)]);
            assert_eq!(port.found(0), [0, 0, 0]);
            port.add(1, 0, window(0, 40), window(0, 50), is_multicast);
            assert_eq!(port.found(0), expected);
        }
    }

    #[test]
    fn late_frames_fill_gaps_and_repeats_do_not() {
        let (mut port, none) = (Port::new(), Window::default());
        let now = Window { packets: 12, duplicated: 1, reordered: 2, too_late: 1, ..window(4, 14) };
        port.add(1, 0, none, now, false);
        let found = port.received.counters(0, Slot::Tag(0)).document(Slot::Tag(0));
        assert_eq!(found["seq_err"], 3);
        assert_eq!((&found["dup"], &found["ooo"]), (&json!(1), &json!(3)));
        assert_eq!(found["seq_err_too_small"], 4);
    }

    #[test]
    fn section_ends_where_the_counters_change() {
        let mut port = Port::new();
        let section = |port: &Port, first, last| {
            let found = port.received.section(0, first, last);
            found.keys().next().unwrap().clone()
        };
        assert_eq!(section(&port, 0, 5), "0-4");
        port.add(2, 0, Window::default(), window(0, 1), false);
        let names = [section(&port, 0, 5), section(&port, 1, 5), section(&port, 2, 5)];
        assert_eq!(names, ["0", "1", "2-4"]);
    }

    #[test]
    fn memory_is_bounded_and_frames_beyond_are_an_error() {
        let mut port = Port::new();
        let growth =
            Growth { before: Window::default(), now: window(0, 1), base: 0, is_multicast: false };
        for group in 0..=PAIRS_MAX as u32 {
            port.received.add(&port.table, group, Some(Tag::Dot1Q(3)), &growth);
        }
        let packets = |group: u32| port.received.counters(group, Slot::Unknown).packets;
        assert_eq!((packets(PAIRS_MAX as u32 - 1), packets(PAIRS_MAX as u32)), (1, 0));
        let error = port.received.check().unwrap_err().text().to_owned();
        assert!(error.starts_with("1 frames do not count"), "{error}");
        assert_eq!(port.received.unknown().as_array().unwrap().len(), UNKNOWN_MAX);
    }
}
