//! What a NATS server of Wirestorm needs: certificates, keys, permissions and configuration.
//!
//! Everything here is pure: it returns texts, and whoever calls it writes files.
//!
//! # What a key may do
//!
//! | key | publishes | subscribes | reads |
//! | --- | --- | --- | --- |
//! | agent | its status, events, results and captures; lease requests; answers | its requests | plans and files of tests by name, its lease |
//! | director | all of the site but status and events of agents | all of the site | all stores |
//!
//! Nobody has the right to create consumers of JetStream: a consumer sends stored messages to any
//! subject. Nobody deletes or purges streams.
//!
//! # What remains open
//!
//! | what | why | what holds against it |
//! | --- | --- | --- |
//! | an agent reads each plan whose name it knows | NATS has no rights by content | names are SHA-256 digests, and only directors list them |
//! | an agent directs an answer of the server to any subject | NATS checks no reply subjects | a bus ignores messages with headers, and answers to inboxes alone; acknowledgements have no content of the agent |
//! | an agent fills the log or its captures, so others cannot write | NATS 2.9 has no quota for each user | size limits; the error names the full store |
//! | an agent asks for the lease of another | one subject for each test | the answer goes to the one who asked |
//! | a director acts as another one | they share the prefix | agents verify signed orders, SHA-256 of files, and fencing tokens |

mod certificate;
mod configuration;
mod credentials;

pub use certificate::{Certificates, certificates};
pub use configuration::{Limits, Paths};
pub use credentials::Credentials;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::BusError;
use crate::nats::Key;
use crate::subject::{Site, checked_name};

/// Name of the bucket of leases. The key of a lease is the name of its agent.
pub const LEASES: &str = "leases";
/// Name of the log of results.
pub const RESULTS: &str = "results";
/// Name of the object store of plans and files of tests, which directors write. An object is
/// `TEST.SHA256.PIECE`.
pub const PLANS: &str = "plans";
/// Name of the object store of captures, which agents write. An object is `AGENT.NAME`.
pub const CAPTURES: &str = "captures";

/// Most agents and directors of a cluster.
pub const MEMBERS_MAX: usize = 10_000;

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Runs traffic on a machine.
    Agent,
    /// Starts and watches tests.
    Director,
}

impl Role {
    /// Returns the name, as in subjects.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Director => "director",
        }
    }
}

/// An agent or a director, with its public key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// What it is.
    pub role: Role,
    /// Its name, unique among all members.
    pub name: String,
    /// Its public key.
    pub key: String,
}

/// A site with its server. It has no secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Name of the site.
    pub site: String,
    /// Address and port on which the server listens.
    pub listen: SocketAddr,
    /// URL by which agents and directors reach the server.
    pub url: String,
    /// Certificate of the authority of the server, in PEM.
    pub authority: String,
    /// Agents and directors.
    pub members: Vec<Member>,
}

impl Cluster {
    /// Returns a cluster without members, and the certificates of its server.
    ///
    /// `names` are the host names and addresses by which the server is reached; the first one gets
    /// into the URL. Without one, it is the address of `listen`.
    ///
    /// # Errors
    /// A name is wrong, or `listen` is no address that can be reached and there is no name.
    pub fn new(
        site: &str,
        listen: SocketAddr,
        names: &[String],
    ) -> Result<(Self, Certificates), BusError> {
        let site = Site::new(site)?;
        let mut names = names.to_vec();
        if names.is_empty() {
            if listen.ip().is_unspecified() {
                let reason = "this is no address that agents can reach; name one, such as the \
                              host name of this machine";
                return Err(BusError::invalid(format!("listen address {listen}"), reason));
            }
            names.push(listen.ip().to_string());
        }
        if listen.port() == 0 {
            let reason = "expected a port other than 0";
            return Err(BusError::invalid(format!("listen address {listen}"), reason));
        }
        let host = names.first().map(String::as_str).unwrap_or_default();
        let url = match host.contains(':') {
            true => format!("tls://[{host}]:{}", listen.port()),
            false => format!("tls://{host}:{}", listen.port()),
        };
        let certificates = certificates(&site, &names)?;
        let authority = certificates.authority.clone();
        let site = site.name().to_owned();
        Ok((Self { site, listen, url, authority, members: Vec::new() }, certificates))
    }

    /// Adds an agent or a director; returns its credentials.
    ///
    /// # Errors
    /// The name is wrong or taken, or there are too many members.
    pub fn add(&mut self, role: Role, name: &str) -> Result<Credentials, BusError> {
        checked_name(role.name(), name)?;
        if let Some(member) = self.members.iter().find(|member| member.name == name) {
            let reason = format!("there is {} of this name already", member.role.with_article());
            return Err(BusError::invalid(format!("{} {name}", role.name()), reason));
        }
        if self.members.len() >= MEMBERS_MAX {
            let reason = format!("more than {MEMBERS_MAX} agents and directors");
            return Err(BusError::full(format!("{} {name}", role.name()), reason));
        }
        let key = Key::generate();
        self.members.push(Member { role, name: name.into(), key: key.public() });
        Ok(Credentials {
            schema: Credentials::SCHEMA.into(),
            site: self.site.clone(),
            role,
            name: name.into(),
            url: self.url.clone(),
            seed: key.seed()?,
            directors: match role {
                Role::Agent => self.keys_of(Role::Director),
                Role::Director => Vec::new(),
            },
            authority: Some(self.authority.clone()),
        })
    }

    /// Returns the public keys of all members of a role.
    pub fn keys_of(&self, role: Role) -> Vec<String> {
        let members = self.members.iter().filter(|member| member.role == role);
        members.map(|member| member.key.clone()).collect()
    }

    /// Removes a member. Its key ends when the server has read the new configuration.
    ///
    /// # Errors
    /// There is no member of this name.
    pub fn revoke(&mut self, name: &str) -> Result<Member, BusError> {
        let found = self.members.iter().position(|member| member.name == name);
        let Some(position) = found else {
            return Err(BusError::invalid(
                format!("agent or director {name:?}"),
                format!("there is none of this name; there are {}", self.names()),
            ));
        };
        Ok(self.members.remove(position))
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|member| &*member.name).take(20).collect();
        match self.members.len() {
            0 => "no members".into(),
            count if count > names.len() => format!("{}, ...", names.join(", ")),
            _ => names.join(", "),
        }
    }
}

impl Role {
    const fn with_article(self) -> &'static str {
        match self {
            Self::Agent => "an agent",
            Self::Director => "a director",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Cluster {
        let listen = "127.0.0.1:4222".parse().unwrap();
        Cluster::new("lab", listen, &[]).unwrap().0
    }

    #[test]
    fn the_url_names_the_first_host() {
        let listen: SocketAddr = "0.0.0.0:4222".parse().unwrap();
        let error = Cluster::new("lab", listen, &[]).unwrap_err().to_string();
        assert!(error.contains("0.0.0.0:4222") && error.contains("host name"), "{error}");
        let names = ["bus.example.org".to_owned(), "10.0.0.1".to_owned()];
        let (cluster, _) = Cluster::new("lab", listen, &names).unwrap();
        assert_eq!(cluster.url, "tls://bus.example.org:4222");
        let (cluster, _) = Cluster::new("lab", "[::1]:4222".parse().unwrap(), &[]).unwrap();
        assert_eq!(cluster.url, "tls://[::1]:4222");
    }

    #[test]
    fn a_name_is_unique_among_agents_and_directors() {
        let mut cluster = cluster();
        cluster.add(Role::Agent, "a").unwrap();
        let error = cluster.add(Role::Director, "a").unwrap_err().to_string();
        assert_eq!(error, "director a: there is an agent of this name already");
        assert!(cluster.add(Role::Agent, "a.b").is_err());
        assert_eq!(cluster.members.len(), 1);
    }

    #[test]
    fn a_revoked_key_leaves_the_cluster() {
        let mut cluster = cluster();
        let a = cluster.add(Role::Agent, "a").unwrap();
        let b = cluster.add(Role::Agent, "b").unwrap();
        assert_eq!(cluster.revoke("a").unwrap().key, a.key().unwrap().public());
        assert_eq!(cluster.members[0].key, b.key().unwrap().public());
        let error = cluster.revoke("a").unwrap_err().to_string();
        assert!(error.contains("\"a\"") && error.contains("there are b"), "{error}");
    }

    #[test]
    fn the_file_of_a_cluster_has_no_secrets() {
        let mut cluster = cluster();
        let credentials = cluster.add(Role::Agent, "a").unwrap();
        let text = serde_json::to_string(&cluster).unwrap();
        assert!(!text.contains(&credentials.seed) && !text.contains("PRIVATE"));
        assert_eq!(serde_json::from_str::<Cluster>(&text).unwrap(), cluster);
    }
}
