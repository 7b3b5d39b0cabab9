//! TLS settings of a template.

use wirestorm_model::impairment::Share;

/// What is asked of TLS, on both sides of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The versions that are offered and taken; none: both.
    pub versions: Vec<TlsVersion>,
    /// The name that clients ask for, and that a certificate made for servers is for; `None`:
    /// clients ask for the address that they connect to.
    pub sni: Option<String>,
    /// Application protocols, the most wanted first.
    pub alpn: Vec<String>,
    /// Cipher suites by IANA's names, the most wanted first; none: all.
    pub ciphers: Vec<String>,
    /// The files with the servers' certificates and key; `None`: they are made.
    pub identity: Option<TlsFiles>,
    /// The file with authorities that clients trust; `None`: they take any certificate.
    pub ca: Option<String>,
    /// The files with the clients' certificates and key; `None`: they have none.
    pub client_identity: Option<TlsFiles>,
    /// The file with authorities that servers trust, who then ask clients for certificates; `None`:
    /// they do not ask.
    pub client_ca: Option<String>,
    /// How many of the clients' connections try to resume a session; servers let them, unless none
    /// are to.
    pub resume: Share,
}

/// Files in PEM, by their names in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// A chain of certificates.
    pub certificate: String,
    /// The key of its first.
    pub key: String,
}

/// Versions of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
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
            resume: Share::ALL,
        }
    }
}
