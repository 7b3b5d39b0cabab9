//! JSON Schema of the built-in protocols, and of conversations of captures.

use serde_json::{Value, json};

use super::programs::{body, delay, settings};
use super::{boolean, port_number, ports};
use crate::document::schema::{
    any_of, described, integer, list, matches_nothing, object, pattern, text,
};
use crate::emulation::conversation::CONVERSATION;
use crate::emulation::payload_size::SIZE_MAX;
use crate::emulation::presets::{DNS, FILE, FTP, HTTP, LISTINGS, RESPONSE, RTP, RTSP, SIP, SMTP};

pub(super) fn conversation() -> Value {
    let flow = || integer(1, u64::MAX);
    let mut flows = list(flow());
    flows["minItems"] = 1.into();
    let fields = object(&CONVERSATION, &["file"], |name| match name {
        "file" => described(
            "Capture file (pcap or pcapng, may be compressed), relative to the plan.",
            text(),
        ),
        "flow" => described(
            "Flow number from 1, in the order of first packets, or a list. Flows to the same port \
            use separate parts of `servers`, or differ by up to 8 of their first 256 bytes, up to \
            256 conversations a port. Default: all flows with data.",
            any_of([flow(), flows.clone()]),
        ),
        "timing" => described(
            "`keep`: each side pauses as in the capture, in whole milliseconds; pauses below 0.5 \
            ms and those of the network are removed. `drop`: no pauses. Default: keep, or drop \
            with `server_delay`.",
            json!({"enum": ["keep", "drop"]}),
        ),
        "server_delay" => described(
            "Delay before each of the server's answers, with `timing: drop`. Default: none.",
            delay(),
        ),
        _ => matches_nothing(),
    });
    any_of([text(), fields])
}

/// Returns the schema of a text without spaces and control characters.
fn word() -> Value {
    pattern(r"[^\x00-\x20\x7f]+")
}

fn answers_after() -> Value {
    described("Delay before each of the server's answers. Default: none.", delay())
}

fn headers() -> Value {
    let value = any_of([text(), json!({"type": "number"})]);
    let fields = json!({"type": "object", "additionalProperties": value});
    described("Header fields to add or replace. Default: none.", fields)
}

pub(super) fn http() -> Value {
    let response = || {
        object(&RESPONSE, &[], |name| match name {
            "status" => described("Status code. Default: 200.", integer(200, 599)),
            "headers" => headers(),
            "body" => described("Body: a size in bytes, or as in `send`. Default: none.", body()),
            "chunk" => described(
                "Chunk size of the body in bytes. Clients of HTTP/1.0 get no chunks. Default: no \
                chunks.",
                integer(1, 64 << 20),
            ),
            "delay" => answers_after(),
            _ => matches_nothing(),
        })
    };
    object(&HTTP, &[], |name| match name {
        "version" => {
            let version = any_of([json!({"enum": [1.1, 2]}), json!({"enum": ["1.1", "2"]})]);
            described("HTTP version. Default: 1.1.", version)
        }
        "set" => described(
            "Values set before each request, for `path`, `host` and `headers`. Default: none.",
            settings(),
        ),
        "method" => described("Request method. Default: GET.", word()),
        "path" => described("Request target, with values as in `send`. Default: `/`.", word()),
        "host" => {
            described("Host field, with values as in `send`. Default: www.example.net.", word())
        }
        "headers" => headers(),
        "body" => {
            described("Request body: a size in bytes, or as in `send`. Default: none.", body())
        }
        "requests" => described(
            "Requests of a connection. With one, both sides close the connection; with more, the \
            client does. Default: 1.",
            integer(1, 1 << 30),
        ),
        "pipeline" => described(
            "Requests sent at once, a divisor of `requests`. With HTTP/2, concurrent streams, up \
            to `http2.streams`. Default: 1.",
            integer(1, 1 << 30),
        ),
        "think_time" => {
            described("Time between a response and the next request. Default: none.", delay())
        }
        "reconnect" => described(
            "Whether a client opens a new connection (counter `reconnected`) if the server closes \
            between two requests; if false, it fails. Default: true.",
            boolean(),
        ),
        "response_bytes" => described(
            "Size in bytes of a response from other hosts' servers, header included. The client \
            then counts bytes instead of parsing, which is faster; fewer bytes are a failure. Not \
            with values in requests, HTTP/2 or HEAD. Default: parse responses.",
            integer(1, 1 << 30),
        ),
        "response" => described("Response of the server.", response()),
        _ => matches_nothing(),
    })
}

pub(super) fn smtp() -> Value {
    object(&SMTP, &[], |name| match name {
        "host" => described("Host name of the server. Default: mail.example.net.", word()),
        "client_host" => described("Host name of the client. Default: client.example.net.", word()),
        "from" => described("Sender address. Default: sender@example.net.", word()),
        "to" => described("Recipient address. Default: reader@example.net.", word()),
        "message" => described(
            "Message: a size of text in bytes, or as in `send`, header included. Default: 500 \
            bytes of text.",
            body(),
        ),
        "messages" => described("Messages of a connection. Default: 1.", integer(1, 1 << 30)),
        "start_tls" => described(
            "STARTTLS (RFC 3207); needs `tls`. Servers require it, and clients fail if it is not \
            offered. If false, `tls` starts with the connection (port 465). Default: false.",
            boolean(),
        ),
        "delay" => answers_after(),
        _ => matches_nothing(),
    })
}

fn file() -> Value {
    let fields = object(&FILE, &FILE[..1], |name| match name {
        "name" => described("File name.", word()),
        "size" => described(
            "Size in bytes; fewer are a failure. Default: 1024, or any size from other hosts' \
            servers.",
            integer(0, SIZE_MAX),
        ),
        _ => matches_nothing(),
    });
    any_of([word(), fields])
}

pub(super) fn ftp() -> Value {
    object(&FTP, &[], |name| match name {
        "host" => described("Host name of the server. Default: ftp.example.net.", word()),
        "user" => described("User name. Default: anonymous.", word()),
        "password" => described("Password. Default: guest@example.net.", word()),
        "files" => described(
            "Files to fetch, up to 100. Default: readme.txt, unless `upload` or `list` is set.",
            list(file()),
        ),
        "upload" => described("Files to store, up to 100. Default: none.", list(file())),
        "list" => described(
            "Listings to request, LIST or NLST. Default: none.",
            list(json!({"enum": LISTINGS})),
        ),
        "data_ports" => {
            described("Server ports of data connections. Default: 49152-65535.", ports())
        }
        "rounds" => described("Repetitions of all transfers. Default: 1.", integer(1, 1 << 30)),
        "delay" => answers_after(),
        _ => matches_nothing(),
    })
}

pub(super) fn rtsp() -> Value {
    object(&RTSP, &[], |name| match name {
        "host" => described("Host name of the server. Default: media.example.net.", word()),
        "path" => described("Path of the stream in its URL. Default: `/stream`.", word()),
        "packets" => described("RTP packets of 20 ms. Default: 50.", integer(0, 30_000)),
        "delay" => answers_after(),
        _ => matches_nothing(),
    })
}

pub(super) fn sip() -> Value {
    object(&SIP, &[], |name| match name {
        "from" => described("Caller, without `sip:`. Default: caller@example.net.", word()),
        "to" => described("Callee, without `sip:`. Default: callee@example.net.", word()),
        "ring_time" => described("Time until the call is answered. Default: none.", delay()),
        "talk_time" => {
            described("Time until the caller hangs up; not with `packets`. Default: none.", delay())
        }
        "packets" => described(
            "RTP packets each way, 20 ms each, in the template `NAME.media`. If the media flow \
            fails, the call fails. Default: no media.",
            integer(1, 30_000),
        ),
        "media_port" => described(
            "UDP port of the server's media; needs `packets`. Default: 5004.",
            port_number(),
        ),
        "delay" => answers_after(),
        _ => matches_nothing(),
    })
}

pub(super) fn rtp() -> Value {
    object(&RTP, &[], |name| match name {
        "packets" => described("RTP packets of 20 ms. Default: 50.", integer(1, 30_000)),
        _ => matches_nothing(),
    })
}

pub(super) fn dns() -> Value {
    object(&DNS, &[], |name| match name {
        "name" => described("Domain name to query. Default: www.example.net.", word()),
        "type" => described("Record type. Default: A.", json!({"enum": ["A", "AAAA"]})),
        "answers" => described(
            "Records of an answer, from 192.0.2.1 or 2001:db8::1 on. Default: 1.",
            integer(0, 40),
        ),
        "queries" => described("Queries of a flow. Default: 1.", integer(1, 10_000)),
        "delay" => answers_after(),
        _ => matches_nothing(),
    })
}
