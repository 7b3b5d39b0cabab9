//! TLS 1.2 and 1.3 between the programs and the connections of emulated clients and servers:
//! implements the stack's sessions with rustls.
//!
//! The crate `ring` provides the cryptography. It needs only a C compiler to build and uses
//! assembly code on x86-64 and AArch64.
#![forbid(unsafe_code)]

mod cause;
mod error;
mod identity;
mod session;
mod settings;
mod tickets;
mod trusted;
mod unverified;

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::ServerName;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use wirestorm_stack::content::{Session, SessionFactory};

pub use error::TlsError;
pub use identity::Identity;
use identity::certificates;
use session::{FailedSession, TlsSession};
pub use settings::{Resume, TlsSettings, Version};
use tickets::{ClientTickets, Tickets};
use trusted::Trusted;
use unverified::AcceptAny;

/// TLS sessions of clients. Each client address keeps its own tickets, as separate machines would.
#[derive(Debug)]
pub struct TlsClients {
    config: Arc<ClientConfig>,
    /// Server name in the handshake (SNI); `None` uses the server's address.
    name: Option<ServerName<'static>>,
    /// `None` disables resumption.
    tickets: Option<Arc<Tickets>>,
}

impl TlsClients {
    /// Creates client sessions. Clients accept any certificate unless the settings name
    /// authorities.
    ///
    /// # Errors
    /// Returns an error if settings are invalid or contradict each other.
    pub fn new(settings: &TlsSettings) -> Result<Self, TlsError> {
        let provider = settings.provider()?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&settings.versions())
            .map_err(TlsError::Settings)?;
        let verifier: Arc<dyn ServerCertVerifier> = match &settings.authorities {
            Some(pem) => Arc::new(Trusted::new(pem, provider)?),
            None => Arc::new(AcceptAny(provider)),
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match &settings.client_identity {
            Some(identity) => builder
                .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
                .map_err(TlsError::Identity)?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = settings.protocols();
        config.resumption = Resumption::disabled();
        let parse = |name: &String| {
            ServerName::try_from(name.clone()).map_err(|_| TlsError::Name(name.clone()))
        };
        let name = settings.name.as_ref().map(parse).transpose()?;
        let resumes = settings.resume != Resume::NONE;
        let tickets = resumes.then(|| Arc::new(Tickets::new(settings.resume)));
        Ok(Self { config: Arc::new(config), name, tickets })
    }

    /// Maximum number of pairs of client address and server name that tickets are kept for. A new
    /// pair then evicts the oldest one.
    pub const PAIRS_MAX: usize = Tickets::PAIRS_MAX;

    /// Returns the rustls configuration of clients that never resume.
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }
}

impl SessionFactory for TlsClients {
    fn begin(&self, local: IpAddr, peer: IpAddr) -> Box<dyn Session> {
        let name = self.name.clone().unwrap_or_else(|| ServerName::from(peer));
        let config = match &self.tickets {
            None => Arc::clone(&self.config),
            Some(tickets) => {
                let of_client = Arc::new(ClientTickets::new(Arc::clone(tickets), local));
                let mut config = ClientConfig::clone(&self.config);
                config.resumption = Resumption::store(of_client);
                Arc::new(config)
            }
        };
        let connection = ClientConnection::new(config, name);
        session(connection.map(Connection::from))
    }
}

/// TLS sessions of servers.
#[derive(Debug)]
pub struct TlsServers {
    config: Arc<ServerConfig>,
}

impl TlsServers {
    /// Creates server sessions. Without an identity, generates a self-signed certificate.
    ///
    /// # Errors
    /// Returns an error if settings are invalid or contradict each other.
    pub fn new(settings: &TlsSettings) -> Result<Self, TlsError> {
        let generated;
        let identity = match &settings.identity {
            Some(identity) => identity,
            None => {
                generated = Identity::generate(settings.name.as_deref())?;
                &generated
            }
        };
        let provider = settings.provider()?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&settings.versions())
            .map_err(TlsError::Settings)?;
        let builder = match &settings.client_authorities {
            Some(pem) => {
                let authorities = certificates(pem).map_err(TlsError::Authorities)?;
                let roots = Arc::new(trusted::roots(&authorities)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                let verifier =
                    verifier.map_err(|error| TlsError::Authorities(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        let mut config = builder
            .with_single_cert(identity.chain.clone(), identity.key.clone_key())
            .map_err(TlsError::Identity)?;
        config.alpn_protocols = settings.protocols();
        // Tickets hold all resumption state, so servers need no memory per client.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if settings.resume != Resume::NONE {
            config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(TlsError::Settings)?;
        } else {
            config.send_tls13_tickets = 0;
        }
        Ok(Self { config: Arc::new(config) })
    }

    /// Returns the rustls configuration.
    pub fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }
}

impl SessionFactory for TlsServers {
    fn begin(&self, _: IpAddr, _: IpAddr) -> Box<dyn Session> {
        session(ServerConnection::new(Arc::clone(&self.config)).map(Connection::from))
    }
}

fn session(connection: Result<Connection, rustls::Error>) -> Box<dyn Session> {
    match connection {
        Ok(connection) => Box::new(TlsSession::new(connection)),
        Err(error) => Box::new(FailedSession(cause::of(&error))),
    }
}
