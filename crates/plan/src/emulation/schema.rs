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
        "ports" => described("Where clients and servers live.", list(hosts_port())),
        "templates" => {
            let mut templates = list(template());
            templates["minItems"] = 1.into();
            described("What they do.", templates)
        }
        "latency" => described("Probes beside the load.", list(latency())),
        _ => unknown(),
    });
    schema["$defs"] = json!({"steps": steps(), "content": content(), "sending": sending()});
    schema
}

/// A port that may impair what it sends, put it into tunnels, and swallow what arrives.
fn hosts_port() -> Value {
    let mut port = port();
    port["properties"]["impair"] = described(
        "What is done to frames that it sends.",
        object(&AskedImpairment::WORDS, &[], |word| match word {
            "loss" => described("The share that is lost, such as 1%.", text()),
            "burst_loss" => described("P/R[/H[/K]] of Gilbert and Elliott.", text()),
            "duplicate" => described("The share of which a copy follows.", text()),
            "corrupt" => described("The share in which a bit is changed.", text()),
            "rate" => described("Bits a second: 100M-l2, 100M-l1.", text()),
            "queue" => described(
                "What may wait for the rate: frames, or bytes such as 64kB.",
                any_of([integer(0, Queue::MAX_FRAMES.into()), text()]),
            ),
            "delay" => described("How long each frame takes.", text()),
            "jitter" => described("By how much that varies: 1ms, 1ms/normal.", text()),
            "reorder" => described("The share that is late, and how late: 1%/2ms.", text()),
            _ => unknown(),
        }),
    );
    port["properties"]["blackhole"] = described(
        "What of that which belongs to nobody on it is not answered: SYNs, or all; none.",
        json!({"enum": ["none", "syn", "all"]}),
    );
    port["properties"]["tunnels"] =
        described("In which tunnels of GTP-U packets leave and arrive.", list(tunnels()));
    port
}

fn tunnels() -> Value {
    let number = || integer(0, u32::MAX.into());
    object(&TUNNEL, &["clients", "teid"], |name| match name {
        "clients" => described("Whose: one address, or first-last.", addresses()),
        "teid" => described("The identifier of the first one's.", number()),
        "teid_step" => described("By how much each next one's is greater; 1.", number()),
        "from" => described("The end at the clients; the port.", text()),
        "to" => described("The other end; the port.", text()),
        "source_port" => described("Of UDP; that of what is within.", port_number()),
        _ => unknown(),
    })
}

fn defined(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn template() -> Value {
    let mut template = object(&TEMPLATE, &["name"], |name| match name {
        "name" => described("Its name in the plan.", text()),
        "group" => described("Several templates that are counted together.", text()),
        "transport" => described("What carries it; tcp.", json!({"enum": ["tcp", "udp"]})),
        "client" => described("Who makes connections.", client()),
        "server" => described("Who waits for them.", server()),
        "tcp" => described("How TCP behaves on both sides.", tcp()),
        "ip" => described("What IP headers say on both sides.", ip()),
        "tls" => described("TLS around what both say.", tls()),
        "http2" => described("HTTP/2 carries the messages of HTTP/1 that both say.", http2()),
        "conversation" => described("Both say what a capture has.", conversation()),
        "http" => described("Both speak HTTP/1.1, or HTTP/2.", http()),
        "smtp" => described("Both speak SMTP.", smtp()),
        "ftp" => described("Both speak FTP.", ftp()),
        "rtsp" => described("Both speak RTSP.", rtsp()),
        "sip" => described("Both speak SIP over UDP.", sip()),
        "rtp" => described("The client sends RTP over UDP.", rtp()),
        "dns" => described("Both speak DNS over UDP.", dns()),
        "transactions" => described("Whether those of such a protocol are timed; true.", boolean()),
        _ => unknown(),
    });
    template["anyOf"] = json!([{"required": ["client"]}, {"required": ["server"]}]);
    template
}

fn latency() -> Value {
    object(&LATENCY, &LATENCY[..2], |name| match name {
        "from" => described("The port that asks.", text()),
        "to" => described("Who is asked: an address, or a port's name.", text()),
        "protocol" => described("What it asks by; icmp.", json!({"enum": ["icmp", "udp"]})),
        "port" => described("Of UDP, where it asks; 7.", port_number()),
        "rate" => described("How often a second; 100.", number()),
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
        "tx" => described("The port that they leave.", text()),
        "addresses" => described("Theirs: one, or first-last; the port's own.", addresses()),
        "order" => {
            described("In which order they connect.", json!({"enum": ["in_turn", "random"]}))
        }
        "pairing" => {
            described("Who connects to whom.", json!({"enum": ["in_turn", "random", "fixed"]}))
        }
        "devices" => described("Devices that their frames go by.", list(devices())),
        "turn" => described(
            "How many a client makes before it is the next one's turn; 1.",
            integer(1, u32::MAX.into()),
        ),
        "again_after" => described(
            "After so many the same ones are made again: addresses and ports.",
            integer(1, u64::MAX),
        ),
        "ports" => described("Ports they connect from; 1024-65535.", ports()),
        "servers" => described("Whom they connect to: one address, or first-last.", addresses()),
        "server_port" => described("The port they connect to.", port_number()),
        "ethernet" => object(&ETHERNET, &[], |name| match name {
            "dst" => described("Where frames go; auto: that is found out.", text()),
            _ => unknown(),
        }),
        "load" => described("When connections are made.", load()),
        "ramp" => described(
            "How long a rate, flows that are held, or users grow from nothing to what they are.",
            time(),
        ),
        "limit" => described("How many in all.", integer(1, u64::MAX)),
        "program" => described("What they do, step by step.", defined("steps")),
        "tcp" => described("How their TCP behaves.", tcp()),
        "ip" => described("What their IP headers say.", ip()),
        _ => unknown(),
    })
}

fn devices() -> Value {
    object(&DEVICES, &["clients"], |name| match name {
        "clients" => described("Whose: one address, or first-last.", addresses()),
        "every" => {
            described("Only every Nth of these, from the first; 1.", integer(1, u32::MAX.into()))
        }
        "count" => described("How many; 1.", integer(1, u32::MAX.into())),
        "vlan" => described("The VLAN of their frames, or the outer and the inner one.", vlans()),
        "mpls" => described("Labels of MPLS, the outermost first.", labels()),
        "dst" => described("Where frames of the first one's clients go.", text()),
        "src" => described("Where they come from.", text()),
        "next_hop" => described("The first one's IP address; dst is asked for.", text()),
        "next_hop_from" => described("Who asks; the port itself.", text()),
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
        "label" => described("Its value.", integer(0, LABEL_MAX)),
        "tc" => described("The traffic class; 0.", integer(0, 7)),
        "ttl" => described("The time to live; 64.", integer(0, 255)),
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
            described("Which versions; 1.2 and 1.3.", some(version))
        }
        "sni" => described("The host that clients ask for.", text()),
        "alpn" => described("Protocols that are offered or taken.", some(text())),
        "ciphers" => described("Cipher suites, by their names.", some(text())),
        "certificate" => described("The server's certificate, a file in PEM.", text()),
        "key" => described("Its key, a file in PEM.", text()),
        "ca" => described("What clients check servers by, a file in PEM.", text()),
        "client_certificate" => described("The clients' certificate, a file in PEM.", text()),
        "client_key" => described("Its key, a file in PEM.", text()),
        "client_ca" => {
            described("What servers check clients by, a file in PEM; they do not ask.", text())
        }
        "resume" => described(
            "Whether clients resume their sessions, or for which share of their connections they try \
             to, such as 30%; true.",
            any_of([boolean(), text()]),
        ),
        _ => unknown(),
    });
    any_of([boolean(), fields])
}

fn http2() -> Value {
    let fields = object(&HTTP2, &[], |name| match name {
        "streams" => described("Streams at once; 100.", integer(1, STREAMS_MAX.into())),
        "window" => {
            let window = integer(1, WINDOW_MAX.into());
            described("Bytes of a stream that may be on their way; 262144.", window)
        }
        _ => unknown(),
    });
    any_of([boolean(), fields])
}

fn load() -> Value {
    let rate = |names: &[&str]| {
        object(names, &names[..1], |name| match name {
            "rate" => described("So many a second, at equal intervals.", number()),
            "poisson" => described("So many a second on average.", number()),
            "at_most" => described(
                "How many at once; what is due while so many are there is skipped.",
                integer(1, u32::MAX.into()),
            ),
            _ => unknown(),
        })
    };
    let forms = choice(&LOADS[2..4], |name| match name {
        "hold" => described("As soon as there are fewer.", integer(1, u32::MAX.into())),
        "throughput" => described("As many as receive so many bits of data a second.", number()),
        _ => unknown(),
    });
    let demand = json!({"const": "on_demand", "description": "Only as programs ask for them."});
    let users = object(&USERS, &USERS[..1], |name| match name {
        "users" => described("So many, who make one after the other.", integer(1, u32::MAX.into())),
        "think" => described("How long each thinks between two; not at all.", delay()),
        _ => unknown(),
    });
    any_of([demand, rate(&RATE), rate(&POISSON), forms, users])
}

fn server() -> Value {
    object(&SERVER, &["tx"], |name| match name {
        "tx" => described("The port that it lives on.", text()),
        "port" => {
            let port = any_of([port_number(), json!({"const": "on_demand"})]);
            described("The port that it listens at; on_demand: as programs accept.", port)
        }
        "addresses" => described("At which addresses; at every one.", addresses()),
        "vlans" => described(
            "In which VLANs its addresses are answered for, beside those of its clients: each one's \
             number, or the outer and the inner one's.",
            list(vlans()),
        ),
        "first_bytes" => described("What its flows begin with.", first_bytes()),
        "program" => described("What it does, step by step.", defined("steps")),
        "tcp" => described("How its TCP behaves.", tcp()),
        "ip" => described("What its IP headers say.", ip()),
        _ => unknown(),
    })
}

fn first_bytes() -> Value {
    let byte = object(&BYTE, &["offset", "value"], |name| match name {
        "offset" => described("Where it stands, from 0.", integer(0, 255)),
        "mask" => described("Which of its bits count; all.", integer(1, 255)),
        "value" => described("What it is.", integer(0, 255)),
        _ => unknown(),
    });
    let mut bytes = list(byte);
    bytes["minItems"] = 1.into();
    bytes["maxItems"] = 8.into();
    any_of([text(), bytes])
}

fn tcp() -> Value {
    object(&TCP, &[], |name| match name {
        "mss" => described("The longest segment, in bytes of data.", integer(10, 65_495)),
        "initial_window" => described("The first window, in segments.", integer(1, 20)),
        "receive_buffer" => described("Room for what arrives.", integer(1_024, 1 << 30)),
        "send_buffer" => described("Bytes that may be unacknowledged.", integer(1_024, 1 << 30)),
        "window_scaling" => described("Whether windows are scaled.", boolean()),
        "window_scale" => described("By how many bits; as few as will do.", integer(0, 14)),
        "timestamps" => described("Whether segments carry timestamps.", boolean()),
        "sack" => described("Whether losses are told by SACK.", boolean()),
        "rack" => described("Whether losses are found by time.", boolean()),
        "duplicate_threshold" => {
            described("How many duplicates tell of a loss; 3.", integer(1, 255))
        }
        "reassembly_max" => {
            described("How many pieces beyond holes are kept; 256.", integer(0, 1_000))
        }
        "ecn" => described(
            "Whether ECN is asked for; permit: agreed to where a peer asks.",
            any_of([boolean(), json!({"const": "permit"})]),
        ),
        "no_delay" => described("Whether short segments leave at once.", boolean()),
        "congestion" => {
            described("Which congestion control.", json!({"enum": ["cubic", "new_reno", "bbr"]}))
        }
        "rto_initial" => described("The timeout before a round trip is known; 1s.", time()),
        "rto_min" => described("How much longer than a round trip it is; 200ms.", time()),
        "rto_max" => described("How long it is at most; 120s.", time()),
        "retries" => described("How often a segment is sent again; 8.", integer(0, 255)),
        "syn_retries" => described("How often SYN is sent again; 5.", integer(0, 255)),
        "open_timeout" => described("How long a connection may take to open.", time()),
        "delayed_ack" => described("How long an acknowledgement may wait.", time()),
        "fast_open" => described("Whether data goes with SYN: TCP Fast Open.", boolean()),
        "acknowledge_after" => {
            let bytes = integer(0, 1 << 30);
            described("After how many bytes it does not; 0: the second segment.", bytes)
        }
        "time_wait" => described("How long it is remembered when closed.", time()),
        "keepalive" => described("How long it may be idle before the peer is asked.", time()),
        "keepalive_interval" => described("How long between such questions.", time()),
        "keepalive_probes" => described("How many may stay unanswered; 8.", integer(1, 255)),
        "push_all" => described("Whether all segments with data have PSH.", boolean()),
        _ => unknown(),
    })
}

fn ip() -> Value {
    object(&IP, &[], |name| match name {
        "ttl" => described("Time to live, or hop limit.", integer(1, 255)),
        "tos" => described("Type of service, or traffic class.", integer(0, 255)),
        "dont_fragment" => described("Whether routers must not fragment; true.", boolean()),
        "identification" => described(
            "Of packets of IPv4; zero, without dont_fragment counting.",
            json!({"enum": ["zero", "counting", "random"]}),
        ),
        "flow_label" => described(
            "Of packets of IPv6: a number, or each flow's own; 0.",
            any_of([integer(0, FLOW_LABEL_MAX), json!({"const": "flow"})]),
        ),
        _ => unknown(),
    })
}

/// What is sent.
fn content() -> Value {
    let fields = object(&SEND, &[], |name| match name {
        "text" => described("Its own bytes.", text()),
        "size" => described("How many bytes in all.", integer(0, SIZE_MAX)),
        "fill" => described("What repeats behind its own; 0 to 255.", text()),
        _ => unknown(),
    });
    any_of([text(), fields])
}

/// What a step sends, with values of the flow.
fn sending() -> Value {
    let field = object(&FIELD, &FIELD, |name| match name {
        "offset" => described("Where it begins.", integer(0, Composition::LENGTH_MAX - 1)),
        "width" => described("How many bytes it has.", integer(1, u16::MAX.into())),
        "value" => described("The name of a value.", text()),
        _ => unknown(),
    });
    let fields = object(&SENDING, &[], |name| match name {
        "text" => described("Its own bytes; ${name} is a value, $${ is ${ itself.", text()),
        "hex" => described("The same in hexadecimal.", hex()),
        "size" => described("How many bytes in all.", integer(0, SENT_MAX)),
        "fill" => described("What repeats behind its own; 0 to 255.", text()),
        "fields" => described("Values written over it.", list(field.clone())),
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
        "start" => described("The first; 1.", integer(0, u64::MAX)),
        "step" => described("From one to the next; 1.", integer(1, u64::MAX)),
        "max" => described("Behind it the first comes again.", integer(0, u64::MAX)),
        _ => unknown(),
    });
    let random = object(&RANDOM, &["max"], |name| match name {
        "min" => described("The least; 0.", integer(0, u64::MAX)),
        "max" => described("The greatest.", integer(0, u64::MAX)),
        _ => unknown(),
    });
    let forms = choice(&SET, |name| match name {
        "counter" => {
            let forms = any_of([integer(0, u64::MAX), counter.clone()]);
            described("All flows count together, from here.", forms)
        }
        "random" => described("Drawn, each equally likely.", random.clone()),
        "random_text" => described("So many letters and digits.", integer(1, RANDOM_MAX)),
        "random_bytes" => described("So many bytes, drawn.", integer(1, RANDOM_MAX)),
        "text" => described("A text, with values as in send.", text()),
        _ => unknown(),
    });
    any_of([integer(0, u64::MAX), forms])
}

fn receive() -> Value {
    let fields = choice(&RECEIVE, |name| match name {
        "until" => described("Up to this text, and it.", text()),
        "bytes" => described("So many, or the flow has failed.", integer(1, u64::MAX)),
        "message" => described("A message of a protocol.", json!({"enum": MESSAGES})),
        _ => unknown(),
    });
    any_of([integer(1, u64::MAX), fields])
}

fn expect() -> Value {
    let fields = choice(&EXPECT, |name| match name {
        "text" => described("It is this, with values as in send.", text()),
        "hex" => described("It is this, in hexadecimal.", hex()),
        "contains" => described("This is in it, with values as in send.", text()),
        "pattern" => described("This regular expression matches in it.", text()),
        _ => unknown(),
    });
    any_of([text(), fields])
}

/// The same in a step by itself.
fn expecting() -> Value {
    let mut expected = expect();
    let fields = &mut expected["anyOf"][1];
    fields["properties"][OTHERWISE] = described("Where a flow goes on that has failed.", text());
    fields["maxProperties"] = 2.into();
    expected
}

fn part() -> Value {
    object(&PART, &[], |name| match name {
        "pattern" => described("A group of the first match.", text()),
        "group" => described("Which; 1, or all where there is none.", integer(0, u16::MAX.into())),
        "between" => {
            let mut texts = list(text());
            texts["minItems"] = 2.into();
            texts["maxItems"] = 2.into();
            described("What stands between two texts.", texts)
        }
        "offset" => described("Where it begins.", integer(0, LOOKED_AT_MAX - 1)),
        "length" => described("How many bytes it has.", integer(1, TEXT_MAX)),
        _ => unknown(),
    })
}

fn transaction() -> Value {
    choice(&TRANSACTION, |name| match name {
        "start" => described("One of this name starts.", text()),
        "end" => described("It ends.", text()),
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
        "min" => described("The least.", time()),
        "max" => described("The greatest.", time()),
        _ => unknown(),
    });
    let about = object(&DELAY[2..], &DELAY[2..3], |name| match name {
        "mean" => described("On average.", time()),
        "deviation" => described("Of a normal distribution; an exponential one.", time()),
        _ => unknown(),
    });
    any_of([time(), between, about])
}

fn steps() -> Value {
    let step = choice(&STEPS, |name| match name {
        "send" => described("Sends it, and waits until it is acknowledged.", defined("sending")),
        "receive" => described("Waits for bytes since the last such step.", receive()),
        "receive_in_all" => described("Waits for bytes in all.", integer(1, u64::MAX)),
        "send_datagram" => described("Sends it as a datagram.", defined("sending")),
        "expect" => described("What was received last is so.", expecting()),
        "extract" => described("A part of what was received last becomes a text.", only(part())),
        "transaction" => described("Times something under a name.", transaction()),
        "receive_datagrams" => described("Waits for datagrams.", receive_datagrams()),
        "idle" => described("How long a flow may be without datagrams.", idle()),
        "next_group" => described("Of which group the next flow is.", text()),
        "start_next" => described("Makes it, to the same server at a port.", start_next()),
        "listen" => described("Listens for a connection of the same peer.", listen()),
        "delay" => described("Waits.", delay()),
        "blocking" => described("Whether sending waits for acknowledgements.", boolean()),
        "tos" => described("Type of service, or traffic class, from now on.", integer(0, 255)),
        "repeat" => described("Does steps again.", repeat()),
        "label" => described("A place to go on at.", text()),
        "jump" => described("Goes on at a label.", any_of([text(), jump()])),
        "count_down" => {
            let fields = object(&COUNT_DOWN, &COUNT_DOWN, |_| text());
            described("Takes 1 off a variable, and goes on at a label until it is 0.", fields)
        }
        "set" => described("Sets a variable, or a text.", set()),
        "add" => {
            let number = any_of([json!({"type": "integer"}), text()]);
            described("Adds to a variable.", only(number))
        }
        "remember" => described("Remembers the present time under a name.", text()),
        "postpone" => described("Moves a remembered time on.", only(time())),
        "count" => described("Adds to a counter.", count()),
        _ => unknown(),
    });
    list(any_of([json!({"enum": LONE_STEPS}), step]))
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
        "count" => described("How many.", integer(1, u64::MAX)),
        "clear" => described("Whether counting begins anew; true.", boolean()),
        _ => unknown(),
    });
    any_of([integer(1, u64::MAX), fields])
}

fn idle() -> Value {
    let fields = object(&IDLE, &["time"], |name| match name {
        "time" => described("So long.", time()),
        "receive_only" => described("Whether only those that arrive count.", boolean()),
        _ => unknown(),
    });
    any_of([time(), fields])
}

fn repeat() -> Value {
    object(&REPEAT, &["steps"], |name| match name {
        "times" => described("How often; for ever.", integer(1, u64::MAX)),
        "steps" => {
            let mut steps = defined("steps");
            steps["minItems"] = 1.into();
            described("These.", steps)
        }
        _ => unknown(),
    })
}

fn jump() -> Value {
    object(&JUMP, &["to"], |name| match name {
        "to" => described("The label.", text()),
        "variable" => described("What is compared.", text()),
        "within" => described("As long as less time has passed.", time()),
        "since" => described("Since this remembered time.", text()),
        "received" => described("What was received last is so.", expect()),
        name if COMPARISONS.iter().any(|(known, _)| *known == name) => {
            described("How, and with what.", integer(0, u64::MAX))
        }
        _ => unknown(),
    })
}

fn listen() -> Value {
    let fields = object(&LISTEN, &LISTEN[..1], |name| match name {
        "variable" => described("What becomes the port.", text()),
        "ports" => described("One of these; 49152-65535.", ports()),
        _ => unknown(),
    });
    any_of([text(), fields])
}

fn start_next() -> Value {
    object(&START_NEXT, &START_NEXT[..1], |name| match name {
        "port" => described("The value that is the server's port.", text()),
        "client_port" => described("That of the client's own; one of its template's.", text()),
        _ => unknown(),
    })
}

fn count() -> Value {
    choice(&COUNTERS, |_| {
        let since = object(&SINCE, &SINCE, |_| described("A remembered time.", text()));
        described("What is added.", any_of([integer(0, u64::MAX), since]))
    })
}

fn conversation() -> Value {
    let flow = || integer(1, u64::MAX);
    let mut flows = list(flow());
    flows["minItems"] = 1.into();
    let fields = object(&CONVERSATION, &["file"], |name| match name {
        "file" => described("Its name, from where the plan is.", text()),
        "flow" => described("Which of its flows, from 1; all.", any_of([flow(), flows.clone()])),
        "timing" => {
            described("Whether each side waits as it did; keep.", json!({"enum": ["keep", "drop"]}))
        }
        "server_delay" => described("How long a server waits otherwise.", delay()),
        _ => unknown(),
    });
    any_of([text(), fields])
}

/// A text without spaces.
fn word() -> Value {
    pattern(r"[^\x00-\x20\x7f]+")
}

fn answers_after() -> Value {
    described("How long the server waits before it answers.", delay())
}

fn headers() -> Value {
    let value = any_of([text(), json!({"type": "number"})]);
    let fields = json!({"type": "object", "additionalProperties": value});
    described("Fields of the header.", fields)
}

fn http() -> Value {
    let response = || {
        object(&RESPONSE, &[], |name| match name {
            "status" => described("Its status; 200.", integer(200, 599)),
            "headers" => headers(),
            "body" => described("Its body: so many bytes, or as send has it.", body()),
            "chunk" => described("Bytes of each chunk; none are made.", integer(1, 64 << 20)),
            "delay" => answers_after(),
            _ => unknown(),
        })
    };
    object(&HTTP, &[], |name| match name {
        "version" => {
            let version = any_of([json!({"enum": [1.1, 2]}), json!({"enum": ["1.1", "2"]})]);
            described("The version; 1.1.", version)
        }
        "set" => described("Values that are set before each request.", settings()),
        "method" => described("The method; GET.", word()),
        "path" => described("The path, which may have values; /.", word()),
        "host" => described("The host, which may have values; www.example.net.", word()),
        "headers" => headers(),
        "body" => described("The request's body: so many bytes, or as send has it.", body()),
        "requests" => described("Requests of a connection; 1.", integer(1, 1 << 30)),
        "pipeline" => described("Requests sent at once; 1.", integer(1, 1 << 30)),
        "think" => described("How long the client waits behind a response.", delay()),
        "reconnect" => described(
            "Whether a client whose server has closed between two requests goes on over a new \
             connection, or has failed; true.",
            boolean(),
        ),
        "response_bytes" => {
            described("Bytes of a response of others', with its header.", integer(1, 1 << 30))
        }
        "response" => described("What is answered.", response()),
        _ => unknown(),
    })
}

fn smtp() -> Value {
    object(&SMTP, &[], |name| match name {
        "host" => described("The server's name.", word()),
        "client_host" => described("The client's name.", word()),
        "from" => described("The sender.", word()),
        "to" => described("The recipient.", word()),
        "message" => described("A message: so many bytes of text, or as send has it.", body()),
        "messages" => described("Messages of a connection; 1.", integer(1, 1 << 30)),
        "start_tls" => described("Whether TLS begins by STARTTLS.", boolean()),
        "delay" => answers_after(),
        _ => unknown(),
    })
}

fn file() -> Value {
    let fields = object(&FILE, &FILE[..1], |name| match name {
        "name" => described("Its name.", word()),
        "size" => described("Its bytes; ours have 1024, others' any.", integer(0, SIZE_MAX)),
        _ => unknown(),
    });
    any_of([word(), fields])
}

fn ftp() -> Value {
    object(&FTP, &[], |name| match name {
        "host" => described("The server's name.", word()),
        "user" => described("Who logs in.", word()),
        "password" => described("The password.", word()),
        "files" => described("Files that are fetched.", list(file())),
        "upload" => described("Files that are stored.", list(file())),
        "list" => described("How they are listed; not at all.", list(json!({"enum": LISTINGS}))),
        "data_ports" => described("Where the server takes data; 49152-65535.", ports()),
        "rounds" => described("How often; 1.", integer(1, 1 << 30)),
        "delay" => answers_after(),
        _ => unknown(),
    })
}

fn rtsp() -> Value {
    object(&RTSP, &[], |name| match name {
        "host" => described("The server's name.", word()),
        "path" => described("What is played.", word()),
        "packets" => described("Packets of 20 ms; 50.", integer(0, 30_000)),
        "delay" => answers_after(),
        _ => unknown(),
    })
}

fn sip() -> Value {
    object(&SIP, &[], |name| match name {
        "from" => described("Who calls.", word()),
        "to" => described("Who is called.", word()),
        "ring" => described("How long it rings.", delay()),
        "talk" => described("How long they talk.", delay()),
        "packets" => described("They talk by RTP: packets of 20 ms each way.", integer(1, 30_000)),
        "media_port" => described("Where servers take it; 5004.", port_number()),
        "delay" => answers_after(),
        _ => unknown(),
    })
}

fn rtp() -> Value {
    object(&RTP, &[], |name| match name {
        "packets" => described("Packets of 20 ms; 50.", integer(1, 30_000)),
        _ => unknown(),
    })
}

fn dns() -> Value {
    object(&DNS, &[], |name| match name {
        "name" => described("The name that is asked for.", word()),
        "type" => described("The type; A.", json!({"enum": ["A", "AAAA"]})),
        "answers" => described("Records of an answer; 1.", integer(0, 40)),
        "queries" => described("Queries of a flow; 1.", integer(1, 10_000)),
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
