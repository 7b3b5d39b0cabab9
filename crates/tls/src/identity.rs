//! Who a server is: its certificates, and its key.

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::TlsError;

/// A chain of certificates, and the key of the first.
#[derive(Debug)]
pub struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Who a generated certificate is for where nobody says.
const NAME: &str = "wirestorm.test";

impl Identity {
    /// An identity out of two files' contents in PEM.
    ///
    /// # Errors
    /// Where there is no certificate, or no key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates(chain).map_err(TlsError::Chain)?;
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Key(error.to_string()))?;
        Ok(Self { chain, key })
    }

    /// A certificate that is signed by its own key (ECDSA, P-256), for a name.
    ///
    /// # Errors
    /// Where nobody can have such a name.
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

    /// Its certificates in DER, its own first.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.chain.iter().map(AsRef::as_ref)
    }
}

/// The certificates in a file's content; at least one.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if all.is_empty() => Err("there is none".to_owned()),
        Ok(all) => Ok(all),
        Err(error) => Err(error.to_string()),
    }
}
