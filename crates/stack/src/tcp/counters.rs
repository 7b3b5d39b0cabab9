//! TCP counters with the names of the BSD stack; TRex uses the same names with the prefix `tcps_`.

/// Defines a struct of counters with a description for each.
macro_rules! counters {
    ($(#[$about:meta])* $name:ident { $($field:ident: $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $(#[doc = $text] pub $field: u64,)*
        }

        impl $name {
            /// Returns name, description and value of each counter, in the order of the reports.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($field), $text, self.$field)),*].into_iter()
            }

            /// Adds the counters of `other`.
            pub fn merge(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }

            /// Subtracts the counters of `other`, which were merged before.
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
        segstimed: "segments timed for a round-trip sample",
        rttupdated: "round-trip samples",
        delack: "delayed acknowledgements sent",
        sndtotal: "segments sent",
        sndpack: "segments with data sent",
        sndbyte: "bytes queued by programs",
        sndbyte_ok: "bytes of data sent, without retransmissions",
        sndctrl: "segments with SYN, FIN or RST sent",
        sndacks: "segments sent without data",
        rcvtotal: "segments received",
        rcvpack: "segments with data received in sequence",
        rcvbyte: "bytes received in sequence",
        rcvackpack: "segments received that acknowledge new data",
        rcvackbyte: "bytes acknowledged by the peer",
        rcvackbyte_of: "FINs acknowledged by the peer",
        rcvoffloads: "segments received that were merged into the previous one",
        drops: "connections dropped",
        conndrops: "connections dropped before they were established",
        timeoutdrop: "connections dropped by retransmission timeout",
        rexmttimeo: "retransmission timeouts",
        rexmttimeo_syn: "retransmission timeouts of SYN",
        persisttimeo: "persist timer expiries (closed window)",
        persistdrop: "connections dropped because probes of a closed window were unanswered",
        keeptimeo: "keepalive timer expiries, including those before establishment",
        keepprobe: "keepalive probes sent",
        keepdrops: "connections dropped by the keepalive timer",
        sndrexmitpack: "segments with data retransmitted",
        sndrexmitbyte: "bytes retransmitted",
        tlpresends: "tail loss probes that retransmitted the last segment",
        tlpnewdata: "tail loss probes with new data",
        mturesent: "retransmissions because the path MTU shrank",
        sndprobe: "window probes sent",
        rcvbadsum: "segments received with a wrong checksum",
        rcvbadoff: "segments received with an invalid header length",
        rcvshort: "truncated segments received",
        rcvduppack: "segments received with only duplicate data",
        rcvdupbyte: "bytes received in segments with only duplicate data",
        rcvpartduppack: "segments received with some duplicate data",
        rcvpartdupbyte: "duplicate bytes received in segments with some duplicate data",
        rcvoopack: "segments received out of order",
        rcvoobyte: "bytes received out of order",
        rcvoopackdrop: "out-of-order segments dropped: no space",
        rcvoobytesdrop: "bytes of out-of-order segments dropped: no space",
        rcvpackafterwin: "segments received with data beyond the window",
        rcvbyteafterwin: "bytes received beyond the window",
        rcvafterclose: "segments with data received after the peer's FIN",
        rcvdupack: "duplicate acknowledgements received",
        rcvacktoomuch: "acknowledgements received for data that was never sent",
        rcvwinupd: "window updates received",
        pawsdrop: "segments dropped by PAWS: their timestamp was too old",
        badsyn: "segments with an unexpected SYN, or without an expected one",
        reasalloc: "reassembly queues allocated (out-of-order data)",
        reasfree: "reassembly queues freed",
        reas_hist_4: "freed queues that held at most 4 pieces",
        reas_hist_16: "freed queues that held 5 to 16 pieces",
        reas_hist_100: "freed queues that held 17 to 100 pieces",
        reas_hist_other: "freed queues that held more pieces",
        nombuf: "segments not sent: no free frame",
        sack_recovery_episode: "recoveries from loss with SACK",
        sack_rexmits: "segments retransmitted because of SACK",
        sack_rexmit_bytes: "bytes retransmitted because of SACK",
        sack_lostrexmt: "retransmissions that were lost again",
        sack_rcv_blocks: "segments received with SACK blocks",
        sack_send_blocks: "segments sent with SACK blocks",
        sack_sboverflow: "SACK blocks dropped because the scoreboard was full",
        ecn_ce: "packets received with CE",
        ecn_ect0: "packets received with ECT(0) on connections with ECN",
        ecn_ect1: "packets received with ECT(1) on connections with ECN",
        ecn_shs: "connections with ECN",
        ecn_rcwnd: "window reductions by ECN",
        fast_open_sent: "SYNs sent with data (TCP Fast Open)",
        fast_open_acked: "SYNs with data that the peer acknowledged",
        fast_open_accepted: "SYNs received with accepted data",
        rst_sent: "resets sent",
        rst_received: "resets received and accepted",
        challenge_ack: "challenge ACKs sent",
        challenge_ack_skipped: "challenge ACKs skipped because of the rate limit",
        recovery_episode: "recoveries from loss without a timeout",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_adds_counters_by_name() {
        let mut sum = TcpCounters { connects: 3, ..TcpCounters::default() };
        sum.merge(&TcpCounters { connects: 4, accepts: 1, ..TcpCounters::default() });
        let reported: alloc::vec::Vec<_> = sum
            .iter()
            .filter(|(.., value)| *value > 0)
            .map(|(name, _, value)| (name, value))
            .collect();
        assert_eq!(reported, [("accepts", 1), ("connects", 7)]);
    }
}
