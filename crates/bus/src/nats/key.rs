//! Keys of agents and directors: Ed25519, in the text form of NATS (nkeys).

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use nkeys::{KeyPair, KeyPairType};

use crate::BusError;

/// A private key, with which a client proves who it is.
#[derive(Clone)]
pub struct Key(Arc<KeyPair>);

impl Debug for Key {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        // The private part must not get into messages.
        formatter.debug_tuple("Key").field(&self.public()).finish()
    }
}

impl Key {
    /// Returns a new random key.
    pub fn generate() -> Self {
        Self(Arc::new(KeyPair::new_user()))
    }

    /// Reads the seed of a key: 58 characters that begin with `SU`.
    ///
    /// # Errors
    /// The text is not the seed of a user. The error does not have the text.
    pub fn from_seed(seed: &str) -> Result<Self, BusError> {
        let wrong = |reason: String| BusError::invalid("seed of a key", reason);
        let pair = KeyPair::from_seed(seed.trim()).map_err(|error| wrong(error.to_string()))?;
        match pair.key_pair_type() {
            KeyPairType::User => Ok(Self(Arc::new(pair))),
            other => Err(wrong(format!("it is of type {other:?}, expected a user: SU..."))),
        }
    }

    /// Returns the seed, which is secret.
    ///
    /// # Errors
    /// The key has no private part.
    pub fn seed(&self) -> Result<String, BusError> {
        self.0.seed().map_err(|error| BusError::invalid("seed of a key", error.to_string()))
    }

    /// Returns the public key: 56 characters that begin with `U`.
    pub fn public(&self) -> String {
        self.0.public_key()
    }

    /// Signs bytes (Ed25519, RFC 8032); the signature has 64 bytes.
    ///
    /// # Errors
    /// The key has no private part.
    pub fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, BusError> {
        self.0.sign(bytes).map_err(|error| BusError::invalid("key", error.to_string()))
    }

    /// Returns whether a signature of bytes is by the private part of a public key.
    pub fn is_signed(public: &str, bytes: &[u8], signature: &[u8]) -> bool {
        KeyPair::from_public_key(public).is_ok_and(|key| key.verify(bytes, signature).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_key() {
        let key = Key::generate();
        let seed = key.seed().unwrap();
        assert!(seed.starts_with("SU") && key.public().starts_with('U'));
        assert_eq!(Key::from_seed(&format!("{seed}\n")).unwrap().public(), key.public());
        assert!(!format!("{key:?}").contains(&seed));
    }

    #[test]
    fn signatures_hold_for_one_key_and_one_text() {
        let (key, other) = (Key::generate(), Key::generate());
        let signature = key.sign(b"plan").unwrap();
        assert!(Key::is_signed(&key.public(), b"plan", &signature));
        assert!(!Key::is_signed(&key.public(), b"plans", &signature));
        assert!(!Key::is_signed(&other.public(), b"plan", &signature));
        assert!(!Key::is_signed(&key.public(), b"plan", &signature[1..]));
        assert!(!Key::is_signed("no key", b"plan", &signature));
    }

    #[test]
    fn what_is_no_seed_is_refused_without_its_text() {
        for text in ["", "SU", "SUSECRET", &KeyPair::new_account().seed().unwrap()] {
            let error = Key::from_seed(text).unwrap_err().to_string();
            assert!(text.len() < 4 || !error.contains(text), "{error}");
        }
    }
}
