//! What TCP, IP, TLS and HTTP/2 of a template can be set to.

use serde_json::{Value, json};

use super::boolean;
use crate::document::schema::{any_of, described, integer, list, object, text, time, unknown};
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
            described(
                "Protocol versions offered and accepted. Default: 1.2 and 1.3.",
                some(version),
            )
        }
        "sni" => described(
            "Server name that clients send. Default: none; clients use the server's address.",
            text(),
        ),
        "alpn" => described("Application protocols, in order of preference.", some(text())),
        "ciphers" => described("Cipher suites by IANA name, in order of preference.", some(text())),
        "certificate" => described(
            "Server certificate chain, a PEM file relative to the plan. Default: a generated one \
            (ECDSA P-256) for `sni`.",
            text(),
        ),
        "key" => {
            described("Private key of `certificate`, a PEM file. RSA keys need 2,048 bits.", text())
        }
        "ca" => described(
            "Certificates that clients trust, a PEM file: authorities, or the server's own \
            certificate with a subjectAltName. Without it clients accept any X.509 version 3 \
            certificate. The server's possession of the key is always verified.",
            text(),
        ),
        "client_certificate" => {
            described("Client certificate chain, a PEM file, for servers that request one.", text())
        }
        "client_key" => described("Private key of `client_certificate`, a PEM file.", text()),
        "client_ca" => described(
            "Authorities of client certificates, a PEM file. Servers then require a client \
            certificate. Default: servers do not request one.",
            text(),
        ),
        "resume" => described(
            "Share of connections on which clients resume a session: `true` (all), `false` (none) \
            or `30%`. Each client address has its own sessions, for up to 65,536 pairs of client \
            and server. Servers issue tickets unless it is `false`. Default: true.",
            any_of([boolean(), text()]),
        ),
        _ => unknown(),
    });
    any_of([boolean(), fields])
}

pub(super) fn http2() -> Value {
    let fields = object(&HTTP2, &[], |name| match name {
        "streams" => described(
            "Concurrent streams that clients open and servers allow. Default: 100.",
            integer(1, STREAMS_MAX.into()),
        ),
        "window" => {
            let window = integer(1, WINDOW_MAX.into());
            described(
                "Flow control window of a stream in bytes. The connection's window is the sum over \
                all streams. Default: 262144.",
                window,
            )
        }
        _ => unknown(),
    });
    any_of([boolean(), fields])
}

pub(super) fn tcp() -> Value {
    object(&TCP, &[], |name| match name {
        "mss" => described(
            "Maximum segment size to send and to advertise, in bytes of data. TCP options reduce \
            it further. Default: 1460.",
            integer(10, 65_495),
        ),
        "initial_window" => {
            described("Initial congestion window in segments. Default: 10.", integer(1, 20))
        }
        "receive_buffer" => {
            described("Receive buffer in bytes. Default: 32768.", integer(1_024, 1 << 30))
        }
        "send_buffer" => described(
            "Bytes that may be unacknowledged, whatever the peer's window. Default: no limit.",
            integer(1_024, 1 << 30),
        ),
        "window_scaling" => described("Window scaling (RFC 7323). Default: true.", boolean()),
        "window_scale" => described(
            "Window scale. A small one limits the window below the buffer. Default: the least that \
            suffices.",
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
            `rack` they end the reordering wait. Default: 3.",
            integer(1, 255),
        ),
        "reassembly_max" => described(
            "Out-of-order ranges kept. Further ones are dropped and count as `rcvoopackdrop`. \
            Default: 256.",
            integer(0, 1_000),
        ),
        "ecn" => described(
            "ECN (RFC 3168): requested, or with `permit` accepted if the peer requests it. \
            Default: false.",
            any_of([boolean(), json!({"const": "permit"})]),
        ),
        "no_delay" => described(
            "Send short segments at once (no Nagle algorithm). Default: false; true for built-in \
            protocols, conversations and HTTP/2.",
            boolean(),
        ),
        "congestion" => described(
            "Congestion control. `bbr` is version 1 as in Linux, paced in steps of 1 ms. Default: \
            cubic.",
            json!({"enum": ["cubic", "new_reno", "bbr"]}),
        ),
        "rto_initial" => described(
            "Retransmission timeout before the first round trip sample. Default: 1s.",
            time(),
        ),
        "rto_min" => described(
            "Least time that the retransmission timeout exceeds the round trip. Default: 200ms.",
            time(),
        ),
        "rto_max" => described("Maximum retransmission timeout. Default: 120s.", time()),
        "retries" => described(
            "Retransmissions of a segment before the connection fails. Default: 8.",
            integer(0, 255),
        ),
        "syn_retries" => described(
            "Retransmissions of SYN before the connection fails. Default: 5.",
            integer(0, 255),
        ),
        "connect_timeout" => described(
            "Time to establish a connection. Later it counts as `unanswered`. Default: as long as \
            the SYN retransmissions take.",
            time(),
        ),
        "delayed_ack" => {
            described("Delay of acknowledgements, up to 500 ms. Default: 40ms.", time())
        }
        "fast_open" => described(
            "TCP Fast Open (RFC 7413): clients send data with SYN once they have a cookie, and \
            servers accept it. TLS handshakes wait for the connection. Default: false.",
            boolean(),
        ),
        "ack_after_bytes" => {
            let bytes = integer(0, 1 << 30);
            described(
                "Bytes after which an acknowledgement leaves at once; 0 means the second segment. \
                If it exceeds the peer's congestion window, each window waits for `delayed_ack`. \
                Default: 0.",
                bytes,
            )
        }
        "time_wait" => described("Duration of TIME-WAIT. Default: 500ms.", time()),
        "keepalive" => described(
            "Idle time before the first keepalive probe. Keepalive also ends half-closed \
            connections whose peer is gone. Default: no probes.",
            time(),
        ),
        "keepalive_interval" => described("Time between keepalive probes. Default: 7s.", time()),
        "keepalive_probes" => described(
            "Unanswered keepalive probes before the connection fails. Default: 8.",
            integer(1, 255),
        ),
        "push_all" => described("Set PSH on all segments with data. Default: false.", boolean()),
        _ => unknown(),
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
            "Identification of IPv4 packets; `counting` counts over all flows of a port. Default: \
            zero; counting without `dont_fragment` (RFC 6864).",
            json!({"enum": ["zero", "counting", "random"]}),
        ),
        "flow_label" => described(
            "Flow label of IPv6: a number, or `flow` for one per flow. Default: 0.",
            any_of([integer(0, FLOW_LABEL_MAX), json!({"const": "flow"})]),
        ),
        _ => unknown(),
    })
}
