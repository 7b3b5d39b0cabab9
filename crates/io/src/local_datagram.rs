//! Requests to daemons over datagram sockets of the file system (`unix(7)`).

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration as StdDuration;

use wirestorm_base::time::Duration;

/// A socket that is connected to that of a daemon.
#[derive(Debug)]
pub struct LocalDatagram {
    socket: UnixDatagram,
    /// Path of this socket, to which the daemon answers. Removed on drop.
    path: PathBuf,
}

impl LocalDatagram {
    /// Connects to the socket of a daemon. The daemon answers to a socket file in the same directory;
    /// [`Self::receive`] waits for at most `patience`, from 1 us.
    ///
    /// # Errors
    /// The daemon does not run, or the process may not write to its directory.
    pub fn connect(daemon: &Path, patience: Duration) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Finds a daemon that does not run before this creates a file.
        fs::metadata(daemon)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = daemon.parent().unwrap_or(Path::new("."));
        let path = directory.join(format!("wirestorm.{}.{number}.sock", process::id()));
        let bound = Self { socket: UnixDatagram::bind(&path)?, path };
        // The daemon may run as another user.
        fs::set_permissions(&bound.path, Permissions::from_mode(0o666))?;
        bound.socket.connect(daemon)?;
        let patience = StdDuration::from_nanos(patience.as_nanos().max(1_000));
        bound.socket.set_read_timeout(Some(patience))?;
        bound.socket.set_write_timeout(Some(patience))?;
        Ok(bound)
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The daemon has ended, or does not read requests.
    pub fn send(&self, request: &[u8]) -> io::Result<()> {
        self.socket.send(request).map(drop)
    }

    /// Receives an answer; one that is longer than the buffer is cut off.
    ///
    /// # Errors
    /// The daemon has ended, or does not answer in time.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.recv(buffer)
    }
}

impl Drop for LocalDatagram {
    fn drop(&mut self) {
        // Ignores the error: the directory may be gone with the daemon.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemon_answers_to_a_file_that_vanishes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("daemon.sock");
        let patience = Duration::from_millis(10);
        assert!(LocalDatagram::connect(&path, patience).is_err());
        let daemon = UnixDatagram::bind(&path).unwrap();
        let client = LocalDatagram::connect(&path, patience).unwrap();
        client.send(b"question").unwrap();
        let mut buffer = [0; 16];
        let (length, from) = daemon.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"question");
        assert!(client.receive(&mut buffer).is_err(), "no answer yet");
        daemon.send_to(b"answer", from.as_pathname().unwrap()).unwrap();
        let length = client.receive(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"answer");
        drop(client);
        let names: Vec<_> = fs::read_dir(&directory).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
}
