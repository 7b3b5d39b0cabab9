//! Server certificate verification by configured authorities.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::TlsError;
use crate::identity::certificates;

/// Accepts certificates that an authority has signed, and the authorities' own certificates.
/// `openssl req -x509` creates server certificates that are CA certificates too, and OpenSSL
/// clients accept these.
#[derive(Debug)]
pub(crate) struct Trusted {
    usual: Arc<WebPkiServerVerifier>,
    authorities: Vec<CertificateDer<'static>>,
}

impl Trusted {
    /// Creates a verifier from CA certificates in PEM.
    pub(crate) fn new(pem: &[u8], provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let refused = |error: &dyn std::error::Error| TlsError::Authorities(error.to_string());
        let authorities = certificates(pem).map_err(TlsError::Authorities)?;
        let roots = Arc::new(roots(&authorities)?);
        let usual = WebPkiServerVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|error| refused(&error))?;
        Ok(Self { usual, authorities })
    }
}

/// Adds CA certificates to a store of trust anchors.
pub(crate) fn roots(certificates: &[CertificateDer<'static>]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let added = roots.add(certificate.clone());
        added.map_err(|error| TlsError::Authorities(error.to_string()))?;
    }
    Ok(roots)
}

/// Returns whether the error rejects a CA certificate as an end entity, such as one of `openssl req
/// -x509`. The error type is not part of rustls's public interface.
pub(crate) fn is_ca_used_as_end_entity(error: &CertificateError) -> bool {
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
            // The verifier has already checked the validity period. The CA flag is irrelevant: the
            // settings list this certificate as trusted.
            Err(Error::InvalidCertificate(error))
                if is_ca_used_as_end_entity(&error) && self.authorities.contains(certificate) =>
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
