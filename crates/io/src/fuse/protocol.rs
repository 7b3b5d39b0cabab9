//! Requests and answers of `linux/fuse.h`, in native byte order.

use super::Node;

/// Size of the receive buffer: larger than any request, given [`WRITE_BYTES_MAX`].
pub(super) const BUFFER_BYTES: usize = 64 * 1024;
/// Longest write in bytes; commands are far shorter.
const WRITE_BYTES_MAX: u32 = 16 * 1024;

const HEADER_BYTES: usize = 40;
const ANSWER_HEADER_BYTES: usize = 16;

const MAJOR: u32 = 7;
/// Newest minor version of the protocol that this code supports (Linux 5.4).
const MINOR: u32 = 31;
/// `FUSE_ATOMIC_O_TRUNC`: the kernel passes `O_TRUNC` to open, which ignores it here.
const ATOMIC_TRUNCATE: u32 = 1 << 3;
/// `FOPEN_DIRECT_IO`: the kernel passes each read and write through without caching.
const DIRECT: u32 = 1;

/// `FUSE_UNKNOWN_INO`: a directory listing does not report node numbers.
const UNKNOWN_NUMBER: u64 = 0xffff_ffff;

/// One request of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    /// Identifier that the answer repeats.
    pub(super) unique: u64,
    /// Node number of the request; 0 for none.
    pub(super) node: u64,
    pub(super) operation: Operation<'a>,
}

/// Operation code and arguments of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Operation<'a> {
    Init {
        minor: u32,
    },
    LookUp {
        name: &'a str,
    },
    Attributes,
    ReadLink,
    /// Opens a file or a directory.
    Open,
    Read {
        handle: u64,
        offset: u64,
        size: u32,
    },
    Write {
        data: &'a [u8],
    },
    Release {
        handle: u64,
    },
    ReadDirectory {
        offset: u64,
        size: u32,
    },
    /// Creates a file, which this file system does not support.
    Create,
    /// The kernel no longer uses these node numbers. Has no answer.
    Forget {
        nodes: Vec<u64>,
    },
    /// A process that waits for an answer got a signal. Has no answer.
    Interrupt,
    /// An operation that this file system does not implement.
    Other,
}

impl<'a> Request<'a> {
    /// Parses a request; `None` if it is too short.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let body = bytes.get(HEADER_BYTES..)?;
        let operation = match u32_at(bytes, 4)? {
            1 => Operation::LookUp { name: name(body)? },
            2 => Operation::Forget { nodes: vec![u64_at(bytes, 16)?] },
            // Count, padding, and for each node its number and its lookup count.
            42 => {
                let entries = body.get(8..)?.chunks_exact(16).take(u32_at(body, 0)? as usize);
                Operation::Forget { nodes: entries.filter_map(|entry| u64_at(entry, 0)).collect() }
            }
            // FUSE_GETATTR and FUSE_SETATTR: setting attributes has no effect.
            3 | 4 => Operation::Attributes,
            5 => Operation::ReadLink,
            14 | 27 => Operation::Open,
            15 => {
                let (handle, offset) = (u64_at(body, 0)?, u64_at(body, 8)?);
                Operation::Read { handle, offset, size: u32_at(body, 16)? }
            }
            16 => {
                let size = u32_at(body, 16)? as usize;
                Operation::Write { data: body.get(40..)?.get(..size)? }
            }
            18 | 29 => Operation::Release { handle: u64_at(body, 0)? },
            26 => Operation::Init { minor: u32_at(body, 4)? },
            28 => Operation::ReadDirectory { offset: u64_at(body, 8)?, size: u32_at(body, 16)? },
            35 => Operation::Create,
            36 => Operation::Interrupt,
            _ => Operation::Other,
        };
        Some(Self { unique: u64_at(bytes, 8)?, node: u64_at(bytes, 16)?, operation })
    }
}

/// The body of an answer.
#[derive(Debug, Default)]
pub(super) struct Out(Vec<u8>);

impl Out {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(super) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(super) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    /// Appends a directory entry (`struct fuse_dirent`) if it fits within `size` bytes. `next` is
    /// the offset of the following entry.
    pub(super) fn push_entry(&mut self, next: u64, name: &str, kind: &Node, size: usize) -> bool {
        let length = (24 + name.len()).next_multiple_of(8);
        if self.0.len() + length > size {
            return false;
        }
        let end = self.0.len() + length;
        let out = std::mem::take(self).u64(UNKNOWN_NUMBER).u64(next);
        // The entry type is the upper bits of the mode.
        let out = out.u32(name.len() as u32).u32(mode(kind) >> 12);
        *self = out.bytes(name.as_bytes());
        self.0.resize(end, 0);
        true
    }
}

/// Encodes an answer: header and body, or an error number.
pub(super) fn answer(unique: u64, outcome: Result<Out, i32>) -> Vec<u8> {
    let (error, body) = match outcome {
        Ok(body) => (0, body),
        Err(error) => (-error, Out::new()),
    };
    let length = (ANSWER_HEADER_BYTES + body.0.len()) as u32;
    Out::new().u32(length).u32(error.cast_unsigned()).u64(unique).bytes(&body.0).0
}

/// Encodes `struct fuse_init_out` for a kernel with this minor version.
pub(super) fn init_out(minor: u32) -> Out {
    let out = Out::new().u32(MAJOR).u32(minor.min(MINOR)).u32(0).u32(ATOMIC_TRUNCATE);
    // Background requests (kernel default), longest write, time granularity in ns, pages of a
    // request and alignment (kernel default), unused.
    let out = out.u16(0).u16(0).u32(WRITE_BYTES_MAX).u32(1).u16(0).u16(0);
    out.bytes(&[0; 32])
}

/// Encodes `struct fuse_open_out`.
pub(super) fn open_out(handle: u64) -> Out {
    Out::new().u64(handle).u32(DIRECT).u32(0)
}

/// Appends `struct fuse_attr`.
pub(super) fn attributes(out: Out, node: u64, kind: &Node) -> Out {
    // As in /proc, files report size 0 whatever a read returns.
    let size = match kind {
        Node::Link(target) => target.len() as u64,
        Node::Directory | Node::File => 0,
    };
    let out = out.u64(node).u64(size).u64(0);
    // Times of access, modification and status change: seconds, then nanoseconds.
    let out = out.u64(0).u64(0).u64(0).u32(0).u32(0).u32(0);
    // Mode, links, owner, group, device, block size, flags.
    out.u32(mode(kind)).u32(1).u32(0).u32(0).u32(0).u32(4096).u32(0)
}

fn mode(kind: &Node) -> u32 {
    match kind {
        Node::Directory => libc::S_IFDIR | 0o555,
        Node::File => libc::S_IFREG | 0o600,
        Node::Link(_) => libc::S_IFLNK | 0o777,
    }
}

/// Decodes a name up to its terminating null byte.
fn name(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&bytes[..end]).ok()
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: u32, body: &[u8]) -> Vec<u8> {
        let length = (HEADER_BYTES + body.len()) as u32;
        let header = Out::new().u32(length).u32(operation).u64(7).u64(3);
        header.bytes(&[0; 16]).bytes(body).0
    }

    #[test]
    fn requests_parse_and_truncated_ones_do_not() {
        let write = Out::new().u64(9).u64(0).u32(6).u32(0).u64(0).u32(0).u32(0);
        let write = write.bytes(b"start\n").0;
        let bytes = request(16, &write);
        let expected = Operation::Write { data: b"start\n" };
        assert_eq!(
            Request::parse(&bytes),
            Some(Request { unique: 7, node: 3, operation: expected })
        );
        assert_eq!(Request::parse(&bytes[..bytes.len() - 1]), None);
        let bytes = request(1, b"eth0@1\0");
        let found = Request::parse(&bytes).map(|request| request.operation);
        assert_eq!(found, Some(Operation::LookUp { name: "eth0@1" }));
        assert_eq!(Request::parse(&request(1, b"eth0")), None);
    }

    #[test]
    fn forget_and_batch_forget_list_all_node_numbers() {
        fn forgotten(bytes: &[u8]) -> Option<Operation<'_>> {
            Request::parse(bytes).map(|request| request.operation)
        }
        let one = request(2, &Out::new().u64(1).0);
        assert_eq!(forgotten(&one), Some(Operation::Forget { nodes: vec![3] }));
        let two = Out::new().u32(2).u32(0).u64(8).u64(1).u64(9).u64(1);
        let two = request(42, &two.0);
        assert_eq!(forgotten(&two), Some(Operation::Forget { nodes: vec![8, 9] }));
    }

    #[test]
    fn answers_match_the_kernel_structure_sizes() {
        let body = |out: Out| answer(1, Ok(out)).len() - ANSWER_HEADER_BYTES;
        assert_eq!(body(init_out(45)), 64);
        assert_eq!(body(open_out(1)), 16);
        assert_eq!(body(attributes(Out::new(), 1, &Node::File)), 88);
        assert_eq!(answer(1, Err(libc::EINVAL)).len(), ANSWER_HEADER_BYTES);
    }

    #[test]
    fn directory_entries_stop_at_the_size_limit() {
        let mut out = Out::new();
        assert!(out.push_entry(1, "pgctrl", &Node::File, 64));
        assert_eq!(out.0.len(), 32);
        assert!(out.push_entry(2, "eth0", &Node::File, 64));
        assert!(!out.push_entry(3, "eth1", &Node::File, 64));
        assert_eq!(out.0.len(), 64);
    }
}
