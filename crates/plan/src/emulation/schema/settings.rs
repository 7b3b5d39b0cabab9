//! JSON Schema of the TCP, IP, TLS and HTTP/2 settings of a template.

use serde_json::{Value, json};

use super::boolean;
use crate::document::schema::{
    any_of, described, integer, list, matches_nothing, object, text, time,
};
use crate::emulation::http2::HTTP2;
use crate::emulation::ip::{FLOW_LABEL_MAX, IP};
use crate::emulation::tcp::TCP;
use crate::emulation::tls::TLS;
use crate::emulation::types::{STREAMS_MAX, WINDOW_MAX};

pub(super) fn tls() -> Value {
    let some = |item: Value| {
        let mut some = list(item);
        some["minItems"] = 1.into();
        some
    };
    let fields = object(&TLS, &[], |name| match name {
        "versions" => {
            let version = any_of([json!({"enum": [1.2, 1.3]}), json!({"enum": ["1.2", "1.3"]})]);
            described("TLS versions offered and accepted. Default: 1.2 and 1.3.", some(version))
        }
        "sni" => described(
            "Server name that clients send (SNI). Default: none; clients use the server's address.",
            text(),
        ),
        "alpn" => described(
            "ALPN protocols, in order of preference. Default: none; h2 with HTTP/2.",
            some(text()),
        ),
        "ciphers" => described(
            "Cipher suites by IANA name, in order of preference. Default: all.",
            some(text()),
        ),
        "certificate" => described(
            "Server certificate chain, a PEM file relative to the plan; needs `key`. Default: a \
            generated one (ECDSA P-256) for `sni`.",
            text(),
        ),
        "key" => described(
            "Private key of `certificate`, a PEM file; RSA keys need at least 2,048 bits.",
            text(),
        ),
        "ca" => described(
            "Certificates that clients trust, a PEM file: authorities, or the server's certificate \
            with a subjectAltName. Clients always verify that the server has the key. Default: any \
            X.509 version 3 certificate.",
            text(),
        ),
        "client_certificate" => described(
            "Client certificate chain, a PEM file, for servers that request one; needs \
            `client_key`. Default: none.",
            text(),
        ),
        "client_key" => described("Private key of `client_certificate`, a PEM file.", text()),
        "client_ca" => described(
            "Authorities of required client certificates, a PEM file. Default: servers request no \
            certificate.",
            text(),
        ),
        "resume" => described(
            "Share of connections that resume a session: `true` (all), `false` (none) or `30%`. \
            Sessions are kept for up to 65,536 pairs of client and server address. With `false`, \
            servers issue no tickets. Default: true.",
            any_of([boolean(), text()]),
        ),
        _ => matches_nothing(),
    });
    any_of([boolean(), fields])
}

pub(super) fn http2() -> Value {
    let fields = object(&HTTP2, &[], |name| match name {
        "max_concurrent_streams" => described(
            "Maximum number of concurrent streams, of clients and servers. Default: 100.",
            integer(1, STREAMS_MAX.into()),
        ),
        "initial_window_size" => {
            let window = integer(1, WINDOW_MAX.into());
            described(
                "Flow-control window of a stream in bytes. The connection's window is `streams` \
                times as large. Default: 262144.",
                window,
            )
        }
        _ => matches_nothing(),
    });
    any_of([boolean(), fields])
}

pub(super) fn tcp() -> Value {
    object(&TCP, &[], |name| match name {
        "mss" => described(
            "Maximum segment size (MSS) to send and to advertise, in bytes of data. TCP options \
            reduce it further. Default: 1460.",
            integer(10, 65_495),
        ),
        "initial_window" => {
            described("Initial congestion window in segments. Default: 10.", integer(1, 20))
        }
        "receive_buffer" => {
            described("Receive buffer in bytes. Default: 32768.", integer(1_024, 1 << 30))
        }
        "send_buffer" => described(
            "Maximum number of unacknowledged bytes, whatever the peer's window. Default: no \
            limit.",
            integer(1_024, 1 << 30),
        ),
        "window_scaling" => described("Window scaling (RFC 7323). Default: true.", boolean()),
        "window_scale" => described(
            "Window scale in bits; a small one limits the window below the buffer. Default: the \
            smallest for `receive_buffer`.",
            integer(0, 14),
        ),
        "timestamps" => described("Timestamps (RFC 7323). Default: true.", boolean()),
        "sack" => described("Selective acknowledgements (RFC 2018). Default: true.", boolean()),
        "rack" => described(
            "Loss detection by time and tail loss probes (RFC 8985); needs `sack`. Default: true.",
            boolean(),
        ),
        "dupack_threshold" => described(
            "Duplicate acknowledgements, or segments reported by SACK, that indicate a loss. With \
            `rack` they end the wait for reordered segments. Default: 3.",
            integer(1, 255),
        ),
        "reassembly_max" => described(
            "Maximum number of out-of-order ranges kept; further ones are dropped (counter \
            `rcvoopackdrop`). Default: 256.",
            integer(0, 1_000),
        ),
        "ecn" => described(
            "ECN (RFC 3168): `true` requests it, `permit` accepts it if the peer requests it. \
            Default: false.",
            any_of([boolean(), json!({"const": "permit"})]),
        ),
        "no_delay" => described(
            "Disable the Nagle algorithm: send short segments at once. Default: false; true for \
            built-in protocols, conversations and HTTP/2.",
            boolean(),
        ),
        "congestion" => described(
            "Congestion control algorithm. `bbr` is version 1 as in Linux, paced in steps of 1 ms. \
            Default: cubic.",
            json!({"enum": ["cubic", "new_reno", "bbr"]}),
        ),
        "rto_initial" => described(
            "Retransmission timeout before the first round-trip sample, up to 1h and `rto_max`. \
            Default: 1s.",
            time(),
        ),
        "rto_min" => described(
            "Minimum margin of the retransmission timeout above the round-trip time, up to 1h. \
            Default: 200ms.",
            time(),
        ),
        "rto_max" => described("Maximum retransmission timeout, up to 1h. Default: 120s.", time()),
        "retries" => described(
            "Maximum number of retransmissions of a segment; then the connection fails. Default: \
            8.",
            integer(0, 255),
        ),
        "syn_retries" => described(
            "Maximum number of retransmissions of SYN; then the connection fails. Default: 5.",
            integer(0, 255),
        ),
        "connect_timeout" => described(
            "Maximum time to establish a connection, up to 24h; then it fails as `syn_timeout`. \
            Default: until the last SYN retransmission times out.",
            time(),
        ),
        "delayed_ack" => {
            described("Maximum delay of acknowledgements, up to 500ms. Default: 40ms.", time())
        }
        "fast_open" => described(
            "TCP Fast Open (RFC 7413): clients with a cookie send data with SYN, and servers \
            accept it. TLS handshakes wait for the connection. Default: false.",
            boolean(),
        ),
        "ack_after_bytes" => {
            let bytes = integer(0, 1 << 30);
            described(
                "Received bytes that trigger an acknowledgement; 0: the second segment. Above the \
                peer's congestion window, each window waits for `delayed_ack`. Default: 0.",
                bytes,
            )
        }
        "time_wait" => described("Duration of TIME-WAIT, up to 4min. Default: 500ms.", time()),
        "keepalive" => described(
            "Idle time before the first keepalive probe, up to 24h. Probes also end half-closed \
            connections whose peer is gone. Default: no probes.",
            time(),
        ),
        "keepalive_interval" => {
            described("Time between keepalive probes, up to 24h. Default: 7s.", time())
        }
        "keepalive_probes" => described(
            "Maximum number of unanswered keepalive probes; then the connection fails. Default: 8.",
            integer(1, 255),
        ),
        "push_all" => described(
            "Set PSH on all segments with data, not only the last. Default: false.",
            boolean(),
        ),
        _ => matches_nothing(),
    })
}

pub(super) fn ip() -> Value {
    object(&IP, &[], |name| match name {
        "ttl" => {
            described("Time to live (IPv4) or hop limit (IPv6). Default: 64.", integer(1, 255))
        }
        "tos" => described(
            "Type of service (IPv4) or traffic class (IPv6). DSCP is the upper six bits; the lower \
            two belong to ECN. Default: 0.",
            integer(0, 255),
        ),
        "dont_fragment" => described("The don't fragment bit of IPv4. Default: true.", boolean()),
        "identification" => described(
            "Identification of IPv4 packets; `counting` is one counter for all flows of a port. \
            Default: zero; counting without `dont_fragment` (RFC 6864).",
            json!({"enum": ["zero", "counting", "random"]}),
        ),
        "flow_label" => described(
            "Flow label of IPv6: a number of 20 bits, or `flow` for one per flow. Default: 0.",
            any_of([integer(0, FLOW_LABEL_MAX), json!({"const": "flow"})]),
        ),
        _ => matches_nothing(),
    })
}
