//! TLS settings.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring;
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

use crate::TlsError;
use crate::identity::Identity;

/// TLS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

/// Share of connections that try to resume a session, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume(u32);

impl Resume {
    /// All connections.
    pub const ALL: Self = Self(1_000_000_000);
    /// No connection: each handshake is a full one.
    pub const NONE: Self = Self(0);

    /// Creates a share of `billionths`; `None` if that is more than 1.
    pub const fn from_billionths(billionths: u32) -> Option<Self> {
        if billionths <= Self::ALL.0 { Some(Self(billionths)) } else { None }
    }

    /// Returns whether a uniformly distributed 64-bit number falls within the share.
    pub(crate) const fn has(self, random: u64) -> bool {
        ((random >> 32) * Self::ALL.0 as u64) >> 32 < self.0 as u64
    }
}

/// TLS settings of clients or servers.
#[derive(Debug)]
pub struct TlsSettings {
    /// Enabled versions; empty enables both.
    pub versions: Vec<Version>,
    /// Enabled cipher suites by IANA name, in order of preference; empty enables all.
    pub ciphers: Vec<String>,
    /// Application protocols for ALPN (RFC 7301), in order of preference.
    pub alpn: Vec<String>,
    /// Server name that clients send (SNI), and the name in a generated certificate.
    pub name: Option<String>,
    /// Share of client connections that try to resume a session. Servers issue tickets unless it is
    /// [`Resume::NONE`].
    pub resume: Resume,
    /// Certificate and key of servers; `None` generates a self-signed certificate.
    pub identity: Option<Identity>,
    /// CA certificates in PEM. A server's certificate must be one of them or signed by one; with
    /// `None`, clients accept any certificate.
    pub authorities: Option<Vec<u8>>,
    /// Certificate and key that clients present on request; `None` presents no certificate.
    pub client_identity: Option<Identity>,
    /// CA certificates in PEM that sign client certificates; with `None`, servers request none.
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
        let is_requested = |version| self.versions.is_empty() || self.versions.contains(&version);
        let both =
            [(Version::Tls13, &rustls::version::TLS13), (Version::Tls12, &rustls::version::TLS12)];
        both.into_iter().filter(|(version, _)| is_requested(*version)).map(|(_, it)| it).collect()
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

/// Returns the IANA name of a cipher suite; rustls uses `TLS13_` for TLS 1.3 suites.
fn name(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
}
