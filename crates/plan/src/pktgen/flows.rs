//! Varying destinations: random within a range, and constant within a flow.

use std::ops::RangeInclusive;

use wirestorm_model::stream::draw;

/// Mode of flows.
#[derive(Clone, Debug)]
pub(super) enum Flows {
    /// No flows.
    None,
    /// One flow after another, each with this number of packets.
    InSequence(u64),
    /// A random flow for each packet.
    Random(RandomFlows),
}

/// IPv4 destinations from `min` to `max`, in sequence or random. Random ones exclude `max` and
/// addresses that no host can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destinations {
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) is_random: bool,
    pub(super) seed: u64,
}

/// Ranges of IPDST_RND: without `0.0.0.0/8`, loopback, multicast and broadcast.
const HOSTS: [RangeInclusive<u32>; 3] =
    [0x0100_0000..=0x7eff_ffff, 0x8000_0000..=0xdfff_ffff, 0xf000_0000..=0xffff_fffe];

impl Destinations {
    /// Returns whether there is more than one destination.
    pub(super) fn is_varying(&self) -> bool {
        self.min < self.max
    }

    /// Returns the parts of the range that contain random destinations.
    pub(super) fn parts(&self) -> Vec<RangeInclusive<u32>> {
        let last = self.max.saturating_sub(1);
        let within =
            |part: RangeInclusive<u32>| (*part.start()).max(self.min)..=(*part.end()).min(last);
        HOSTS.into_iter().map(within).filter(|part| !part.is_empty()).collect()
    }

    /// Returns the n-th destination, from 0.
    pub(super) fn nth(&self, parts: &[RangeInclusive<u32>], n: u64) -> u32 {
        if !self.is_varying() {
            return self.min;
        }
        if !self.is_random {
            // The kernel advances before it sends, so a sequence starts with the second value.
            let span = u64::from(self.max - self.min) + 1;
            return self.min + ((n % span + 1) % span) as u32;
        }
        let size = |part: &RangeInclusive<u32>| u64::from(part.end() - part.start()) + 1;
        let total: u64 = parts.iter().map(size).sum();
        let mut left = below(draw(self.seed, n), total);
        for part in parts {
            if left < size(part) {
                // `left` is less than the size of a 32-bit range.
                return part.start() + left as u32;
            }
            left -= size(part);
        }
        self.min
    }
}

/// Flows of which each frame picks one at random: the kernel's mode without FLOW_SEQ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RandomFlows {
    /// Number of concurrent flows; at least 1.
    pub(super) flows: u32,
    /// Length of a flow: after one frame more than this, a new flow replaces it.
    pub(super) length: u32,
    pub(super) seed: u64,
    /// Number of frames after which the sequence repeats.
    pub(super) period: u64,
}

/// Maximum number of frames after which the order of flows repeats.
pub(super) const PERIOD_MAX: u64 = 1 << 17;

impl RandomFlows {
    /// Returns the flow of each frame of one period. Flows are numbered in order of their first
    /// frame.
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

    /// Returns the destinations of the frames of one period.
    pub(super) fn destinations(&self, of: &Destinations) -> Vec<u128> {
        let parts = of.parts();
        self.of_frames().map(|flow| u128::from(of.nth(&parts, flow))).collect()
    }

    /// Returns the number of flows that start within this number of frames.
    pub(super) fn started(&self, frames: u64) -> u64 {
        let within = |frames: u64| {
            let flows = self.of_frames().take(usize::try_from(frames).unwrap_or(usize::MAX));
            flows.max().map_or(0, |last| last + 1)
        };
        (frames / self.period) * within(self.period) + within(frames % self.period)
    }
}

/// Maps random bits to `0..bound`.
fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}
