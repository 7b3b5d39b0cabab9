//! Errors of TLS settings.

/// Error in [`TlsSettings`](crate::TlsSettings) or in the files that they come from.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file holds no certificate chain.
    #[error("no certificate found, expected a chain as PEM, the server's own first: {0}")]
    Chain(String),
    /// A file holds no private key.
    #[error("no private key found, expected one as PEM (PKCS #8, PKCS #1 or SEC 1): {0}")]
    Key(String),
    /// A file holds no CA certificates.
    #[error("no CA certificate found, expected one or more as PEM: {0}")]
    Authorities(String),
    /// Certificate and key do not match, or their kind is not supported.
    #[error("certificate and key cannot be used: {0}")]
    Identity(rustls::Error),
    /// A certificate could not be generated.
    #[error("cannot make a certificate for {name:?}: {reason}")]
    Generate {
        /// Host name of the certificate.
        name: String,
        /// Reason of the failure.
        reason: String,
    },
    /// A server name is neither a host name nor an address.
    #[error("found the name {0:?}, expected a host's name such as example.test, or an address")]
    Name(String),
    /// A cipher suite is not supported.
    #[error("found the cipher suite {found:?}, expected one of: {}", known.join(", "))]
    Cipher {
        /// Name in the settings.
        found: String,
        /// Supported cipher suites.
        known: Vec<String>,
    },
    /// Settings contradict each other, such as a version without a matching cipher suite.
    #[error("versions and cipher suites do not match: {0}")]
    Settings(rustls::Error),
}
