//! Runs a shell script with the pktgen files in its `/proc/net`.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use wirestorm_io::fuse::{Answer, Connection};
use wirestorm_io::mounts::PrivateMounts;

use super::files::ProcNet;
use super::session::Session;

/// Error of starting a script.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The pktgen files cannot be mounted for the script.
    #[error(
        "cannot make /proc/net/pktgen for the script ({operation}: {reason}): this needs root and \
         the kernel's FUSE (modprobe fuse)"
    )]
    Files {
        /// Operation that failed.
        operation: &'static str,
        /// System error.
        reason: io::Error,
    },
    /// The interpreter does not start.
    #[error("{program}: {reason}")]
    Program {
        /// Interpreter.
        program: String,
        /// System error.
        reason: io::Error,
    },
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl ShellError {
    /// Returns whether the pktgen files could not be mounted.
    pub(super) fn is_about_files(&self) -> bool {
        matches!(self, Self::Files { .. })
    }
}

/// Message to the main loop.
enum Message {
    /// Start the devices and give the answer when they have ended.
    Start(Answer),
    /// The script has ended.
    Ended(Result<ExitStatus, ShellError>),
}

/// Runs a script; returns its exit status.
///
/// # Errors
/// Fails if the script did not start.
pub(super) fn run_shell(
    session: &Arc<Session>,
    command: Command,
) -> Result<ExitStatus, ShellError> {
    let failed = |operation| move |reason| ShellError::Files { operation, reason };
    let connection = Connection::open().map_err(failed("/dev/fuse"))?;
    let (sender, receiver) = channel();
    let served = connection.share();
    let start_sender = sender.clone();
    let start = move |answer| drop(start_sender.send(Message::Start(answer)));
    let files = ProcNet { session: Arc::clone(session), start: Box::new(start) };
    let (give_mounted, mounted) = channel();
    // The server thread ends with the last process of the script. Processes may outlive the script,
    // so do not join the thread.
    let server = std::thread::Builder::new().name("files".into()).spawn(move || {
        if mounted.recv().is_ok() {
            // After an error, each read and write of the script fails.
            let _ = served.serve(&files);
        }
    });
    server.map_err(ShellError::Thread)?;
    let script = std::thread::Builder::new().name("script".into()).spawn(move || {
        let _ = sender.send(Message::Ended(run(&connection, &give_mounted, command)));
    });
    script.map_err(ShellError::Thread)?;
    loop {
        match receiver.recv() {
            Ok(Message::Start(answer)) => {
                let started = session.start();
                answer.complete(started.map_err(|error| {
                    session.failed(error.to_string());
                    libc::EIO
                }));
            }
            Ok(Message::Ended(outcome)) => return outcome,
            // Unreachable: the thread sends a message before it ends.
            Err(_) => return Err(failed("thread")(io::Error::other("it ended without a message"))),
        }
    }
}

/// Runs a script with private mounts of the calling thread.
fn run(
    connection: &Connection,
    give_mounted: &Sender<()>,
    mut command: Command,
) -> Result<ExitStatus, ShellError> {
    let failed = |operation| move |reason| ShellError::Files { operation, reason };
    let mounts = PrivateMounts::mount(connection).map_err(failed("mounting"))?;
    let _ = give_mounted.send(());
    mounts.cover_proc_net().map_err(failed("covering /proc/net"))?;
    command.status().map_err(|reason| {
        let program = command.get_program().to_string_lossy().into_owned();
        ShellError::Program { program, reason }
    })
}
