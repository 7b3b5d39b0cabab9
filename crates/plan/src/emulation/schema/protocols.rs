//! Protocols whose programs are built in, and conversations of captures.

use serde_json::{Value, json};

use super::programs::{body, delay, settings};
use super::{boolean, port_number, ports};
use crate::document::schema::{any_of, described, integer, list, object, pattern, text, unknown};
use crate::emulation::conversation::CONVERSATION;
use crate::emulation::filling::SIZE_MAX;
use crate::emulation::presets::{DNS, FILE, FTP, HTTP, LISTINGS, RESPONSE, RTP, RTSP, SIP, SMTP};

pub(super) fn conversation() -> Value {
    let flow = || integer(1, u64::MAX);
    let mut flows = list(flow());
    flows["minItems"] = 1.into();
    let fields = object(&CONVERSATION, &["file"], |name| match name {
        "file" => described(
            "Capture file (pcap or pcapng, compressed or not), relative to the plan.",
            text(),
        ),
        "flow" => described(
            "Flow number from 1, in the order of first packets, or a list. Flows to the same port \
            use separate parts of `servers`, or differ by their first bytes: up to 8 bytes of the \
            first 256, up to 256 conversations a port. Default: all flows with data.",
            any_of([flow(), flows.clone()]),
        ),
        "timing" => described(
            "`keep`: each side waits as long as in the capture; pauses shorter than 0.5 ms and \
            those of the network are removed, others are whole milliseconds. `drop`: no waiting. \
            Default: keep.",
            json!({"enum": ["keep", "drop"]}),
        ),
        "server_delay" => {
            described("Delay before the server answers, with `timing: drop`.", delay())
        }
        _ => unknown(),
    });
    any_of([text(), fields])
}

/// A text without spaces.
fn word() -> Value {
    pattern(r"[^\x00-\x20\x7f]+")
}

fn answers_after() -> Value {
    described("Delay before the server answers.", delay())
}

fn headers() -> Value {
    let value = any_of([text(), json!({"type": "number"})]);
    let fields = json!({"type": "object", "additionalProperties": value});
    described("Additional header fields.", fields)
}

pub(super) fn http() -> Value {
    let response = || {
        object(&RESPONSE, &[], |name| match name {
            "status" => described("Status code. Default: 200.", integer(200, 599)),
            "headers" => headers(),
            "body" => described("Body: a size in bytes, or as in `send`.", body()),
            "chunk" => described(
                "Chunk size of the body. Clients of HTTP/1.0 get no chunks. Default: no chunks.",
                integer(1, 64 << 20),
            ),
            "delay" => answers_after(),
            _ => unknown(),
        })
    };
    object(&HTTP, &[], |name| match name {
        "version" => {
            let version = any_of([json!({"enum": [1.1, 2]}), json!({"enum": ["1.1", "2"]})]);
            described("HTTP version. Default: 1.1.", version)
        }
        "set" => described(
            "Values set before each request, for `path`, `host` and `headers`.",
            settings(),
        ),
        "method" => described("Method. Default: GET.", word()),
        "path" => described("Path, with values as in `send`. Default: `/`.", word()),
        "host" => described("Host, with values as in `send`. Default: www.example.net.", word()),
        "headers" => headers(),
        "body" => described("Request body: a size in bytes, or as in `send`.", body()),
        "requests" => described(
            "Requests of a connection. With one, both sides close it; with more, the client does. \
            Servers then answer until the client closes. Default: 1.",
            integer(1, 1 << 30),
        ),
        "pipeline" => described(
            "Requests sent at once; a divisor of `requests`. With HTTP/2: concurrent streams, up \
            to 100. Default: 1.",
            integer(1, 1 << 30),
        ),
        "think" => described("Time between a response and the next request.", delay()),
        "reconnect" => described(
            "Whether a client opens a new connection if the server closes between two requests; if \
            false it fails. `reconnected` counts them. Default: true.",
            boolean(),
        ),
        "response_bytes" => described(
            "Size of a response with its header, from other hosts' servers. The client then does \
            not parse responses, which is faster; fewer bytes are a failure. Not with values in \
            requests, HTTP/2 or HEAD.",
            integer(1, 1 << 30),
        ),
        "response" => described("Response of the server.", response()),
        _ => unknown(),
    })
}

pub(super) fn smtp() -> Value {
    object(&SMTP, &[], |name| match name {
        "host" => described("Name of the server. Default: mail.example.net.", word()),
        "client_host" => described("Name of the client. Default: client.example.net.", word()),
        "from" => described("Sender address. Default: sender@example.net.", word()),
        "to" => described("Recipient address. Default: reader@example.net.", word()),
        "message" => {
            described("Message: a size in bytes of text, or as in `send`, header included.", body())
        }
        "messages" => described("Messages of a connection. Default: 1.", integer(1, 1 << 30)),
        "start_tls" => described(
            "STARTTLS (RFC 3207): servers require it, and clients fail if it is not offered. Needs \
            `tls`. Without it `tls` starts with the connection (port 465). Default: false.",
            boolean(),
        ),
        "delay" => answers_after(),
        _ => unknown(),
    })
}

fn file() -> Value {
    let fields = object(&FILE, &FILE[..1], |name| match name {
        "name" => described("File name.", word()),
        "size" => described(
            "Size in bytes. Fewer bytes are a failure. Default: 1024 on our servers, any on \
            others.",
            integer(0, SIZE_MAX),
        ),
        _ => unknown(),
    });
    any_of([word(), fields])
}

pub(super) fn ftp() -> Value {
    object(&FTP, &[], |name| match name {
        "host" => described("Name of the server. Default: ftp.example.net.", word()),
        "user" => described("User name. Default: anonymous.", word()),
        "password" => described("Password. Default: guest@example.net.", word()),
        "files" => described(
            "Files to fetch, 100 at most. Default: readme.txt, without `upload` and `list`.",
            list(file()),
        ),
        "upload" => described("Files to store, 100 at most.", list(file())),
        "list" => described("Listings to request. Default: none.", list(json!({"enum": LISTINGS}))),
        "data_ports" => {
            described("Ports for data connections of the server. Default: 49152-65535.", ports())
        }
        "rounds" => described("Repetitions of all transfers. Default: 1.", integer(1, 1 << 30)),
        "delay" => answers_after(),
        _ => unknown(),
    })
}

pub(super) fn rtsp() -> Value {
    object(&RTSP, &[], |name| match name {
        "host" => described("Name of the server. Default: media.example.net.", word()),
        "path" => described("Path of the stream. Default: `/stream`.", word()),
        "packets" => described("RTP packets of 20 ms. Default: 50.", integer(0, 30_000)),
        "delay" => answers_after(),
        _ => unknown(),
    })
}

pub(super) fn sip() -> Value {
    object(&SIP, &[], |name| match name {
        "from" => described("Caller. Default: caller@example.net.", word()),
        "to" => described("Callee. Default: callee@example.net.", word()),
        "ring" => described("Time until the call is answered.", delay()),
        "talk" => described("Time until the caller hangs up.", delay()),
        "packets" => described(
            "RTP packets of 20 ms each way, in a template of their own (`NAME.media`). If media \
            fail, the call fails. Without it no media are sent.",
            integer(1, 30_000),
        ),
        "media_port" => {
            described("Port of the server's media; needs `packets`. Default: 5004.", port_number())
        }
        "delay" => answers_after(),
        _ => unknown(),
    })
}

pub(super) fn rtp() -> Value {
    object(&RTP, &[], |name| match name {
        "packets" => described("RTP packets of 20 ms. Default: 50.", integer(1, 30_000)),
        _ => unknown(),
    })
}

pub(super) fn dns() -> Value {
    object(&DNS, &[], |name| match name {
        "name" => described("Name to query. Default: www.example.net.", word()),
        "type" => described("Record type. Default: A.", json!({"enum": ["A", "AAAA"]})),
        "answers" => described(
            "Records of an answer (192.0.2.1 and so on, 2001:db8::1). Default: 1.",
            integer(0, 40),
        ),
        "queries" => described("Queries of a flow. Default: 1.", integer(1, 10_000)),
        "delay" => answers_after(),
        _ => unknown(),
    })
}
