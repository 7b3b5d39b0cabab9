//! The one file that a machine needs to connect.

use std::fmt::{self, Debug, Formatter};

use serde::{Deserialize, Serialize};

use super::Role;
use crate::BusError;
use crate::nats::{Key, NatsOptions};
use crate::subject::Site;

/// Credentials of an agent or a director, as JSON. The file has a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// [`Credentials::SCHEMA`].
    pub schema: String,
    /// Name of the site.
    pub site: String,
    /// What the key is for.
    pub role: Role,
    /// Name of the agent or the director.
    pub name: String,
    /// Address of the server: `tls://HOST:PORT`, or several with commas between them.
    pub url: String,
    /// Private key, as a seed: `SU...`.
    pub seed: String,
    /// Public keys of the directors that an agent obeys; empty for a director.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directors: Vec<String>,
    /// Certificate of the authority of the server, in PEM; `None` for a server without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

/// Largest file of credentials in bytes.
const CREDENTIALS_MAX: usize = 1 << 20;

impl Debug for Credentials {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("site", &self.site)
            .field("role", &self.role)
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Schema of the file.
    pub const SCHEMA: &str = "wirestorm.bus-credentials/1";

    /// Reads the content of a file.
    ///
    /// # Errors
    /// It is no JSON, has other fields, or another schema. The error has no secret.
    pub fn from_json(text: &str) -> Result<Self, BusError> {
        let wrong = |reason: String| BusError::invalid("credentials of the bus", reason);
        if text.len() > CREDENTIALS_MAX {
            return Err(wrong(format!("{} bytes; at most {CREDENTIALS_MAX}", text.len())));
        }
        let credentials: Self = serde_json::from_str(text).map_err(|error| {
            // The error of the parser may quote the text, and so the seed.
            let (line, column) = (error.line(), error.column());
            let reason = match error.classify() {
                serde_json::error::Category::Data => {
                    "a field is missing, unknown or of a wrong type"
                }
                _ => "no JSON",
            };
            wrong(format!(
                "line {line}, column {column}: {reason}; `wirestorm cluster` writes them"
            ))
        })?;
        if credentials.schema != Self::SCHEMA {
            let reason = format!("schema {:?}, expected {:?}", credentials.schema, Self::SCHEMA);
            return Err(wrong(reason));
        }
        Ok(credentials)
    }

    /// Returns the content of the file.
    ///
    /// # Errors
    /// None occurs for credentials that [`super::Cluster`] made.
    pub fn to_json(&self) -> Result<String, BusError> {
        let text = serde_json::to_string_pretty(self);
        let text = text.map_err(|error| BusError::invalid("credentials", error.to_string()))?;
        Ok(text + "\n")
    }

    /// Returns the key.
    ///
    /// # Errors
    /// The seed is wrong.
    pub fn key(&self) -> Result<Key, BusError> {
        Key::from_seed(&self.seed)
    }

    /// Returns the site.
    ///
    /// # Errors
    /// The name is wrong.
    pub fn site(&self) -> Result<Site, BusError> {
        Site::new(&self.site)
    }

    /// Returns the options of a connection. `url` replaces that of the credentials.
    ///
    /// # Errors
    /// A field is wrong.
    pub fn options(&self, url: Option<&str>) -> Result<NatsOptions, BusError> {
        let url = url.unwrap_or(&self.url);
        let options = NatsOptions::new(url, &self.site()?, self.role.name(), &self.name)?;
        let options = options.with_key(self.key()?);
        match &self.authority {
            Some(authority) => options.with_authority(authority),
            None => Ok(options),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cluster;
    use super::*;

    #[test]
    fn credentials_come_back_from_their_file() {
        let listen = "127.0.0.1:4222".parse().unwrap();
        let (mut cluster, _) = Cluster::new("lab", listen, &[]).unwrap();
        let credentials = cluster.add(Role::Agent, "tx").unwrap();
        let text = credentials.to_json().unwrap();
        assert_eq!(Credentials::from_json(&text).unwrap(), credentials);
        credentials.options(None).unwrap();
        assert!(!format!("{credentials:?}").contains(&credentials.seed));
    }

    #[test]
    fn a_wrong_file_is_refused_without_its_secret() {
        let seed = Key::generate().seed().unwrap();
        for text in [
            "",
            "[]",
            &format!("{{\"seed\": {seed}}}"),
            &format!("{{\"seed\": \"{seed}\"}}"),
            &format!("{{\"{seed}\": 1}}"),
        ] {
            let error = Credentials::from_json(text).unwrap_err().to_string();
            assert!(error.contains("line") && !error.contains(&seed), "{error}");
        }
        let other = format!(
            "{{\"schema\":\"other/1\",\"site\":\"a\",\"role\":\"agent\",\"name\":\"a\",\
             \"url\":\"nats://a\",\"seed\":\"{seed}\"}}"
        );
        let error = Credentials::from_json(&other).unwrap_err().to_string();
        assert!(error.contains("other/1") && error.contains(Credentials::SCHEMA), "{error}");
    }
}
