//! What is wrong with settings.

/// Why there can be no sessions of such settings.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate in a file.
    #[error("no certificate found, expected a chain as PEM, the server's own first: {0}")]
    Chain(String),
    /// No key in a file.
    #[error("no private key found, expected one as PEM (PKCS #8, PKCS #1 or SEC 1): {0}")]
    Key(String),
    /// No authorities in a file.
    #[error("no certificate of an authority found, expected one or more as PEM: {0}")]
    Authorities(String),
    /// Certificate and key do not go together, or are of a kind that is not known.
    #[error("certificate and key cannot be used: {0}")]
    Identity(rustls::Error),
    /// A certificate could not be made.
    #[error("cannot make a certificate for {name:?}: {reason}")]
    Generate {
        /// For whom.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A name that nobody can have.
    #[error("found the name {0:?}, expected a host's name such as example.test, or an address")]
    Name(String),
    /// A cipher suite that is not known.
    #[error("found the cipher suite {found:?}, expected of these: {}", known.join(", "))]
    Cipher {
        /// Target of the run.
        found: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Settings that do not go together, such as a version without a cipher suite.
    #[error("versions and cipher suites do not go together: {0}")]
    Settings(rustls::Error),
}
