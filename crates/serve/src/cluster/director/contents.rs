//! Files and large plans of a test: the director writes them to the object store of the bus, from
//! which agents fetch them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wirestorm_api::run::PlanSource;
use wirestorm_bus::cluster::PLANS;
use wirestorm_bus::{Bus, ObjectsConfig};
use wirestorm_control::files::{Entry, Files};
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_control::replay::expand_inputs;

use super::super::content::{CONTENTS_BYTES_MAX, Content, Digest, check_all, name_of, too_large};
use super::super::protocol::{Command, FetchError, PartPlan, encode};
use super::plan::PlannedRun;
use super::{Director, ORDER_TIMEOUT, REPORT_INTERVAL, TestError};

/// Bytes of all plans in an order, as they are there; a bus takes 1 MiB. The others are objects.
const INLINE_BYTES_MAX: usize = 256 << 10;
/// Age at which an object vanishes whose director could not remove it. All agents of a test fetch it
/// before the start.
const OBJECTS_AGE_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Size of the objects of all tests together.
const OBJECTS_BYTES_MAX: u64 = 2 << 30;
/// Time to wait until agents have fetched everything: in any case, and for each 128 KiB.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
const FETCH_BYTES_PER_SECOND: u64 = 128 << 10;

/// Files of a plan by the names that it uses, which start at its folder. It records those that are
/// read.
#[derive(Debug)]
pub(super) struct PlanFiles {
    folder: PathBuf,
    files: Arc<dyn Files>,
    used: Mutex<BTreeSet<PathBuf>>,
}

impl PlanFiles {
    pub(super) fn new(folder: &Path, files: &Arc<dyn Files>) -> Arc<Self> {
        let (folder, files) = (folder.to_owned(), Arc::clone(files));
        Arc::new(Self { folder, files, used: Mutex::default() })
    }

    fn note(&self, path: &Path) -> PathBuf {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        self.folder.join(path)
    }

    /// Returns the files that were read so far: their paths here by their names in the plan.
    ///
    /// # Errors
    /// A name is not UTF-8.
    pub(super) fn used(&self) -> Result<BTreeMap<String, PathBuf>, String> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().map(|path| Ok((name_of(path)?, self.folder.join(path)))).collect()
    }

    /// Notes the files that clients and servers read when they are prepared.
    pub(super) fn note_tls(&self, plan: &EmulationPlan) {
        for tls in plan.templates.iter().filter_map(|template| template.tls.as_ref()) {
            let identities = [&tls.identity, &tls.client_identity].into_iter().flatten();
            let of_identities = identities.flat_map(|it| [&it.certificate, &it.key]);
            for name in of_identities.chain(&tls.ca).chain(&tls.client_ca) {
                self.note(Path::new(name));
            }
        }
    }

    /// Returns the captures of a replay, with those in directories that it names.
    ///
    /// # Errors
    /// One does not exist, or is no file.
    pub(super) fn captures(
        self: Arc<Self>,
        captures: &[String],
    ) -> Result<BTreeMap<String, PathBuf>, String> {
        let paths: Vec<PathBuf> = captures.iter().map(PathBuf::from).collect();
        let files: Arc<dyn Files> = Arc::clone(&self) as _;
        let inputs = expand_inputs(&paths, &files).map_err(|error| error.to_string())?;
        let named = inputs.iter().map(|input| {
            if input.is_stream() {
                return Err(format!("{input}: expected a file: each agent gets a copy"));
            }
            Ok((name_of(input.path())?, self.folder.join(input.path())))
        });
        named.collect()
    }
}

impl Files for PlanFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.files.open(&self.note(path))
    }

    fn open_capture(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.files.open_capture(&self.note(path))
    }

    fn entry(&self, path: &Path) -> io::Result<Entry> {
        let here = self.folder.join(path);
        Ok(match self.files.entry(&here)? {
            Entry::Directory(below) => {
                let named = |it: PathBuf| it.strip_prefix(&here).map(|it| path.join(it));
                Entry::Directory(below.into_iter().filter_map(|it| named(it).ok()).collect())
            }
            other => other,
        })
    }

    fn output(&self, path: &Path) -> io::Result<PathBuf> {
        // Whether a plan may write files is up to its agent.
        self.files.output(&self.folder.join(path))
    }

    fn name(&self, path: &Path) -> String {
        self.files.name(&self.folder.join(path))
    }
}

/// Files and large plans of a test.
#[derive(Debug)]
pub(super) struct Contents {
    files: Arc<dyn Files>,
    sources: BTreeMap<Content, Source>,
    /// Contents that each node needs.
    of_nodes: BTreeMap<usize, BTreeSet<Content>>,
}

#[derive(Debug)]
enum Source {
    File(PathBuf),
    Text(String),
}

impl Contents {
    /// Reads the files of all runs, and names them in the parts of the runs. Plans that do not fit an
    /// order become contents.
    ///
    /// # Errors
    /// A file does not read, or all together are too large.
    pub(super) fn of(runs: &mut [PlannedRun], files: &Arc<dyn Files>) -> Result<Self, String> {
        let mut all =
            Self { files: Arc::clone(files), sources: BTreeMap::new(), of_nodes: BTreeMap::new() };
        let mut known = BTreeMap::new();
        // Room in the order to each node.
        let mut rooms: BTreeMap<usize, usize> = BTreeMap::new();
        for run in runs {
            let failed = |error: String| format!("run {}: {error}", run.name);
            let mut contents = BTreeSet::new();
            for (name, path) in run.files.as_ref().map_err(|error| failed(error.clone()))? {
                let content = match known.get(path) {
                    Some(content) => Content::clone(content),
                    None => all.read(path).map_err(failed)?,
                };
                known.insert(path.clone(), content.clone());
                for part in run.parts.values_mut() {
                    part.files.insert(name.clone(), content.sha256.clone());
                }
                all.sources.entry(content.clone()).or_insert(Source::File(path.clone()));
                contents.insert(content);
                // Before the next file is read.
                check_all(all.sources.keys()).map_err(failed)?;
            }
            for (node, part) in &mut run.parts {
                let PartPlan::Source(PlanSource::Text(text)) = &part.plan else { continue };
                // An order is JSON text in a JSON document.
                let bytes = encode(&String::from_utf8_lossy(&encode(text))).len();
                let room = rooms.entry(*node).or_insert(INLINE_BYTES_MAX);
                if bytes <= *room {
                    *room -= bytes;
                    continue;
                }
                let content = Content::of(text.as_bytes()).map_err(|it| failed(it.to_string()))?;
                let plan = PartPlan::Text(content.sha256.clone());
                if let PartPlan::Source(PlanSource::Text(text)) =
                    std::mem::replace(&mut part.plan, plan)
                {
                    all.sources.entry(content.clone()).or_insert(Source::Text(text));
                }
                contents.insert(content);
            }
            for node in run.parts.keys() {
                all.of_nodes.entry(*node).or_default().extend(contents.iter().cloned());
            }
            check_all(all.sources.keys()).map_err(failed)?;
        }
        Ok(all)
    }

    fn read(&self, path: &Path) -> Result<Content, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", self.files.name(path));
        match self.files.entry(path).map_err(|error| failed(&error))? {
            // Before all of it is read.
            Entry::File { length } if length > CONTENTS_BYTES_MAX => {
                Err(failed(&too_large(length)))
            }
            Entry::File { .. } => {
                let file = self.files.open(path).map_err(|error| failed(&error))?;
                Content::of(file).map_err(|error| failed(&error))
            }
            _ => Err(failed(&"expected a file")),
        }
    }

    /// Returns the name of a content for messages.
    fn name(&self, sha256: &str) -> String {
        let found = self.sources.iter().find(|(content, _)| content.sha256 == sha256);
        found.map_or_else(|| sha256.to_owned(), |(_, source)| self.name_of(source))
    }

    fn name_of(&self, source: &Source) -> String {
        match source {
            Source::Text(_) => "a plan".to_owned(),
            Source::File(path) => self.files.name(path),
        }
    }

    /// Writes all contents to the object store. `goes_on` is called before each piece.
    ///
    /// # Errors
    /// The bus refuses, a file has changed, or `goes_on` is false.
    fn write(
        &self,
        bus: &dyn Bus,
        test: &str,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<(), TestError> {
        bus.create_objects(&ObjectsConfig {
            name: PLANS.to_owned(),
            age_max: Some(OBJECTS_AGE_MAX),
            bytes_max: OBJECTS_BYTES_MAX,
        })?;
        for (content, source) in &self.sources {
            let failed = |reason: &dyn std::fmt::Display| {
                TestError::Plan(format!("{}: {reason}", self.name_of(source)))
            };
            let mut reader: Box<dyn Read + '_> = match source {
                Source::Text(text) => Box::new(text.as_bytes()),
                Source::File(path) => self.files.open(path).map_err(|error| failed(&error))?,
            };
            let mut digest = Digest::new();
            let mut piece = Vec::new();
            for it in content.pieces(test) {
                if !goes_on() {
                    return Err(TestError::Stopped);
                }
                piece.clear();
                let read = reader.by_ref().take(it.bytes as u64).read_to_end(&mut piece);
                read.map_err(|error| failed(&error))?;
                digest.update(&piece);
                bus.put_object(PLANS, &it.object, &piece)?;
            }
            if digest.finish() != *content {
                return Err(failed(&"it changed while the test began"));
            }
        }
        Ok(())
    }

    /// Removes all contents from the object store. If the bus is away, they expire.
    fn remove(&self, bus: &dyn Bus, test: &str) {
        let mut pieces = self.sources.keys().flat_map(|content| content.pieces(test));
        let _ = pieces.try_for_each(|piece| bus.remove_object(PLANS, &piece.object));
    }
}

impl Director {
    /// Reads the files of the test, so that their errors are known before the start.
    ///
    /// # Errors
    /// A file does not read, or all together are too large.
    pub fn read_files(&mut self) -> Result<(), TestError> {
        if self.contents.is_none() {
            let contents = Contents::of(&mut self.runs, &self.files).map_err(TestError::Plan)?;
            self.contents = Some(Arc::new(contents));
        }
        Ok(())
    }

    /// Writes the contents of the test to the object store. `began` is called if there are some.
    pub(super) fn write_contents(
        &mut self,
        stop: &AtomicBool,
        began: impl FnOnce(),
    ) -> Result<(), TestError> {
        let Some(contents) = self.contents.clone().filter(|it| !it.sources.is_empty()) else {
            return Ok(());
        };
        began();
        self.has_objects = true;
        let (bus, test) = (Arc::clone(&self.orders.bus), self.orders.test.clone());
        contents.write(&*bus, &test, || {
            self.renew();
            !stop.load(Ordering::Acquire)
        })
    }

    /// Removes the contents of the test from the object store.
    pub(super) fn remove_contents(&self) {
        if let Some(contents) = self.contents.as_ref().filter(|_| self.has_objects) {
            contents.remove(&*self.orders.bus, &self.orders.test);
        }
    }

    /// Has all agents fetch what their runs need. They keep it until the end of the test.
    pub(super) fn fetch(&mut self, stop: &AtomicBool) -> Result<(), TestError> {
        let Some(contents) = self.contents.clone().filter(|it| !it.sources.is_empty()) else {
            return Ok(());
        };
        self.order_all("files", ORDER_TIMEOUT, |link| {
            let wanted = contents.of_nodes.get(&link.node).filter(|it| !it.is_empty())?;
            Some(Command::Fetch(wanted.iter().cloned().collect()))
        })?;
        let bytes: u64 = contents.sources.keys().map(|content| content.bytes).sum();
        let timeout = FETCH_TIMEOUT + Duration::from_secs(bytes / FETCH_BYTES_PER_SECOND);
        let until = Instant::now() + timeout;
        loop {
            let failed = |agent: &str, reason: String| {
                Err(TestError::Agent { agent: agent.to_owned(), phase: "files", reason })
            };
            let mut waiting = None;
            for link in self.links.iter().filter(|link| link.lost.is_none()) {
                if let Some(FetchError { sha256, reason }) = &link.report.fetch.error {
                    return failed(&link.agent, format!("{}: {reason}", contents.name(sha256)));
                }
                if link.report.fetch.missing > 0 {
                    waiting = Some((link.agent.clone(), link.report.fetch.missing));
                }
            }
            let Some((agent, missing)) = waiting else { return Ok(()) };
            if stop.load(Ordering::Acquire) {
                return Err(TestError::Stopped);
            }
            if Instant::now() >= until {
                let reason = format!("{missing} files are still missing after {timeout:?}");
                return failed(&agent, reason);
            }
            std::thread::sleep(REPORT_INTERVAL);
            self.order_all("files", ORDER_TIMEOUT, |_| Some(Command::Report))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::plan_runs;
    use super::*;
    use std::fs;
    use wirestorm_bus::local::LocalBus;
    use wirestorm_control::files::HostFiles;
    use wirestorm_control::plan::test_plan::TestPlan;

    const PCAP_HEADER: [u8; 24] =
        [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];

    const TEST: &str = "nodes: [tx, rx]
ports: [{name: left, node: tx, interface: a}, {name: right, node: rx, interface: b}]
runs:
";
    const FLOW: &str = "{name: f, tx: left, rx: right, rate: 1pps, packet: [ethernet: {}]}";

    fn planned(folder: &Path, runs: &str) -> (Vec<PlannedRun>, Result<Contents, String>) {
        let test = TestPlan::parse(&format!("{TEST}{runs}")).unwrap();
        let files: Arc<dyn Files> = Arc::new(HostFiles);
        let mut runs = plan_runs(&test, (folder, &files), 1).unwrap();
        let contents = Contents::of(&mut runs, &files);
        (runs, contents)
    }

    #[test]
    fn plans_that_do_not_fit_an_order_become_contents() {
        let folder = tempfile::tempdir().unwrap();
        let plan = format!("ports: [{{name: left}}, {{name: right}}]\nflows: [{FLOW}]\n");
        let long = format!("{plan}{}", "# note\n".repeat(INLINE_BYTES_MAX / 2 / 9));
        fs::write(folder.path().join("long.yaml"), &long).unwrap();
        let runs: String =
            (0..3).map(|it| format!("  - {{name: r{it}, streams: long.yaml}}\n")).collect();
        let (runs, contents) = planned(folder.path(), &runs);
        let contents = contents.unwrap();
        let content = Content::of(long.as_bytes()).unwrap();
        for (number, run) in runs.iter().enumerate() {
            for part in run.parts.values() {
                let expected = match number {
                    // Each takes a little more than half of the room: a line has 9 bytes there.
                    0 => PartPlan::Source(PlanSource::Text(long.clone())),
                    _ => PartPlan::Text(content.sha256.clone()),
                };
                assert_eq!(part.plan, expected, "{}", run.name);
            }
        }
        assert_eq!(contents.sources.keys().collect::<Vec<_>>(), [&content]);
        let both = BTreeMap::from([0, 1].map(|node| (node, BTreeSet::from([content.clone()]))));
        assert_eq!(contents.of_nodes, both);
    }

    #[test]
    fn files_have_the_names_of_the_test_and_go_to_the_nodes_that_need_them() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("caps")).unwrap();
        fs::write(folder.path().join("caps/a.pcap"), PCAP_HEADER).unwrap();
        fs::write(folder.path().join("caps/notes"), "no capture").unwrap();
        let (runs, contents) = planned(
            folder.path(),
            "  - {name: one, replay: {captures: [caps/a.pcap], port: left}}
  - {name: all, replay: {captures: [caps], port: left}}
  - {name: other, replay: {captures: [./caps/a.pcap], port: right}}
  - {name: none, streams: {flows: [{name: f, tx: left, rate: 1pps, packet: [ethernet: {}]}]}}
",
        );
        let contents = contents.unwrap();
        let content = Content::of(&PCAP_HEADER[..]).unwrap();
        let files = |run: usize| runs[run].parts.values().next().unwrap().files.clone();
        let named = |name: &str| BTreeMap::from([(name.to_owned(), content.sha256.clone())]);
        assert_eq!(files(0), named("caps/a.pcap"));
        assert_eq!(files(1), named("caps/a.pcap"));
        assert_eq!(files(2), named("./caps/a.pcap"));
        assert_eq!(files(3), BTreeMap::new());
        assert_eq!(contents.sources.len(), 1);
        let (_, missing) = planned(
            folder.path(),
            "  - {name: one, replay: {captures: [caps/b.pcap], port: left}}\n",
        );
        let error = missing.unwrap_err();
        assert!(error.starts_with("run one: ") && error.contains("caps/b.pcap"), "{error}");
    }

    #[test]
    fn file_that_changes_before_it_is_written_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let capture = folder.path().join("a.pcap");
        fs::write(&capture, PCAP_HEADER).unwrap();
        let runs = "  - {name: one, replay: {captures: [a.pcap], port: left}}\n";
        let contents = planned(folder.path(), runs).1.unwrap();
        let bus = LocalBus::new();
        contents.write(&bus, "t1", || true).unwrap();
        let object = format!("t1.{}.0", Content::of(&PCAP_HEADER[..]).unwrap().sha256);
        assert_eq!(&*bus.get_object(PLANS, &object, 100).unwrap().unwrap(), PCAP_HEADER);
        contents.remove(&bus, "t1");
        assert_eq!(bus.get_object(PLANS, &object, 100).unwrap(), None);
        let stopped = contents.write(&bus, "t1", || false);
        assert!(matches!(stopped, Err(TestError::Stopped)), "{stopped:?}");
        let mut longer = PCAP_HEADER.to_vec();
        longer[20] = 9;
        fs::write(&capture, longer).unwrap();
        let error = contents.write(&bus, "t1", || true).unwrap_err().to_string();
        assert!(error.contains("a.pcap: it changed while the test began"), "{error}");
    }
}
