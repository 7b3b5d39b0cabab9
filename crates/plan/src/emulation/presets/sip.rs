//! SIP (RFC 3261) over UDP: the callee answers a call, and the caller ends it. Both sides parse the
//! messages of the peer. Each call has its own identifiers.

use serde_json::{Value, json};
use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;

use super::commands::{escape_values, steps};
use super::dialogue_lines::PlayedSides;
use super::idle_timeout::{idle_timeout, longest_delay};
use super::rtp;
use super::values::word;
use crate::document::error::PlanError;
use crate::document::value_at::{Fields, ValueAt};
use crate::emulation::delay::read_delay;
use crate::emulation::dialogue::{Dialogue, OnDemand};
use crate::emulation::types::Transport;

pub(in crate::emulation) const SIP: [&str; 7] =
    ["from", "to", "ring_time", "talk_time", "packets", "media_port", "delay"];

/// Settings of the preset.
struct SipSettings<'a> {
    from: String,
    to: String,
    /// Delay step before the call is answered.
    ring: Option<Value>,
    /// Delay step before the caller hangs up.
    talk: Option<Value>,
    /// Delay step before each of the server's answers.
    wait: Option<Value>,
    media: Option<Media>,
    /// Step that sets the idle timeout; `None`: the default timeout.
    stay: Option<Step>,
    place: &'a ValueAt<'a>,
}

/// Media of a call.
struct Media {
    /// Number of RTP packets each way.
    packets: u64,
    /// UDP port of the server's media.
    port: u16,
    /// Group of the media templates.
    group: String,
}

fn read_settings<'a>(
    place: &'a ValueAt<'a>,
    name: &str,
    least: Duration,
) -> Result<SipSettings<'a>, PlanError> {
    let fields = place.fields(&SIP)?;
    let mut waits = Vec::new();
    let mut wait = |fields: &Fields<'_>, name: &str| -> Result<Option<Value>, PlanError> {
        let Some(place) = fields.get(name) else { return Ok(None) };
        waits.push(read_delay(&place)?);
        Ok(Some(json!({"delay": place.value()})))
    };
    let (ring, talk) = (wait(&fields, "ring_time")?, wait(&fields, "talk_time")?);
    let wait = wait(&fields, "delay")?;
    let media = read_media(&fields, name)?;
    let longest = longest_delay(&waits)
        .max(media.as_ref().map_or(Duration::ZERO, |it| rtp::lasts(it.packets)));
    Ok(SipSettings {
        from: escape_values(word(fields.get("from"), "caller@example.net")?),
        to: escape_values(word(fields.get("to"), "callee@example.net")?),
        ring,
        talk,
        wait,
        media,
        stay: idle_timeout(longest, least),
        place,
    })
}

fn read_media(fields: &Fields<'_>, name: &str) -> Result<Option<Media>, PlanError> {
    let port = fields.get("media_port");
    let Some(packets) = fields.get("packets") else {
        return port.map_or(Ok(None), |it| Err(it.message_error("needs `packets`, their number")));
    };
    if let Some(talk) = fields.get("talk_time") {
        return Err(talk.message_error("follows from `packets` (20 ms each): remove one"));
    }
    let packets = packets.integer(1, rtp::PACKETS_MAX)?;
    let port = port.map_or(Ok(rtp::PORT.into()), |it| it.integer(1, u16::MAX.into()))? as u16;
    Ok(Some(Media { packets, port, group: format!("{name}.{MEDIA}") }))
}

/// Suffix of the media template's name, behind the name of the calls' template.
const MEDIA: &str = "media";

/// Returns the programs of calls, then those of their media. `is_ipv6` is whether clients use IPv6.
pub(super) fn read(
    place: &ValueAt<'_>,
    name: &str,
    who: PlayedSides,
    is_ipv6: bool,
) -> Result<Vec<Dialogue>, PlanError> {
    /// Time without datagrams after which a client drops a call to another host. Section
    /// 17.1.1.2 sets "64*T1 seconds" for the first answer, and T1 is 500 ms.
    const ANSWERED: Duration = Duration::from_secs(32);
    /// Time without datagrams after which a server drops another host's call.
    const TALK: Duration = Duration::from_secs(300);
    let least = match who {
        PlayedSides::Both => Duration::ZERO,
        PlayedSides::Client => ANSWERED,
        PlayedSides::Server => TALK,
    };
    let settings = read_settings(place, name, least)?;
    let (client, server) =
        (settings.of(client(&settings, is_ipv6))?, settings.of(server(&settings))?);
    let mut dialogues = vec![Dialogue { client, server, ..Dialogue::of(Transport::Udp, 5060) }];
    if let Some(Media { packets, port, group }) = settings.media {
        let [client, server] = rtp::two_way(packets, place)?;
        dialogues.push(Dialogue {
            part: Some(MEDIA.to_owned()),
            on_demand: Some(OnDemand { group, listen: Some(port) }),
            client,
            server,
            ..Dialogue::of(Transport::Udp, port)
        });
    }
    Ok(dialogues)
}

impl SipSettings<'_> {
    fn of(&self, body: Vec<Value>) -> Result<Vec<Step>, PlanError> {
        Ok(self.stay.clone().into_iter().chain(steps(body, self.place)?).collect())
    }
}

/// Returns a pattern for the first header line with one of these names, without its line end.
fn line(names: &str) -> String {
    format!(r"(?im)^((?:{names})[ \t]*:[^\r\n]*)")
}

/// Returns a pattern for the first run of header lines with one of these names, line ends included.
fn lines(names: &str) -> String {
    format!(r"(?i)\n((?:(?:{names})[ \t]*:[^\r\n]*\r\n)+)")
}

/// Returns the step that sets the session description (RFC 4566): G.711 at this port.
fn description(family: &str, address: &str, port: &str) -> Value {
    let text = format!(
        "v=0\r\no=- ${{media}} 1 IN {family} {address}\r\ns=-\r\nc=IN {family} {address}\r\n\
         t=0 0\r\nm=audio {port} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"
    );
    json!({"set": {"description": {"text": text}}})
}

/// End of a message with a session description.
const DESCRIBED: &str = "Content-Type: application/sdp\r\nContent-Length: ${description.length}\r\n\
                         \r\n${description}";
const BARE: &str = "Content-Length: 0\r\n\r\n";

/// Returns the step that assigns a media port to each call, counting from `first`. RFC 3550 section
/// 11: "RTP SHOULD use an even destination port number".
fn media(first: u16) -> Value {
    json!({"set": {"media": {"counter": {"start": first, "step": 2, "max": u16::MAX}}}})
}

/// First media ports of clients and servers. They differ, so that captures show whose port it is.
const CLIENTS_MEDIA: u16 = 10_000;
const SERVERS_MEDIA: u16 = 30_000;

fn client(settings: &SipSettings<'_>, is_ipv6: bool) -> Vec<Value> {
    let SipSettings { from, to, .. } = settings;
    let (family, host) = if is_ipv6 { ("IP6", "[${client}]") } else { ("IP4", "${client}") };
    let user = from.split('@').next().unwrap_or_default();
    // Each request has its own branch (section 8.1.1.7), also the ACK of 200 OK.
    let request = |method: &str, uri: &str, branch: u32, to: &str, number: u32| {
        format!(
            "{method} {uri} SIP/2.0\r\n\
             Via: SIP/2.0/UDP {host}:${{client_port}};branch=z9hG4bK${{key}}{branch}\r\n\
             From: <sip:{from}>;tag=${{tag}}\r\n{to}\r\nCall-ID: ${{key}}@{host}\r\n\
             CSeq: {number} {method}\r\nMax-Forwards: 70\r\n"
        )
    };
    let invite = request("INVITE", &format!("sip:{to}"), 1, &format!("To: <sip:{to}>"), 1);
    let contact = format!("Contact: <sip:{user}@{host}:${{client_port}}>\r\n");
    let ack = request("ACK", "${target}", 2, "${to}", 1);
    // Section 17.1.1.3, for responses other than 2xx: "The ACK request constructed by the client
    // transaction MUST contain values for the Call-ID, From, and Request-URI that are equal to the
    // values of those header fields in the request", with the same branch, and "The To header field
    // in the ACK MUST equal the To header field in the response being acknowledged".
    let refused = request("ACK", &format!("sip:{to}"), 1, "${to}", 1);
    let bye = request("BYE", "${target}", 3, "${to}", 2);

    let mut steps = vec![
        json!({"set": {"key": {"random_text": 16}}}),
        json!({"set": {"tag": {"random_text": 8}}}),
        json!({"set": {"target": {"text": format!("sip:{to}")}}}),
        media(CLIENTS_MEDIA),
    ];
    steps.extend([
        description(family, "${client}", "${media}"),
        json!({"transaction": {"start": "sip.invite"}}),
        json!({"send_datagram": format!("{invite}{contact}{DESCRIBED}")}),
        json!({"label": "invited"}),
        json!({"receive_datagrams": 1}),
        json!({"jump": {"to": "invited", "received": {"pattern": r"^SIP/2\.0 1"}}}),
        json!({"expect": {"pattern": r"^SIP/2\.0 2", "on_failure": "refused"}}),
        json!({"transaction": {"end": "sip.invite"}}),
        // To carries the callee's tag, and Contact its own address.
        json!({"extract": {"to": {"pattern": line("To|t")}}}),
    ]);
    let contact = r"(?im)^(?:Contact|m)[ \t]*:[^\r\n]*<([^>\r\n]+)>";
    steps.extend([
        json!({"jump": {"to": "known", "received": {"pattern": contact}}}),
        json!({"jump": "taken"}),
        json!({"label": "known"}),
        json!({"extract": {"target": {"pattern": contact}}}),
        json!({"label": "taken"}),
    ]);
    if settings.media.is_some() {
        steps.push(json!({"extract": {"to_port": {"pattern": r"(?m)^m=audio (\d+)"}}}));
    }
    steps.push(json!({"send_datagram": format!("{ack}{BARE}")}));
    steps.extend(settings.talk.clone());
    if let Some(Media { group, .. }) = &settings.media {
        steps.extend(talk(group));
    }
    steps.extend([
        json!({"transaction": {"start": "sip.bye"}}),
        json!({"send_datagram": format!("{bye}{BARE}")}),
        // The 200 OK of INVITE may arrive again, so wait for the answer to BYE.
        json!({"label": "ended"}),
        json!({"receive_datagrams": 1}),
        json!({"jump": {"to": "answered", "received": {"pattern": r"(?im)^CSeq[ \t]*:[ \t]*2\b"}}}),
        json!({"jump": "ended"}),
        json!({"label": "answered"}),
        json!({"jump": {"to": "ended", "received": {"pattern": r"^SIP/2\.0 1"}}}),
        json!({"expect": {"pattern": r"^SIP/2\.0 200 "}}),
        json!({"transaction": {"end": "sip.bye"}}),
        json!({"jump": "over"}),
        json!({"label": "refused"}),
        json!({"extract": {"to": {"pattern": line("To|t")}}}),
        json!({"send_datagram": format!("{refused}{BARE}")}),
        json!({"label": "over"}),
    ]);
    steps
}

/// Returns the steps that run a media flow, from the client's media port to the server's.
fn talk(group: &str) -> [Value; 3] {
    [
        json!({"select_group": group}),
        json!({"start_flow": {"port": "to_port", "client_port": "media"}}),
        json!("wait_flow"),
    ]
}

/// Returns the steps of a server, for Wirestorm's and other hosts' clients. It answers each request
/// with the request's own headers.
fn server(settings: &SipSettings<'_>) -> Vec<Value> {
    const METHODS: &str = "INVITE, ACK, BYE, CANCEL, OPTIONS";
    let is =
        |pattern: &str, to: &str| json!({"jump": {"to": to, "received": {"pattern": pattern}}});
    let extract = |text: &str, pattern: String| json!({"extract": {text: {"pattern": pattern}}});
    let answer = |status: &str, more: &str| json!({"send_datagram": format!("SIP/2.0 {status}\r\n${{head}}{more}")});
    let mut steps = vec![
        json!({"set": {"tag": {"random_text": 8}}}),
        media(SERVERS_MEDIA),
        json!({"label": "next"}),
        json!({"receive_datagrams": 1}),
        // NAT keepalives, responses and ACK get no answer.
        is(r"\A(?:[\r\n\x00]*\z|SIP/|ACK )", "done"),
        extract("via", lines("Via|v")),
        extract("from", line("From|f")),
        extract("to", line("To|t")),
        extract("call", line("Call-ID|i")),
        extract("number", line("CSeq")),
        // Section 8.2.6.2: "if the To header field in the request did not contain a tag", one is
        // added.
        is(r"(?im)^(?:To|t)[ \t]*:[^\r\n]*;[ \t]*tag[ \t]*=", "tagged"),
        json!({"set": {"to": {"text": "${to};tag=${tag}"}}}),
        json!({"label": "tagged"}),
    ];
    let head = "${via}${from}\r\n${to}\r\n${call}\r\n${number}\r\n";
    steps.push(json!({"set": {"head": {"text": head}}}));
    steps.extend([is("^INVITE ", "invited"), is("^BYE ", "ended")]);
    steps.extend(settings.wait.clone());
    steps.extend([
        is("^(?:CANCEL|OPTIONS) ", "known"),
        answer("405 Method Not Allowed", &format!("Allow: {METHODS}\r\n{BARE}")),
        json!({"jump": "done"}),
        json!({"label": "known"}),
        answer("200 OK", &format!("Allow: {METHODS}\r\n{BARE}")),
        // A request outside a call ends the flow; a call continues.
        json!({"label": "done"}),
        json!({"jump": {"to": "next", "variable": "called", "equal": 1}}),
        json!({"jump": "over"}),
        json!({"label": "invited"}),
        json!({"set": {"called": 1}}),
        json!({"set": {"route": {"text": ""}}}),
    ]);
    // Section 12.1.1: "the UAS MUST copy all Record-Route header field values from the request into
    // the response". Contact is the address of the request.
    let route = r"(?i)\nRecord-Route[ \t]*:";
    steps.extend([
        is(route, "routed"),
        json!({"jump": "described"}),
        json!({"label": "routed"}),
        extract("route", lines("Record-Route")),
        json!({"label": "described"}),
        extract("target", r"^INVITE (\S+) ".to_owned()),
        is(r"\nc=IN IP6 |\AINVITE \S*\[", "of IPv6"),
    ]);
    let port = settings.media.as_ref().map_or("${media}".to_owned(), |it| it.port.to_string());
    steps.extend([
        description("IP4", "${server}", &port),
        json!({"jump": "offered"}),
        json!({"label": "of IPv6"}),
        description("IP6", "${server}", &port),
        json!({"label": "offered"}),
    ]);
    steps.extend(settings.wait.clone());
    steps.extend([answer("100 Trying", BARE), answer("180 Ringing", BARE)]);
    steps.extend(settings.ring.clone());
    let taken = format!("${{route}}Contact: <${{target}}>\r\n{DESCRIBED}");
    steps.extend([answer("200 OK", &taken), json!({"jump": "next"}), json!({"label": "ended"})]);
    steps.extend(settings.wait.clone());
    steps.extend([answer("200 OK", BARE), json!({"label": "over"})]);
    steps
}
