//! `wirestorm cluster`: the bus of the machines of a site.

mod directory;
mod server;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use wirestorm_bus::cluster::Role;
use wirestorm_bus::{Bus, ConnectionState};

use crate::bus::{BusFlags, SITE};
use crate::status;
use crate::traffic::usage;

use directory::{Directory, NewCluster};

const EXAMPLES: &str = "\
Examples:
  wirestorm cluster init --listen 10.0.0.1:4222 --agents tx,rx --start
  wirestorm cluster show
  wirestorm cluster add-agent rx2
  wirestorm cluster revoke rx2
  wirestorm cluster check --bus-credentials rx.json

`init` writes the configuration of a NATS server with TLS, and one file of
credentials for each agent and director. Copy each file to its machine. All
machines connect to the server; none has to be reachable itself.";

/// Set up the bus that connects the machines of a test
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ClusterFlags {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Subcommand, Debug)]
enum ClusterCommand {
    /// Write certificates, keys and the configuration of the server
    Init(InitFlags),
    /// Run the server until Ctrl-C, and start it again if it fails
    Start(StartFlags),
    /// Add agents, and write their credentials
    AddAgent(AddFlags),
    /// Add directors, and write their credentials
    AddDirector(AddFlags),
    /// Remove agents or directors; a running server ends their connections
    Revoke(RevokeFlags),
    /// Show the server, the agents and the directors
    Show(ShowFlags),
    /// Connect with credentials, and print the server's version and response time
    Check(CheckFlags),
}

/// Flag for the directory of the cluster.
#[derive(Args, Clone, Debug)]
struct DirectoryFlags {
    /// Directory of the keys and the configuration
    ///
    /// [default: ~/.local/state/wirestorm/cluster]
    ///
    /// Without the flag: $XDG_STATE_HOME/wirestorm/cluster, else ~/.local/state/wirestorm/cluster.
    #[arg(long, value_name = "DIR", help_heading = "Storage")]
    dir: Option<PathBuf>,
}

impl DirectoryFlags {
    fn directory(&self) -> Result<Directory, String> {
        let default = || crate::save::state_directory().map(|state| state.join("cluster"));
        let path = self.dir.clone().or_else(default);
        let path = path.ok_or("no directory for the cluster: set HOME, or use --dir DIR")?;
        // The server's configuration needs absolute paths.
        let path =
            std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Directory::new(path))
    }
}

#[derive(Args, Debug)]
struct InitFlags {
    /// Address and port on which the server listens
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,

    /// Host name or address by which agents reach the server; repeatable [default: that of --listen]
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,

    /// Name of the site, the first part of all names on the bus
    #[arg(long, value_name = "NAME", default_value = SITE)]
    site: String,

    /// Start the server, and run it until Ctrl-C
    #[arg(long)]
    start: bool,

    /// Names of the agents; `add-agent` adds more
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "Members")]
    agents: Vec<String>,

    /// Names of the directors
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "director",
        help_heading = "Members"
    )]
    directors: Vec<String>,

    /// Program of the server
    #[arg(long, value_name = "PROGRAM", default_value = "nats-server", help_heading = "Server")]
    server_command: PathBuf,

    /// Maximum size of results, plans and captures on the server
    #[arg(long, value_name = "GIGABYTES", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Storage")]
    store_max: u64,

    #[command(flatten)]
    directory: DirectoryFlags,
}

#[derive(Args, Debug)]
struct StartFlags {
    #[command(flatten)]
    directory: DirectoryFlags,
}

#[derive(Args, Debug)]
struct AddFlags {
    /// Names: letters, digits, - and _
    #[arg(required = true)]
    names: Vec<String>,

    #[command(flatten)]
    directory: DirectoryFlags,
}

#[derive(Args, Debug)]
struct RevokeFlags {
    /// Names of agents or directors
    #[arg(required = true)]
    names: Vec<String>,

    #[command(flatten)]
    directory: DirectoryFlags,
}

#[derive(Args, Debug)]
struct ShowFlags {
    /// Write it as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    directory: DirectoryFlags,
}

#[derive(Args, Debug)]
struct CheckFlags {
    #[command(flatten)]
    bus: BusFlags,
}

/// Runs the command.
pub(crate) fn run(flags: &ClusterFlags) -> ExitCode {
    let done = match &flags.command {
        ClusterCommand::Init(flags) => init(flags),
        ClusterCommand::Start(flags) => start(flags),
        ClusterCommand::AddAgent(flags) => add(flags, Role::Agent),
        ClusterCommand::AddDirector(flags) => add(flags, Role::Director),
        ClusterCommand::Revoke(flags) => revoke(flags),
        ClusterCommand::Show(flags) => show(flags),
        ClusterCommand::Check(flags) => check(flags),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => usage(message),
        Err(Failure::Failed(message)) => {
            eprintln!("wirestorm: {message}");
            ExitCode::from(status::FAILED)
        }
    }
}

/// Why a command failed.
enum Failure {
    /// Wrong input; nothing was changed.
    Usage(String),
    /// A failure of a file or the server.
    Failed(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

fn init(flags: &InitFlags) -> Result<(), Failure> {
    let directory = flags.directory.directory()?;
    let members = flags.agents.iter().map(|name| (Role::Agent, name));
    let members = members.chain(flags.directors.iter().map(|name| (Role::Director, name)));
    let new = NewCluster {
        site: &flags.site,
        listen: flags.listen,
        hosts: &flags.host,
        members: members.collect(),
        server_command: &flags.server_command,
        store_bytes: flags.store_max.saturating_mul(1_000_000_000),
    };
    let files = directory.create(&new)?;
    println!("site {} at {}", files.cluster.site, files.cluster.url);
    for member in &files.cluster.members {
        let path = directory.credentials(&member.name);
        println!("{:<9} {:<20} {}", member.role.name(), member.name, path.display());
    }
    println!("Copy each file of credentials to its machine; it is secret.");
    match server::version(&files.server_command) {
        Ok(server) => crate::bus::warn(&server),
        Err(message) => eprintln!("wirestorm: warning: {message}"),
    }
    if flags.start {
        return Ok(server::run(&directory)?);
    }
    println!("Start the server with either of:");
    println!("  wirestorm cluster start --dir {}", directory.path().display());
    println!("  {} -c {}", files.server_command.display(), directory.configuration().display());
    Ok(())
}

fn start(flags: &StartFlags) -> Result<(), Failure> {
    let directory = flags.directory.directory()?;
    let files = directory.read()?;
    match server::version(&files.server_command) {
        Ok(server) => crate::bus::warn(&server),
        Err(message) => return Err(Failure::Failed(message)),
    }
    Ok(server::run(&directory)?)
}

fn add(flags: &AddFlags, role: Role) -> Result<(), Failure> {
    let directory = flags.directory.directory()?;
    let members: Vec<_> = flags.names.iter().map(|name| (role, name)).collect();
    directory.add(&members)?;
    for name in &flags.names {
        println!("{}", directory.credentials(name).display());
    }
    eprintln!("wirestorm: {}", server::reload(&directory));
    Ok(())
}

fn revoke(flags: &RevokeFlags) -> Result<(), Failure> {
    let directory = flags.directory.directory()?;
    directory.revoke(&flags.names)?;
    eprintln!("wirestorm: {}", server::reload(&directory));
    Ok(())
}

fn show(flags: &ShowFlags) -> Result<(), Failure> {
    let directory = flags.directory.directory()?;
    let files = directory.read()?;
    if flags.json {
        let text = serde_json::to_string_pretty(&files).map_err(|error| error.to_string())?;
        println!("{text}");
        return Ok(());
    }
    let state = match server::process_id(&directory) {
        Some(id) => format!("runs as process {id}"),
        None => "does not run".into(),
    };
    println!("site    {}", files.cluster.site);
    println!("url     {}", files.cluster.url);
    println!("server  {}; {state}", directory.configuration().display());
    println!("\n{:<9} {:<20} key", "role", "name");
    for member in &files.cluster.members {
        println!("{:<9} {:<20} {}", member.role.name(), member.name, member.key);
    }
    Ok(())
}

/// Time for the answer of a check.
const CHECK_TIME: Duration = Duration::from_secs(5);

fn check(flags: &CheckFlags) -> Result<(), Failure> {
    if flags.bus.bus.is_none() && flags.bus.bus_credentials.is_none() {
        let message =
            "name the credentials with --bus-credentials FILE, or a server with --bus URL";
        return Err(Failure::Usage(message.into()));
    }
    let bus = flags.bus.connect("client", "check", &AtomicBool::new(false))?;
    let started = Instant::now();
    bus.flush(CHECK_TIME).map_err(|error| error.to_string())?;
    let time = started.elapsed();
    if let ConnectionState::Connected(server) = bus.state() {
        let (address, version) = (&server.address, &server.version);
        println!("{address}: nats-server {version}, answers in {:.1} ms", time.as_secs_f64() * 1e3);
    }
    Ok(())
}
