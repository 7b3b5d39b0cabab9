//! TLS settings of a template.

use wirestorm_model::impairment::Probability;

/// TLS settings of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Versions to offer and accept; empty: both.
    pub versions: Vec<TlsVersion>,
    /// Server name that clients send (SNI), and that a generated server certificate contains.
    /// `None`: clients use the address that they connect to.
    pub sni: Option<String>,
    /// Application protocols (ALPN), by preference.
    pub alpn: Vec<String>,
    /// Cipher suites by their IANA names, by preference; empty: all.
    pub ciphers: Vec<String>,
    /// Files of the servers' certificate chain and key; `None`: generated.
    pub identity: Option<TlsFiles>,
    /// File of the authorities that clients trust; `None`: clients accept any certificate.
    pub ca: Option<String>,
    /// Files of the clients' certificate chain and key; `None`: no client certificate.
    pub client_identity: Option<TlsFiles>,
    /// File of the authorities that servers trust. Servers then request client certificates.
    /// `None`: servers request none.
    pub client_ca: Option<String>,
    /// Share of the clients' connections that try to resume a session. Servers allow resumption
    /// unless the share is 0. Default: all.
    pub resume: Probability,
}

/// PEM files, by their names in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// File of the certificate chain.
    pub certificate: String,
    /// File of the private key of the first certificate.
    pub key: String,
}

/// TLS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            versions: Vec::new(),
            sni: None,
            alpn: Vec::new(),
            ciphers: Vec::new(),
            identity: None,
            ca: None,
            client_identity: None,
            client_ca: None,
            resume: Probability::ALL,
        }
    }
}
