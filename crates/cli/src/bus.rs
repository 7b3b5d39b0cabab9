//! Flags of commands that connect to the bus of a site.

use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use wirestorm_bus::cluster::Credentials;
use wirestorm_bus::nats::{Key, NatsBus, NatsOptions};
use wirestorm_bus::subject::Site;
use wirestorm_bus::{Bus, BusError, ConnectionState, Server};
use wirestorm_control::plan::traffic::parse_time;

/// Site of a server without credentials.
pub(crate) const SITE: &str = "default";

/// Time between two attempts to connect.
const RETRY_TIME: Duration = Duration::from_millis(500);

/// Flags for the connection to the bus.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BusFlags {
    /// Address of the bus: nats://HOST:PORT or tls://HOST:PORT [default: that of the credentials]
    ///
    /// Several addresses of one bus have commas between them; the first that answers is used.
    #[arg(long, value_name = "URL", help_heading = "Bus")]
    pub(crate) bus: Option<String>,

    /// Credentials from `wirestorm cluster`; the file is secret
    #[arg(long, value_name = "FILE", help_heading = "Bus")]
    pub(crate) bus_credentials: Option<PathBuf>,

    /// Time to wait for the bus; a test then also waits for its agents [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Bus")]
    pub(crate) wait: Option<Duration>,
}

fn time(text: &str) -> Result<Duration, String> {
    let time = parse_time(text).ok_or("expected a time, such as 30s")?;
    Ok(Duration::from_nanos(time.as_nanos()))
}

/// Who a client of the bus is.
pub(crate) struct Member {
    /// Site.
    pub(crate) site: Site,
    /// Name.
    pub(crate) name: String,
    /// Key.
    pub(crate) key: Key,
    /// Public keys of the directors that an agent obeys.
    pub(crate) trusted: Vec<String>,
}

impl BusFlags {
    /// Returns whether the flags name a bus.
    pub(crate) fn is_given(&self) -> bool {
        self.bus.is_some() || self.bus_credentials.is_some()
    }

    /// Returns who the client is. `role` is that of the command; `name` is the name of a client
    /// without credentials, which gets a new key.
    ///
    /// # Errors
    /// A message if the credentials are wrong, or for another role.
    pub(crate) fn member(&self, role: &str, name: &str) -> Result<Member, String> {
        let Some(path) = &self.bus_credentials else {
            let site = Site::new(SITE).map_err(|error| error.to_string())?;
            let key = Key::generate();
            return Ok(Member { site, name: name.to_owned(), key, trusted: Vec::new() });
        };
        let failed = |error: String| format!("{}: {error}", path.display());
        let of_file = credentials(path)?;
        if of_file.role.name() != role {
            let found = of_file.role.name();
            return Err(failed(format!("these are credentials of a {found}, expected a {role}")));
        }
        Ok(Member {
            site: of_file.site().map_err(|error| failed(error.to_string()))?,
            name: of_file.name.clone(),
            key: of_file.key().map_err(|error| failed(error.to_string()))?,
            trusted: of_file.directors.clone(),
        })
    }

    /// Connects, and prints warnings about known faults of the server. `role` and `name` identify
    /// a client without credentials. A server that does not answer is tried again for the time of
    /// `--wait`, or until `stop` is set.
    ///
    /// # Errors
    /// A message if the flags are wrong, or the server cannot be used.
    pub(crate) fn connect(
        &self,
        role: &str,
        name: &str,
        stop: &AtomicBool,
    ) -> Result<NatsBus, String> {
        let options = self.options(role, name)?;
        let (wait, began) = (self.wait.unwrap_or_default(), Instant::now());
        let mut is_waiting = false;
        let bus = loop {
            match NatsBus::connect(options.clone()) {
                Ok(bus) => break bus,
                Err(error @ BusError::Disconnected { .. })
                    if began.elapsed() < wait && !stop.load(Ordering::Acquire) =>
                {
                    if !is_waiting {
                        eprintln!("wirestorm: waiting for the bus: {error}");
                    }
                    is_waiting = true;
                    std::thread::sleep(RETRY_TIME);
                }
                Err(error) => return Err(error.to_string()),
            }
        };
        if let ConnectionState::Connected(server) = bus.state() {
            warn(&server);
        }
        Ok(bus)
    }

    /// Returns the address of this machine on the way to the bus; `None` if there is no way.
    ///
    /// # Errors
    /// A message if the credentials are wrong.
    pub(crate) fn local_address(&self) -> Result<Option<IpAddr>, String> {
        let of_file = self.bus_credentials.as_deref().map(credentials).transpose()?;
        let url = self.bus.clone().or(of_file.map(|it| it.url)).unwrap_or_default();
        let first = url.split(',').next().unwrap_or_default();
        let host = first.split_once("://").map_or(first, |(_, host)| host);
        // Connecting a UDP socket sends nothing; it only chooses the source address.
        let any = if host.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).and_then(|it| it.connect(host).map(|()| it));
        Ok(socket.and_then(|socket| socket.local_addr()).ok().map(|address| address.ip()))
    }

    fn options(&self, role: &str, name: &str) -> Result<NatsOptions, String> {
        if let Some(path) = &self.bus_credentials {
            let options = credentials(path)?.options(self.bus.as_deref());
            return options.map_err(|error| format!("{}: {error}", path.display()));
        }
        let url = self.bus.as_deref().ok_or(
            "no bus: name the credentials from `wirestorm cluster` with --bus-credentials FILE, \
             or a server without keys with --bus URL",
        )?;
        let site = Site::new(SITE).map_err(|error| error.to_string())?;
        NatsOptions::new(url, &site, role, name).map_err(|error| format!("--bus: {error}"))
    }
}

/// Prints a warning about each known fault of a server.
pub(crate) fn warn(server: &Server) {
    for advisory in &server.advisories {
        eprintln!(
            "wirestorm: warning: nats-server {} has a known fault, {}: {}",
            server.version, advisory.id, advisory.text
        );
    }
}

/// Reads a file of credentials.
fn credentials(path: &Path) -> Result<Credentials, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    Credentials::from_json(&text).map_err(|error| failed(&error))
}
