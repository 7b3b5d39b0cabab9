//! Rate limit of ICMP errors.

use crate::tcp::now::Now;

/// Rate of ICMP errors. RFC 4443 section 2.4: "an IPv6 node MUST limit the rate of ICMPv6 error
/// messages it originates". RFC 1812 section 4.3.2.8 requires the same for IPv4. Both values are
/// those of Linux (`icmp_msgs_per_sec` and `icmp_msgs_burst`).
const MESSAGES_PER_SECOND: u32 = 1_000;
const MESSAGES_AT_ONCE: u32 = 50;

/// Number of ICMP errors that may be sent now (a token bucket).
#[derive(Clone, Copy, Debug)]
pub(super) struct IcmpRateLimit {
    left: u32,
    /// Time of the last increase, in ms.
    at: u32,
}

impl IcmpRateLimit {
    pub(super) const fn new() -> Self {
        Self { left: MESSAGES_AT_ONCE, at: 0 }
    }

    /// Takes one, if there is any.
    pub(super) fn take(&mut self, now: Now) -> bool {
        const MILLIS_PER_MESSAGE: u32 = 1_000 / MESSAGES_PER_SECOND;
        let grown = now.millis.wrapping_sub(self.at) / MILLIS_PER_MESSAGE;
        self.left = self.left.saturating_add(grown).min(MESSAGES_AT_ONCE);
        self.at = now.millis;
        let has_any = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_limited_at_once_and_per_second() {
        let mut allowance = IcmpRateLimit::new();
        let mut taken = |millis: u64| {
            let now = Now::from_micros(millis * 1_000);
            (0..200).filter(|_| allowance.take(now)).count()
        };
        assert_eq!([taken(5), taken(5), taken(6), taken(16), taken(5_000)], [50, 0, 1, 10, 50]);
        let in_a_second: usize = (5_001..=6_000).map(taken).sum();
        assert_eq!(in_a_second, 1_000);
    }
}
