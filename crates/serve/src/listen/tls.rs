//! TLS of endpoints: certificates, keys and client certificates from PEM files.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig, crypto};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Files of the TLS configuration, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate of the server, with those of intermediate authorities.
    pub certificate: PathBuf,
    /// Private key of the server.
    pub key: PathBuf,
    /// Authorities of client certificates; `None` to ask clients for none.
    pub client_authority: Option<PathBuf>,
}

/// TLS of an address.
#[derive(Clone, Debug)]
pub enum Tls {
    /// Certificate and key from files.
    Files(TlsFiles),
    /// A new certificate that the server signs itself, for `localhost` and the address. Clients
    /// cannot verify it.
    SelfSigned,
}

impl Tls {
    /// Reads the files, or creates the certificate for an address.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub(crate) fn acceptor(&self, address: IpAddr) -> Result<TlsAcceptor, TlsError> {
        match self {
            Self::Files(files) => files.acceptor(),
            Self::SelfSigned => {
                let names = vec!["localhost".to_owned(), address.to_string()];
                let generated = rcgen::generate_simple_self_signed(names)
                    .map_err(|error| TlsError::SelfSigned(error.to_string()))?;
                let chain = vec![generated.cert.der().clone()];
                let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der())
                    .map_err(|error| TlsError::SelfSigned(error.to_owned()))?;
                let provider = Arc::new(crypto::ring::default_provider());
                let builder = ServerConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()?
                    .with_no_client_auth();
                Ok(acceptor(builder.with_single_cert(chain, key)?))
            }
        }
    }
}

/// Error of a TLS configuration.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error("{}: {reason}", path.display())]
    File {
        /// Path.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// A certificate cannot be created.
    #[error("cannot create a TLS certificate: {0}")]
    SelfSigned(String),
    /// The certificate and the key do not fit.
    #[error("the TLS certificate cannot be used: {0}")]
    Config(#[from] rustls::Error),
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// See [`TlsError`].
    fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| unusable(&self.key, format!("no private key in PEM: {error}")))?;
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match &self.client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate)?;
                }
                // A user with a token needs no certificate.
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .allow_unauthenticated()
                        .build()
                        .map_err(|error| unusable(path, error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        Ok(acceptor(builder.with_single_cert(chain, key)?))
    }
}

/// Adds the protocols that endpoints speak.
fn acceptor(mut config: ServerConfig) -> TlsAcceptor {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |reason: String| unusable(path, reason);
    let items = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    let chain = items.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(error.to_string()))?;
    match chain.is_empty() {
        true => Err(wrong("found no certificate in PEM".to_owned())),
        false => Ok(chain),
    }
}

fn unusable(path: &Path, reason: String) -> TlsError {
    TlsError::File { path: path.to_owned(), reason }
}

/// Returns the common name of the subject of a certificate (RFC 5280 section 4.1.2.6).
pub(super) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let name = parsed.subject().iter_common_name().next()?;
    name.as_str().ok().map(str::to_owned)
}
