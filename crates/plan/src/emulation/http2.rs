//! HTTP/2 between programs and their connections, as it is written.

use super::first_bytes;
use super::types::{Http2, STREAMS_MAX, Tls, WINDOW_MAX};
use super::types::{Template, Transport};
use crate::document::error::PlanError;
use crate::document::place::{Fields, Place};

pub(super) const HTTP2: [&str; 2] = ["streams", "window"];

/// The protocol's name in TLS (RFC 9113 section 3.2).
const ALPN: &str = "h2";

/// Reads what a template says of it. `speaks`: whether what both sides say is HTTP/2, where that
/// is known.
pub(super) fn read(
    fields: &Fields<'_>,
    speaks: Option<bool>,
    transport: Transport,
) -> Result<Option<Http2>, PlanError> {
    let Some(place) = fields.get("http2") else {
        return Ok((speaks == Some(true)).then(Http2::default));
    };
    let asked = read_fields(&place)?;
    match (asked, speaks) {
        (Some(_), Some(false)) => {
            Err(place
                .says("is of http with version: 2, or of programs that are written step by step"))
        }
        (None, Some(true)) => Err(place.says("http has version: 2: leave this out")),
        (Some(_), _) if transport == Transport::Udp => {
            Err(place.error("http2", "the template's transport to be tcp"))
        }
        _ => Ok(asked),
    }
}

/// `true` is HTTP/2 as it comes, `false` none.
fn read_fields(place: &Place<'_>) -> Result<Option<Http2>, PlanError> {
    if place.value().is_boolean() {
        return Ok(place.boolean()?.then(Http2::default));
    }
    let mut asked = Http2::default();
    for (name, value) in place.fields(&HTTP2)?.all() {
        match name {
            "streams" => asked.streams = value.integer(1, STREAMS_MAX.into())? as u32,
            _ => asked.window = value.integer(1, WINDOW_MAX.into())? as u32,
        }
    }
    Ok(Some(asked))
}

/// The most streams at once of a template whose fields these are.
pub(super) fn streams(fields: &Fields<'_>) -> Result<u32, PlanError> {
    let asked = fields.get("http2").map(|it| read_fields(&it)).transpose()?.flatten();
    Ok(asked.unwrap_or_default().streams)
}

/// TLS around HTTP/2 agrees upon it.
pub(super) fn agree(tls: &mut Tls, path: &str) -> Result<(), PlanError> {
    if tls.alpn.is_empty() {
        tls.alpn.push(ALPN.to_owned());
    }
    if tls.alpn.iter().any(|protocol| protocol == ALPN) {
        return Ok(());
    }
    let found = tls.alpn.join(", ");
    let message = format!("found {found}, expected h2 among them, which the template speaks");
    Err(PlanError { path: format!("{path}.tls.alpn"), message })
}

/// TLS around HTTP/1.1 does not agree upon HTTP/2.
pub(super) fn disagree(tls: &Tls, path: &str) -> Result<(), PlanError> {
    if tls.alpn.iter().all(|protocol| protocol != ALPN) {
        return Ok(());
    }
    let message = "found h2, which the template does not speak, expected other protocols, or http \
                   with version: 2";
    Err(PlanError { path: format!("{path}.tls.alpn"), message: message.to_owned() })
}

/// What comes first is HTTP/2's own, whatever is said over it.
pub(super) fn check(template: &Template, all: &[Template]) -> Result<(), PlanError> {
    let (Some(_), Some(server)) = (&template.http2, &template.server) else { return Ok(()) };
    let Some(listen) = first_bytes::decide_at(server, all) else { return Ok(()) };
    let message = format!(
        "found HTTP/2 at port {}, where servers are told apart by first_bytes, which are the same \
         for all that speak it: give it a port of its own",
        listen
    );
    Err(PlanError { path: template.path.clone(), message })
}
