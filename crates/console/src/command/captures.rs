//! Captures: files on the server, and frames of a port.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clap::{Args, Subcommand};

use super::{Answer, CommandError, Execute, Result, trex_time};
use crate::number::grouped;
use crate::session::{Recording, Session};
use crate::text::table;

/// Most captures at a time.
const RECORDINGS_MAX: usize = 32;

/// Captures on the server.
#[derive(Args, Debug)]
pub(crate) struct Captures {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List the captures
    List,
    /// Download a capture
    Download {
        /// Name
        #[arg(value_name = "CAPTURE")]
        name: String,
        /// File of this machine [default: the name]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Delete captures
    Delete {
        /// Names
        #[arg(value_name = "CAPTURE", required = true)]
        names: Vec<String>,
    },
}

impl Execute for Captures {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let client = &session.client;
        let text = match self.action.unwrap_or(Action::List) {
            Action::List => {
                let captures = client.captures()?;
                let rows: Vec<_> =
                    captures.iter().map(|it| [it.name.clone(), grouped(it.bytes)]).collect();
                match rows.is_empty() {
                    true => "no captures: `upload FILE` uploads one\n".to_owned(),
                    false => table(["capture", "bytes"], &rows),
                }
            }
            Action::Download { name, output } => {
                let path = output.unwrap_or_else(|| PathBuf::from(&name));
                let mut content = client.download(&name)?;
                let mut file = create(&path)?;
                let bytes =
                    io::copy(&mut content, &mut file).map_err(|error| of_file(&path, &error))?;
                format!("wrote {} ({bytes} bytes)", path.display())
            }
            Action::Delete { names } => {
                for name in &names {
                    client.delete_capture(name)?;
                }
                format!("deleted {}", names.join(", "))
            }
        };
        Ok(Answer::Text(text))
    }
}

fn create(path: &Path) -> Result<File> {
    File::create(path).map_err(|error| of_file(path, &error))
}

fn of_file(path: &Path, error: &io::Error) -> CommandError {
    CommandError::failed(format!("{}: {error}", path.display()))
}

/// Upload a file.
#[derive(Args, Debug)]
pub(crate) struct Upload {
    /// File of this machine
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Name on the server [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl Execute for Upload {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let name = match self.name {
            Some(name) => name,
            None => self.file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let file = File::open(&self.file)
            .map_err(|error| CommandError::usage(format!("{}: {error}", self.file.display())))?;
        let capture = session.client.upload(&name, file)?;
        Ok(Answer::Text(format!("uploaded {} ({} bytes)", capture.name, grouped(capture.bytes))))
    }
}

/// Capture frames.
#[derive(Args, Debug)]
pub(crate) struct Capture {
    #[command(subcommand)]
    action: FrameAction,
}

#[derive(Subcommand, Debug)]
enum FrameAction {
    /// Capture the frames that arrive at a port
    #[command(alias = "record")]
    Start {
        /// Port by number, name or interface
        #[arg(value_name = "PORT")]
        port: Option<String>,
        /// The same
        #[arg(long, value_name = "PORT", conflicts_with = "port")]
        rx: Option<String>,
        /// File of this machine
        #[arg(short, long, value_name = "FILE")]
        write: PathBuf,
        /// Filter in tcpdump syntax
        #[arg(short, long, value_name = "FILTER")]
        filter: Option<String>,
        /// Stop after this many frames
        #[arg(short = 'c', long, alias = "limit", value_name = "N")]
        packets: Option<u64>,
        /// Stop after this time
        #[arg(short, long, value_name = "TIME")]
        duration: Option<String>,
        /// Maximum bytes stored of each frame
        #[arg(long, value_name = "BYTES")]
        snaplen: Option<usize>,
    },
    /// List the captures of this console
    Show,
    /// Stop captures, or wait for those with a limit
    Stop {
        /// Numbers of captures [default: all]
        #[arg(value_name = "NUMBER")]
        numbers: Vec<usize>,
        /// Wait until the limits of the captures are reached
        #[arg(long)]
        wait: bool,
    },
}

impl Execute for Capture {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        match self.action {
            FrameAction::Start { port, rx, write, filter, packets, duration, snaplen } => {
                let name = port.or(rx).ok_or_else(|| {
                    CommandError::usage("name the port: capture start PORT -w FILE")
                })?;
                let mut query = Vec::new();
                query.extend(filter.map(|it| ("filter", it)));
                query.extend(packets.map(|it| ("packets", it.to_string())));
                query.extend(duration.map(|it| ("duration", trex_time(&it))));
                query.extend(snaplen.map(|it| ("snap_length", it.to_string())));
                start(session, &name, write, &query)
            }
            FrameAction::Show => Ok(Answer::Text(list(&session.recordings))),
            FrameAction::Stop { numbers, wait } => stop(session, &numbers, wait),
        }
    }
}

fn start(
    session: &mut Session,
    name: &str,
    file: PathBuf,
    query: &[(&str, String)],
) -> Result<Answer> {
    if session.recordings.len() >= RECORDINGS_MAX {
        let message = format!("{RECORDINGS_MAX} captures at a time: `capture stop` ends them");
        return Err(CommandError::usage(message));
    }
    let found = session.ports(&[name.to_owned()])?.pop();
    let port = found.map_or_else(|| name.to_owned(), |(_, port)| port.name);
    let frames = session.client.capture(&port, query)?;
    let output = create(&file)?;
    let (bytes, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (written, stopped) = (Arc::clone(&bytes), Arc::clone(&stop));
    let record = move || record(frames, output, &written, &stopped);
    let thread = std::thread::Builder::new().name("console-capture".to_owned()).spawn(record);
    let thread =
        thread.map_err(|error| CommandError::failed(format!("cannot start a thread: {error}")))?;
    let number = session.recordings.iter().map(|it| it.number).max().map_or(1, |it| it + 1);
    let text = format!("capture {number}: {port} to {}", file.display());
    session.recordings.push(Recording { number, port, file, bytes, stop, thread });
    Ok(Answer::Text(text))
}

/// Writes each chunk at once, so that the file is complete at any time.
fn record(
    mut frames: impl Read,
    mut output: File,
    bytes: &AtomicU64,
    stop: &AtomicBool,
) -> std::result::Result<(), String> {
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        let length = match frames.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.to_string()),
        };
        output
            .write_all(buffer.get(..length).unwrap_or_default())
            .map_err(|error| error.to_string())?;
        bytes.fetch_add(length as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn list(recordings: &[Recording]) -> String {
    if recordings.is_empty() {
        return "no captures: `capture start PORT -w FILE` starts one\n".to_owned();
    }
    let row = |it: &Recording| {
        [
            it.number.to_string(),
            it.port.clone(),
            if it.thread.is_finished() { "ended" } else { "active" }.to_owned(),
            grouped(it.bytes.load(Ordering::Relaxed)),
            it.file.display().to_string(),
        ]
    };
    let rows: Vec<_> = recordings.iter().map(row).collect();
    table(["capture", "port", "state", "bytes", "file"], &rows)
}

fn stop(session: &mut Session, numbers: &[usize], wait: bool) -> Result<Answer> {
    let known: Vec<usize> = session.recordings.iter().map(|it| it.number).collect();
    if let Some(number) = numbers.iter().find(|number| !known.contains(number)) {
        let message = format!("no capture {number}: `capture show` lists them");
        return Err(CommandError::usage(message));
    }
    let is_chosen = |it: &Recording| numbers.is_empty() || numbers.contains(&it.number);
    let all = std::mem::take(&mut session.recordings);
    let (chosen, others) = all.into_iter().partition(is_chosen);
    session.recordings = others;
    let chosen: Vec<Recording> = chosen;
    if chosen.is_empty() {
        return Ok(Answer::Text("no captures".to_owned()));
    }
    let mut lines = Vec::new();
    for Recording { number, port, file, bytes, stop, thread } in chosen {
        if !wait {
            stop.store(true, Ordering::Relaxed);
        }
        // A thread without frames ends with the next one; its file is complete.
        let ended = match wait || thread.is_finished() {
            true => {
                thread.join().unwrap_or_else(|_| Err("the thread ended by a defect".to_owned()))
            }
            false => Ok(()),
        };
        ended.map_err(|error| {
            CommandError::failed(format!("capture {number} of {port}: {error}"))
        })?;
        let bytes = grouped(bytes.load(Ordering::Relaxed));
        lines.push(format!("capture {number}: {} has {bytes} bytes", file.display()));
    }
    Ok(Answer::Text(lines.join("\n")))
}
