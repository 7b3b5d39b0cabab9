//! Ready-made programs: protocols that both sides of a template speak. Each becomes steps that
//! anybody could have written.

mod commands;
mod dns;
mod ftp;
mod headers;
mod http;
mod rtp;
mod rtsp;
mod script;
mod sip;
mod smtp;
mod waits;
mod words;

pub(super) use dns::DNS;
pub(super) use ftp::{FILE, FTP, LISTINGS};
pub(super) use http::{HTTP, RESPONSE};
pub(super) use rtp::RTP;
pub(super) use rtsp::RTSP;
pub(super) use script::Who;
pub(super) use sip::SIP;
pub(super) use smtp::SMTP;

use super::dialogue::Speech;
use super::types::Transport;
use super::{Tcp, http2};
use crate::document::error::PlanError;
use crate::document::place::Fields;

/// The protocols, by their fields of a template.
const PROTOCOLS: [&str; 7] = ["http", "smtp", "ftp", "rtsp", "sip", "rtp", "dns"];

/// How TCP of these protocols behaves where nothing else is said. They say at once what belongs
/// together; with Nagle's algorithm the end of a message, and what follows it unasked, would wait for
/// acknowledgements, which peers delay. Browsers, curl and nginx turn it off as well.
pub(super) fn usual_tcp() -> Tcp {
    Tcp { no_delay: Some(true), ..Tcp::default() }
}

/// Reads what a template says of a protocol, if it does: what is said on its connections, then on
/// those that their programs ask for. `who`: whose programs are needed; `is_told_apart`: whether the
/// server is told from others at its port by first bytes.
pub(super) fn read(
    fields: &Fields<'_>,
    who: Who,
    is_told_apart: bool,
) -> Result<Vec<Speech>, PlanError> {
    let has_tls = fields.get("tls").is_some_and(|it| it.value() != false);
    for protocol in PROTOCOLS {
        let Some(place) = fields.get(protocol) else { continue };
        let is_http2 = protocol == "http" && http::is_version_2(&place)?;
        let follows_messages =
            protocol == "http" && http::follows_messages(&place, who, is_told_apart)?;
        if protocol == "ftp" {
            let name = fields.need("name", "a name")?;
            return ftp::read(&place, name.free_text("a name")?, who, has_tls);
        }
        if protocol == "sip" {
            let name = fields.need("name", "a name")?;
            return sip::read(&place, name.free_text("a name")?, who, has_ipv6_clients(fields));
        }
        if protocol == "smtp" && smtp::starts_tls(&place, has_tls)? {
            let [client, server] = smtp::read_with_tls(&place)?;
            return Ok(vec![Speech { client, server, ..Speech::of(Transport::Tcp, 25) }]);
        }
        // What others say is looked at, whichever side they are.
        let alone = match (protocol, who) {
            ("smtp", Who::Server) => Some(smtp::read_server(&place)?),
            ("smtp", Who::Client) => Some(smtp::read_client(&place)?),
            ("dns", Who::Server) => Some(dns::server(&place)?),
            ("dns", Who::Client) => Some(dns::client(&place)?),
            ("rtsp", Who::Client) => Some(rtsp::client(&place)?),
            _ => None,
        };
        if let Some(steps) = alone {
            let speech = match protocol {
                "smtp" => Speech::of(Transport::Tcp, 25),
                "dns" => Speech::of(Transport::Udp, 53),
                _ => Speech::of(Transport::Tcp, 554),
            };
            return Ok(vec![match who {
                Who::Client => Speech { client: steps, ..speech },
                _ => Speech { server: steps, ..speech },
            }]);
        }
        let (transport, port, lines) = match protocol {
            "http" if follows_messages => (Transport::Tcp, 80, Vec::new()),
            "http" => (Transport::Tcp, 80, http::read(&place, who)?),
            "smtp" => (Transport::Tcp, 25, smtp::read(&place)?),
            "rtsp" => (Transport::Tcp, 554, rtsp::read(&place)?),
            "rtp" => (Transport::Udp, rtp::PORT, Vec::new()),
            _ => (Transport::Udp, 53, dns::read(&place)?),
        };
        let streams = is_http2.then(|| http2::streams(fields)).transpose()?;
        let [client, server] = match protocol {
            "http" if follows_messages => http::read_messages(&place, who, streams)?,
            "rtp" => rtp::read(&place)?,
            "rtsp" => {
                let [client, _] = script::programs(&lines, who, transport);
                [client, rtsp::server(&place)?]
            }
            _ => script::programs(&lines, who, transport),
        };
        return Ok(vec![Speech { client, server, is_http2, ..Speech::of(transport, port) }]);
    }
    Ok(Vec::new())
}

/// Whether a template's clients have addresses of IPv6, as their servers have.
fn has_ipv6_clients(fields: &Fields<'_>) -> bool {
    let client = fields.get("client");
    client.is_some_and(|it| it.value()["servers"].as_str().is_some_and(|it| it.contains(':')))
}
