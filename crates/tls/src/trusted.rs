//! Servers whose certificates authorities vouch for.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::TlsError;
use crate::identity::certificates;

/// Takes what authorities signed, and what is one of their own certificates: `openssl req -x509`
/// makes servers' certificates that are authorities too, and programs of OpenSSL's take them.
#[derive(Debug)]
pub(crate) struct Trusted {
    usual: Arc<WebPkiServerVerifier>,
    own: Vec<CertificateDer<'static>>,
}

impl Trusted {
    /// By the certificates of authorities in PEM.
    pub(crate) fn new(pem: &[u8], provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let refused = |error: &dyn std::error::Error| TlsError::Authorities(error.to_string());
        let own = certificates(pem).map_err(TlsError::Authorities)?;
        let roots = Arc::new(roots(&own)?);
        let usual = WebPkiServerVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|error| refused(&error))?;
        Ok(Self { usual, own })
    }
}

/// Authorities that are trusted.
pub(crate) fn roots(certificates: &[CertificateDer<'static>]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let added = roots.add(certificate.clone());
        added.map_err(|error| TlsError::Authorities(error.to_string()))?;
    }
    Ok(roots)
}

/// Whether a certificate is refused for being one of an authority, as `openssl req -x509` makes
/// them. The type of this error is not in rustls's interface.
pub(crate) fn is_of_an_authority(error: &CertificateError) -> bool {
    let CertificateError::Other(error) = error else { return false };
    format!("{error:?}").contains("CaUsedAsEndEntity")
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.usual.verify_server_cert(certificate, others, name, ocsp, now) {
            // Whether it is valid at this time was looked at before. What it may be used for was not,
            // and counts for nothing: it was named as one to trust.
            Err(Error::InvalidCertificate(error))
                if is_of_an_authority(&error) && self.own.contains(certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
