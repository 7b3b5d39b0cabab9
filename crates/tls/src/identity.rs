//! Certificates and private key of a client or server.

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::TlsError;

/// Certificate chain, and the private key of its first certificate.
#[derive(Debug)]
pub struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Default host name of a generated certificate.
const NAME: &str = "wirestorm.test";

impl Identity {
    /// Parses an identity from the contents of two PEM files.
    ///
    /// # Errors
    /// Returns an error if there is no certificate or no key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates(chain).map_err(TlsError::Chain)?;
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Key(error.to_string()))?;
        Ok(Self { chain, key })
    }

    /// Generates a self-signed certificate (ECDSA, P-256) for a name; default `wirestorm.test`.
    ///
    /// # Errors
    /// Returns an error if the name is not a valid host name or address.
    pub fn generate(name: Option<&str>) -> Result<Self, TlsError> {
        let name = name.unwrap_or(NAME);
        let failed = |error: rcgen::Error| TlsError::Generate {
            name: name.into(),
            reason: error.to_string(),
        };
        let mut parameters = CertificateParams::new([name.to_owned()]).map_err(failed)?;
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = parameters.self_signed(&key).map_err(failed)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Self { chain: vec![certificate.der().clone()], key: key.into() })
    }

    /// Returns the certificates in DER, the end entity's first.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.chain.iter().map(AsRef::as_ref)
    }
}

/// Parses the certificates of a PEM file; there must be at least one.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if all.is_empty() => Err("the file has none".to_owned()),
        Ok(all) => Ok(all),
        Err(error) => Err(error.to_string()),
    }
}
