//! What TCP counts, under the names of BSD's stack, which users of TRex know with the prefix
//! `tcps_`.

/// Numbers that are counted, with their meaning.
macro_rules! counters {
    ($(#[$about:meta])* $name:ident { $($field:ident: $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $(#[doc = $text] pub $field: u64,)*
        }

        impl $name {
            /// Name, meaning and value of each, in the order of the reports.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($field), $text, self.$field)),*].into_iter()
            }

            /// Adds another one's.
            pub fn merge(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }

            /// Takes off what is another one's now, and was merged before.
            pub fn take_off(&mut self, other: &Self) {
                $(self.$field -= other.$field;)*
            }
        }
    };
}

pub(crate) use counters;

counters! {
    /// Sums over all connections of one side.
    TcpCounters {
        connattempt: "connections initiated",
        accepts: "connections accepted",
        connects: "connections established",
        closed: "connections closed, drops included",
        segstimed: "segments timed for a round trip",
        rttupdated: "round trips measured",
        delack: "delayed acknowledgements sent",
        sndtotal: "segments sent",
        sndpack: "segments with data sent",
        sndbyte: "bytes handed over by programs",
        sndbyte_ok: "bytes of data sent, repeats not included",
        sndctrl: "segments with SYN, FIN or RST sent",
        sndacks: "segments sent that only acknowledge",
        rcvtotal: "segments received",
        rcvpack: "segments with data received in sequence",
        rcvbyte: "bytes received in sequence",
        rcvackpack: "segments received that acknowledge something new",
        rcvackbyte: "bytes acknowledged by the peer",
        rcvackbyte_of: "FINs acknowledged by the peer",
        rcvoffloads: "segments received that were put together with the one before",
        drops: "connections dropped",
        conndrops: "connections dropped before they were established",
        timeoutdrop: "connections dropped because nothing was acknowledged",
        rexmttimeo: "retransmission timeouts",
        rexmttimeo_syn: "retransmission timeouts of SYN",
        persisttimeo: "times that a closed window was probed",
        persistdrop: "connections dropped because a window stayed closed and nobody answered",
        keeptimeo: "times that a connection was idle for long, or not open in time",
        keepprobe: "probes whether the peer is there",
        keepdrops: "connections dropped because the peer did not answer these, or not in time to open",
        sndrexmitpack: "segments with data sent again",
        sndrexmitbyte: "bytes sent again",
        tlpresends: "probes for a lost tail that sent its last segment again",
        tlpnewdata: "probes for a lost tail with new data",
        mturesent: "times that segments were made shorter for the path, and sent again",
        sndprobe: "probes of a closed window sent",
        rcvbadsum: "segments received with a wrong checksum",
        rcvbadoff: "segments received whose header has no such length",
        rcvshort: "segments received that were cut short",
        rcvduppack: "segments received of which all was there before",
        rcvdupbyte: "their bytes",
        rcvpartduppack: "segments received of which a part was there before",
        rcvpartdupbyte: "the bytes of those parts",
        rcvoopack: "segments received beyond a hole",
        rcvoobyte: "their bytes",
        rcvoopackdrop: "segments received beyond a hole for which there was no room",
        rcvoobytesdrop: "their bytes",
        rcvpackafterwin: "segments received with data beyond the window",
        rcvbyteafterwin: "their bytes beyond the window",
        rcvafterclose: "segments with data received behind the peer's FIN",
        rcvdupack: "duplicate acknowledgements received",
        rcvacktoomuch: "acknowledgements received of what was never sent",
        rcvwinupd: "segments received that only change the window",
        pawsdrop: "segments dropped as older than what had arrived (PAWS)",
        badsyn: "segments with SYN where none may be",
        reasalloc: "times that segments beyond a hole began to be kept",
        reasfree: "times that none of them was kept any more",
        reas_hist_4: "of those, with 4 pieces at a time or fewer",
        reas_hist_16: "of those, with 16 pieces at a time or fewer",
        reas_hist_100: "of those, with 100 pieces at a time or fewer",
        reas_hist_other: "of those, with more",
        nombuf: "segments not sent because there was no room for them",
        sack_recovery_episode: "times that losses were repaired by SACK",
        sack_rexmits: "segments sent again by SACK",
        sack_rexmit_bytes: "bytes sent again by SACK",
        sack_lostrexmt: "times that what was sent again was found to be lost once more",
        sack_rcv_blocks: "segments received with SACK blocks",
        sack_send_blocks: "segments sent with SACK blocks",
        sack_sboverflow: "SACK blocks for which there was no room",
        ecn_ce: "packets received that met congestion",
        ecn_ect0: "packets received with ECT(0), where both understand ECN",
        ecn_ect1: "packets received with ECT(1), where both understand ECN",
        ecn_shs: "connections that both understand ECN",
        ecn_rcwnd: "windows reduced by ECN",
        fast_open_sent: "SYNs sent with data (TCP Fast Open)",
        fast_open_acked: "those whose data was acknowledged with them",
        fast_open_taken: "SYNs received whose data was taken",
        rst_sent: "resets sent",
        rst_received: "resets received and accepted",
        challenge_ack: "acknowledgements sent in answer to a segment that may be forged",
        challenge_held: "those that were not sent, as there had been many",
        recovery_episode: "times that a loss was repaired without waiting for a timeout",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_by_name() {
        let mut sum = TcpCounters { connects: 3, ..TcpCounters::default() };
        sum.merge(&TcpCounters { connects: 4, accepts: 1, ..TcpCounters::default() });
        let told: alloc::vec::Vec<_> = sum
            .iter()
            .filter(|(.., value)| *value > 0)
            .map(|(name, _, value)| (name, value))
            .collect();
        assert_eq!(told, [("accepts", 1), ("connects", 7)]);
    }
}
