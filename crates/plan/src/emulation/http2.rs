//! Parses HTTP/2 settings.

use super::first_bytes;
use super::types::{Http2, STREAMS_MAX, Tls, WINDOW_MAX};
use super::types::{Template, Transport};
use crate::document::error::PlanError;
use crate::document::value_at::{Fields, ValueAt};

pub(super) const HTTP2: [&str; 2] = ["max_concurrent_streams", "initial_window_size"];

/// ALPN identifier of HTTP/2 over TLS (RFC 9113 section 3.2).
const ALPN: &str = "h2";

/// Reads the field `http2` of a template. `speaks`: whether the dialogue uses HTTP/2; `None` for
/// programs.
pub(super) fn read(
    fields: &Fields<'_>,
    speaks: Option<bool>,
    transport: Transport,
) -> Result<Option<Http2>, PlanError> {
    let Some(place) = fields.get("http2") else {
        return Ok((speaks == Some(true)).then(Http2::default));
    };
    let settings = read_fields(&place)?;
    match (settings, speaks) {
        (Some(_), Some(false)) => {
            Err(place.message_error("is for http with version: 2, and for templates with programs"))
        }
        (None, Some(true)) => Err(place.message_error("http has version: 2: remove this field")),
        (Some(_), _) if transport == Transport::Udp => {
            Err(place.error("http2", "the template's transport to be tcp"))
        }
        _ => Ok(settings),
    }
}

/// Reads the settings; `true` stands for the defaults, `false` for no HTTP/2.
fn read_fields(place: &ValueAt<'_>) -> Result<Option<Http2>, PlanError> {
    if place.value().is_boolean() {
        return Ok(place.boolean()?.then(Http2::default));
    }
    let mut settings = Http2::default();
    for (name, value) in place.fields(&HTTP2)?.all() {
        match name {
            "max_concurrent_streams" => {
                settings.streams = value.integer(1, STREAMS_MAX.into())? as u32
            }
            _ => settings.window = value.integer(1, WINDOW_MAX.into())? as u32,
        }
    }
    Ok(Some(settings))
}

/// Returns the maximum number of concurrent streams of a template with these fields.
pub(super) fn streams(fields: &Fields<'_>) -> Result<u32, PlanError> {
    let settings = fields.get("http2").map(|it| read_fields(&it)).transpose()?.flatten();
    Ok(settings.unwrap_or_default().streams)
}

/// Adds `h2` to empty ALPN protocols. Refuses ALPN protocols without it.
pub(super) fn require_h2(tls: &mut Tls, path: &str) -> Result<(), PlanError> {
    if tls.alpn.is_empty() {
        tls.alpn.push(ALPN.to_owned());
    }
    if tls.alpn.iter().any(|protocol| protocol == ALPN) {
        return Ok(());
    }
    let found = tls.alpn.join(", ");
    let message = format!("found {found}, expected h2 among them, for a template with HTTP/2");
    Err(PlanError { path: format!("{path}.tls.alpn"), message })
}

/// Refuses the ALPN protocol `h2` in a template without HTTP/2.
pub(super) fn refuse_h2(tls: &Tls, path: &str) -> Result<(), PlanError> {
    if tls.alpn.iter().all(|protocol| protocol != ALPN) {
        return Ok(());
    }
    let message = "found h2, but the template uses HTTP/1.1, expected other protocols, or http \
                   with version: 2";
    Err(PlanError { path: format!("{path}.tls.alpn"), message: message.to_owned() })
}

/// Refuses HTTP/2 at a port where first bytes select the server: all HTTP/2 connections start with
/// the same bytes.
pub(super) fn check(template: &Template, all: &[Template]) -> Result<(), PlanError> {
    let (Some(_), Some(server)) = (&template.http2, &template.server) else { return Ok(()) };
    let Some(listen) = first_bytes::first_bytes_port(server, all) else { return Ok(()) };
    let message = format!(
        "found HTTP/2 at port {}, where first_bytes select the server: all HTTP/2 connections \
         start with the same bytes; use another port",
        listen
    );
    Err(PlanError { path: template.path.clone(), message })
}
