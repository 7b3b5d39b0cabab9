//! A NATS server of a test, on a random port of the loopback interface.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
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
    arguments: Vec<String>,
    child: Option<Child>,
    port: u16,
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
        let scratch = Scratch::new()?;
        let port = free_port()?;
        let store = scratch.file("jetstream").display().to_string();
        let arguments = ["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd", &store];
        let arguments = arguments.map(str::to_owned).to_vec();
        let mut server =
            Self { program: program.into(), arguments, child: None, port, scratch: Some(scratch) };
        server.start()?;
        Ok(server)
    }

    /// Starts a server with a configuration file, which listens on `port`.
    ///
    /// # Errors
    /// The server does not start; the error has its output.
    pub fn with_config(program: &Path, config: &Path, port: u16) -> io::Result<Self> {
        let arguments = vec!["-c".to_owned(), config.display().to_string()];
        let program = program.into();
        let mut server = Self { program, arguments, child: None, port, scratch: None };
        server.start()?;
        Ok(server)
    }

    /// Starts the server again after [`Self::kill`], on the same port, with its stored data.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub fn start(&mut self) -> io::Result<()> {
        // With `setpriv`, the server ends with the thread that started it, however that ends.
        let mut command = match find_tool("setpriv") {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL"]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        let log = Scratch::new()?;
        let output = std::fs::File::create(log.file("log"))?;
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        let child = self.child.insert(command.spawn()?);
        let started = Instant::now();
        loop {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
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
        self.port
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
