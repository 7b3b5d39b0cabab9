//! A small FUSE file system (`linux/fuse.h`) with directories, symbolic links and control files.
//! Reading a file generates its text; writing to a file runs a command.
//!
//! Each write is one command and returns after the command's answer, which may take as long as the
//! work that it starts. The kernel caches nothing: a file exists as long as [`Files`] finds it.

mod protocol;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use protocol::{Operation, Out, Request};

/// Kind of node at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A directory.
    Directory,
    /// A file that can be read and written.
    File,
    /// A symbolic link to this target.
    Link(String),
}

/// Contents of the file system. Paths are relative to the root, which is "".
pub trait Files {
    /// Returns the kind of node at `path`; `None` if there is none.
    fn find(&self, path: &str) -> Option<Node>;

    /// Lists the names in a directory.
    fn names(&self, directory: &str) -> Vec<String>;

    /// Returns the text of a file.
    ///
    /// # Errors
    /// The error number that the reading process gets.
    fn read(&self, path: &str) -> Result<String, i32>;

    /// Runs the command that a process wrote to a file. The process blocks until `answer` is given.
    fn write(&self, path: &str, text: &[u8], answer: Answer);

    /// Reports that a process which waits for an answer got a signal.
    fn interrupted(&self);
}

/// The pending answer to a write. If it is dropped without an answer, the writer gets `EIO`.
#[derive(Debug)]
pub struct Answer {
    device: Arc<File>,
    unique: u64,
    size: u32,
    is_sent: bool,
}

impl Answer {
    /// Completes the write: all bytes are accepted, or it fails with an error number.
    pub fn complete(mut self, outcome: Result<(), i32>) {
        self.send(outcome);
    }

    fn send(&mut self, outcome: Result<(), i32>) {
        if !std::mem::replace(&mut self.is_sent, true) {
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

/// A connection to the kernel's FUSE driver, not mounted yet.
#[derive(Debug)]
pub struct Connection {
    device: Arc<File>,
}

/// Highest number of known directories and links, and of files in use.
const NODES_MAX: usize = 1 << 16;
/// Highest number of open files.
const HANDLES_MAX: usize = 4096;
/// First node number of files; directories and links have lower numbers.
const FIRST_FILE: u64 = 1 << 32;

impl Connection {
    /// Opens `/dev/fuse`.
    ///
    /// # Errors
    /// Fails if the kernel has no FUSE, or this process may not open the device.
    pub fn open() -> io::Result<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
        Ok(Self { device: Arc::new(device) })
    }

    /// Options for `mount(2)`.
    pub(crate) fn mount_options(&self) -> String {
        let device = self.device.as_raw_fd();
        format!("fd={device},rootmode=40555,user_id=0,group_id=0,allow_other,default_permissions")
    }

    /// Returns a second handle on the connection, for the thread that serves.
    #[must_use]
    pub fn share(&self) -> Self {
        Self { device: Arc::clone(&self.device) }
    }

    /// Serves requests until the file system is unmounted. Call this once it is mounted.
    ///
    /// # Errors
    /// The error of `read(2)` on the device.
    pub fn serve(self, files: &impl Files) -> io::Result<()> {
        let mut server = Server {
            device: self.device,
            files,
            directories: vec![String::new()],
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
                    // The kernel cancelled the request before it was read, or a signal came.
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

/// Sends an answer. The kernel rejects it if the request no longer exists, which is harmless.
fn reply(device: &File, unique: u64, outcome: Result<Out, i32>) {
    let message = protocol::answer(unique, outcome);
    let mut device = device;
    let _ = device.write(&message);
}

struct Server<'a, F> {
    device: Arc<File>,
    files: &'a F,
    /// Path of each directory and link; node 1, the root, is the first.
    directories: Vec<String>,
    /// Path of each file node. Each lookup of a file creates a new node.
    in_use: BTreeMap<u64, String>,
    next_file: u64,
    /// Contents of open files, generated by a read at offset 0.
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
                    is_sent: false,
                };
                return self.files.write(&path, data, answer);
            }
            Operation::Init { minor } => Ok(protocol::init_out(*minor)),
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
            self.directories.get(usize::try_from(node).unwrap_or(usize::MAX).wrapping_sub(1))
        };
        path.map_or("", String::as_str)
    }

    fn kind(&self, path: &str) -> Result<Node, i32> {
        self.files.find(path).ok_or(libc::ENOENT)
    }

    /// Returns the node number of a path; a file gets a new number at each lookup.
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
        let index = match self.directories.iter().position(|known| *known == path) {
            Some(index) => index,
            None if self.directories.len() == NODES_MAX => return Err(libc::ENOMEM),
            None => {
                self.directories.push(path);
                self.directories.len() - 1
            }
        };
        Ok(index as u64 + 1)
    }

    fn look_up(&mut self, directory: &str, name: &str) -> Result<Out, i32> {
        let path = joined(directory, name);
        let kind = self.kind(&path)?;
        let node = self.number(path, &kind)?;
        // Node number, generation, and two cache timeouts of zero: the kernel must not cache.
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
        Ok(protocol::open_out(handle))
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
            // Skip an entry that has disappeared in the meantime.
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
