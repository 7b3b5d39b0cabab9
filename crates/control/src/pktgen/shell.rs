//! A script that a shell runs, with the files of pktgen in its `/proc/net`.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use wirestorm_io::fuse::{Answer, Connection};
use wirestorm_io::mounts::PrivateMounts;

use super::files::ProcNet;
use super::session::Session;

/// Why a script did not run.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The script cannot be given the files.
    #[error(
        "cannot make /proc/net/pktgen for the script ({operation}: {reason}): this needs root and \
         the kernel's FUSE (modprobe fuse)"
    )]
    Files {
        /// What was tried.
        operation: &'static str,
        /// What the system said.
        reason: io::Error,
    },
    /// Its interpreter does not start.
    #[error("{program}: {reason}")]
    Program {
        /// The interpreter.
        program: String,
        /// What the system said.
        reason: io::Error,
    },
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl ShellError {
    /// Whether it is the files that the script cannot be given.
    pub(super) fn is_about_files(&self) -> bool {
        matches!(self, Self::Files { .. })
    }
}

/// What the main thread is told.
enum Message {
    /// Start the devices, and answer when they have ended.
    Start(Answer),
    /// The script has ended.
    Ended(Result<ExitStatus, ShellError>),
}

/// Runs a script; returns its exit status.
///
/// # Errors
/// Where it did not start.
pub(super) fn run_shell(
    session: &Arc<Session>,
    command: Command,
) -> Result<ExitStatus, ShellError> {
    let failed = |operation| move |reason| ShellError::Files { operation, reason };
    let connection = Connection::open().map_err(failed("/dev/fuse"))?;
    let (teller, told) = channel();
    let served = connection.share();
    let starter = teller.clone();
    let start = move |answer| drop(starter.send(Message::Start(answer)));
    let files = ProcNet { session: Arc::clone(session), start: Box::new(start) };
    let (give_mounted, mounted) = channel();
    // It ends when the last process of the script is gone, which may stay behind it; nobody
    // waits for that.
    let server = std::thread::Builder::new().name("files".into()).spawn(move || {
        if mounted.recv().is_ok() {
            // Where it fails, the script is told by each of its reads and writes.
            let _ = served.serve(&files);
        }
    });
    server.map_err(ShellError::Thread)?;
    let script = std::thread::Builder::new().name("script".into()).spawn(move || {
        let _ = teller.send(Message::Ended(run(&connection, &give_mounted, command)));
    });
    script.map_err(ShellError::Thread)?;
    loop {
        match told.recv() {
            Ok(Message::Start(answer)) => {
                let started = session.start();
                answer.give(started.map_err(|error| {
                    session.failed(error.to_string());
                    libc::EIO
                }));
            }
            Ok(Message::Ended(outcome)) => return outcome,
            // The thread sends before it ends.
            Err(_) => return Err(failed("thread")(io::Error::other("it ended without a word"))),
        }
    }
}

/// Runs a script in mounts of the calling thread's own.
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
