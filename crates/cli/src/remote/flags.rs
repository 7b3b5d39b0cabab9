//! Flags for the connection to a server.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use wirestorm_api::client::{Client, ClientOptions};

/// Environment variable with the token.
const TOKEN: &str = "WIRESTORM_TOKEN";

/// Flags of commands that can work on a server.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServerFlags {
    /// Work on the server at this address, as `wirestorm serve` prints it
    ///
    /// HOST, HOST:PORT, http://HOST:PORT or https://HOST:PORT. Without a scheme: HTTP to loopback,
    /// HTTPS to other hosts. The default port is 9410.
    #[arg(long, value_name = "HOST", help_heading = "Server")]
    pub(crate) server: Option<String>,

    /// File with the token of the user [default: $WIRESTORM_TOKEN]
    #[arg(long, value_name = "FILE", requires = "server", help_heading = "Server")]
    token_file: Option<PathBuf>,

    /// Certificate of the server or its authority, in PEM [default: public ones]
    #[arg(long, value_name = "FILE", requires = "server", help_heading = "Server")]
    server_ca: Option<PathBuf>,

    /// Client certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "client_key", help_heading = "Server")]
    client_cert: Option<PathBuf>,

    /// Private key of the client certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "client_cert", help_heading = "Server")]
    client_key: Option<PathBuf>,

    /// Session of the user; leases of ports belong to it [default: the default session]
    #[arg(long, value_name = "NAME", requires = "server", help_heading = "Server")]
    session: Option<String>,
}

impl ServerFlags {
    /// Returns a client of the server, if the flags name one.
    ///
    /// # Errors
    /// A message about the address or a file.
    pub(crate) fn client(&self) -> Result<Option<Client>, String> {
        self.server.as_deref().map(|server| self.client_of(server)).transpose()
    }

    /// Returns a client of the server at an address, with the credentials of the flags.
    ///
    /// # Errors
    /// A message about the address or a file.
    pub(crate) fn client_of(&self, server: &str) -> Result<Client, String> {
        let token = match &self.token_file {
            Some(path) => Some(
                fs::read_to_string(path)
                    .map_err(|error| format!("--token-file {}: {error}", path.display()))?
                    .trim()
                    .to_owned(),
            ),
            None => std::env::var(TOKEN).ok().filter(|token| !token.is_empty()),
        };
        let options = ClientOptions {
            server: server.to_owned(),
            token,
            user: user(),
            authority: self.server_ca.clone(),
            certificate: self.client_cert.clone().zip(self.client_key.clone()),
            session: self.session.clone().unwrap_or_default(),
        };
        Client::new(&options).map_err(|error| error.to_string())
    }
}

/// Returns the name of the user, for a server without users.
pub(crate) fn user() -> Option<String> {
    std::env::var("USER").ok().filter(|user| !user.is_empty())
}
