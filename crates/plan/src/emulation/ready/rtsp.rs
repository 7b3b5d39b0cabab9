//! RTSP 1.0: RFC 2326. Media come interleaved on the connection (section 10.12), as RTP (RFC 3550) of
//! G.711.

use wirestorm_wire::conversation::Side;

use super::dialogue::Line;
use super::rtp::{self, PACKETS_MAX, PAUSE};
use super::words::{wait, word};
use crate::document::error::PlanError;
use crate::document::place::Place;

pub(in crate::emulation) const RTSP: [&str; 4] = ["host", "path", "packets", "delay"];

/// What is played (RFC 4566).
const DESCRIPTION: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=Test\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n\
                           m=audio 0 RTP/AVP 0\r\na=control:track1\r\n";

pub(super) fn read(place: &Place<'_>) -> Result<Vec<Line>, PlanError> {
    let fields = place.fields(&RTSP)?;
    let host = word(fields.get("host"), "media.example.net")?;
    let path = word(fields.get("path"), "/stream")?;
    let packets = fields.get("packets").map_or(Ok(50), |it| it.integer(0, PACKETS_MAX))?;
    let wait = wait(fields.get("delay"), Side::Server)?;
    let url = format!("rtsp://{host}{path}");
    let mut number = 0;
    let mut exchange = |method: &str, at: &str, asked: &str, answered: &str, content: &str| {
        number += 1;
        let request = format!(
            "{method} {at} RTSP/1.0\r\nCSeq: {number}\r\nUser-Agent: wirestorm\r\n{asked}\r\n"
        );
        let reply = format!("RTSP/1.0 200 OK\r\nCSeq: {number}\r\n{answered}\r\n{content}");
        let asks = [Line::client(request)].into_iter().chain(wait.clone());
        Line::timed("rtsp", asks.chain([Line::server(reply)]))
    };
    let session = "Session: 12345678\r\n";
    let transport = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
    let track = format!("{url}/track1");
    let methods = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n";
    let described = format!(
        "Content-Base: {url}/\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n",
        DESCRIPTION.len()
    );
    let played = format!("{session}RTP-Info: url={track};seq=0;rtptime=0\r\n");
    let mut lines = exchange("OPTIONS", &url, "", methods, "");
    let accepts = "Accept: application/sdp\r\n";
    lines.extend(exchange("DESCRIBE", &url, accepts, &described, DESCRIPTION));
    lines.extend(exchange("SETUP", &track, transport, &format!("{session}{transport}"), ""));
    let range = format!("{session}Range: npt=0.000-\r\n");
    lines.extend(exchange("PLAY", &url, &range, &played, ""));
    for packet in 0..packets {
        lines.push(Line::Waits { side: Side::Server, step: PAUSE });
        lines.push(Line::server(interleaved(packet as u16)));
    }
    lines.extend(exchange("TEARDOWN", &url, session, session, ""));
    lines.push(Line::Closes(Side::Client));
    Ok(lines)
}

/// A packet of RTP on channel 0.
fn interleaved(number: u16) -> Vec<u8> {
    let packet = rtp::packet(number);
    let length = (packet.len() as u16).to_be_bytes();
    [&[b'$', 0], &length[..], &packet].concat()
}
