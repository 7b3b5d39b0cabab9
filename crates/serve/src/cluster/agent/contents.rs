//! Files and plans of a test on an agent: fetched from the object store of the bus, checked, and
//! removed with the test. A plan reads no other files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use wirestorm_bus::cluster::PLANS;
use wirestorm_bus::{Bus, BusError, Bytes};
use wirestorm_control::files::AttachedFiles;

use super::super::content::{Content, Digest, Piece, check_all};
use super::super::protocol::{FetchError, FetchReport};

/// Attempts to read a piece while the bus is away, and the time between two.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// Start of the name of a folder.
const PREFIX: &str = "test-";

/// Removes what an agent that was killed left in its directory; creates the directory.
pub(super) fn clear(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Contents of a test, in a folder that goes with it.
#[derive(Debug)]
pub(super) struct Contents {
    shared: Arc<Shared>,
}

/// What the thread that fetches shares. The folder goes with the last of both.
#[derive(Debug)]
struct Shared {
    folder: TempDir,
    state: Mutex<State>,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeSet<Content>,
    /// Contents that the last order names and that are not there yet.
    missing: usize,
    error: Option<FetchError>,
    /// An error that is not in the agent's log yet.
    new_error: Option<String>,
}

impl Contents {
    /// Creates the folder in a directory, or in that of the system's temporary files.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub(super) fn new(directory: Option<&Path>) -> Result<Self, String> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        let folder = match directory {
            Some(directory) => builder.tempdir_in(directory),
            None => builder.tempdir(),
        };
        let folder = folder.map_err(|error| format!("no folder for the files: {error}"))?;
        let (state, stop) = (Mutex::default(), AtomicBool::new(false));
        Ok(Self { shared: Arc::new(Shared { folder, state, stop }) })
    }

    /// Begins to fetch contents that are not there. `test`: its identifier.
    ///
    /// # Errors
    /// They are too many or too large, or others are still being fetched.
    pub(super) fn fetch(
        &mut self,
        bus: &Arc<dyn Bus>,
        test: &str,
        wanted: &[Content],
    ) -> Result<(), String> {
        if let Some(content) = wanted.iter().find(|content| !content.has_digest()) {
            return Err(format!("found SHA-256 {:?}, expected 64 digits", content.sha256));
        }
        let mut state = self.shared.lock();
        if state.missing > 0 && state.error.is_none() {
            return Err("other files of the test are still being fetched".to_owned());
        }
        let new: BTreeSet<Content> =
            wanted.iter().filter(|it| !state.held.contains(it)).cloned().collect();
        check_all(state.held.iter().chain(&new))?;
        (state.missing, state.error) = (new.len(), None);
        drop(state);
        if new.is_empty() {
            return Ok(());
        }
        let (shared, bus, test) = (Arc::clone(&self.shared), Arc::clone(bus), test.to_owned());
        let thread = std::thread::Builder::new().name("agent-fetch".to_owned());
        let spawned = thread.spawn(move || shared.fetch_all(&*bus, &test, new));
        spawned.map(drop).map_err(|error| {
            self.shared.lock().missing = 0;
            format!("cannot start a thread: {error}")
        })
    }

    pub(super) fn report(&self) -> FetchReport {
        let state = self.shared.lock();
        FetchReport { missing: state.missing, error: state.error.clone() }
    }

    /// Takes an error that was not taken before.
    pub(super) fn take_error(&self) -> Option<String> {
        self.shared.lock().new_error.take()
    }

    /// Returns the files of a plan. `files`: SHA-256 of each by its name in the plan.
    ///
    /// # Errors
    /// One was not fetched.
    pub(super) fn files(&self, files: &BTreeMap<String, String>) -> Result<AttachedFiles, String> {
        let paths = files.iter().map(|(name, sha256)| {
            let path = self.path(sha256).map_err(|error| format!("file {name}: {error}"))?;
            Ok::<_, String>((PathBuf::from(name), path))
        });
        Ok(AttachedFiles::on_disk(paths.collect::<Result<Vec<_>, _>>()?))
    }

    /// Returns the text of a plan.
    ///
    /// # Errors
    /// It was not fetched, or does not read.
    pub(super) fn text(&self, sha256: &str) -> Result<String, String> {
        let failed = |error: String| format!("the plan: {error}");
        let path = self.path(sha256).map_err(failed)?;
        fs::read_to_string(path).map_err(|error| failed(error.to_string()))
    }

    fn path(&self, sha256: &str) -> Result<PathBuf, String> {
        match self.shared.lock().held.iter().any(|content| content.sha256 == sha256) {
            true => Ok(self.shared.folder.path().join(sha256)),
            false => Err(format!("the agent has not fetched SHA-256 {sha256}")),
        }
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fetch_all(&self, bus: &dyn Bus, test: &str, wanted: BTreeSet<Content>) {
        for content in wanted {
            let path = self.folder.path().join(&content.sha256);
            match self.fetch(bus, test, &content, &path) {
                Ok(()) => {
                    let mut state = self.lock();
                    state.held.insert(content);
                    state.missing -= 1;
                }
                Err(reason) => {
                    // The part that is there is worth nothing.
                    let _ = fs::remove_file(&path);
                    let mut state = self.lock();
                    state.new_error = Some(reason.clone());
                    state.error = Some(FetchError { sha256: content.sha256, reason });
                    return;
                }
            }
        }
    }

    fn fetch(
        &self,
        bus: &dyn Bus,
        test: &str,
        content: &Content,
        path: &Path,
    ) -> Result<(), String> {
        let on_disk = |error: io::Error| format!("{}: {error}", path.display());
        let mut file = File::create(path).map_err(on_disk)?;
        let mut digest = Digest::new();
        for piece in content.pieces(test) {
            let bytes = self.read(bus, &piece)?;
            digest.update(&bytes);
            file.write_all(&bytes).map_err(on_disk)?;
        }
        let found = digest.finish();
        match found == *content {
            true => Ok(()),
            false => Err(format!(
                "the file is refused: the director's order names SHA-256 {} ({} bytes), and the \
                 objects on the bus have {} ({} bytes): somebody changed them there",
                content.sha256, content.bytes, found.sha256, found.bytes
            )),
        }
    }

    /// Reads a piece. It may be longer or shorter than the piece should be.
    fn read(&self, bus: &dyn Bus, piece: &Piece) -> Result<Bytes, String> {
        let mut attempt = 1;
        loop {
            if self.stop.load(Ordering::Acquire) {
                return Err("the test ended".to_owned());
            }
            match bus.get_object(PLANS, &piece.object, piece.bytes) {
                Ok(Some(bytes)) => return Ok(bytes),
                Ok(None) => {
                    let object = &piece.object;
                    return Err(format!("object {object} is not on the bus: was it removed?"));
                }
                Err(BusError::Timeout { .. } | BusError::Disconnected { .. })
                    if attempt < ATTEMPTS =>
                {
                    attempt += 1;
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(format!("the file is refused or missing: {error}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::time::Instant;
    use wirestorm_bus::ObjectsConfig;
    use wirestorm_bus::local::LocalBus;
    use wirestorm_control::files::Files;

    fn bus() -> Arc<dyn Bus> {
        let bus = LocalBus::new();
        let config = ObjectsConfig { name: PLANS.into(), age_max: None, bytes_max: 64 << 20 };
        bus.create_objects(&config).unwrap();
        Arc::new(bus)
    }

    /// Writes a content, whose pieces `change` may replace.
    fn put(bus: &dyn Bus, bytes: &[u8], change: impl Fn(&mut Vec<u8>)) -> Content {
        let content = Content::of(bytes).unwrap();
        let mut rest = bytes;
        for piece in content.pieces("t1") {
            let (first, others) = rest.split_at(piece.bytes);
            let mut written = first.to_vec();
            change(&mut written);
            bus.put_object(PLANS, &piece.object, &written).unwrap();
            rest = others;
        }
        content
    }

    fn fetch(contents: &mut Contents, bus: &Arc<dyn Bus>, wanted: &[Content]) -> FetchReport {
        contents.fetch(bus, "t1", wanted).unwrap();
        let began = Instant::now();
        loop {
            let report = contents.report();
            if report.missing == 0 || report.error.is_some() {
                return report;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{report:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn fetched_files_have_their_names_in_the_plan_and_go_with_the_test() {
        let (bus, directory) = (bus(), tempfile::tempdir().unwrap());
        let mut contents = Contents::new(Some(directory.path())).unwrap();
        let long: Vec<u8> = (0..5_u32 << 20).map(|number| (number % 251) as u8).collect();
        let wanted = [&long[..], b"key", b""].map(|bytes| put(&*bus, bytes, |_| ()));
        assert_eq!(fetch(&mut contents, &bus, &wanted), FetchReport::default());
        // What is there is not fetched again.
        bus.remove_object(PLANS, &wanted[1].pieces("t1").next().unwrap().object).unwrap();
        assert_eq!(fetch(&mut contents, &bus, &wanted), FetchReport::default());
        let names = ["caps/a.pcap", "tls.key", "empty"].map(str::to_owned);
        let digests = wanted.iter().map(|content| content.sha256.clone());
        let files = contents.files(&names.into_iter().zip(digests).collect()).unwrap();
        for (name, expected) in [("caps/./a.pcap", &long[..]), ("tls.key", b"key"), ("empty", b"")]
        {
            let mut bytes = Vec::new();
            files.open(Path::new(name)).unwrap().read_to_end(&mut bytes).unwrap();
            assert!(bytes == expected, "{name}");
        }
        assert!(files.open(Path::new("/etc/passwd")).is_err());
        assert_eq!(contents.text(&wanted[1].sha256).unwrap(), "key");
        drop(contents);
        // The thread that fetched holds the folder until it has ended.
        let began = Instant::now();
        while fs::read_dir(directory.path()).unwrap().count() > 0 {
            assert!(began.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn changed_contents_are_refused_and_named() {
        let (bus, directory) = (bus(), tempfile::tempdir().unwrap());
        let mut contents = Contents::new(Some(directory.path())).unwrap();
        for (number, change) in [
            (|bytes: &mut Vec<u8>| bytes[0] ^= 1) as fn(&mut Vec<u8>),
            |bytes| bytes.truncate(99),
            |bytes| bytes.push(0),
        ]
        .into_iter()
        .enumerate()
        {
            let changed = put(&*bus, &[number as u8; 100], change);
            let report = fetch(&mut contents, &bus, std::slice::from_ref(&changed));
            let FetchError { sha256, reason: error } = report.error.unwrap();
            assert_eq!((report.missing, &sha256), (1, &changed.sha256));
            assert!(error.contains(&changed.sha256) && error.contains("refused"), "{error}");
            assert_eq!(contents.take_error(), Some(error));
            assert_eq!(contents.take_error(), None);
            assert!(contents.text(&changed.sha256).unwrap_err().contains("not fetched"));
            let named = BTreeMap::from([("a.pcap".to_owned(), changed.sha256)]);
            assert!(contents.files(&named).unwrap_err().starts_with("file a.pcap"));
        }
        let absent = Content::of(&b"absent"[..]).unwrap();
        let error = fetch(&mut contents, &bus, std::slice::from_ref(&absent)).error.unwrap().reason;
        assert!(error.contains(&absent.sha256) && error.contains("not on the bus"), "{error}");
        // A later order can succeed.
        let whole = put(&*bus, b"whole", |_| ());
        assert_eq!(fetch(&mut contents, &bus, &[whole]), FetchReport::default());
    }

    #[test]
    fn names_and_sizes_are_checked_before_anything_is_fetched() {
        let bus = bus();
        let mut contents = Contents::new(None).unwrap();
        let mut refused = |content: Content| contents.fetch(&bus, "t1", &[content]).unwrap_err();
        let outside = Content { sha256: "../../etc/cron.d/a".into(), bytes: 1 };
        assert!(refused(outside).contains("expected 64 digits"));
        let huge = Content { sha256: "0f".repeat(32), bytes: u64::MAX };
        assert!(refused(huge).contains("may have 1073741824"));
    }

    #[test]
    fn leftovers_of_a_killed_agent_are_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let left = Contents::new(Some(directory.path())).unwrap();
        fs::write(left.shared.folder.path().join("0f"), b"secret").unwrap();
        fs::write(directory.path().join("other"), b"").unwrap();
        clear(directory.path()).unwrap();
        let names = fs::read_dir(directory.path()).unwrap().map(|it| it.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["other"]);
        clear(&directory.path().join("new")).unwrap();
    }
}
