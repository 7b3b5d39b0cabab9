//! A small file system that this process serves (the kernel's FUSE, `linux/fuse.h`): directories,
//! symbolic links, and files that are text made when they are read and commands when they are
//! written to.
//!
//! One write of a process is one command, and returns when it has been answered; so a command may
//! take as long as what it starts. Nothing is cached: a file is there as long as [`Files`] says so.

mod protocol;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use protocol::{Operation, Out, Request};

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A directory.
    Directory,
    /// A file that can be read and written.
    File,
    /// A symbolic link to there.
    Link(String),
}

/// The files that are served. Paths are relative to the root, which is "".
pub trait Files {
    /// What is at a path.
    fn find(&self, path: &str) -> Option<Node>;

    /// The names in a directory.
    fn names(&self, directory: &str) -> Vec<String>;

    /// The text of a file.
    ///
    /// # Errors
    /// The system's number of the error that the reader is told.
    fn read(&self, path: &str) -> Result<String, i32>;

    /// What a process wrote to a file. It waits for the answer.
    fn write(&self, path: &str, text: &[u8], answer: Answer);

    /// A signal came to a process that waits for an answer.
    fn interrupted(&self);
}

/// The answer that a process waits for that wrote to a file. Dropped unused, it is `EIO`.
#[derive(Debug)]
pub struct Answer {
    device: Arc<File>,
    unique: u64,
    size: u32,
    is_given: bool,
}

impl Answer {
    /// All was taken, or the system's number of an error.
    pub fn give(mut self, outcome: Result<(), i32>) {
        self.send(outcome);
    }

    fn send(&mut self, outcome: Result<(), i32>) {
        if !std::mem::replace(&mut self.is_given, true) {
            let size = self.size;
            reply(&self.device, self.unique, outcome.map(|()| Out::new().u32(size).u32(0)));
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.send(Err(libc::EIO));
    }
}

/// A connection to the kernel's FUSE, not mounted yet.
#[derive(Debug)]
pub struct Connection {
    device: Arc<File>,
}

/// Directories and links, and files in use at once, that may become known at most.
const NODES_MAX: usize = 1 << 16;
/// Files that may be open at once.
const HANDLES_MAX: usize = 4096;
/// Where the numbers of files begin; those of directories and links are lower.
const FIRST_FILE: u64 = 1 << 32;

impl Connection {
    /// Opens `/dev/fuse`.
    ///
    /// # Errors
    /// Where the kernel has no FUSE, or this process may not use it.
    pub fn open() -> io::Result<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
        Ok(Self { device: Arc::new(device) })
    }

    /// The options that `mount` wants for it.
    pub(crate) fn mount_options(&self) -> String {
        let device = self.device.as_raw_fd();
        format!("fd={device},rootmode=40555,user_id=0,group_id=0,allow_other,default_permissions")
    }

    /// The same connection, for the thread that serves.
    #[must_use]
    pub fn share(&self) -> Self {
        Self { device: Arc::clone(&self.device) }
    }

    /// Serves until the file system is unmounted; to be called when it is mounted.
    ///
    /// # Errors
    /// What the system said.
    pub fn serve(self, files: &impl Files) -> io::Result<()> {
        let mut server = Server {
            device: self.device,
            files,
            folders: vec![String::new()],
            in_use: BTreeMap::new(),
            next_file: FIRST_FILE,
            handles: BTreeMap::new(),
            next_handle: 1,
        };
        let mut buffer = vec![0; protocol::BUFFER_BYTES];
        loop {
            let length = match (&*server.device).read(&mut buffer) {
                Ok(length) => length,
                Err(error) => match error.raw_os_error() {
                    // Unmounted.
                    Some(libc::ENODEV) => return Ok(()),
                    // The request was taken back before it was read, or a signal came.
                    Some(libc::ENOENT | libc::EINTR | libc::EAGAIN) => continue,
                    _ => return Err(error),
                },
            };
            if let Some(request) = Request::parse(&buffer[..length]) {
                server.handle(&request);
            }
        }
    }
}

/// Sends an answer; where nobody waits any more the kernel refuses it, which does no harm.
fn reply(device: &File, unique: u64, outcome: Result<Out, i32>) {
    let message = protocol::answer(unique, outcome);
    let mut device = device;
    let _ = device.write(&message);
}

struct Server<'a, F> {
    device: Arc<File>,
    files: &'a F,
    /// The path of each directory and link; node 1, the root, comes first.
    folders: Vec<String>,
    /// The path of each file, as often as it was looked up.
    in_use: BTreeMap<u64, String>,
    next_file: u64,
    /// What open files read, made when they are read from the beginning.
    handles: BTreeMap<u64, Vec<u8>>,
    next_handle: u64,
}

impl<F: Files> Server<'_, F> {
    fn handle(&mut self, request: &Request<'_>) {
        let path = match request.node {
            0 => String::new(),
            node => self.path(node).to_owned(),
        };
        let outcome = match &request.operation {
            Operation::Forget { nodes } => {
                nodes.iter().for_each(|node| drop(self.in_use.remove(node)));
                return;
            }
            Operation::Interrupt => return self.files.interrupted(),
            Operation::Write { data } => {
                let answer = Answer {
                    device: Arc::clone(&self.device),
                    unique: request.unique,
                    size: data.len() as u32,
                    is_given: false,
                };
                return self.files.write(&path, data, answer);
            }
            Operation::Init { minor } => Ok(protocol::initialized(*minor)),
            Operation::LookUp { name } => self.look_up(&path, name),
            Operation::Attributes => self.kind(&path).map(|kind| {
                protocol::attributes(Out::new().u64(0).u32(0).u32(0), request.node, &kind)
            }),
            Operation::ReadLink => match self.kind(&path) {
                Ok(Node::Link(target)) => Ok(Out::new().bytes(target.as_bytes())),
                Ok(_) => Err(libc::EINVAL),
                Err(error) => Err(error),
            },
            Operation::Open => self.kind(&path).and_then(|_| self.open()),
            Operation::Read { handle, offset, size } => self.read(&path, *handle, *offset, *size),
            Operation::Release { handle } => {
                self.handles.remove(handle);
                Ok(Out::new())
            }
            Operation::ReadDirectory { offset, size } => Ok(self.list(&path, *offset, *size)),
            Operation::Create => Err(libc::ENOENT),
            Operation::Other => Err(libc::ENOSYS),
        };
        reply(&self.device, request.unique, outcome);
    }

    fn path(&self, node: u64) -> &str {
        let path = if node >= FIRST_FILE {
            self.in_use.get(&node)
        } else {
            self.folders.get(usize::try_from(node).unwrap_or(usize::MAX).wrapping_sub(1))
        };
        path.map_or("", String::as_str)
    }

    fn kind(&self, path: &str) -> Result<Node, i32> {
        self.files.find(path).ok_or(libc::ENOENT)
    }

    /// The number of what has been looked up: of a file a new one.
    fn number(&mut self, path: String, kind: &Node) -> Result<u64, i32> {
        if *kind == Node::File {
            if self.in_use.len() == NODES_MAX {
                return Err(libc::ENOMEM);
            }
            let node = self.next_file;
            self.next_file += 1;
            self.in_use.insert(node, path);
            return Ok(node);
        }
        let index = match self.folders.iter().position(|known| *known == path) {
            Some(index) => index,
            None if self.folders.len() == NODES_MAX => return Err(libc::ENOMEM),
            None => {
                self.folders.push(path);
                self.folders.len() - 1
            }
        };
        Ok(index as u64 + 1)
    }

    fn look_up(&mut self, directory: &str, name: &str) -> Result<Out, i32> {
        let path = joined(directory, name);
        let kind = self.kind(&path)?;
        let node = self.number(path, &kind)?;
        // Number, generation, and how long both may be remembered: not at all.
        let entry = Out::new().u64(node).u64(0).u64(0).u64(0).u32(0).u32(0);
        Ok(protocol::attributes(entry, node, &kind))
    }

    fn open(&mut self) -> Result<Out, i32> {
        if self.handles.len() == HANDLES_MAX {
            return Err(libc::ENFILE);
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        self.handles.insert(handle, Vec::new());
        Ok(protocol::opened(handle))
    }

    fn read(&mut self, path: &str, handle: u64, offset: u64, size: u32) -> Result<Out, i32> {
        let text = self.handles.get_mut(&handle).ok_or(libc::EBADF)?;
        if offset == 0 {
            *text = self.files.read(path)?.into_bytes();
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        let end = start.saturating_add(size as usize).min(text.len());
        Ok(Out::new().bytes(&text[start..end]))
    }

    fn list(&self, directory: &str, offset: u64, size: u32) -> Out {
        let mut names = vec![".".to_owned(), "..".to_owned()];
        names.extend(self.files.names(directory));
        let mut out = Out::new();
        let first = usize::try_from(offset).unwrap_or(usize::MAX);
        for (index, name) in names.iter().enumerate().skip(first) {
            let path = joined(directory, name);
            let kind = if index < 2 { Ok(Node::Directory) } else { self.kind(&path) };
            // What has gone meanwhile is left out.
            let Ok(kind) = kind else { continue };
            if !out.push_entry(index as u64 + 1, name, &kind, size as usize) {
                break;
            }
        }
        out
    }
}

fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
