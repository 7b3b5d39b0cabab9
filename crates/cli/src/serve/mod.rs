//! `wirestorm serve`: hosts runs for users.

mod unit;
mod user;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use wirestorm_control::base::time::Duration;
use wirestorm_control::bench::StopSignal;
use wirestorm_serve::{
    ClientNetwork, DirectorMember, ListenOption, PortOption, ServerOptions, Service, Tls, TlsFiles,
    TrexMode, TrexOption,
};

use crate::bus::{BusFlags, Member};
use crate::save::DirectoryFlags;
use crate::signals::Signals;
use crate::status;
use crate::traffic::usage;

const EXAMPLES: &str = "\
Examples:
  wirestorm serve --port eth1 --port eth2
  wirestorm run plan.yaml --server localhost
  wirestorm serve user add ada --role operate
  wirestorm serve unit > /etc/systemd/system/wirestorm.service
  wirestorm serve --listen 0.0.0.0:9410 --tls-cert cert.pem --tls-key key.pem --port eth1
  wirestorm serve --port eth1 --port eth2 --otg
      snappi.api() and gosnappi connect to their default addresses, gnmic to
      localhost:9339
  wirestorm serve --trex stl --port eth1 --port eth2
  wirestorm serve --bus-credentials director.json
      tests across machines from the web page and the HTTP API
  wirestorm serve --port dut_in=eth1 --port dut_out=eth2 --listen 127.0.0.1:9000

On a loopback address, everybody on this machine may do everything. Any other
address needs TLS, and users with a token or a client certificate.";

/// Host runs for users: HTTP API, leases of ports
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ServeFlags {
    #[command(subcommand)]
    command: Option<ServeCommand>,

    /// Address and port to listen on; repeatable [default: 127.0.0.1:9410]
    ///
    /// Each address serves the HTTP API, Open Traffic Generator and gNMI. http:// and https:// select
    /// the protocol; the default is HTTPS if there is a --tls-cert. Without one, https:// has a
    /// certificate that clients cannot verify.
    #[arg(long, value_name = "[https://]ADDRESS:PORT", value_parser = listen)]
    listen: Vec<ListenAddress>,

    /// Listen on the standard ports of Open Traffic Generator and gNMI too
    ///
    /// HTTPS on 127.0.0.1:443, gRPC on 127.0.0.1:50051, and gNMI on 127.0.0.1:9339; the last two
    /// without TLS.
    #[arg(long)]
    otg: bool,

    /// Interface that the server lends; repeatable [default: all of this machine]
    #[arg(short, long, value_name = "[NAME=]INTERFACE", value_parser = port)]
    port: Vec<PortOption>,

    /// Certificate of the server in PEM, with those of intermediate authorities
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Access")]
    tls_cert: Option<PathBuf>,

    /// Private key of the server in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Access")]
    tls_key: Option<PathBuf>,

    /// Authorities of client certificates in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Access")]
    client_ca: Option<PathBuf>,

    /// Require a user on loopback addresses too
    #[arg(long, help_heading = "Access")]
    require_user: bool,

    /// Also serve TRex's clients in this mode: stl or astf
    ///
    /// The ports of TRex are those of --port, numbered in their order from 0.
    #[arg(long, value_name = "MODE", value_parser = trex_mode, requires = "port",
        help_heading = "TRex")]
    trex: Option<TrexMode>,

    /// Address to listen on for TRex's clients [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", requires = "trex", help_heading = "TRex")]
    trex_listen: Option<IpAddr>,

    /// Port of TRex's requests [default: 4501]
    #[arg(long, value_name = "PORT", requires = "trex", help_heading = "TRex")]
    trex_port: Option<u16>,

    /// Port of TRex's events [default: 4500]
    #[arg(long, value_name = "PORT", requires = "trex", help_heading = "TRex")]
    trex_async_port: Option<u16>,

    /// Networks of TRex's clients, which may do everything; required unless they are on this machine
    #[arg(
        long,
        value_name = "CIDR,...",
        value_delimiter = ',',
        requires = "trex",
        help_heading = "TRex"
    )]
    trex_clients: Vec<ClientNetwork>,

    #[command(flatten)]
    bus: BusFlags,

    #[command(flatten)]
    state: StateFlags,

    #[command(flatten)]
    runs: DirectoryFlags,

    /// Maximum size of all uploaded captures together
    #[arg(long, value_name = "GIGABYTES", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Storage")]
    captures_max: u64,
}

#[derive(Subcommand, Debug)]
enum ServeCommand {
    /// Add, list and remove users
    User(user::UserFlags),
    /// Print the systemd unit of the server
    Unit(unit::UnitFlags),
}

/// Flag for the directory of the server.
#[derive(Args, Clone, Debug)]
pub(crate) struct StateFlags {
    /// Directory of users, plans and captures
    ///
    /// [default: ~/.local/state/wirestorm/server]
    ///
    /// Without the flag: $XDG_STATE_HOME/wirestorm/server, else ~/.local/state/wirestorm/server.
    #[arg(long, value_name = "DIR", help_heading = "Storage")]
    pub(crate) state_dir: Option<PathBuf>,
}

impl StateFlags {
    /// Returns the directory.
    pub(crate) fn directory(&self) -> Result<PathBuf, String> {
        if let Some(directory) = &self.state_dir {
            return Ok(directory.clone());
        }
        crate::save::state_directory()
            .map(|state| state.join("server"))
            .ok_or_else(|| "no directory for the server: set HOME, or use --state-dir DIR".into())
    }
}

/// A value of `--listen`.
#[derive(Clone, Copy, Debug)]
struct ListenAddress {
    /// Whether to use TLS; `None` for the default.
    is_https: Option<bool>,
    address: SocketAddr,
}

fn listen(text: &str) -> Result<ListenAddress, String> {
    let (is_https, rest) = match text.split_once("://") {
        None => (None, text),
        Some(("http", rest)) => (Some(false), rest),
        Some(("https", rest)) => (Some(true), rest),
        Some((scheme, _)) => return Err(format!("found {scheme:?}, expected http or https")),
    };
    let address = rest
        .parse()
        .map_err(|_| "expected an IP address and a port, such as 127.0.0.1:9410".to_owned())?;
    Ok(ListenAddress { is_https, address })
}

/// Parses a value of `--port`.
pub(crate) fn port(text: &str) -> Result<PortOption, String> {
    let (name, interface) = text.split_once('=').unwrap_or((text, text));
    if name.is_empty() || interface.is_empty() {
        return Err("expected INTERFACE or NAME=INTERFACE".to_owned());
    }
    Ok(PortOption { name: name.to_owned(), interface: interface.to_owned() })
}

fn trex_mode(text: &str) -> Result<TrexMode, String> {
    match text {
        "stl" => Ok(TrexMode::Stl),
        "astf" => Ok(TrexMode::Astf),
        _ => Err("expected stl or astf".to_owned()),
    }
}

impl ServeFlags {
    /// Returns the server for TRex's clients.
    fn trex_option(&self) -> Result<Option<TrexOption>, String> {
        let Some(mode) = self.trex else { return Ok(None) };
        if self.require_user && self.trex_clients.is_empty() {
            return Err("--trex: TRex's clients have no users; name the networks that may do \
                        everything with --trex-clients, or leave out --require-user"
                .to_owned());
        }
        let defaults = TrexOption::new(mode);
        Ok(Some(TrexOption {
            mode,
            address: self.trex_listen.unwrap_or(defaults.address),
            request_port: self.trex_port.unwrap_or(defaults.request_port),
            event_port: self.trex_async_port.unwrap_or(defaults.event_port),
            clients: self.trex_clients.clone(),
        }))
    }
}

/// Runs the command.
pub(crate) fn run(flags: &ServeFlags) -> ExitCode {
    match &flags.command {
        Some(ServeCommand::User(flags)) => return user::run(flags),
        Some(ServeCommand::Unit(_)) => return crate::unit::SERVER.print(),
        None => {}
    }
    let service = match start(flags) {
        Ok(service) => service,
        Err(message) => return usage(message),
    };
    if let Some([requests, events]) = service.trex_addresses() {
        eprintln!("wirestorm: serving TRex's clients at {requests}, events at {events}");
    }
    let signals = Signals::catch();
    let stop = StopSignal::default();
    signals.on_stop(&stop);
    while !stop.wait(Duration::MAX) {}
    eprintln!("wirestorm: stopping all runs; another Ctrl-C ends the server at once");
    let unsaved = service.stop();
    if unsaved.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("wirestorm: these results could not be saved: {}", unsaved.join(", "));
    ExitCode::from(status::FAILED)
}

/// Connects to the bus on which the server directs tests.
fn director(flags: &BusFlags) -> Result<DirectorMember, String> {
    let Member { site, name, key, .. } = flags.member("director", "director")?;
    let bus = Arc::new(flags.connect("director", &name, &AtomicBool::new(false))?);
    let public = key.public();
    eprintln!("wirestorm: tests run on agents of the bus that trust the director's key {public}");
    Ok(DirectorMember { bus, site, name, key })
}

fn start(flags: &ServeFlags) -> Result<Service, String> {
    let mut names = std::collections::BTreeSet::new();
    for port in &flags.port {
        if !names.insert(&port.name)
            || !names.insert(&port.interface) && port.name != port.interface
        {
            return Err(format!("--port {}: named twice", port.name));
        }
    }
    let files = flags.tls_cert.clone().zip(flags.tls_key.clone());
    let files = files.map(|(certificate, key)| {
        let client_authority = flags.client_ca.clone();
        Tls::Files(TlsFiles { certificate, key, client_authority })
    });
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let mut addresses = flags.listen.clone();
    if addresses.is_empty() {
        let is_https = files.is_some().then_some(true);
        addresses.push(ListenAddress { is_https, address: local(wirestorm_api::PORT) });
    }
    if flags.otg {
        let standard = [(true, 443), (false, 50051), (false, 9339)];
        addresses.extend(standard.map(|(is_https, port)| ListenAddress {
            is_https: Some(is_https),
            address: local(port),
        }));
    }
    let listen: Vec<ListenOption> = addresses
        .into_iter()
        .map(|ListenAddress { is_https, address }| {
            let tls = match is_https {
                Some(false) => None,
                Some(true) => Some(files.clone().unwrap_or(Tls::SelfSigned)),
                None => files.clone(),
            };
            ListenOption { address, tls, needs_user: flags.require_user, owner: None }
        })
        .collect();
    let director = if flags.bus.is_given() { Some(director(&flags.bus)?) } else { None };
    let options = ServerOptions {
        ports: flags.port.clone(),
        directory: flags.state.directory()?,
        runs_directory: flags.runs.directory()?,
        captures_bytes_max: flags.captures_max * 1_000_000_000,
        director,
    };
    let service = Service::start(options, &listen, flags.trex_option()?)
        .map_err(|error| error.to_string())?;
    for (address, option) in service.addresses().iter().zip(&listen) {
        let scheme = if option.tls.is_some() { "https" } else { "http" };
        eprintln!("wirestorm: serving at {scheme}://{address}");
    }
    Ok(service)
}
