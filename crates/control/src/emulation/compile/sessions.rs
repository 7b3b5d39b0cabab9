//! TLS and HTTP/2 sessions of the templates.

use std::path::Path;
use std::sync::Arc;

use wirestorm_http2::{Http2Clients, Http2Servers, Http2Settings};
use wirestorm_plan::emulation::{
    EmulationPlan, HTTP2_STREAMS_MAX, HTTP2_WINDOW_MAX, Http2, Template, Tls, TlsFiles, TlsVersion,
};
use wirestorm_plan::files::{self, Files};
use wirestorm_stack::content::SessionFactory;
use wirestorm_tls::{Identity, Resume, TlsClients, TlsError, TlsServers, TlsSettings, Version};

use crate::emulation::error::EmulationError;

/// Session layers of both sides of a template, between programs and connections.
#[derive(Clone, Debug, Default)]
pub(in crate::emulation) struct TemplateSessions {
    pub(in crate::emulation) client: Option<Arc<dyn SessionFactory>>,
    pub(in crate::emulation) server: Option<Arc<dyn SessionFactory>>,
}

/// Creates the sessions of each template. Relative file names start from `folder`.
///
/// # Errors
/// Fails if a file cannot be read, or the TLS settings are not valid.
pub(in crate::emulation) fn sessions(
    plan: &EmulationPlan,
    folder: &Path,
    files: &dyn Files,
) -> Result<Vec<TemplateSessions>, EmulationError> {
    let mut all: Vec<TemplateSessions> = Vec::new();
    for (place, template) in plan.templates.iter().enumerate() {
        let before = place.checked_sub(1).map(|it| &plan.templates[it]);
        let sessions = match (before, all.last()) {
            // Templates of the same plan item share a session cache. FTP servers require that a
            // data connection resumes the TLS session of the control connection.
            (Some(before), Some(same)) if is_same(before, template) => same.clone(),
            _ => of(template, folder, files)?,
        };
        all.push(sessions);
    }
    Ok(all)
}

/// Whether two templates share their sessions.
fn is_same(one: &Template, other: &Template) -> bool {
    let key = |it: &Template| (it.client.is_some(), it.server.is_some(), it.http2);
    one.path == other.path && one.tls == other.tls && key(one) == key(other)
}

/// Creates the sessions of a template.
fn of(
    template: &Template,
    folder: &Path,
    files: &dyn Files,
) -> Result<TemplateSessions, EmulationError> {
    let sessions = match &template.tls {
        Some(config) => tls(template, config, folder, files)?,
        None => TemplateSessions::default(),
    };
    Ok(match template.http2 {
        Some(config) => http2(template, config, sessions),
        None => sessions,
    })
}

/// Adds HTTP/2 on top of other sessions.
fn http2(template: &Template, config: Http2, below: TemplateSessions) -> TemplateSessions {
    let settings = Http2Settings { streams: config.streams, window: config.window };
    let mut sessions = TemplateSessions::default();
    if template.client.is_some() {
        sessions.client = Some(Arc::new(Http2Clients::new(below.client, settings)));
    }
    if template.server.is_some() {
        sessions.server = Some(Arc::new(Http2Servers::new(below.server, settings)));
    }
    sessions
}

fn tls(
    template: &Template,
    config: &Tls,
    folder: &Path,
    files: &dyn Files,
) -> Result<TemplateSessions, EmulationError> {
    let path = format!("{}.tls", template.path);
    let settings = settings(config, folder, files, &path)?;
    let wrong = |reason| EmulationError::Tls { path: path.clone(), reason };
    let mut sessions = TemplateSessions::default();
    if template.client.is_some() {
        sessions.client = Some(Arc::new(TlsClients::new(&settings).map_err(wrong)?));
    }
    if template.server.is_some() {
        sessions.server = Some(Arc::new(TlsServers::new(&settings).map_err(wrong)?));
    }
    Ok(sessions)
}

fn settings(
    config: &Tls,
    folder: &Path,
    files: &dyn Files,
    path: &str,
) -> Result<TlsSettings, EmulationError> {
    let read = |name: &str| {
        let file = folder.join(name);
        files::read(files, &file).map_err(|reason| EmulationError::File {
            path: path.to_owned(),
            file: file.clone(),
            reason,
        })
    };
    let of_file = |name: &str, reason: TlsError| EmulationError::Tls {
        path: format!("{path}.{name}"),
        reason,
    };
    let identity = |files: &Option<TlsFiles>, certificate: &str, key_name: &str| {
        let Some(files) = files else { return Ok(None) };
        let (chain, key) = (read(&files.certificate)?, read(&files.key)?);
        let identity = Identity::from_pem(&chain, &key).map_err(|error| match error {
            TlsError::Key(_) => of_file(key_name, error),
            _ => of_file(certificate, error),
        });
        identity.map(Some)
    };
    let version = |version: &TlsVersion| match version {
        TlsVersion::Tls12 => Version::Tls12,
        TlsVersion::Tls13 => Version::Tls13,
    };
    Ok(TlsSettings {
        versions: config.versions.iter().map(version).collect(),
        ciphers: config.ciphers.clone(),
        alpn: config.alpn.clone(),
        name: config.sni.clone(),
        // Both count billionths, and the plan accepts at most 1.
        resume: Resume::from_billionths(config.resume.billionths()).unwrap_or(Resume::ALL),
        identity: identity(&config.identity, "certificate", "key")?,
        authorities: config.ca.as_deref().map(read).transpose()?,
        client_identity: identity(&config.client_identity, "client_certificate", "client_key")?,
        client_authorities: config.client_ca.as_deref().map(read).transpose()?,
    })
}

// The limits of a plan are those of HTTP/2 sessions.
const _: () = assert!(HTTP2_STREAMS_MAX == Http2Settings::STREAMS_MAX);
const _: () = assert!(HTTP2_WINDOW_MAX == Http2Settings::WINDOW_MAX);
