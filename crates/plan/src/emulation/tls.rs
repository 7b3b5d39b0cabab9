//! Parses and checks TLS settings.

use serde_json::Value;
use wirestorm_model::impairment::Probability;
use wirestorm_model::program::Step;

use super::first_bytes;
use super::steps;
use super::types::{Template, Transport};
use super::types::{Tls, TlsFiles, TlsVersion};
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;
use crate::impairment::parse_share;

pub(super) const TLS: [&str; 11] = [
    "versions",
    "sni",
    "alpn",
    "ciphers",
    "certificate",
    "key",
    "ca",
    "client_certificate",
    "client_key",
    "client_ca",
    "resume",
];

/// Checks the steps `start_tls` of a template, and that no first bytes select its server.
pub(super) fn check(template: &Template, all: &[Template]) -> Result<(), PlanError> {
    check_start(template)?;
    check_first_bytes(template, all)
}

/// Checks that both sides have a step `start_tls`, or none.
fn check_start(template: &Template) -> Result<(), PlanError> {
    let client = template.client.as_ref().map(|it| ("client", it.program.as_slice()));
    let server = template.server.as_ref().map(|it| ("server", it.program.as_slice()));
    let sides: Vec<_> = client.into_iter().chain(server).collect();
    let starts = |steps: &[Step]| steps::any(steps, |it| *it == Step::StartTls);
    let counts = |steps: &[Step]| steps::any(steps, |it| matches!(it, Step::ReceiveTotal(_)));
    for (side, steps) in &sides {
        if !starts(steps) {
            continue;
        }
        let wrong = if template.tls.is_none() {
            "found no `tls` in the template, expected it, such as `tls: true`"
        } else if template.http2.is_some() {
            "found HTTP/2, which starts with the connection: remove one of them"
        } else if counts(steps) {
            "found a step `receive_total` in the same program, expected `receive`: bytes that no \
             step takes go to TLS"
        } else if !sides.iter().all(|(_, steps)| starts(steps)) {
            "found none on the other side, where TLS starts with the connection, expected one on \
             both sides"
        } else {
            continue;
        };
        let path = format!("{}.{side}.program", template.path);
        return Err(PlanError { path, message: format!("start_tls: {wrong}") });
    }
    Ok(())
}

/// Refuses TLS at a port where first bytes select the server: TLS encrypts them.
fn check_first_bytes(template: &Template, all: &[Template]) -> Result<(), PlanError> {
    let (Some(_), Some(server)) = (&template.tls, &template.server) else { return Ok(()) };
    let Some(listen) = first_bytes::first_bytes_port(server, all) else { return Ok(()) };
    let message = format!(
        "found tls at port {}, where first_bytes select the server: TLS encrypts them; use another \
         port",
        listen
    );
    Err(PlanError { path: format!("{}.tls", template.path), message })
}

/// Reads the field `tls`; `true` stands for the defaults, `false` for no TLS.
pub(super) fn read(place: &ValueAt<'_>, transport: Transport) -> Result<Option<Tls>, PlanError> {
    if transport == Transport::Udp && place.value() != &Value::Bool(false) {
        return Err(place.error("tls", "the template's transport to be tcp"));
    }
    if place.value().is_boolean() {
        return Ok(place.boolean()?.then(Tls::default));
    }
    let fields = place.fields(&TLS)?;
    let mut tls = Tls::default();
    let file = |value: &ValueAt<'_>| read_text(value, "the name of a file in PEM").map(Some);
    let (mut certificate, mut key) = (None, None);
    let (mut client_certificate, mut client_key) = (None, None);
    for (name, value) in fields.all() {
        match name {
            "versions" => tls.versions = read_versions(&value)?,
            "sni" => tls.sni = Some(read_text(&value, "a host's name such as example.test")?),
            "alpn" => tls.alpn = read_protocols(&value)?,
            "ciphers" => tls.ciphers = read_ciphers(&value)?,
            "certificate" => certificate = file(&value)?,
            "key" => key = file(&value)?,
            "ca" => tls.ca = file(&value)?,
            "client_certificate" => client_certificate = file(&value)?,
            "client_key" => client_key = file(&value)?,
            "client_ca" => tls.client_ca = file(&value)?,
            _ => tls.resume = read_resume(&value)?,
        }
    }
    tls.identity = both(place, [certificate, key], ["certificate", "key"])?;
    let names = ["client_certificate", "client_key"];
    tls.client_identity = both(place, [client_certificate, client_key], names)?;
    Ok(Some(tls))
}

fn read_resume(place: &ValueAt<'_>) -> Result<Probability, PlanError> {
    match place.value() {
        Value::Bool(true) => Ok(Probability::ALL),
        Value::Bool(false) => Ok(Probability::NONE),
        value => {
            let share = value.as_str().and_then(parse_share);
            share.ok_or_else(|| {
                place.unexpected("true, false, or a share of connections such as 30%")
            })
        }
    }
}

/// Returns the files of a certificate and its key, or `None` for neither. The names are their
/// fields', for the error if one is missing.
fn both(
    place: &ValueAt<'_>,
    files: [Option<String>; 2],
    [first, second]: [&str; 2],
) -> Result<Option<TlsFiles>, PlanError> {
    let alone = |one, other| Err(place.error(format!("{one} alone"), format!("{other} as well")));
    match files {
        [Some(certificate), Some(key)] => Ok(Some(TlsFiles { certificate, key })),
        [None, None] => Ok(None),
        [Some(_), None] => alone(first, second),
        [None, Some(_)] => alone(second, first),
    }
}

fn read_text(place: &ValueAt<'_>, expected: &str) -> Result<String, PlanError> {
    match place.string(expected)? {
        "" => Err(place.unexpected(expected)),
        text => Ok(text.to_owned()),
    }
}

/// Reads a list that is not empty.
fn read_list<T>(
    place: &ValueAt<'_>,
    what: &str,
    read: impl Fn(&ValueAt<'_>) -> Result<T, PlanError>,
) -> Result<Vec<T>, PlanError> {
    let items = place.items(what)?;
    if items.is_empty() {
        return Err(place.unexpected(format!("a list of {what}")));
    }
    items.iter().map(read).collect()
}

fn read_versions(place: &ValueAt<'_>) -> Result<Vec<TlsVersion>, PlanError> {
    read_list(place, "versions, 1.2 and 1.3", |item| match item.number_text().as_deref() {
        Some("1.2") => Ok(TlsVersion::Tls12),
        Some("1.3") => Ok(TlsVersion::Tls13),
        _ => Err(item.unexpected("1.2 or 1.3")),
    })
}

fn read_protocols(place: &ValueAt<'_>) -> Result<Vec<String>, PlanError> {
    // A protocol name has a length of one byte (RFC 7301 section 3.1).
    const EXPECTED: &str = "a protocol such as http/1.1, of at most 255 bytes";
    read_list(place, "protocols such as http/1.1", |item| {
        let text = read_text(item, EXPECTED)?;
        if text.len() > 255 { Err(item.unexpected(EXPECTED)) } else { Ok(text) }
    })
}

fn read_ciphers(place: &ValueAt<'_>) -> Result<Vec<String>, PlanError> {
    const WHAT: &str = "cipher suites such as TLS_AES_128_GCM_SHA256";
    read_list(place, WHAT, |item| read_text(item, "a cipher suite such as TLS_AES_128_GCM_SHA256"))
}
