//! What is asked of TLS.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring;
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

use crate::TlsError;
use crate::identity::Identity;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// A share of connections, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume(u32);

impl Resume {
    /// Each connection.
    pub const ALL: Self = Self(1_000_000_000);
    /// No connection: each handshake is a full one.
    pub const NONE: Self = Self(0);

    /// So many billionths; `None` beyond a whole.
    pub const fn from_billionths(billionths: u32) -> Option<Self> {
        if billionths <= Self::ALL.0 { Some(Self(billionths)) } else { None }
    }

    /// Whether what was drawn, any 64 bits, falls into it.
    pub(crate) const fn has(self, drawn: u64) -> bool {
        ((drawn >> 32) * Self::ALL.0 as u64) >> 32 < self.0 as u64
    }
}

/// What is asked of TLS, on either side.
#[derive(Debug)]
pub struct TlsSettings {
    /// The versions that are offered and taken; none: both.
    pub versions: Vec<Version>,
    /// Cipher suites by IANA's names, the most wanted first; none: all that there are.
    pub ciphers: Vec<String>,
    /// Application protocols (RFC 7301), the most wanted first.
    pub alpn: Vec<String>,
    /// The name that clients ask for, and that a generated certificate is for.
    pub name: Option<String>,
    /// How many of the clients' connections try to resume a session; servers let them, unless none
    /// are to.
    pub resume: Resume,
    /// Who servers are; `None`: one is made.
    pub identity: Option<Identity>,
    /// The certificates of authorities, in PEM, one of which has to have signed what servers show
    /// to clients, or to be it; `None`: clients take any certificate.
    pub authorities: Option<Vec<u8>>,
    /// Who clients are, where servers ask; `None`: nobody.
    pub client_identity: Option<Identity>,
    /// Of those who signed what clients show to servers; `None`: servers do not ask.
    pub client_authorities: Option<Vec<u8>>,
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self {
            versions: Vec::new(),
            ciphers: Vec::new(),
            alpn: Vec::new(),
            name: None,
            resume: Resume::ALL,
            identity: None,
            authorities: None,
            client_identity: None,
            client_authorities: None,
        }
    }
}

impl TlsSettings {
    pub(crate) fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        let asked = |version| self.versions.is_empty() || self.versions.contains(&version);
        let both =
            [(Version::Tls13, &rustls::version::TLS13), (Version::Tls12, &rustls::version::TLS12)];
        both.into_iter().filter(|(version, _)| asked(*version)).map(|(_, it)| it).collect()
    }

    pub(crate) fn provider(&self) -> Result<Arc<CryptoProvider>, TlsError> {
        let mut provider = ring::default_provider();
        if !self.ciphers.is_empty() {
            let find = |found: &String| {
                let suite = provider.cipher_suites.iter().find(|suite| name(suite) == *found);
                suite.copied().ok_or_else(|| TlsError::Cipher {
                    found: found.clone(),
                    known: provider.cipher_suites.iter().map(name).collect(),
                })
            };
            provider.cipher_suites = self.ciphers.iter().map(find).collect::<Result<_, _>>()?;
        }
        Ok(Arc::new(provider))
    }

    pub(crate) fn protocols(&self) -> Vec<Vec<u8>> {
        self.alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect()
    }
}

/// IANA's name of a cipher suite: rustls has `TLS13_` before those of TLS 1.3.
fn name(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
}
