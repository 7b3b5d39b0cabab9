//! Selection of the frames that a member of a link aggregation group sends.

use alloc::boxed::Box;

use wirestorm_model::stream::Member;

use super::program::FrameBuilder;

/// Selects the frames of a member by a hash of their addresses.
#[derive(Debug)]
pub(super) struct Selection {
    member: u32,
    /// Members that may send; bit `n` stands for member `n`.
    active: u64,
    /// Members whose interface is down.
    down: u64,
    /// Number of members that must send; with fewer, none does.
    active_min: u32,
    /// Hash of the constant addresses.
    seed: u64,
    /// Cursors of the addresses that change.
    cursors: Box<[usize]>,
}

/// What becomes of a frame at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selected {
    /// This member sends it.
    Here,
    /// Another member sends it.
    Elsewhere,
    /// No member sends: the first one counts it as not sent.
    Nowhere,
}

impl Selection {
    pub(super) fn new(member: &Member, maker: &FrameBuilder) -> Self {
        let template = maker.template();
        let constant = member.keys.iter().filter_map(|key| template.get(key.clone())).flatten();
        Self {
            member: member.index,
            active: member.active,
            down: 0,
            active_min: member.active_min,
            seed: constant.fold(0, |hash, byte| mix(hash ^ u64::from(*byte))),
            cursors: maker.cursors_at(&member.keys).into(),
        }
    }

    /// Follows other frames, whose addresses may be at other places.
    pub(super) fn set_frames(&mut self, member: &Member, maker: &FrameBuilder) {
        *self = Self { active: self.active, down: self.down, ..Self::new(member, maker) };
    }

    /// Changes the members that may send.
    pub(super) fn set_active(&mut self, active: u64) {
        self.active = active;
    }

    /// Changes the members whose interface is down.
    pub(super) fn set_down(&mut self, down: u64) {
        self.down = down;
    }

    /// Returns what becomes of the current frame.
    pub(super) fn select(&self, maker: &FrameBuilder) -> Selected {
        let active = self.active & !self.down;
        let count = active.count_ones();
        if count < self.active_min.max(1) {
            return if self.member == 0 { Selected::Nowhere } else { Selected::Elsewhere };
        }
        let hash = self.cursors.iter().fold(self.seed, |hash, cursor| {
            let value = maker.value(*cursor);
            mix(mix(hash ^ value as u64) ^ (value >> 64) as u64)
        });
        let place = (hash % u64::from(count)) as u32;
        let before = active & ((1 << self.member) - 1);
        let is_mine = active & (1 << self.member) != 0 && before.count_ones() == place;
        if is_mine { Selected::Here } else { Selected::Elsewhere }
    }
}

/// The finalizer of SplitMix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
