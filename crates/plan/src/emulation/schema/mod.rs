//! The form of plans of clients and servers as a JSON Schema (2020-12), made of the lists that they
//! are read by. What the reader takes keeps to it; that names are known and values fit together it
//! cannot say.

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
            "Group of templates that the result sums up. Programs name it in `select_group` and \
            `accept_flow`. `active_max` of a group is the sum of its templates' maxima.",
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
            Default: round_robin.",
            json!({"enum": ["round_robin", "random"]}),
        ),
        "pairing" => described(
            "Server that a client connects to: round robin, random, or fixed (the first client to \
            the first server, and so on). Default: round_robin.",
            json!({"enum": ["round_robin", "random", "fixed"]}),
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
        "reuse_after" => described(
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
                program accepts by `accept_flow`. Default: the protocol's.",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::place::Place;
    use crate::document::schema::closed_objects;
    use crate::emulation::program::{self, LONE_STEPS};

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
