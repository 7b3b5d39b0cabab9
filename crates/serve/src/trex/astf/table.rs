//! The counters of TRex's stateful mode: names, meanings and units, in the order of their numbers.

use serde_json::{Value, json};

/// A counter, or a line between counters.
pub(super) struct Described {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) units: &'static str,
    /// `info`, `warnig` (sic) or `error`.
    pub(super) info: &'static str,
    /// Whether clients show it also if it is zero.
    pub(super) shows_zero: bool,
    /// Whether it is a counter.
    pub(super) is_real: bool,
    /// Whether clients do not subtract an earlier value.
    pub(super) is_absolute: bool,
}

const fn line(name: &'static str) -> Described {
    Described {
        name,
        help: "",
        units: "",
        info: "info",
        shows_zero: false,
        is_real: false,
        is_absolute: true,
    }
}

/// A value that is no counter.
const fn gauge(name: &'static str, help: &'static str, units: &'static str) -> Described {
    Described { help, units, shows_zero: true, is_real: true, ..line(name) }
}

pub(super) const fn counter(name: &'static str, help: &'static str) -> Described {
    Described { help, is_real: true, is_absolute: false, ..line(name) }
}

pub(super) const fn error(name: &'static str, help: &'static str) -> Described {
    Described { info: "error", ..counter(name, help) }
}

/// Describes a counter to clients.
pub(super) fn description(number: usize, it: &Described) -> Value {
    json!({
        "id": number,
        "name": it.name,
        "help": it.help,
        "units": it.units,
        "zero": it.shows_zero,
        "info": it.info,
        "real": it.is_real,
        "abs": it.is_absolute,
    })
}

/// All counters.
pub(super) const COUNTERS: [Described; 140] = [
    gauge("m_active_flows", "active open flows", ""),
    gauge("m_est_flows", "active established flows", ""),
    gauge("m_tx_bw_l7_r", "tx L7 bw acked", "bps"),
    gauge("m_tx_bw_l7_total_r", "tx L7 bw total", "bps"),
    gauge("m_rx_bw_l7_r", "rx L7 bw acked", "bps"),
    gauge("m_tx_pps_r", "tx pps", "pps"),
    gauge("m_rx_pps_r", "rx pps", "pps"),
    gauge("m_avg_size", "average pkt size", "B"),
    gauge("m_tx_ratio", "Tx acked/sent ratio", "%"),
    line("-"),
    Described {
        shows_zero: false,
        ..gauge("m_traffic_duration", "measured traffic duration", "sec")
    },
    line("-"),
    line("TCP"),
    line("-"),
    counter("tcps_connattempt", "connections initiated"),
    counter("tcps_accepts", "connections accepted"),
    counter("tcps_connects", "connections established"),
    counter("tcps_closed", "conn. closed (includes drops)"),
    counter("tcps_segstimed", "segs where we tried to get rtt"),
    counter("tcps_rttupdated", "times we succeeded"),
    counter("tcps_delack", "delayed acks sent"),
    counter("tcps_sndtotal", "total packets sent"),
    counter("tcps_sndpack", "data packets sent"),
    counter("tcps_sndbyte", "data bytes sent by application"),
    counter("tcps_sndbyte_ok", "data bytes sent by tcp"),
    counter("tcps_sndctrl", "control (SYN|FIN|RST) packets sent"),
    counter("tcps_sndacks", "ack-only packets sent "),
    counter("tcps_rcvtotal", "total packets received "),
    counter("tcps_rcvpack", "packets received in sequence"),
    counter("tcps_rcvbyte", "bytes received in sequence"),
    counter("tcps_rcvackpack", "rcvd ack packets"),
    counter("tcps_rcvackbyte", "tx bytes acked by rcvd acks "),
    counter("tcps_rcvackbyte_of", "tx bytes acked by rcvd acks - overflow acked"),
    counter("tcps_rcvoffloads", "receive offload packets by software"),
    counter("tcps_preddat", "times hdr predict ok for data pkts "),
    counter("tcps_drops", "connections dropped"),
    error("tcps_conndrops", "embryonic connections dropped"),
    error("tcps_timeoutdrop", "conn. dropped in rxmt timeout"),
    error("tcps_rexmttimeo", "retransmit timeouts"),
    error("tcps_rexmttimeo_syn", "retransmit SYN timeouts"),
    error("tcps_persisttimeo", "persist timeouts"),
    error("tcps_keeptimeo", "keepalive timeouts"),
    error("tcps_keepprobe", "keepalive probes sent"),
    error("tcps_keepdrops", "connections dropped in keepalive"),
    counter("tcps_testdrops", "connections dropped by user at timeout (no-close flag --nc)"),
    error("tcps_sndrexmitpack", "data packets retransmitted"),
    error("tcps_sndrexmitbyte", "data bytes retransmitted"),
    error("tcps_sndprobe", "window probes sent"),
    error("tcps_sndurg", "packets sent with URG only"),
    counter("tcps_sndwinup", "window update-only packets sent"),
    error("tcps_rcvbadsum", "packets received with ccksum errs"),
    error("tcps_rcvbadoff", "packets received with bad offset"),
    error("tcps_rcvshort", "packets received too short"),
    error("tcps_rcvduppack", "duplicate-only packets received"),
    error("tcps_rcvdupbyte", "duplicate-only bytes received"),
    error("tcps_rcvpartduppack", "packets with some duplicate data"),
    error("tcps_rcvpartdupbyte", "dup. bytes in part-dup. packets"),
    error("tcps_rcvoopackdrop", "OOO packet drop due to queue len"),
    error("tcps_rcvoobytesdrop", "OOO bytes drop due to queue len"),
    error("tcps_rcvoopack", "out-of-order packets received"),
    error("tcps_rcvoobyte", "out-of-order bytes received"),
    error("tcps_rcvpackafterwin", "packets with data after window"),
    error("tcps_rcvbyteafterwin", "bytes rcvd after window"),
    error("tcps_rcvafterclose", "packets rcvd after close"),
    error("tcps_rcvwinprobe", "rcvd window probe packets"),
    error("tcps_rcvdupack", "rcvd duplicate acks"),
    error("tcps_rcvacktoomuch", "rcvd acks for unsent data"),
    error("tcps_rcvwinupd", "rcvd window update packets"),
    error("tcps_pawsdrop", "segments dropped due to PAWS"),
    counter("tcps_predack", "times hdr predict ok for acks"),
    error("tcps_persistdrop", "timeout in persist state"),
    error("tcps_badsyn", "bogus SYN, e.g. premature ACK"),
    error("tcps_reasalloc", "allocate tcp reasembly ctx"),
    error("tcps_reasfree", "free tcp reasembly ctx"),
    error("tcps_reas_hist_4", "count of max queue <= 4"),
    error("tcps_reas_hist_16", "count of max queue <= 16"),
    error("tcps_reas_hist_100", "count of max queue <= 100"),
    error("tcps_reas_hist_other", "count of max queue > 100"),
    error("tcps_nombuf", "no mbuf for tcp - drop the packets"),
    error("tcps_sack_recovery_episode", "SACK recovery episodes"),
    error("tcps_sack_rexmits", "SACK rexmit segments"),
    error("tcps_sack_rexmit_bytes", "SACK rexmit bytes"),
    error("tcps_sack_rcv_blocks", "SACK blocks (options) received"),
    error("tcps_sack_send_blocks", "SACK blocks (options) sent"),
    error("tcps_sack_sboverflow", "times scoreboard overflowed"),
    counter("tcps_ecn_ce", "ECN Congestion Experienced"),
    counter("tcps_ecn_ect0", "ECN Capable Transport"),
    counter("tcps_ecn_ect1", "ECN Capable Transport"),
    counter("tcps_ecn_shs", "ECN successful handshakes"),
    counter("tcps_ecn_rcwnd", "times ECN reduced the cwnd"),
    line("-"),
    line("UDP"),
    line("-"),
    counter("udps_accepts", "connections accepted"),
    counter("udps_connects", "connections established"),
    counter("udps_closed", "conn. closed (includes drops)"),
    counter("udps_sndbyte", "data bytes transmitted"),
    counter("udps_sndpkt", "data packets transmitted"),
    counter("udps_rcvbyte", "data bytes received"),
    counter("udps_rcvpkt", "data packets received"),
    error("udps_keepdrops", "keepalive drop"),
    error("udps_nombuf", "no mbuf"),
    error("udps_pkt_toobig", "packets transmitted too big"),
    line("-"),
    line("Application"),
    line("-"),
    counter("user_counter_A", "user counter A"),
    counter("user_counter_B", "user counter B"),
    counter("user_counter_C", "user counter C"),
    counter("user_counter_D", "user counter D"),
    counter("flows_total", "total flows generated by the command"),
    counter("flows_other", "generated flows from changed template"),
    line("-"),
    line("Flow Table"),
    line("-"),
    counter("rss_redirect_rx", "rss rx packets redirected"),
    counter("rss_redirect_tx", "rss tx packets redirected"),
    error("rss_redirect_drops", "rss packets to redirect dropped"),
    counter("rss_redirect_queue_full", "rss tx queue full"),
    counter("ignored_macs", "ignored macs addr"),
    counter("ignored_ips", "ignored ips addr"),
    error("err_cwf", "client pkt without flow"),
    error("err_no_syn", "server first flow packet with no SYN"),
    error("err_len_err", "pkt with length error"),
    error("err_fragments_ipv4_drop", "fragments_ipv4_drop"),
    counter("err_no_tcp_udp", "no tcp/udp packet"),
    error("err_no_template", "server can't match L7 template"),
    error("err_no_memory", "No heap memory for allocating flows"),
    error("err_dct", "duplicate flow - more clients require "),
    error("err_l3_cs", "ip checksum error"),
    error("err_l4_cs", "tcp/udp checksum error"),
    error("err_redirect_rx", "redirect to rx error"),
    counter("redirect_rx_ok", "redirect to rx OK"),
    counter("err_rx_throttled", "rx thread was throttled"),
    error("err_c_nf_throttled", "client new flow throttled"),
    error("err_c_tuple_err", "client new flow, not enough clients"),
    error("err_s_nf_throttled", "server new flow throttled"),
    error("err_flow_overflow", "too many flows errors"),
    counter("defer_template", "tcp L7 template matching deferred (by l7_map)"),
    error("err_defer_no_template", "server can't match L7 template (deferred by l7_map)"),
];
