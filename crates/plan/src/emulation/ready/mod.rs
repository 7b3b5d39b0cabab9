//! Ready-made programs: protocols that both sides of a template speak. Each becomes steps that
//! anybody could have written.

mod dialogue;
mod ftp;
mod headers;
mod http;
mod rtsp;
mod smtp;
mod words;

pub(super) use dialogue::Who;

use super::speech::Speech;
use crate::document::error::PlanError;
use crate::document::place::Fields;

/// The protocols, by their fields of a template.
const PROTOCOLS: [&str; 4] = ["http", "smtp", "ftp", "rtsp"];

/// Reads what a template says of a protocol, if it does. `who`: whose programs are needed.
pub(super) fn read(fields: &Fields<'_>, who: Who) -> Result<Option<Speech>, PlanError> {
    for protocol in PROTOCOLS {
        let Some(place) = fields.get(protocol) else { continue };
        let (port, lines) = match protocol {
            "http" => (80, http::read(&place, who)?),
            "smtp" => (25, smtp::read(&place)?),
            "ftp" => (21, ftp::read(&place)?),
            _ => (554, rtsp::read(&place)?),
        };
        let [client, server] = dialogue::programs(&lines, who);
        return Ok(Some(Speech { part: None, client, server, port, notes: Vec::new() }));
    }
    Ok(None)
}
