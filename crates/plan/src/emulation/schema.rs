//! The form of plans of clients and servers as a JSON Schema (2020-12), made of the lists that they
//! are read by. What the reader takes keeps to it; that names are known and values fit together it
//! cannot say.

use serde_json::{Value, json};
use wirestorm_wire::impairment::Queue;

use super::client::{CLIENT, ETHERNET, LOADS, POISSON, RATE, USERS};
use super::composition::{COUNTER, Composition, FIELD, RANDOM, RANDOM_MAX, SENDING, SET};
use super::control::{COMPARISONS, COUNT_DOWN, COUNTERS, JUMP, LISTEN, SINCE, START_NEXT};
use super::conversation::CONVERSATION;
use super::devices::{DEVICES, LABEL, LABEL_MAX, MplsLabels, VLAN_MAX};
use super::first_bytes::BYTE;
use super::http2::{HTTP2, STREAMS_MAX, WINDOW_MAX};
use super::ip::{FLOW_LABEL_MAX, IP};
use super::latency::LATENCY;
use super::looked_at::{EXPECT, LOOKED_AT_MAX, MESSAGES, OTHERWISE, PART, RECEIVE, TEXT_MAX};
use super::program::{
    DELAY, IDLE, LONE_STEPS, RECEIVE_DATAGRAMS, REPEAT, SEND, SENT_MAX, SIZE_MAX, STEPS,
    TRANSACTION,
};
use super::ready::{DNS, FILE, FTP, HTTP, LISTINGS, RESPONSE, RTP, RTSP, SIP, SMTP};
use super::tcp::TCP;
use super::tls::TLS;
use super::{PLAN, SERVER, TEMPLATE};
use crate::document::schema::{
    any_of, choice, described, integer, list, number, object, pattern, port, text, time, unknown,
};
use crate::impairment::AskedImpairment;
use crate::tunnels::TUNNEL;

/// The schema, without name and address.
pub fn schema() -> Value {
    let mut schema = object(&PLAN, &PLAN[..2], |name| match name {
        "ports" => described(
            "The ports of the plan: interfaces where clients and servers live.",
            list(hosts_port()),
        ),
        "templates" => {
            let mut templates = list(template());
            templates["minItems"] = 1.into();
            described("The templates: what clients and servers send and receive.", templates)
        }
        "latency" => described("Latency probes beside the load.", list(latency())),
        _ => unknown(),
    });
    schema["$defs"] = json!({"steps": steps(), "content": content(), "sending": sending()});
    schema
}

/// A port that may impair what it sends, put it into tunnels, and swallow what arrives.
fn hosts_port() -> Value {
    let mut port = port();
    port["properties"]["impair"] = described(
        "Impairment of the frames that the port sends, in the order of the guide. It does not \
        apply to ARP, neighbour discovery, pings and `latency` probes. In tunnels it applies to \
        the outer frames. Each port has a seed of its own, derived from `--seed`.",
        object(&AskedImpairment::WORDS, &[], |word| match word {
            "loss" => described("Share of frames lost at random, such as `1%`.", text()),
            "burst_loss" => described(
                "`P/R[/H[/K]]`: bursty loss (Gilbert-Elliott). P: chance that a good link turns \
                bad at a frame. R: chance that a bad link turns good. H: share of frames that pass \
                a bad link, 0 % if absent. K: share that pass a good link, 100 % if absent.",
                text(),
            ),
            "duplicate" => described(
                "Share of frames that are duplicated. The copy passes the later stages as a frame \
                of its own.",
                text(),
            ),
            "corrupt" => described(
                "Share of frames in which one bit behind the Ethernet header is flipped. The \
                receiver then verifies all checksums, also on virtual interfaces.",
                text(),
            ),
            "rate" => described(
                "Rate of the link: `100M-l2` counts frames with FCS, `100M-l1` counts preamble and \
                gap too.",
                text(),
            ),
            "queue" => described(
                "Frames, or bytes such as `64kB`, that may wait for `rate`. The queue drops what \
                exceeds it. Default: 1000 frames.",
                any_of([integer(0, Queue::MAX_FRAMES.into()), text()]),
            ),
            "delay" => described("Constant delay behind the rate.", text()),
            "jitter" => described(
                "Variation of the delay: `1ms` (uniform, plus or minus), `1ms/normal` (standard \
                deviation, at most six of them). Frames keep their order: a frame that would \
                overtake arrives together with the one ahead.",
                text(),
            ),
            "reorder" => described(
                "`1%/2ms`: share of frames that are delayed further, and by how much. Other frames \
                do not wait for them.",
                text(),
            ),
            _ => unknown(),
        }),
    );
    port["properties"]["blackhole"] = described(
        "Packets for this port's addresses that belong to no flow and get no answer: none of them, \
        SYNs, or all. Without it Wirestorm answers with RST or ICMP. Default: none.",
        json!({"enum": ["none", "syn", "all"]}),
    );
    port["properties"]["tunnels"] = described(
        "GTP-U tunnels (3GPP TS 29.281) that carry packets of clients. An empty list prepares the \
        port for tunnels that a program adds from Python during the run; then `gateway` or \
        `ethernet` names the next hop. Tunnels take 36 bytes of the MTU over IPv4, 56 over IPv6; \
        the MSS shrinks by the overhead. Wirestorm does not fragment the outer packet. The outer \
        traffic class is that of the inner packet (RFC 6040).",
        list(tunnels()),
    );
    port
}

fn tunnels() -> Value {
    let number = || integer(0, u32::MAX.into());
    object(&TUNNEL, &["clients", "teid"], |name| match name {
        "clients" => described(
            "Clients whose packets use these tunnels: an address or first-last.",
            addresses(),
        ),
        "teid" => described("Tunnel identifier (TEID) of the first client.", number()),
        "teid_step" => described(
            "Difference between the TEIDs of two consecutive clients. Default: 1.",
            number(),
        ),
        "from" => described("Tunnel end at the clients. Default: the port's address.", text()),
        "to" => described(
            "Far end of the tunnel. The port resolves its Ethernet address unless `ethernet` or \
            `devices` name one. Default: the port's address.",
            text(),
        ),
        "source_port" => described(
            "Outer UDP source port. The outer destination port is 2152. Default: the source port \
            of the inner packet.",
            port_number(),
        ),
        _ => unknown(),
    })
}

fn defined(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn template() -> Value {
    let mut template = object(&TEMPLATE, &["name"], |name| match name {
        "name" => described("Name of the template in results.", text()),
        "group" => described(
            "Group of templates that the result sums up. Programs name it in `next_group` and \
            `accept_next`. `active_max` of a group is the sum of its templates' maxima.",
            text(),
        ),
        "transport" => described(
            "Transport protocol. A UDP flow to a closed port ends as refused (ICMP). Datagrams \
            above the path MTU leave in fragments. Default: tcp.",
            json!({"enum": ["tcp", "udp"]}),
        ),
        "client" => described(
            "The clients: they open connections. Without `client` the template only serves other \
            hosts.",
            client(),
        ),
        "server" => described(
            "The servers: they accept connections. Without `server` the template connects to other \
            hosts' servers.",
            server(),
        ),
        "tcp" => {
            described("TCP settings of both sides. A side's own `tcp` takes precedence.", tcp())
        }
        "ip" => described("IP settings of both sides. A side's own `ip` takes precedence.", ip()),
        "tls" => described(
            "TLS 1.2 and 1.3. `true` uses the defaults. Without the step `start_tls` the handshake \
            comes first on each connection; `send` and `receive` count bytes before encryption; \
            close_notify follows the last step. Keys and random numbers do not derive from \
            `--seed`. A template whose servers differ by `first_bytes` cannot have TLS.",
            tls(),
        ),
        "http2" => described(
            "HTTP/2 (RFC 9113) transports the HTTP/1.1 messages of both programs. With `tls`, ALPN \
            negotiates h2; without it both sides use prior knowledge. Messages need a length: \
            Content-Length, chunks, or for a response the end of the program. Requests need Host. \
            Header fields of a connection are removed. Received field names are lower case. A body \
            without Content-Length arrives in chunks. Interim responses are skipped, trailers that \
            a program sends are removed, a body behind the head of a response to HEAD is dropped. \
            A server answers requests in the order of arrival and ignores cancelled ones. Header \
            lists above 64 KiB are refused; there is no server push.",
            http2(),
        ),
        "conversation" => described(
            "Both programs replay the payload of a capture over Wirestorm's own TCP or UDP. Each \
            flow of the capture is a template of its own (`NAME.1`, `NAME.2`), and the flows share \
            `load` and `limit` equally. `port` and `server_port` default to the captured ones. \
            Lost, late and duplicate segments and fragments are repaired; a flow with missing \
            bytes is an error. Without a SYN the side that sends first is the client. VLAN tags \
            and MPLS labels are skipped. A capture has at most 4,096 flows. Short segments leave \
            at once (`no_delay`).",
            conversation(),
        ),
        "http" => described(
            "Both sides use HTTP/1.1 or HTTP/2. Each request is a transaction `http`.",
            http(),
        ),
        "smtp" => described(
            "Both sides use SMTP. Each message is a transaction `smtp`, from MAIL until the server \
            accepts it. Clients require 220, 250 (251 for a recipient), 354 and 221; on any other \
            reply they send QUIT and fail.",
            smtp(),
        ),
        "ftp" => described(
            "Both sides use FTP. Each transfer is a data connection, a template of its own \
            (`NAME.retr.FILE`, `NAME.stor.FILE`, `NAME.list`, `NAME.nlst`) and a transaction. If \
            it fails, its control connection fails. Clients use EPSV, then PASV. With `tls`: AUTH \
            TLS, PBSZ 0, PROT P (RFC 4217); data connections resume the session of the control \
            connection unless `resume` is false. Implicit TLS (port 990) is not supported.",
            ftp(),
        ),
        "rtsp" => described(
            "Both sides use RTSP with interleaved RTP (G.711). Each request is a transaction \
            `rtsp`. Clients require status 200 and send OPTIONS every 5 s. Servers offer \
            RTP/AVP/TCP only.",
            rtsp(),
        ),
        "sip" => described(
            "Both sides use SIP over UDP. INVITE and BYE are the transactions `sip.invite` and \
            `sip.bye`. Clients acknowledge a call answered with 3xx to 6xx and fail. Servers give \
            up other hosts' calls after 5 minutes without datagrams, clients give up theirs after \
            32 s.",
            sip(),
        ),
        "rtp" => described("The client sends RTP (G.711, 160 bytes each 20 ms) over UDP.", rtp()),
        "dns" => described(
            "Both sides use DNS over UDP. Each query is a transaction `dns`. Clients ignore \
            answers with another ID and fail at a response code other than NOERROR. Servers answer \
            any name: with records if the type is `type`, else with none.",
            dns(),
        ),
        "transactions" => described(
            "Whether the protocol's transactions are timed. It costs about 200 instructions each. \
            Default: true.",
            boolean(),
        ),
        _ => unknown(),
    });
    template["anyOf"] = json!([{"required": ["client"]}, {"required": ["server"]}]);
    template
}

fn latency() -> Value {
    object(&LATENCY, &LATENCY[..2], |name| match name {
        "from" => described("Port that sends the probes. It needs `addresses`.", text()),
        "to" => described("Destination: an address, or a port of the plan that has one.", text()),
        "protocol" => described(
            "Probe: ICMP echo requests, or UDP datagrams of 56 bytes for devices that filter or \
            prioritise ICMP. Default: icmp.",
            json!({"enum": ["icmp", "udp"]}),
        ),
        "port" => described(
            "UDP destination port of the probes (RFC 862). A port of the plan echoes them; no \
            server of a template may use that port. Default: 7.",
            port_number(),
        ),
        "rate" => described("Probes a second. Default: 100.", number()),
        _ => unknown(),
    })
}

fn boolean() -> Value {
    json!({"type": "boolean"})
}

/// A number of a TCP or UDP port.
fn port_number() -> Value {
    integer(1, 65_535)
}

/// One, or the first and the last of several.
fn ports() -> Value {
    any_of([port_number(), pattern(r"\s*[0-9]+\s*(-\s*[0-9]+\s*)?")])
}

/// An address, or the first and the last of several.
fn addresses() -> Value {
    let address = r"\s*[0-9a-fA-F:.]+\s*";
    pattern(&format!("{address}(-{address})?"))
}

fn client() -> Value {
    object(&CLIENT, &["tx", "servers", "load"], |name| match name {
        "tx" => described("Port that the clients send from.", text()),
        "addresses" => described(
            "Client addresses: one, or first-last. Do not use an address that the interface \
            already has: the host's kernel would reset the connections. Default: the port's \
            address.",
            addresses(),
        ),
        "order" => described(
            "Order of the clients: round robin or random. Random clients use random `ports`. \
            Default: in_turn.",
            json!({"enum": ["in_turn", "random"]}),
        ),
        "pairing" => described(
            "Server that a client connects to: round robin, random, or fixed (the first client to \
            the first server, and so on). Default: in_turn.",
            json!({"enum": ["in_turn", "random", "fixed"]}),
        ),
        "devices" => described(
            "Routers, VLANs and labels between the clients and the network. If several entries \
            name a client, the first one applies. Each entry has `dst`, `src`, `vlan`, `mpls` or \
            `next_hop`.",
            list(devices()),
        ),
        "turn" => described(
            "Connections that a client makes to one server before the next client. Not with random \
            `order` or `pairing`. Default: 1.",
            integer(1, u32::MAX.into()),
        ),
        "again_after" => described(
            "Number of connections after which the same addresses and ports repeat. If one still \
            exists, a nearby port is used. Not with random `order` or `pairing`. Default: never.",
            integer(1, u64::MAX),
        ),
        "ports" => described(
            "Source ports: one, or first-last. Clients start at a random port derived from \
            `--seed` and continue in order. Default: 1024-65535.",
            ports(),
        ),
        "servers" => described(
            "Server addresses: one, or first-last, of the clients' family, used round robin.",
            addresses(),
        ),
        "server_port" => described(
            "Destination port. Default: the protocol's, else the server's port, else 80.",
            port_number(),
        ),
        "ethernet" => object(&ETHERNET, &[], |name| match name {
            "dst" => described(
                "Destination MAC of all frames. `auto` resolves it: the port resolves `gateway` \
                and up to 1,024 servers of a template by ARP or neighbour discovery for up to 10 s \
                before the load. Without `addresses` of the port, frames go to the other side's \
                port. Default: auto.",
                text(),
            ),
            _ => unknown(),
        }),
        "load" => described("When connections start.", load()),
        "ramp" => {
            described("Time over which a rate, `hold` or `users` grows linearly from zero.", time())
        }
        "limit" => described(
            "Connections in all. The run ends when all limits are reached and all connections are \
            closed. Default: no limit.",
            integer(1, u64::MAX),
        ),
        "program" => described("Program of the clients: a list of steps.", defined("steps")),
        "tcp" => described("TCP settings of the clients.", tcp()),
        "ip" => described("IP settings of the clients.", ip()),
        _ => unknown(),
    })
}

fn devices() -> Value {
    object(&DEVICES, &["clients"], |name| match name {
        "clients" => {
            described("Clients that these devices serve: an address or first-last.", addresses())
        }
        "every" => described(
            "Serve only every Nth of these clients, from the first. Default: 1.",
            integer(1, u32::MAX.into()),
        ),
        "count" => described(
            "Number of devices, used round robin by consecutive clients; addresses count up. \
            Default: 1.",
            integer(1, u32::MAX.into()),
        ),
        "vlan" => described(
            "VLAN ID (802.1Q), or two: the outer one 802.1ad, the inner one 802.1Q. One tag comes \
            on top of the MTU. Two tags and labels count within it, and the MSS shrinks.",
            vlans(),
        ),
        "mpls" => described("MPLS labels behind the tags, outermost first.", labels()),
        "dst" => described(
            "Destination MAC for the clients of the first device; the next device has the next \
            address.",
            text(),
        ),
        "src" => described("Source MAC for the clients of the first device.", text()),
        "next_hop" => described(
            "IP address of the first device. The port resolves its MAC in the device's VLAN before \
            the load, and follows it when it moves.",
            text(),
        ),
        "next_hop_from" => described(
            "Sender address of those ARP or neighbour discovery requests. The port answers for it. \
            Default: the port's address.",
            text(),
        ),
        _ => unknown(),
    })
}

fn vlans() -> Value {
    let mut both = list(integer(0, VLAN_MAX));
    (both["minItems"], both["maxItems"]) = (2.into(), 2.into());
    any_of([integer(0, VLAN_MAX), both])
}

fn labels() -> Value {
    let label = object(&LABEL, &LABEL[..1], |name| match name {
        "label" => described("Label value.", integer(0, LABEL_MAX)),
        "tc" => described("Traffic class. Default: 0.", integer(0, 7)),
        "ttl" => described("Time to live. Default: 64.", integer(0, 255)),
        _ => unknown(),
    });
    let mut labels = list(any_of([integer(0, LABEL_MAX), label]));
    labels["minItems"] = 1.into();
    labels["maxItems"] = MplsLabels::COUNT_MAX.into();
    labels
}

fn tls() -> Value {
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

fn http2() -> Value {
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

fn load() -> Value {
    let rate = |names: &[&str]| {
        object(names, &names[..1], |name| match name {
            "rate" => described(
                "Connections a second at equal intervals, whatever becomes of them. The first \
                starts at once. Late ones start within one second or count as `late`.",
                number(),
            ),
            "poisson" => {
                described("Connections a second on average, with exponential intervals.", number())
            }
            "at_most" => described(
                "Connections at a time. Those due beyond it count as `skipped` and do not start \
                later. TIME-WAIT does not count.",
                integer(1, u32::MAX.into()),
            ),
            _ => unknown(),
        })
    };
    let forms = choice(&LOADS[2..4], |name| match name {
        "hold" => described(
            "Connections at a time. A new one starts when one ends; TIME-WAIT does not count. At \
            most 512 await an answer beside those answered. A failed one leaves its place empty \
            for 100 ms, doubling up to 1 s.",
            integer(1, u32::MAX.into()),
        ),
        "throughput" => described(
            "Bits of data a second that the clients receive in all. Connections shorter than a \
            second start at intervals; longer ones are held, at least one. If more connections \
            bring no more data, no more start (a note reports it) and Wirestorm tries again after \
            1 s, up to 8 s.",
            number(),
        ),
        _ => unknown(),
    });
    let demand = json!({"const": "on_demand", "description": "Only as programs ask for them."});
    let users = object(&USERS, &USERS[..1], |name| match name {
        "users" => described(
            "Users. Each makes a connection, thinks when it is in TIME-WAIT or failed, and makes \
            the next one.",
            integer(1, u32::MAX.into()),
        ),
        "think" => described("Think time between two connections. Default: none.", delay()),
        _ => unknown(),
    });
    any_of([demand, rate(&RATE), rate(&POISSON), forms, users])
}

fn server() -> Value {
    object(&SERVER, &["tx"], |name| match name {
        "tx" => described("Port that the servers listen on.", text()),
        "port" => {
            let port = any_of([port_number(), json!({"const": "on_demand"})]);
            described(
                "Listening port. `on_demand`: the template only takes connections that another \
                program accepts by `accept_next`. Default: the protocol's.",
                port,
            )
        }
        "addresses" => described(
            "Addresses that the servers listen on: one, or first-last. The port answers ARP for \
            them. Default: all.",
            addresses(),
        ),
        "vlans" => described(
            "VLANs in which the port answers ARP, neighbour discovery and pings for the addresses, \
            beside those of its clients: an ID, or the outer and the inner one. Hosts in other \
            VLANs and behind MPLS labels need a static neighbour entry. Answers carry the tags of \
            the request.",
            list(vlans()),
        ),
        "first_bytes" => described(
            "First payload bytes of the server's flows, a text or a list of bytes, for several \
            servers at one port. The most specific server takes the flow: the fewest addresses, \
            then the most bits, then the first in the plan. Until it is known the connection has \
            no template; TCP options of the handshake must be the same for all. Not with programs \
            that have per-flow payload over TCP, and not with `tls`.",
            first_bytes(),
        ),
        "program" => described("Program of the servers: a list of steps.", defined("steps")),
        "tcp" => described("TCP settings of the servers.", tcp()),
        "ip" => described("IP settings of the servers.", ip()),
        _ => unknown(),
    })
}

fn first_bytes() -> Value {
    let byte = object(&BYTE, &["offset", "value"], |name| match name {
        "offset" => described("Offset of the byte.", integer(0, 255)),
        "mask" => described("Bits that are compared. Default: 255.", integer(1, 255)),
        "value" => described("Value of these bits. Bits outside `mask` are 0.", integer(0, 255)),
        _ => unknown(),
    });
    let mut bytes = list(byte);
    bytes["minItems"] = 1.into();
    bytes["maxItems"] = 8.into();
    any_of([text(), bytes])
}

fn tcp() -> Value {
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
        "duplicate_threshold" => described(
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
        "open_timeout" => described(
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
        "acknowledge_after" => {
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

fn ip() -> Value {
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

/// What is sent.
fn content() -> Value {
    let fields = object(&SEND, &[], |name| match name {
        "text" => described("Text at the start.", text()),
        "size" => described("Size in bytes, filled up with `fill`.", integer(0, SIZE_MAX)),
        "fill" => described("Text that repeats up to `size`. Default: the bytes 0 to 255.", text()),
        _ => unknown(),
    });
    any_of([text(), fields])
}

/// What a step sends, with values of the flow.
fn sending() -> Value {
    let field = object(&FIELD, &FIELD, |name| match name {
        "offset" => {
            described("Offset of the field in bytes.", integer(0, Composition::LENGTH_MAX - 1))
        }
        "width" => {
            described("Width of the field in bytes, big-endian.", integer(1, u16::MAX.into()))
        }
        "value" => described("Name of the value.", text()),
        _ => unknown(),
    });
    let fields = object(&SENDING, &[], |name| match name {
        "text" => described(
            "Text at the start. `${name}` inserts a value, `$${` is a literal `${`.",
            text(),
        ),
        "hex" => described("Bytes at the start, in hexadecimal.", hex()),
        "size" => described("Size in bytes, filled up with `fill`.", integer(0, SENT_MAX)),
        "fill" => described("Text that repeats up to `size`. Default: the bytes 0 to 255.", text()),
        "fields" => described("Binary values written over the bytes.", list(field.clone())),
        _ => unknown(),
    });
    any_of([text(), fields])
}

fn hex() -> Value {
    pattern(r"\s*([0-9a-fA-F]\s*[0-9a-fA-F]\s*)+")
}

/// What a name is set to.
fn set() -> Value {
    only(setting())
}

/// What names are set to.
fn settings() -> Value {
    json!({"type": "object", "additionalProperties": setting()})
}

fn setting() -> Value {
    let counter = object(&COUNTER, &[], |name| match name {
        "start" => described("First value. Default: 1.", integer(0, u64::MAX)),
        "step" => described("Difference between values. Default: 1.", integer(1, u64::MAX)),
        "max" => described("Last value; the first one follows it.", integer(0, u64::MAX)),
        _ => unknown(),
    });
    let random = object(&RANDOM, &["max"], |name| match name {
        "min" => described("Smallest value. Default: 0.", integer(0, u64::MAX)),
        "max" => described("Greatest value.", integer(0, u64::MAX)),
        _ => unknown(),
    });
    let forms = choice(&SET, |name| match name {
        "counter" => {
            let forms = any_of([integer(0, u64::MAX), counter.clone()]);
            described(
                "Next value of a counter that all flows of the template's side share; a number is \
                its start.",
                forms,
            )
        }
        "random" => described("Random number, uniform, derived from `--seed`.", random.clone()),
        "random_text" => {
            described("Random letters and digits, of this length.", integer(1, RANDOM_MAX))
        }
        "random_bytes" => described("Random bytes, of this length.", integer(1, RANDOM_MAX)),
        "text" => described("Text with values as in `send`, up to 16,384 bytes.", text()),
        _ => unknown(),
    });
    any_of([integer(0, u64::MAX), forms])
}

fn receive() -> Value {
    let fields = choice(&RECEIVE, |name| match name {
        "until" => described("Read up to this text, inclusive.", text()),
        "bytes" => described(
            "Read this many bytes. If the peer closes before, the flow fails.",
            integer(1, u64::MAX),
        ),
        "message" => described(
            "Read a message. `http`: a request or response of HTTP/1, ended by Content-Length, the \
            last chunk or the close; chunked bodies are decoded and interim responses skipped. \
            `http_head`: a response to HEAD. `reply`: a reply of FTP or SMTP, of one or several \
            lines. `rtsp`: a response of RTSP; interleaved media before it are skipped.",
            json!({"enum": MESSAGES}),
        ),
        _ => unknown(),
    });
    any_of([integer(1, u64::MAX), fields])
}

fn expect() -> Value {
    let fields = choice(&EXPECT, |name| match name {
        "text" => described("Equal to this text, with values as in `send`.", text()),
        "hex" => described("Equal to these bytes, in hexadecimal.", hex()),
        "contains" => described("Contains this text, with values as in `send`.", text()),
        "pattern" => {
            described("Matches this regular expression (Rust syntax, over bytes).", text())
        }
        _ => unknown(),
    });
    any_of([text(), fields])
}

/// The same in a step by itself.
fn expecting() -> Value {
    let mut expected = expect();
    let fields = &mut expected["anyOf"][1];
    fields["properties"][OTHERWISE] = described(
        "Label to continue at. The flow counts as failed, but its program goes on.",
        text(),
    );
    fields["maxProperties"] = 2.into();
    expected
}

fn part() -> Value {
    object(&PART, &[], |name| match name {
        "pattern" => {
            described("Regular expression; the value is a group of its first match.", text())
        }
        "group" => described(
            "Group of the match. Default: 1, or the whole match without groups.",
            integer(0, u16::MAX.into()),
        ),
        "between" => {
            let mut texts = list(text());
            texts["minItems"] = 2.into();
            texts["maxItems"] = 2.into();
            described(
                "Text between the first occurrence of one text and the next of another.",
                texts,
            )
        }
        "offset" => described("Offset of the bytes.", integer(0, LOOKED_AT_MAX - 1)),
        "length" => described("Number of bytes.", integer(1, TEXT_MAX)),
        _ => unknown(),
    })
}

fn transaction() -> Value {
    choice(&TRANSACTION, |name| match name {
        "start" => described("Start of the transaction of this name.", text()),
        "end" => described("End of the transaction of this name.", text()),
        _ => unknown(),
    })
}

/// So many bytes, or as what is sent.
fn body() -> Value {
    let size = json!({"type": "integer", "minimum": 0, "maximum": SIZE_MAX});
    any_of([size, defined("content")])
}

fn delay() -> Value {
    let between = object(&DELAY[..2], &DELAY[..2], |name| match name {
        "min" => described("Shortest time.", time()),
        "max" => described("Longest time.", time()),
        _ => unknown(),
    });
    let about = object(&DELAY[2..], &DELAY[2..3], |name| match name {
        "mean" => described("Mean time.", time()),
        "deviation" => described(
            "Standard deviation of a normal distribution. Default: an exponential distribution.",
            time(),
        ),
        _ => unknown(),
    });
    any_of([time(), between, about])
}

fn steps() -> Value {
    let step = choice(&STEPS, |name| match name {
        "send" => described("Send, and wait until it is acknowledged.", defined("sending")),
        "receive" => described(
            "Wait for this many bytes since the last `receive`. Surplus bytes do not count for the \
            next one. If the peer closes before, the program ends. In a program with `expect`, \
            `extract` or messages it takes exactly these bytes and leaves the rest. Or read a \
            message, a text or bytes. The first 65,536 bytes are available to `expect` and \
            `extract`; up to 1 MiB is buffered.",
            receive(),
        ),
        "receive_in_all" => described(
            "Wait for this many bytes since the last `receive`, or the start.",
            integer(1, u64::MAX),
        ),
        "send_datagram" => described(
            "Send a datagram: up to 65,507 bytes over IPv4, 65,527 over IPv6.",
            defined("sending"),
        ),
        "expect" => described(
            "Compare what the last `receive` took, or the last datagram. If it differs, the \
            program ends and the flow fails.",
            expecting(),
        ),
        "extract" => described(
            "Store a part of what the last `receive` took, or of the last datagram, as a text.",
            only(part()),
        ),
        "transaction" => described(
            "Time a transaction. The result has a histogram for each name.",
            transaction(),
        ),
        "receive_datagrams" => {
            described("Wait for this many datagrams since the last such step.", receive_datagrams())
        }
        "idle" => described(
            "Time without datagrams after which the flow ends. Default: 1s; for built-in protocols \
            twice the longest delay from 500 ms up.",
            idle(),
        ),
        "next_group" => described(
            "Choose a random template of this group for `run_next` and `start_next`. Each path to \
            these steps needs it.",
            text(),
        ),
        "start_next" => described(
            "Open a flow of the chosen template to the same server, at a port that a value holds \
            (`50000`, or `195,80` as in FTP). The program continues beside it. If that flow fails, \
            this one fails.",
            start_next(),
        ),
        "listen" => described(
            "Listen on a free port for one connection of the same client; the port becomes a \
            variable.",
            listen(),
        ),
        "delay" => described("Wait for a time: never shorter, and up to 1 ms longer.", delay()),
        "blocking" => described(
            "Whether later `send` steps wait for acknowledgement, or only until the data has left. \
            Default: true.",
            boolean(),
        ),
        "tos" => described(
            "Type of service or traffic class of later packets; it replaces that of `ip`.",
            integer(0, 255),
        ),
        "repeat" => described("Repeat steps.", repeat()),
        "label" => described("Label for `jump`, `count_down` and `otherwise`.", text()),
        "jump" => described(
            "Continue at a label, always or under a condition. A loop without an end needs a step \
            that waits.",
            any_of([text(), jump()]),
        ),
        "count_down" => {
            let fields = object(&COUNT_DOWN, &COUNT_DOWN, |_| text());
            described("Decrement a variable and continue at a label while it is above 0.", fields)
        }
        "set" => described(
            "Set a variable or a text. A flow has up to 10 of each; variables start at 0.",
            set(),
        ),
        "add" => {
            let number = any_of([json!({"type": "integer"}), text()]);
            described("Add to a variable.", only(number))
        }
        "remember" => described("Store the present time under a name.", text()),
        "postpone" => described("Move a stored time forward.", only(time())),
        "count" => described(
            "Add to one of the counters A to D: a number, or the milliseconds since a stored \
            time.",
            count(),
        ),
        _ => unknown(),
    });
    let lone = LONE_STEPS.map(|name| described(lone_step(name), json!({"const": name})));
    list(any_of(lone.into_iter().chain([step]).collect::<Vec<_>>()))
}

/// What a step without fields does.
fn lone_step(name: &str) -> &'static str {
    match name {
        "connect" => "Wait until the connection is established.",
        "wait_for_close" => "Wait until the peer closes.",
        "reset" => {
            "Reset the connection; the last step. It is no failure on either side. It does not \
            wait for the connection: one that has no answer yet is dropped."
        }
        "run_next" => "Open a flow of the chosen template, and wait until it is over.",
        "end_next" => "Wait until the flow of `start_next` is over.",
        "accept_next" => {
            "Wait for the connection to the port of `listen`, give it to a template of the chosen \
            group with `port: on_demand`, and wait until it is over."
        }
        "start_tls" => {
            "Start TLS here, and wait for the handshake. Both programs have this step, or neither. \
            Bytes that no step has received belong to TLS."
        }
        _ => "",
    }
}

/// One field of any name.
fn only(value: Value) -> Value {
    json!({
        "type": "object",
        "additionalProperties": value,
        "minProperties": 1,
        "maxProperties": 1,
    })
}

fn receive_datagrams() -> Value {
    let fields = object(&RECEIVE_DATAGRAMS, &["count"], |name| match name {
        "count" => described("Number of datagrams.", integer(1, u64::MAX)),
        "clear" => described(
            "Whether counting restarts here; if false, surplus datagrams count for the next step. \
            Default: true.",
            boolean(),
        ),
        _ => unknown(),
    });
    any_of([integer(1, u64::MAX), fields])
}

fn idle() -> Value {
    let fields = object(&IDLE, &["time"], |name| match name {
        "time" => described("Idle time.", time()),
        "receive_only" => {
            described("Whether only received datagrams count. Default: false.", boolean())
        }
        _ => unknown(),
    });
    any_of([time(), fields])
}

fn repeat() -> Value {
    object(&REPEAT, &["steps"], |name| match name {
        "times" => described("Number of repetitions. Default: no end.", integer(1, u64::MAX)),
        "steps" => {
            let mut steps = defined("steps");
            steps["minItems"] = 1.into();
            described("Steps to repeat.", steps)
        }
        _ => unknown(),
    })
}

fn jump() -> Value {
    object(&JUMP, &["to"], |name| match name {
        "to" => described("Label to continue at.", text()),
        "variable" => described("Variable to compare.", text()),
        "within" => {
            described("Continue there while less time than this has passed since `since`.", time())
        }
        "since" => described("Name of a stored time.", text()),
        "received" => {
            described("Continue there if the last received data matches, as in `expect`.", expect())
        }
        name if COMPARISONS.iter().any(|(known, _)| *known == name) => {
            described("Compare the variable with this number.", integer(0, u64::MAX))
        }
        _ => unknown(),
    })
}

fn listen() -> Value {
    let fields = object(&LISTEN, &LISTEN[..1], |name| match name {
        "variable" => described("Variable that receives the port.", text()),
        "ports" => {
            described("Ports to choose from: one, or first-last. Default: 49152-65535.", ports())
        }
        _ => unknown(),
    });
    any_of([text(), fields])
}

fn start_next() -> Value {
    object(&START_NEXT, &START_NEXT[..1], |name| match name {
        "port" => described("Value that holds the server's port.", text()),
        "client_port" => described(
            "Value that holds the client's source port. Default: one of the template's.",
            text(),
        ),
        _ => unknown(),
    })
}

fn count() -> Value {
    choice(&COUNTERS, |_| {
        let since = object(&SINCE, &SINCE, |_| described("Name of a stored time.", text()));
        described("Number to add, or a stored time.", any_of([integer(0, u64::MAX), since]))
    })
}

fn conversation() -> Value {
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

fn http() -> Value {
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

fn smtp() -> Value {
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

fn ftp() -> Value {
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

fn rtsp() -> Value {
    object(&RTSP, &[], |name| match name {
        "host" => described("Name of the server. Default: media.example.net.", word()),
        "path" => described("Path of the stream. Default: `/stream`.", word()),
        "packets" => described("RTP packets of 20 ms. Default: 50.", integer(0, 30_000)),
        "delay" => answers_after(),
        _ => unknown(),
    })
}

fn sip() -> Value {
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

fn rtp() -> Value {
    object(&RTP, &[], |name| match name {
        "packets" => described("RTP packets of 20 ms. Default: 50.", integer(1, 30_000)),
        _ => unknown(),
    })
}

fn dns() -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::place::Place;
    use crate::document::schema::closed_objects;
    use crate::emulation::program;

    #[test]
    fn every_field_of_the_reader_is_there_and_no_other_is_allowed() {
        let objects = closed_objects(&schema());
        assert!(objects > 25, "{objects}");
    }

    #[test]
    fn steps_without_fields_are_those_of_the_reader() {
        for step in LONE_STEPS {
            let steps = json!([step]);
            assert!(program::read(&Place::root(&steps)).is_ok(), "{step}");
        }
    }
}
