//! JSON Schema (2020-12) of plans of clients and servers, built from the parser's key lists.
//!
//! Every plan that the parser accepts matches the schema. The schema does not check that names
//! exist and that values fit together.

mod programs;
mod protocols;
mod settings;

use serde_json::{Value, json};
use wirestorm_model::impairment::Queue;

use self::programs::{content, delay, sending, steps};
use self::protocols::{conversation, dns, ftp, http, rtp, rtsp, sip, smtp};
use self::settings::{http2, ip, tcp, tls};
use super::client::{CLIENT, ETHERNET, LOADS, POISSON, RATE, USERS};
use super::devices::{DEVICES, LABEL, LABEL_MAX, MplsLabels, VLAN_MAX};
use super::first_bytes::BYTE;
use super::latency::LATENCY;
use super::{PLAN, SERVER, TEMPLATE};
use crate::document::schema::{
    any_of, choice, described, integer, list, matches_nothing, number, object, pattern, port, text,
    time,
};
use crate::impairment::ImpairmentSettings;
use crate::tunnels::TUNNEL;

/// Returns the schema, without `title` and `$id`.
pub fn schema() -> Value {
    let mut schema = object(&PLAN, &PLAN[..2], |name| match name {
        "ports" => described(
            "Ports of the plan: the interfaces of the clients and servers.",
            list(hosts_port()),
        ),
        "templates" => {
            let mut templates = list(template());
            templates["minItems"] = 1.into();
            described(
                "Templates: the clients and servers of one kind of connection, and their traffic.",
                templates,
            )
        }
        "latency" => described("Latency probes that run beside the load.", list(latency())),
        _ => matches_nothing(),
    });
    schema["$defs"] = json!({"steps": steps(), "content": content(), "sending": sending()});
    schema
}

/// Returns the schema of a port, with `impair`, `tunnels` and `blackhole`.
fn hosts_port() -> Value {
    let mut port = port();
    port["properties"]["impair"] = described(
        "Impairment of the frames that the port sends, except ARP, neighbour discovery, pings and \
        `latency` probes. It applies to the outer frames of tunnels. Each port derives its own \
        seed from `--seed`. Default: none.",
        object(&ImpairmentSettings::KEYS, &[], |word| match word {
            "loss" => described(
                "Share of frames lost at random, such as `1%`. Not with `burst_loss`. Default: \
                none.",
                text(),
            ),
            "burst_loss" => described(
                "Bursty loss (Gilbert-Elliott), `P/R[/H[/K]]`. P and R: probability per frame that \
                a good link turns bad, and a bad one good. H and K: share of frames that pass a \
                bad link (0 % if absent) and a good one (100 %). Default: none.",
                text(),
            ),
            "duplicate" => described(
                "Share of frames that are duplicated. The copy passes later stages separately. \
                Default: none.",
                text(),
            ),
            "corrupt" => described(
                "Share of frames with one flipped bit behind the Ethernet header. Receivers then \
                verify all checksums, also on virtual interfaces. Default: none.",
                text(),
            ),
            "rate" => described(
                "Link rate in bits a second: `100M-l2` counts frames with FCS, `100M-l1` also \
                preamble and gap. Default: no limit.",
                text(),
            ),
            "queue" => described(
                "Queue in front of `rate`, in frames, or in bytes such as `64kB`. Frames that \
                exceed it are dropped. Default: 1000 frames.",
                any_of([integer(0, Queue::MAX_FRAMES.into()), text()]),
            ),
            "delay" => {
                described("Constant delay behind `rate`, such as `5ms`. Default: none.", text())
            }
            "jitter" => described(
                "Variation of the delay: `1ms` (uniform, plus or minus) or `1ms/normal` (standard \
                deviation, up to six times it). Frames keep their order: one that would overtake \
                arrives with the frame ahead. Default: none.",
                text(),
            ),
            "reorder" => described(
                "Share of frames with an extra delay, and this delay, such as `1%/2ms`. Other \
                frames overtake them. Default: none.",
                text(),
            ),
            _ => matches_nothing(),
        }),
    );
    port["properties"]["blackhole"] = described(
        "Packets of no flow that the port does not answer: none, SYNs, or all. The others get RST \
        or ICMP. Default: none.",
        json!({"enum": ["none", "syn", "all"]}),
    );
    port["properties"]["tunnels"] = described(
        "GTP-U tunnels (3GPP TS 29.281) for the packets of clients. They take 36 bytes of the MTU \
        over IPv4, 56 over IPv6, and outer packets are not fragmented. The outer traffic class is \
        the inner one (RFC 6040). An empty list allows tunnels that Python adds during the run, \
        with a next hop in `gateway` or `ethernet`. Default: none.",
        list(tunnels()),
    );
    port
}

fn tunnels() -> Value {
    let number = || integer(0, u32::MAX.into());
    object(&TUNNEL, &["clients", "teid"], |name| match name {
        "clients" => described(
            "Clients of these tunnels, one tunnel for each: an address or first-last.",
            addresses(),
        ),
        "teid" => described("Tunnel endpoint identifier (TEID) of the first client.", number()),
        "teid_step" => {
            described("Difference between the TEIDs of consecutive clients. Default: 1.", number())
        }
        "src" => described(
            "Address of the tunnel end at the clients. Default: the port's address.",
            text(),
        ),
        "dst" => described(
            "Address of the far tunnel end. The port resolves its MAC unless `ethernet` or \
            `devices` name one. Default: the port's address.",
            text(),
        ),
        "source_port" => described(
            "Outer UDP source port; the destination port is 2152. Default: the source port of the \
            inner packet.",
            port_number(),
        ),
        _ => matches_nothing(),
    })
}

fn defined(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn template() -> Value {
    let mut template = object(&TEMPLATE, &["name"], |name| match name {
        "name" => described("Name of the template in results.", text()),
        "group" => described(
            "Group of templates, for sums in the result and for the step `select_group`. \
            `active_max` of a group is the sum of its templates' maxima.",
            text(),
        ),
        "transport" => described(
            "Transport protocol. Over UDP, ICMP Port Unreachable ends a flow as refused, and \
            datagrams above the path MTU leave in fragments. Default: tcp.",
            json!({"enum": ["tcp", "udp"]}),
        ),
        "client" => described(
            "Clients, which open connections. Without `client` the template only serves other \
            hosts.",
            client(),
        ),
        "server" => described(
            "Servers, which accept connections. Without `server` the template connects to other \
            hosts' servers.",
            server(),
        ),
        "tcp" => {
            described("TCP settings of both sides. The `tcp` of a side overrides them.", tcp())
        }
        "ip" => described("IP settings of both sides. The `ip` of a side overrides them.", ip()),
        "tls" => described(
            "TLS 1.2 and 1.3; `true` uses the defaults. The handshake comes first unless programs \
            have the step `start_tls`. `send` and `receive` count bytes before encryption. \
            close_notify follows the last step. Keys and random numbers do not derive from \
            `--seed`. Not with servers that differ by `first_bytes`. Default: false.",
            tls(),
        ),
        "http2" => described(
            "HTTP/2 (RFC 9113) transports the HTTP/1.1 messages of both programs. With `tls`, ALPN \
            negotiates h2; without it both sides use prior knowledge. Messages sent need a length: \
            Content-Length, chunks, or for a response the end of the program. Requests need Host. \
            Connection header fields, trailers and bodies of responses to HEAD are removed. \
            Received field names are lower case; a body without Content-Length arrives in chunks; \
            interim responses are skipped. A server answers requests in the order of arrival and \
            ignores cancelled ones. Header lists are limited to 64 KiB. There is no server push. \
            Default: true with `http: {version: 2}`, else false.",
            http2(),
        ),
        "conversation" => described(
            "Both sides replay the payload of a capture over Wirestorm's own TCP or UDP. Each \
            captured flow is a template (`NAME.1`, `NAME.2`) with an equal part of `load` and \
            `limit`. `port` and `server_port` default to the captured ones. Lost, late and \
            duplicate segments and fragments are repaired; missing bytes are an error. Without a \
            SYN the side that sends first is the client. VLAN tags and MPLS labels are skipped. A \
            capture has at most 4,096 flows. Short segments leave at once (`no_delay`).",
            conversation(),
        ),
        "http" => described(
            "Both sides use HTTP/1.1 or HTTP/2. A request, or a pipeline of them, is a transaction \
            `http`.",
            http(),
        ),
        "smtp" => described(
            "Both sides use SMTP. Each message is a transaction `smtp`, from MAIL until the server \
            accepts it. Clients require 220, 250 (251 for a recipient), 354 and 221; on any other \
            reply they send QUIT and fail.",
            smtp(),
        ),
        "ftp" => described(
            "Both sides use FTP. Each transfer is a transaction and a data connection with its own \
            template (`NAME.retr.FILE`, `NAME.stor.FILE`, `NAME.list`, `NAME.nlst`). If it fails, \
            its control connection fails. Clients use EPSV, then PASV. With `tls`: AUTH TLS, PBSZ \
            0, PROT P (RFC 4217). Data connections resume the session of the control connection \
            unless `resume` is false. Implicit TLS (port 990) is not supported.",
            ftp(),
        ),
        "rtsp" => described(
            "Both sides use RTSP with interleaved RTP (G.711, RTP/AVP/TCP only). Each request is a \
            transaction `rtsp`. Clients require status 200 and send OPTIONS every 5 s.",
            rtsp(),
        ),
        "sip" => described(
            "Both sides use SIP over UDP. INVITE and BYE are the transactions `sip.invite` and \
            `sip.bye`. At a response of 3xx to 6xx clients send ACK and fail. With other hosts, \
            calls without datagrams end after 5 minutes at servers, after 32 s at clients.",
            sip(),
        ),
        "rtp" => described(
            "The client sends RTP over UDP: G.711, 160 bytes of payload each 20 ms.",
            rtp(),
        ),
        "dns" => described(
            "Both sides use DNS over UDP. Each query is a transaction `dns`. Clients ignore \
            answers with another ID and fail at response codes other than NOERROR. Servers answer \
            any name, with records if the type is `type`, else with none.",
            dns(),
        ),
        "transactions" => described(
            "Whether a built-in protocol times its transactions, about 200 instructions each. \
            Default: true.",
            boolean(),
        ),
        _ => matches_nothing(),
    });
    template["anyOf"] = json!([{"required": ["client"]}, {"required": ["server"]}]);
    template
}

fn latency() -> Value {
    object(&LATENCY, &LATENCY[..2], |name| match name {
        "from" => described("Port that sends the probes; it needs `addresses`.", text()),
        "to" => described("Destination: an address, or a port of the plan that has one.", text()),
        "protocol" => described(
            "Kind of probe: ICMP echo requests, or UDP datagrams of 56 bytes for devices that \
            filter or prioritise ICMP. Default: icmp.",
            json!({"enum": ["icmp", "udp"]}),
        ),
        "port" => described(
            "UDP destination port of the probes (RFC 862), not the port of a template's server. A \
            port of the plan echoes them. Default: 7.",
            port_number(),
        ),
        "rate" => described("Probes a second, up to 10,000. Default: 100.", number()),
        _ => matches_nothing(),
    })
}

fn boolean() -> Value {
    json!({"type": "boolean"})
}

/// Returns the schema of a TCP or UDP port number.
fn port_number() -> Value {
    integer(1, 65_535)
}

/// Returns the schema of a port number, or of a range `first-last`.
fn ports() -> Value {
    any_of([port_number(), pattern(r"\s*[0-9]+\s*(-\s*[0-9]+\s*)?")])
}

/// Returns the schema of an IP address, or of a range `first-last`.
fn addresses() -> Value {
    let address = r"\s*[0-9a-fA-F:.]+\s*";
    pattern(&format!("{address}(-{address})?"))
}

fn client() -> Value {
    object(&CLIENT, &["tx", "servers", "load"], |name| match name {
        "tx" => described("Port of the plan that the clients use.", text()),
        "addresses" => described(
            "Client addresses, one client for each: an address or first-last. Do not use an \
            address of the interface: the host's kernel would reset the connections. Default: the \
            port's address.",
            addresses(),
        ),
        "order" => described(
            "Order of the clients. Random clients also use random `ports`. Default: round_robin.",
            json!({"enum": ["round_robin", "random"]}),
        ),
        "pairing" => described(
            "Server that a client connects to. With `fixed`, client N connects to server N, modulo \
            their number. Default: round_robin.",
            json!({"enum": ["round_robin", "random", "fixed"]}),
        ),
        "devices" => described(
            "Routers, VLANs and MPLS labels of clients. Each entry needs `dst`, `src`, `vlan`, \
            `mpls` or `next_hop`. The first entry that names a client applies. Default: none.",
            list(devices()),
        ),
        "consecutive_flows" => described(
            "Consecutive connections of a client to one server before the next client follows. Not \
            with random `order` or `pairing`. Default: 1.",
            integer(1, u32::MAX.into()),
        ),
        "reuse_after" => described(
            "Number of connections after which addresses and ports repeat. If one is still in use, \
            a nearby port replaces it. Not with random `order` or `pairing`. Default: never.",
            integer(1, u64::MAX),
        ),
        "ports" => described(
            "Source ports: one, or first-last. Clients start at a random port, derived from \
            `--seed`, and continue in order. Default: 1024-65535.",
            ports(),
        ),
        "servers" => described(
            "Destination addresses, of the clients' family: one, or first-last.",
            addresses(),
        ),
        "server_port" => described(
            "Destination port. Default: the protocol's, else the server's port, else 80.",
            port_number(),
        ),
        "ethernet" => object(&ETHERNET, &[], |name| match name {
            "dst" => described(
                "Destination MAC of all frames. With `auto` the port resolves `gateway` and up to \
                1,024 servers of a template before the load, for up to 10 s. If the port has no \
                `addresses`, frames go to the other side's port. Default: auto.",
                text(),
            ),
            _ => matches_nothing(),
        }),
        "load" => described("Load: when connections start, and how many.", load()),
        "ramp_up" => described(
            "Time over which `rate`, `poisson`, `concurrent` or `users` grows linearly from zero. \
            Default: none.",
            time(),
        ),
        "limit" => described(
            "Total number of connections. The run ends when all limits are reached and all \
            connections are closed. Default: no limit.",
            integer(1, u64::MAX),
        ),
        "program" => described(
            "Program of the clients, instead of a built-in protocol or `conversation`.",
            defined("steps"),
        ),
        "tcp" => {
            described("TCP settings of the clients. They override those of the template.", tcp())
        }
        "ip" => described("IP settings of the clients. They override those of the template.", ip()),
        _ => matches_nothing(),
    })
}

fn devices() -> Value {
    object(&DEVICES, &["clients"], |name| match name {
        "clients" => described("Clients of these devices: an address or first-last.", addresses()),
        "stride" => described(
            "Restricts the devices to every Nth of these clients, from the first. Default: 1.",
            integer(1, u32::MAX.into()),
        ),
        "count" => described(
            "Number of devices with consecutive addresses. Consecutive clients use them round \
            robin. Default: 1.",
            integer(1, u32::MAX.into()),
        ),
        "vlan" => described(
            "VLAN ID (802.1Q), or an outer (802.1ad) and an inner one (802.1Q). One tag comes on \
            top of the MTU. Two tags and labels count within it, and the MSS shrinks. Default: \
            none.",
            vlans(),
        ),
        "mpls" => {
            described("MPLS labels behind the VLAN tags, outermost first. Default: none.", labels())
        }
        "dst" => described(
            "Destination MAC for clients of the first device; the next device has the next MAC. \
            Default: as without `devices`.",
            text(),
        ),
        "src" => described(
            "Source MAC for clients of the first device; the next device has the next MAC. \
            Default: the port's MAC.",
            text(),
        ),
        "next_hop" => described(
            "IP address of the first device. The port resolves its MAC in the device's VLAN before \
            the load, and tracks changes.",
            text(),
        ),
        "next_hop_source" => described(
            "Sender address of the requests that resolve `next_hop`. The port answers ARP and \
            neighbour discovery for it. Default: the port's address.",
            text(),
        ),
        _ => matches_nothing(),
    })
}

fn vlans() -> Value {
    let mut both = list(integer(0, VLAN_MAX));
    (both["minItems"], both["maxItems"]) = (2.into(), 2.into());
    any_of([integer(0, VLAN_MAX), both])
}

fn labels() -> Value {
    let label = object(&LABEL, &LABEL[..1], |name| match name {
        "label" => described("Value of the label.", integer(0, LABEL_MAX)),
        "tc" => described("Traffic class. Default: 0.", integer(0, 7)),
        "ttl" => described("Time to live. Default: 64.", integer(0, 255)),
        _ => matches_nothing(),
    });
    let mut labels = list(any_of([integer(0, LABEL_MAX), label]));
    labels["minItems"] = 1.into();
    labels["maxItems"] = MplsLabels::COUNT_MAX.into();
    labels
}

fn load() -> Value {
    let rate = |names: &[&str]| {
        object(names, &names[..1], |name| match name {
            "rate" => described(
                "Connections a second at equal intervals (open loop). The first starts at once. \
                Those that are late by more than a second do not start and count as `late`.",
                number(),
            ),
            "poisson" => described(
                "Connections a second on average, at exponentially distributed intervals (open \
                loop).",
                number(),
            ),
            "concurrent_max" => described(
                "Maximum number of open connections, without TIME-WAIT. Those due above it do not \
                start and count as `skipped`. Default: no limit.",
                integer(1, u32::MAX.into()),
            ),
            _ => matches_nothing(),
        })
    };
    let forms = choice(&LOADS[2..4], |name| match name {
        "concurrent" => described(
            "Number of open connections, without TIME-WAIT: a new one starts when one ends. A \
            failed one is replaced after 100 ms, doubling up to 1 s. Unanswered SYNs are limited \
            to 512 plus the connections established so far.",
            integer(1, u32::MAX.into()),
        ),
        "throughput" => described(
            "Bits of data a second that all clients receive together, up to 10^18. Connections \
            shorter than a second start at intervals; longer ones are held, at least one. If more \
            connections bring no more data, Wirestorm holds their number, reports it in a note, \
            and tries again after 1 s, up to 8 s.",
            number(),
        ),
        _ => matches_nothing(),
    });
    let demand = json!({"const": "on_demand", "description": "Only when a program opens them."});
    let users = object(&USERS, &USERS[..1], |name| match name {
        "users" => described(
            "Number of users. Each opens a connection, thinks when it is in TIME-WAIT or has \
            failed, and opens the next one.",
            integer(1, u32::MAX.into()),
        ),
        "think_time" => described("Think time between two connections. Default: none.", delay()),
        _ => matches_nothing(),
    });
    any_of([demand, rate(&RATE), rate(&POISSON), forms, users])
}

fn server() -> Value {
    object(&SERVER, &["tx"], |name| match name {
        "tx" => described("Port of the plan that the servers use.", text()),
        "port" => {
            let port = any_of([port_number(), json!({"const": "on_demand"})]);
            described(
                "TCP or UDP port, required with `program`. `on_demand`: only connections that \
                another program accepts by `accept_flow`. Default: the protocol's.",
                port,
            )
        }
        "addresses" => described(
            "Addresses of the servers: one, or first-last. The port answers ARP and neighbour \
            discovery for them. Default: all.",
            addresses(),
        ),
        "vlans" => described(
            "VLANs in which the port answers ARP, neighbour discovery and pings for the addresses, \
            beside those of its clients: an ID, or an outer and an inner one. Answers carry the \
            tags of the request. Hosts in other VLANs or behind MPLS need a static neighbour \
            entry. Default: none.",
            list(vlans()),
        ),
        "first_bytes" => described(
            "First payload bytes of the server's flows, a text or a list of bytes, to select one \
            of several servers at a port. The most specific server takes a flow: the fewest \
            addresses, then the most bits, then the first in the plan. The servers must have the \
            same TCP options in the handshake. Not with `tls`, nor over TCP with per-flow payload. \
            Default: any.",
            first_bytes(),
        ),
        "program" => described(
            "Program of the servers, instead of a built-in protocol or `conversation`.",
            defined("steps"),
        ),
        "tcp" => {
            described("TCP settings of the servers. They override those of the template.", tcp())
        }
        "ip" => described("IP settings of the servers. They override those of the template.", ip()),
        _ => matches_nothing(),
    })
}

fn first_bytes() -> Value {
    let byte = object(&BYTE, &["offset", "value"], |name| match name {
        "offset" => described("Offset of the byte in the payload.", integer(0, 255)),
        "mask" => described("Mask of the bits to compare. Default: 255.", integer(1, 255)),
        "value" => {
            described("Value of the masked bits. Bits outside `mask` are 0.", integer(0, 255))
        }
        _ => matches_nothing(),
    });
    let mut bytes = list(byte);
    bytes["minItems"] = 1.into();
    bytes["maxItems"] = 8.into();
    any_of([text(), bytes])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::schema::closed_objects;
    use crate::document::value_at::ValueAt;
    use crate::emulation::program::{self, LONE_STEPS};

    #[test]
    fn schema_describes_every_key_and_allows_no_others() {
        let objects = closed_objects(&schema());
        assert!(objects > 25, "{objects}");
    }

    #[test]
    fn parser_accepts_every_step_without_fields() {
        for step in LONE_STEPS {
            let steps = json!([step]);
            assert!(program::read(&ValueAt::root(&steps)).is_ok(), "{step}");
        }
    }
}
