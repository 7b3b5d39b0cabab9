//! Destinations that change: drawn from a range, and kept for the length of a flow.

use std::ops::RangeInclusive;

use wirestorm_model::stream::draw;

/// How flows begin.
#[derive(Clone, Debug)]
pub(super) enum Flows {
    /// There are none.
    None,
    /// One after another, with so many packets each.
    InSequence(u64),
    /// Any at a time.
    Random(RandomFlows),
}

/// IPv4 destinations from `min` to `max` (not itself where they are drawn), one after another or
/// drawn; without those that no host has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destinations {
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) is_random: bool,
    pub(super) seed: u64,
}

/// What IPDST_RND draws from: neither `0.0.0.0/8` nor loopback, multicast and broadcast.
const HOSTS: [RangeInclusive<u32>; 3] =
    [0x0100_0000..=0x7eff_ffff, 0x8000_0000..=0xdfff_ffff, 0xf000_0000..=0xffff_fffe];

impl Destinations {
    /// Whether there is more than one.
    pub(super) fn vary(&self) -> bool {
        self.min < self.max
    }

    /// The parts of the range that are drawn from.
    pub(super) fn parts(&self) -> Vec<RangeInclusive<u32>> {
        let last = self.max.saturating_sub(1);
        let within =
            |part: RangeInclusive<u32>| (*part.start()).max(self.min)..=(*part.end()).min(last);
        HOSTS.into_iter().map(within).filter(|part| !part.is_empty()).collect()
    }

    /// The n-th one, from 0.
    pub(super) fn nth(&self, parts: &[RangeInclusive<u32>], n: u64) -> u32 {
        if !self.vary() {
            return self.min;
        }
        if !self.is_random {
            // The kernel goes on before it sends, so the second one is the first.
            let span = u64::from(self.max - self.min) + 1;
            return self.min + ((n % span + 1) % span) as u32;
        }
        let size = |part: &RangeInclusive<u32>| u64::from(part.end() - part.start()) + 1;
        let total: u64 = parts.iter().map(size).sum();
        let mut left = below(draw(self.seed, n), total);
        for part in parts {
            if left < size(part) {
                // Less than the size of a part.
                return part.start() + left as u32;
            }
            left -= size(part);
        }
        self.min
    }
}

/// Flows of which each frame takes any: the kernel's way without FLOW_SEQ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RandomFlows {
    /// How many there are at a time; at least 1.
    pub(super) flows: u32,
    /// A flow has one frame more than this, then another one takes its place.
    pub(super) length: u32,
    pub(super) seed: u64,
    /// The sequence begins again after so many frames.
    pub(super) period: u64,
}

/// Frames after which the order of flows begins again, at most.
pub(super) const PERIOD_MAX: u64 = 1 << 17;

impl RandomFlows {
    /// Which flow the frames of one period belong to, numbered in the order in which they begin.
    fn of_frames(&self) -> impl Iterator<Item = u64> {
        let mut places: Vec<(u64, u32)> = vec![(0, 0); self.flows as usize];
        let mut is_used = vec![false; self.flows as usize];
        let mut begun = 0;
        (0..self.period).map(move |frame| {
            let place = below(draw(self.seed, frame), u64::from(self.flows)) as usize;
            let (flow, frames) = &mut places[place];
            if !is_used[place] || *frames > self.length {
                is_used[place] = true;
                (*flow, *frames) = (begun, 0);
                begun += 1;
            }
            *frames += 1;
            *flow
        })
    }

    /// The destinations of the frames of one period.
    pub(super) fn destinations(&self, of: &Destinations) -> Vec<u128> {
        let parts = of.parts();
        self.of_frames().map(|flow| u128::from(of.nth(&parts, flow))).collect()
    }

    /// How many flows have begun with the first so many frames.
    pub(super) fn begun(&self, frames: u64) -> u64 {
        let within = |frames: u64| {
            let flows = self.of_frames().take(usize::try_from(frames).unwrap_or(usize::MAX));
            flows.max().map_or(0, |last| last + 1)
        };
        (frames / self.period) * within(self.period) + within(frames % self.period)
    }
}

/// Brings a draw into `0..bound`.
fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}
