//! The `/proc/net` of a script: the files of pktgen, and links to all other files.

use std::sync::Arc;

use wirestorm_io::fuse::{Answer, Files, Node};
use wirestorm_io::mounts::PrivateMounts;
use wirestorm_plan::pktgen::{Effect, Errno};

use super::session::Session;

/// Kernel directory with the other files of /proc/net.
const OTHERS: &str = "/proc/self/net";

const FOLDER: &str = "pktgen";

pub(super) struct ProcNet {
    pub(super) session: Arc<Session>,
    /// Starts the devices and gives the answer when they have ended.
    pub(super) start: Box<dyn Fn(Answer) + Send + Sync>,
}

/// Returns the part of a path below the pktgen directory.
fn file_of(path: &str) -> Option<&str> {
    path.strip_prefix(FOLDER)?.strip_prefix('/')
}

impl Files for ProcNet {
    fn find(&self, path: &str) -> Option<Node> {
        if let Some(file) = file_of(path) {
            let files = self.session.files();
            if files.iter().any(|known| known == file) {
                return Some(Node::File);
            }
            // Devices of interfaces in other namespaces are named netns/NAME:INTERFACE.
            let mut folders = files.iter().filter_map(|known| known.split_once('/'));
            return folders.any(|(folder, _)| folder == file).then_some(Node::Directory);
        }
        match path {
            "" | FOLDER => Some(Node::Directory),
            PrivateMounts::LINK => Some(Node::Link(PrivateMounts::ROOT.to_owned())),
            other => {
                let target = format!("{OTHERS}/{other}");
                std::fs::symlink_metadata(&target).ok().map(|_| Node::Link(target))
            }
        }
    }

    fn names(&self, directory: &str) -> Vec<String> {
        if directory == FOLDER {
            let first = |file: String| file.split('/').next().unwrap_or_default().to_owned();
            let mut names: Vec<_> = self.session.files().into_iter().map(first).collect();
            names.dedup();
            return names;
        }
        if let Some(folder) = file_of(directory) {
            let files = self.session.files();
            let within =
                |file: &String| Some(file.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
            return files.iter().filter_map(within).collect();
        }
        let others = std::fs::read_dir(OTHERS).into_iter().flatten().flatten();
        let names = others.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let pktgen_folder = std::iter::once(FOLDER.to_owned());
        pktgen_folder.chain(names.filter(|name| name != FOLDER)).collect()
    }

    fn read(&self, path: &str) -> Result<String, i32> {
        let file = file_of(path).ok_or(libc::EISDIR)?;
        self.session.show(file).map_err(|_| libc::ENOENT)
    }

    fn write(&self, path: &str, text: &[u8], answer: Answer) {
        let Some(file) = file_of(path) else { return answer.complete(Err(libc::EISDIR)) };
        match self.session.write(file, &String::from_utf8_lossy(text)) {
            // If the main loop has ended, the dropped answer reports an error.
            Ok(Effect::Start) => (self.start)(answer),
            Ok(_) => answer.complete(Ok(())),
            Err(error) => {
                self.session.refused(&error);
                answer.complete(error.problem.errno().map_or(Ok(()), |errno| Err(number(errno))));
            }
        }
    }

    fn interrupted(&self) {
        self.session.interrupt();
    }
}

fn number(errno: Errno) -> i32 {
    match errno {
        Errno::NoSuchFile => libc::ENOENT,
        Errno::TooBig => libc::E2BIG,
        Errno::Busy => libc::EBUSY,
        Errno::NoSuchDevice => libc::ENODEV,
        Errno::InvalidArgument => libc::EINVAL,
        Errno::NotSupported => libc::EOPNOTSUPP,
        Errno::NetworkDown => libc::ENETDOWN,
    }
}
