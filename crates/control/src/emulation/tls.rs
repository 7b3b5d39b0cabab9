//! The sessions of templates with TLS.

use std::path::Path;
use std::sync::Arc;

use wirestorm_plan::emulation::{EmulationPlan, Template, Tls, TlsVersion};
use wirestorm_stack::content::Sessions;
use wirestorm_tls::{Identity, TlsClients, TlsError, TlsServers, TlsSettings, Version};

use super::error::EmulationError;

/// What the two sides of a template have between programs and connections.
#[derive(Clone, Debug, Default)]
pub(super) struct TemplateSessions {
    pub(super) client: Option<Arc<dyn Sessions>>,
    pub(super) server: Option<Arc<dyn Sessions>>,
}

/// Those of each template. Files' names are relative to `folder`.
pub(super) fn sessions(
    plan: &EmulationPlan,
    folder: &Path,
) -> Result<Vec<TemplateSessions>, EmulationError> {
    plan.templates.iter().map(|template| of(template, folder)).collect()
}

fn of(template: &Template, folder: &Path) -> Result<TemplateSessions, EmulationError> {
    let Some(asked) = &template.tls else { return Ok(TemplateSessions::default()) };
    let path = format!("{}.tls", template.path);
    let settings = settings(asked, folder, &path)?;
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

fn settings(asked: &Tls, folder: &Path, path: &str) -> Result<TlsSettings, EmulationError> {
    let read = |name: &str| {
        let file = folder.join(name);
        std::fs::read(&file).map_err(|reason| EmulationError::File {
            path: path.to_owned(),
            file: file.clone(),
            reason,
        })
    };
    let of_file = |name: &str, reason: TlsError| EmulationError::Tls {
        path: format!("{path}.{name}"),
        reason,
    };
    let identity = match &asked.identity {
        None => None,
        Some(files) => {
            let (chain, key) = (read(&files.certificate)?, read(&files.key)?);
            let identity = Identity::from_pem(&chain, &key);
            Some(identity.map_err(|error| match error {
                TlsError::Key(_) => of_file("key", error),
                _ => of_file("certificate", error),
            })?)
        }
    };
    let version = |version: &TlsVersion| match version {
        TlsVersion::Tls12 => Version::Tls12,
        TlsVersion::Tls13 => Version::Tls13,
    };
    Ok(TlsSettings {
        versions: asked.versions.iter().map(version).collect(),
        ciphers: asked.ciphers.clone(),
        alpn: asked.alpn.clone(),
        name: asked.sni.clone(),
        resume: asked.resume,
        identity,
        authorities: asked.ca.as_deref().map(read).transpose()?,
    })
}
