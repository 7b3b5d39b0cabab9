//! A NATS server of a test, on a random port of the loopback interface.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Scratch;
use crate::require::{find_tool, skip};

/// Environment variable with the path of another `nats-server` than the installed one.
pub const PROGRAM: &str = "WIRESTORM_NATS_SERVER";

/// Time for the start of the server.
const START_TIME: Duration = Duration::from_secs(20);

/// A running server, killed on drop and with this process. Its files are in a folder of its own.
#[derive(Debug)]
pub struct NatsServer {
    program: PathBuf,
    /// Network namespace; `None` for that of this thread.
    namespace: Option<String>,
    arguments: Vec<String>,
    child: Option<Child>,
    address: SocketAddr,
    scratch: Option<Scratch>,
}

/// Returns the program of the server; prints that the test is skipped if there is none.
#[must_use = "a test without the server has to return"]
pub fn require_nats_server() -> Option<PathBuf> {
    let set = std::env::var_os(PROGRAM).map(PathBuf::from);
    let program = set.or_else(|| find_tool("nats-server"));
    if program.is_none() {
        skip("nats-server is not installed; cargo xtask setup installs it");
    }
    program
}

/// Returns a port of the loopback interface that nobody uses.
///
/// # Errors
/// The error of `bind(2)`.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

impl NatsServer {
    /// Starts a server with JetStream and without users.
    ///
    /// # Errors
    /// The server does not start; the error has its output.
    pub fn open(program: &Path) -> io::Result<Self> {
        Self::open_at(program, (Ipv4Addr::LOCALHOST, free_port()?).into(), None, "")
    }

    /// Starts a server as [`Self::open`], at an address that this thread reaches, in a network
    /// namespace, with more lines of configuration.
    ///
    /// # Errors
    /// The server does not start; the error has its output.
    pub fn open_at(
        program: &Path,
        address: SocketAddr,
        namespace: Option<&str>,
        config: &str,
    ) -> io::Result<Self> {
        let scratch = Scratch::new()?;
        let file = scratch.file("nats-server.conf");
        std::fs::write(&file, config)?;
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let store = scratch.file("jetstream").display().to_string();
        let file = file.display().to_string();
        let arguments = ["-a", &host, "-p", &port, "-js", "-sd", &store, "-c", &file];
        let arguments = arguments.map(str::to_owned).to_vec();
        let (program, scratch) = (program.into(), Some(scratch));
        let namespace = namespace.map(str::to_owned);
        let mut server = Self { program, namespace, arguments, child: None, address, scratch };
        server.start()?;
        Ok(server)
    }

    /// Starts a server with a configuration file, which listens on `address`, in a network namespace.
    ///
    /// # Errors
    /// The server does not start; the error has its output.
    pub fn with_config(
        program: &Path,
        config: &Path,
        address: SocketAddr,
        namespace: Option<&str>,
    ) -> io::Result<Self> {
        let arguments = vec!["-c".to_owned(), config.display().to_string()];
        let (program, namespace) = (program.into(), namespace.map(str::to_owned));
        let mut server =
            Self { program, namespace, arguments, child: None, address, scratch: None };
        server.start()?;
        Ok(server)
    }

    /// Starts the server again after [`Self::kill`], on the same port, with its stored data.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub fn start(&mut self) -> io::Result<()> {
        // With `setpriv`, the server ends with the thread that started it, however that ends.
        let setpriv = find_tool("setpriv").map(|it| it.display().to_string());
        let namespace = self.namespace.iter().flat_map(|name| ["ip", "netns", "exec", name]);
        let setpriv = setpriv.iter().flat_map(|path| [path, "--pdeathsig", "KILL"]);
        let program = self.program.display().to_string();
        let mut words = namespace.chain(setpriv).chain([&*program]);
        let mut command = Command::new(words.next().unwrap_or(&program));
        command.args(words);
        let log = Scratch::new()?;
        let output = std::fs::File::create(log.file("log"))?;
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        let child = self.child.insert(command.spawn()?);
        let started = Instant::now();
        loop {
            if TcpStream::connect(self.address).is_ok() {
                return Ok(());
            }
            if child.try_wait()?.is_some() || started.elapsed() > START_TIME {
                let output = std::fs::read_to_string(log.file("log")).unwrap_or_default();
                return Err(io::Error::other(format!("nats-server does not start: {output}")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Port of the server.
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Process ID of the server; `None` after [`Self::kill`].
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Kills the server (SIGKILL), and waits for its end.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Makes the server read its configuration again (SIGHUP).
    ///
    /// # Errors
    /// The server does not run.
    pub fn reload(&self) -> io::Result<()> {
        let pid = self.pid().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("nats-server does not run"))?;
        Ok(rustix::process::kill_process(pid, rustix::process::Signal::HUP)?)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
        // The folder goes after the server, which writes to it.
        drop(self.scratch.take());
    }
}
