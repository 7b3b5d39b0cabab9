//! Options of a connection to a NATS server.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::Key;
use crate::BusError;
use crate::subject::{Site, checked_name};

/// Most addresses of one connection.
const ADDRESSES_MAX: usize = 16;

/// Options of a connection.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    pub(super) addresses: Vec<String>,
    pub(super) site: Site,
    /// Name of the connection in the server's lists.
    pub(super) name: String,
    /// Prefix of the subjects of answers.
    pub(super) inbox: String,
    pub(super) key: Option<Key>,
    pub(super) tls: Option<ClientConfig>,
}

impl NatsOptions {
    /// Returns the options for a server without keys and TLS.
    ///
    /// `url` is `nats://HOST:PORT`, or several with commas between them, which are tried in order.
    /// `role` and `name` identify the client among those of the site: `agent`, `director`.
    ///
    /// # Errors
    /// A name or an address is wrong.
    pub fn new(url: &str, site: &Site, role: &str, name: &str) -> Result<Self, BusError> {
        let (role, name) = (checked_name("role", role)?, checked_name(role, name)?);
        let addresses: Vec<String> = url.split(',').map(|it| it.trim().to_owned()).collect();
        if addresses.len() > ADDRESSES_MAX {
            let reason = format!("{} addresses; at most {ADDRESSES_MAX}", addresses.len());
            return Err(BusError::invalid("addresses of the bus", reason));
        }
        for address in &addresses {
            let rest = ["nats://", "tls://"].iter().find_map(|it| address.strip_prefix(it));
            if rest
                .is_none_or(|rest| rest.is_empty() || !rest.bytes().all(|it| it.is_ascii_graphic()))
            {
                return Err(BusError::invalid(
                    format!("address {address:?}"),
                    "expected nats://HOST:PORT or tls://HOST:PORT",
                ));
            }
        }
        Ok(Self {
            addresses,
            site: site.clone(),
            name: format!("wirestorm {role} {name}"),
            inbox: site.inbox(role, name),
            key: None,
            tls: None,
        })
    }

    /// Adds the key of the client.
    #[must_use]
    pub fn with_key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Requires TLS with a certificate of this authority, in PEM. No other authority is trusted.
    ///
    /// # Errors
    /// The text has no certificate.
    pub fn with_authority(mut self, pem: &str) -> Result<Self, BusError> {
        let wrong = |reason: String| BusError::invalid("certificate of the authority", reason);
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
            roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(wrong("found no certificate in PEM".into()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        self.tls = Some(config);
        Ok(self)
    }
}
