//! `wirestorm console`: live tables and a command line for a server.

mod loader;

use std::env;
use std::io::{self, BufRead, IsTerminal};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use wirestorm_api::client::{Client, ClientError, ClientOptions};
use wirestorm_console::{ConsoleOptions, execute, interactive};
use wirestorm_control::bench::StopSignal;
use wirestorm_serve::{ListenOption, Owner, PortOption, ServerOptions, Service};

use crate::remote::{self, ServerFlags};
use crate::save::{DirectoryFlags, state_directory};
use crate::serve::{StateFlags, port};
use crate::signals::Signals;
use crate::status;
use crate::traffic::usage;

const EXAMPLES: &str = "\
Examples:
  wirestorm console --server lab
  wirestorm console
      the server on this machine, else a server of its own
  wirestorm console --port eth1 --port eth2
      a server of its own, whose ports 0 and 1 are eth1 and eth2
  wirestorm console -c 'start -f plan.yaml -p 0 1 -d 10' -c wait
      without a terminal
  wirestorm console --server lab < lines.txt

In the console, `help` lists the commands and the keys. Lines of TRex's console
work: start -f stl/imix.py -m 10kpps -p 0";

/// Time for the answer of a server on this machine.
const LOCAL_WAIT: Duration = Duration::from_secs(1);
/// Maximum size of all captures of a server of its own, in bytes.
const CAPTURES_BYTES_MAX: u64 = 10_000_000_000;

/// Control a server with live tables and a command line
///
/// Without --server, the console uses the server at 127.0.0.1:9410 if there is one. Otherwise it has
/// a server of its own, which other users of this machine cannot use and which ends with it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConsoleFlags {
    /// Execute a line without a terminal, and exit; repeatable
    #[arg(short, long = "command", value_name = "LINE")]
    command: Vec<String>,

    #[command(flatten)]
    server: ServerFlags,

    /// Interface that the console's own server lends; repeatable [default: all]
    #[arg(short, long, value_name = "[NAME=]INTERFACE", value_parser = port,
        conflicts_with = "server", help_heading = "Own server")]
    port: Vec<PortOption>,

    #[command(flatten)]
    state: StateFlags,

    #[command(flatten)]
    runs: DirectoryFlags,
}

/// A server, and its service if it is in this process.
struct Connected {
    client: Client,
    service: Option<Service>,
}

/// Runs the command.
pub(crate) fn run(flags: ConsoleFlags) -> ExitCode {
    let is_terminal = io::stdin().is_terminal() && flags.command.is_empty();
    if is_terminal && !io::stdout().is_terminal() {
        return usage(
            "standard output is not a terminal: execute lines with -c LINE, or from standard input",
        );
    }
    let Connected { client, service } = match connect(&flags) {
        Ok(connected) => connected,
        Err(message) => return usage(message),
    };
    let server = client.server().to_owned();
    let is_own_server = service.is_some();
    let options = ConsoleOptions {
        client,
        connector: Box::new({
            let flags = flags.server.clone();
            move |server: &str| flags.client_of(server)
        }),
        loader: Box::new(loader::Loader),
        is_own_server,
        history: state_directory().map(|state| state.join("console-history")),
        with_color: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    };
    let service = Arc::new(Mutex::new(service));
    let (active, status) = match is_terminal {
        true => match interactive(options) {
            Ok(active) => (active, 0),
            Err(error) => {
                eprintln!("wirestorm: {error}");
                (Vec::new(), status::FAILED)
            }
        },
        false => {
            end_on_signal(&service);
            execute_lines(flags.command, options)
        }
    };
    if !is_own_server && !active.is_empty() {
        let runs = active.join(", ");
        eprintln!("wirestorm: active runs continue on {server}: {runs}");
    }
    if is_own_server && !active.is_empty() {
        let runs = active.join(", ");
        eprintln!("wirestorm: stopping active runs, which end with this console: {runs}");
    }
    let saved = stop(&service);
    ExitCode::from(if saved || status != 0 { status } else { status::FAILED })
}

/// Executes the lines of flags, or of standard input. Returns the active runs and the exit status.
fn execute_lines(lines: Vec<String>, options: ConsoleOptions) -> (Vec<String>, u8) {
    let mut output = io::stdout();
    let executed = match lines.is_empty() {
        false => execute(options, lines.into_iter().map(Ok), &mut output),
        true => execute(options, io::stdin().lock().lines(), &mut output),
    };
    match executed {
        Ok(active) => (active, 0),
        Err(error) => {
            eprintln!("wirestorm: {error}");
            (Vec::new(), if error.is_usage() { status::USAGE } else { status::FAILED })
        }
    }
}

/// Stops the service. Returns whether all results are saved.
fn stop(service: &Mutex<Option<Service>>) -> bool {
    let service = service.lock().unwrap_or_else(PoisonError::into_inner).take();
    let unsaved = service.map(Service::stop).unwrap_or_default();
    if !unsaved.is_empty() {
        eprintln!("wirestorm: these results could not be saved: {}", unsaved.join(", "));
    }
    unsaved.is_empty()
}

/// Stops the runs of the own server when a signal ends the program.
fn end_on_signal(service: &Arc<Mutex<Option<Service>>>) {
    let has_service = service.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    if !has_service {
        return;
    }
    let signal = StopSignal::default();
    Signals::catch().on_stop(&signal);
    let service = Arc::clone(service);
    std::thread::spawn(move || {
        while !signal.wait(wirestorm_control::base::time::Duration::MAX) {}
        stop(&service);
        std::process::exit(status::INTERRUPTED.into());
    });
}

/// Returns the server that the flags name, else the one on this machine, else an own one.
fn connect(flags: &ConsoleFlags) -> Result<Connected, String> {
    let is_own =
        !flags.port.is_empty() || flags.state.state_dir.is_some() || flags.runs.runs_dir.is_some();
    if let Some(client) = flags.server.client()? {
        if is_own {
            return Err("--state-dir and --runs-dir have no effect with --server: the server has \
                        its own directories"
                .to_owned());
        }
        client.session().map_err(|error| error.to_string())?;
        return Ok(Connected { client, service: None });
    }
    if !is_own && let Some(client) = local_server()? {
        return Ok(Connected { client, service: None });
    }
    own_server(flags)
}

/// Returns a client of the server at the default address of this machine; `None` if there is none.
fn local_server() -> Result<Option<Client>, String> {
    // No token: nothing proves that the program at that address is a server of this user.
    let options = ClientOptions {
        server: Ipv4Addr::LOCALHOST.to_string(),
        user: remote::user(),
        ..ClientOptions::default()
    };
    let client = Client::new(&options).map_err(|error| error.to_string())?;
    match client.session_within(LOCAL_WAIT) {
        Ok(_) => Ok(Some(client)),
        Err(ClientError::Refused(error)) => Err(format!(
            "the server at {}: {error}; use --server localhost with --token-file",
            client.server()
        )),
        Err(_) => Ok(None),
    }
}

/// Starts a server in this process, with a user that nobody else is.
fn own_server(flags: &ConsoleFlags) -> Result<Connected, String> {
    let name = remote::user().unwrap_or_else(|| "local".to_owned());
    let owner = Owner::new(name).map_err(|error| error.to_string())?;
    let token = Some(owner.token().to_owned());
    let options = ServerOptions {
        ports: flags.port.clone(),
        directory: flags.state.directory()?,
        runs_directory: flags.runs.directory()?,
        captures_bytes_max: CAPTURES_BYTES_MAX,
        director: None,
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listen = ListenOption { address, tls: None, needs_user: true, owner: Some(owner) };
    let service = Service::start(options, &[listen], None).map_err(|error| error.to_string())?;
    let [address] = service.addresses() else {
        return Err("the server has no address".to_owned());
    };
    let options =
        ClientOptions { server: format!("http://{address}"), token, ..ClientOptions::default() };
    let client = Client::new(&options).map_err(|error| error.to_string())?;
    Ok(Connected { client, service: Some(service) })
}
