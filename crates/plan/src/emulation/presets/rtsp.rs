//! RTSP 1.0: RFC 2326. Media are RTP (RFC 3550) with G.711, interleaved on the connection (section
//! 10.12).

use serde_json::{Value, json};
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Side;

use super::commands::{CommandLoop, escape_values, steps};
use super::dialogue_lines::Line;
use super::rtp::{self, PACKETS_MAX};
use super::values::{wait, word};
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;
use crate::emulation::delay::read_delay;

pub(in crate::emulation) const RTSP: [&str; 4] = ["host", "path", "packets", "delay"];

/// Session description (RFC 4566).
const DESCRIPTION: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=Test\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n\
                           m=audio 0 RTP/AVP 0\r\na=control:track1\r\n";
const SESSION: &str = "Session: 12345678\r\n";
/// Session header with the identifier that another host's server assigned.
const SERVER_SESSION: &str = "Session: ${session}\r\n";
/// Transaction of each request.
const TRANSACTION: &str = "rtsp";
const TRANSPORT: &str = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
const METHODS: &str = "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN";

/// Returns the dialogue of Wirestorm's own client and server. The server's lines only give the
/// lengths of what its program sends.
pub(super) fn read(place: &ValueAt<'_>) -> Result<Vec<Line>, PlanError> {
    let fields = place.fields(&RTSP)?;
    let host = word(fields.get("host"), "media.example.net")?;
    let path = word(fields.get("path"), "/stream")?;
    let wait = wait(fields.get("delay"), Side::Server)?;
    let url = format!("rtsp://{host}{path}");
    let mut number = 0;
    let mut exchange = |method: &str, at: &str, headers: &str, response: Answer| {
        number += 1;
        let request = format!(
            "{method} {at} RTSP/1.0\r\nCSeq: {number}\r\nUser-Agent: wirestorm\r\n{headers}\r\n"
        );
        // The server's program extracts the URL without its last slash, too.
        let reply = response(&number.to_string(), at.strip_suffix('/').unwrap_or(at));
        let asks = [Line::client(request)].into_iter().chain(wait.clone());
        Line::timed(TRANSACTION, asks.chain([Line::server(reply)]))
    };
    let mut lines = exchange("OPTIONS", &url, "", options);
    lines.extend(exchange("DESCRIBE", &url, "Accept: application/sdp\r\n", describe));
    lines.extend(exchange("SETUP", &format!("{url}/track1"), TRANSPORT, setup));
    let range = format!("{SESSION}Range: npt=0.000-\r\n");
    lines.extend(exchange("PLAY", &url, &range, play));
    let packet = PREFIX.len() + rtp::PACKET;
    let packets = read_packets(place)?;
    lines.extend((0..packets).map(|_| Line::server(vec![0_u8; packet])));
    if packets > 0 {
        lines.push(Line::server(vec![0_u8; PREFIX.len() + rtp::BYE]));
    }
    lines.extend(exchange("TEARDOWN", &url, SESSION, teardown));
    lines.push(Line::Closes(Side::Client));
    Ok(lines)
}

/// Returns the program of a client for other hosts' servers. It requires status 200, sets up the
/// first media of the description, and uses the session of the response to SETUP.
pub(super) fn client(place: &ValueAt<'_>) -> Result<Vec<Step>, PlanError> {
    /// Interval of OPTIONS requests in packets (5 s). Between two requests up to 1 MiB of media is
    /// buffered.
    const QUIET: u64 = 250;
    let fields = place.fields(&RTSP)?;
    let host = escape_values(word(fields.get("host"), "media.example.net")?);
    let path = escape_values(word(fields.get("path"), "/stream")?);
    wait(fields.get("delay"), Side::Server)?;
    let packets = read_packets(place)?;
    let url = format!("rtsp://{host}{path}");
    let play = format!("{SERVER_SESSION}Range: npt=0.000-\r\n");
    let mut program = vec![json!({"set": {"number": 0}})];
    program.extend(request_steps("OPTIONS", &url, ""));
    program.extend(request_steps("DESCRIBE", &url, "Accept: application/sdp\r\n"));
    program.extend(extract_track(url.trim_end_matches('/')));
    program.extend(request_steps("SETUP", "${track}", TRANSPORT));
    // RFC 2326 section 12.37: the session timeout may follow the identifier.
    let session = r"(?im)^Session[ \t]*:[ \t]*([^;\s]+)";
    program.push(json!({"extract": {"session": {"pattern": session}}}));
    program.extend(request_steps("PLAY", &url, &play));
    let lasts =
        |packets: u64| json!({"delay": format!("{}us", rtp::lasts(packets).as_nanos() / 1_000)});
    if packets >= QUIET {
        let steps = [vec![lasts(QUIET)], request_steps("OPTIONS", &url, SERVER_SESSION)].concat();
        program.push(json!({"repeat": {"times": packets / QUIET, "steps": steps}}));
    }
    if !packets.is_multiple_of(QUIET) {
        program.push(lasts(packets % QUIET));
    }
    program.extend(request_steps("TEARDOWN", &url, SERVER_SESSION));
    steps(program, place)
}

/// Returns the steps that send a request and require a response of status 200.
fn request_steps(method: &str, url: &str, fields: &str) -> Vec<Value> {
    let request = format!(
        "{method} {url} RTSP/1.0\r\nCSeq: ${{number}}\r\nUser-Agent: wirestorm\r\n{fields}\r\n"
    );
    vec![
        json!({"add": {"number": 1}}),
        json!({"transaction": {"start": TRANSACTION}}),
        json!({"send": request}),
        json!({"receive": {"message": "rtsp"}}),
        json!({"expect": {"pattern": r"\ARTSP/1\.\d 200\b"}}),
        json!({"transaction": {"end": TRANSACTION}}),
    ]
}

/// Returns the steps that set `track` to the URL of the first media of the last description.
///
/// The URL is the attribute `control`, relative to `Content-Base` (RFC 2326 section C.1.1), else to
/// `url`. Without the attribute it is the base itself.
fn extract_track(url: &str) -> Vec<Value> {
    const BASE: &str = r"(?im)^Content-Base[ \t]*:[ \t]*(\S+?)/?[ \t]*\r?$";
    // Lines of one media section, which ends at the next `m=` line.
    const CONTROL: &str = r"\nm=[^\n]*\n(?:[^m\n][^\n]*\n)*?a=control:[ \t]*";
    let absolute = format!(r"{CONTROL}(rtsps?://\S+)");
    let relative = format!(r"{CONTROL}([^\s*]\S*)");
    let jump =
        |to: &str, pattern: &str| json!({"jump": {"to": to, "received": {"pattern": pattern}}});
    let label = |name: &str| json!({"label": name});
    vec![
        json!({"set": {"base": {"text": url}}}),
        jump("based", BASE),
        json!({"jump": "media"}),
        label("based"),
        json!({"extract": {"base": {"pattern": BASE}}}),
        label("media"),
        json!({"set": {"track": {"text": "${base}"}}}),
        jump("absolute", &absolute),
        jump("relative", &relative),
        json!({"jump": "found"}),
        label("absolute"),
        json!({"extract": {"track": {"pattern": absolute}}}),
        json!({"jump": "found"}),
        label("relative"),
        json!({"extract": {"track": {"pattern": relative}}}),
        json!({"set": {"track": {"text": "${base}/${track}"}}}),
        label("found"),
    ]
}

fn read_packets(place: &ValueAt<'_>) -> Result<u64, PlanError> {
    let packets = place.fields(&RTSP)?.get("packets");
    packets.map_or(Ok(50), |it| it.integer(0, PACKETS_MAX))
}

/// Function that returns the response to a request, by its CSeq number and URL.
type Answer = fn(&str, &str) -> String;

fn answer(number: &str, fields: &str, content: &str) -> String {
    format!("RTSP/1.0 200 OK\r\nCSeq: {number}\r\n{fields}\r\n{content}")
}

fn options(number: &str, _: &str) -> String {
    answer(number, &format!("Public: {METHODS}\r\n"), "")
}

fn describe(number: &str, url: &str) -> String {
    let fields = format!(
        "Content-Base: {url}/\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n",
        DESCRIPTION.len()
    );
    answer(number, &fields, DESCRIPTION)
}

fn setup(number: &str, _: &str) -> String {
    answer(number, &format!("{SESSION}{TRANSPORT}"), "")
}

fn play(number: &str, url: &str) -> String {
    let info = format!("{SESSION}RTP-Info: url={url}/track1;seq=0;rtptime=0\r\n");
    answer(number, &info, "")
}

fn teardown(number: &str, _: &str) -> String {
    answer(number, SESSION, "")
}

/// Returns the server's program, for Wirestorm's and other hosts' clients. It answers each request
/// by its method, with the CSeq number and URL of the request.
pub(super) fn server(place: &ValueAt<'_>) -> Result<Vec<Step>, PlanError> {
    let delay = place.fields(&RTSP)?.get("delay");
    delay.as_ref().map(read_delay).transpose()?;
    let packets = read_packets(place)?;
    let mut commands = CommandLoop::with_delimiter("next", "\r\n\r\n");
    let next = || json!({"jump": "next"});
    let respond = |answer: Answer| json!({"send": answer("${number}", "${url}")});
    // Interleaved data of the client may precede the request, so the pattern has no anchor.
    let method = |name: &str| format!(r"{name} \S+ RTSP/1\.\d\r");
    for (name, answer) in
        [("OPTIONS", options as Answer), ("DESCRIBE", describe), ("TEARDOWN", teardown)]
    {
        commands.command(&method(name), vec![respond(answer), next()]);
    }
    let is_interleaved = json!({"pattern": r"(?im)^Transport[ \t]*:[^\r\n]*RTP/AVP/TCP"});
    let set_up = vec![
        json!({"jump": {"to": "interleaved", "received": is_interleaved}}),
        json!({"send": "RTSP/1.0 461 Unsupported Transport\r\nCSeq: ${number}\r\n\r\n"}),
        next(),
        json!({"label": "interleaved"}),
        respond(setup),
        next(),
    ];
    commands.command(&method("SETUP"), set_up);
    commands.command(&method("PLAY"), [vec![respond(play)], media(packets), vec![next()]].concat());
    // Clients use GET_PARAMETER as keepalive, and PAUSE to stop.
    let other = method("(?:GET_PARAMETER|PAUSE)");
    commands.command(&other, vec![respond(teardown), next()]);

    let request = json!({"pattern": r"(?is) \S+ RTSP/1\.\d\r\n(?:.*\n)?CSeq[ \t]*:[ \t]*\d"});
    let mut first = vec![
        json!({"jump": {"to": "request", "received": request}}),
        json!({"send": "RTSP/1.0 400 Bad Request\r\n\r\n"}),
        next(),
        json!({"label": "request"}),
        json!({"extract": {"number": {"pattern": r"(?im)^CSeq[ \t]*:[ \t]*(\d+)"}}}),
        json!({"extract": {"url": {"pattern": r" (\S+?)/? RTSP/1\.\d\r"}}}),
    ];
    first.extend(delay.map(|delay| json!({"delay": delay.value()})));
    let unknown =
        format!("RTSP/1.0 405 Method Not Allowed\r\nCSeq: ${{number}}\r\nAllow: {METHODS}\r\n");
    // Media keep their timing, whether or not they are acknowledged.
    let mut program = vec![json!({"blocking": false})];
    program.append(&mut commands.finish(first, &unknown));
    steps(program, place)
}

/// Interleaving header of an RTP packet, channel 0.
const PREFIX: [u8; 4] = [b'$', 0, 0, rtp::PACKET as u8];

/// Interleaving header of an RTCP packet, channel 1.
const BYE_PREFIX: [u8; 4] = [b'$', 1, 0, rtp::BYE as u8];

/// Returns the steps that send `packets` packets and BYE.
fn media(packets: u64) -> Vec<Value> {
    if packets == 0 {
        return Vec::new();
    }
    let mut steps = vec![rtp::pause(), rtp::packet("send", &PREFIX)];
    steps.extend(rtp::go_on());
    let mut media = rtp::begin();
    media.push(json!({"repeat": {"times": packets, "steps": steps}}));
    // Players detect the end of the media by BYE.
    media.push(rtp::bye("send", &BYE_PREFIX));
    media
}
