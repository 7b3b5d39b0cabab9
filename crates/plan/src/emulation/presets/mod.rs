//! Presets: protocols whose programs are built in. Each compiles to ordinary steps of programs.

mod commands;
mod dialogue_lines;
mod dns;
mod ftp;
mod headers;
mod http;
mod idle_timeout;
mod rtp;
mod rtsp;
mod sip;
mod smtp;
mod values;

pub(super) use dialogue_lines::PlayedSides;
pub(super) use dns::DNS;
pub(super) use ftp::{FILE, FTP, LISTINGS};
pub(super) use http::{HTTP, RESPONSE};
pub(super) use rtp::RTP;
pub(super) use rtsp::RTSP;
pub(super) use sip::SIP;
pub(super) use smtp::SMTP;

use super::dialogue::Dialogue;
use super::types::Transport;
use super::{Tcp, http2};
use crate::document::error::PlanError;
use crate::document::value_at::Fields;

/// Template keys of the presets.
const PROTOCOLS: [&str; 7] = ["http", "smtp", "ftp", "rtsp", "sip", "rtp", "dns"];

/// Returns the default TCP settings of presets: no Nagle algorithm.
///
/// Presets send each message at once. With the Nagle algorithm the end of a message, and a message
/// without a request, would wait for acknowledgements, which peers delay. Browsers, curl and nginx
/// disable it as well.
pub(super) fn default_tcp() -> Tcp {
    Tcp { no_delay: Some(true), ..Tcp::default() }
}

/// Reads the preset of a template, if it has one. Returns the programs of its connections, then
/// those of connections that these programs open.
///
/// `who` is the sides that Wirestorm plays. `has_server_selection` is whether `first_bytes` selects
/// the server among several at its port.
pub(super) fn read(
    fields: &Fields<'_>,
    who: PlayedSides,
    has_server_selection: bool,
) -> Result<Vec<Dialogue>, PlanError> {
    let has_tls = fields.get("tls").is_some_and(|it| it.value() != false);
    for protocol in PROTOCOLS {
        let Some(place) = fields.get(protocol) else { continue };
        let is_http2 = protocol == "http" && http::is_version_2(&place)?;
        let follows_messages =
            protocol == "http" && http::follows_messages(&place, who, has_server_selection)?;
        if protocol == "ftp" {
            let name = fields.required("name", "a name")?;
            return ftp::read(&place, name.string("a name")?, who, has_tls);
        }
        if protocol == "sip" {
            let name = fields.required("name", "a name")?;
            return sip::read(&place, name.string("a name")?, who, has_ipv6_clients(fields));
        }
        if protocol == "smtp" && smtp::starts_tls(&place, has_tls)? {
            let [client, server] = smtp::read_with_tls(&place)?;
            return Ok(vec![Dialogue { client, server, ..Dialogue::of(Transport::Tcp, 25) }]);
        }
        // Programs for other hosts parse the data of the peer.
        let alone = match (protocol, who) {
            ("smtp", PlayedSides::Server) => Some(smtp::read_server(&place)?),
            ("smtp", PlayedSides::Client) => Some(smtp::read_client(&place)?),
            ("dns", PlayedSides::Server) => Some(dns::server(&place)?),
            ("dns", PlayedSides::Client) => Some(dns::client(&place)?),
            ("rtsp", PlayedSides::Client) => Some(rtsp::client(&place)?),
            _ => None,
        };
        if let Some(steps) = alone {
            let dialogue = match protocol {
                "smtp" => Dialogue::of(Transport::Tcp, 25),
                "dns" => Dialogue::of(Transport::Udp, 53),
                _ => Dialogue::of(Transport::Tcp, 554),
            };
            return Ok(vec![match who {
                PlayedSides::Client => Dialogue { client: steps, ..dialogue },
                _ => Dialogue { server: steps, ..dialogue },
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
                let [client, _] = dialogue_lines::programs(&lines, who, transport);
                [client, rtsp::server(&place)?]
            }
            _ => dialogue_lines::programs(&lines, who, transport),
        };
        return Ok(vec![Dialogue { client, server, is_http2, ..Dialogue::of(transport, port) }]);
    }
    Ok(Vec::new())
}

/// Returns whether a template's clients use IPv6, by the addresses of their servers.
fn has_ipv6_clients(fields: &Fields<'_>) -> bool {
    let client = fields.get("client");
    client.is_some_and(|it| it.value()["servers"].as_str().is_some_and(|it| it.contains(':')))
}
