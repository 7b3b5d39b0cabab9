//! SIP over UDP: RFC 3261, a call that is taken and ended by the caller.

use wirestorm_wire::conversation::Side;

use super::dialogue::Line;
use super::words::{wait, word};
use crate::document::error::PlanError;
use crate::document::place::Place;

pub(in crate::emulation) const SIP: [&str; 5] = ["from", "to", "ring", "talk", "delay"];

/// What both offer to talk by (RFC 4566).
const DESCRIPTION: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\n\
                           t=0 0\r\nm=audio 5004 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n";

pub(super) fn read(place: &Place<'_>) -> Result<Vec<Line>, PlanError> {
    let fields = place.fields(&SIP)?;
    let from = word(fields.get("from"), "caller@example.net")?;
    let to = word(fields.get("to"), "callee@example.net")?;
    let ring = wait(fields.get("ring"), Side::Server)?;
    let talk = wait(fields.get("talk"), Side::Client)?;
    let wait = wait(fields.get("delay"), Side::Server)?;

    // What all messages of the call have, of which a tag is the callee's.
    let dialog = |branch: &str, tag: &str, number: &str| {
        format!(
            "Via: SIP/2.0/UDP client.example.net:5060;branch=z9hG4bK{branch}\r\n\
             From: <sip:{from}>;tag=1\r\nTo: <sip:{to}>{tag}\r\n\
             Call-ID: 1@client.example.net\r\nCSeq: {number}\r\n"
        )
    };
    let bare = "Content-Length: 0\r\n\r\n".to_owned();
    let described = |contact: &str| {
        format!(
            "Contact: <sip:{contact}>\r\nContent-Type: application/sdp\r\n\
             Content-Length: {}\r\n\r\n{DESCRIPTION}",
            DESCRIPTION.len()
        )
    };
    let (first, tagged) = (dialog("1", "", "1 INVITE"), dialog("1", ";tag=2", "1 INVITE"));
    let hops = "Max-Forwards: 70\r\n";
    let mut invited =
        vec![Line::client(format!("INVITE sip:{to} SIP/2.0\r\n{first}{hops}{}", described(&from)))];
    invited.extend(wait.clone());
    invited.push(Line::server(format!("SIP/2.0 100 Trying\r\n{first}{bare}")));
    invited.push(Line::server(format!("SIP/2.0 180 Ringing\r\n{tagged}{bare}")));
    invited.extend(ring);
    invited.push(Line::server(format!("SIP/2.0 200 OK\r\n{tagged}{}", described(&to))));
    let mut lines = Line::timed("sip.invite", invited);
    let acknowledged = dialog("2", ";tag=2", "1 ACK");
    lines.push(Line::client(format!("ACK sip:{to} SIP/2.0\r\n{acknowledged}{hops}{bare}")));
    lines.extend(talk);
    let ended = dialog("3", ";tag=2", "2 BYE");
    let mut bye = vec![Line::client(format!("BYE sip:{to} SIP/2.0\r\n{ended}{hops}{bare}"))];
    bye.extend(wait);
    bye.push(Line::server(format!("SIP/2.0 200 OK\r\n{ended}{bare}")));
    lines.append(&mut Line::timed("sip.bye", bye));
    Ok(lines)
}
