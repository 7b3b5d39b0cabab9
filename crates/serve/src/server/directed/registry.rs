//! The tests of a server by ID: all that run, and the last that ended.
//!
//! A test has two files: its status, from its start on, and its results once it has ended. So the next
//! server has it too.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::test::{TestState, TestStatus, TestSummary};

use super::hosted::HostedTest;
use crate::cluster::TestDocument;
use crate::server::library::Folder;

/// Tests that run at a time.
const ACTIVE_MAX: usize = 8;
/// Tests that are kept after their end.
const ENDED_MAX: usize = 64;
/// Ends of the names of files.
const STATUS: &str = ".status.json";
const RESULT: &str = ".result.json";

pub(in crate::server) struct Tests {
    folder: Folder,
    list: Mutex<BTreeMap<String, Arc<HostedTest>>>,
}

impl Tests {
    /// Reads the tests of earlier servers. Those that had not ended are interrupted. Removes files of
    /// tests without a status.
    pub(in crate::server) fn open(folder: Folder) -> Result<Self, ErrorDocument> {
        let items = folder.list()?;
        let mut list = BTreeMap::new();
        for id in items.iter().filter_map(|item| item.name.strip_suffix(STATUS)) {
            let text = folder.path(&format!("{id}{STATUS}")).map(fs::read_to_string);
            // Another version of Wirestorm may have written it.
            if let Ok(Ok(text)) = text
                && let Ok(status) = serde_json::from_str::<TestStatus>(&text)
                && status.test.id == id
            {
                list.insert(id.to_owned(), Arc::new(HostedTest::of(status)));
            }
        }
        let tests = Self { folder, list: Mutex::new(list) };
        // A server that was stopped ends its tests; one that was killed could not.
        for test in tests.all() {
            let reason = killed(&test.summary());
            test.end(TestState::Interrupted, Some(reason), |status| tests.keep_status(status));
        }
        for item in &items {
            let id = item.name.strip_suffix(STATUS).or(item.name.strip_suffix(RESULT));
            if !id.is_some_and(|id| tests.lock().contains_key(id)) {
                tests.folder.delete(&item.name)?;
            }
        }
        Ok(tests)
    }

    /// Adds a test that begins. Removes the oldest ended ones beyond the limit.
    pub(super) fn add(&self, test: Arc<HostedTest>) -> Result<(), ErrorDocument> {
        let mut list = self.lock();
        let (ended, active): (Vec<_>, Vec<_>) =
            list.values().map(|test| test.summary()).partition(|test| test.state.is_over());
        if active.len() >= ACTIVE_MAX {
            let message = format!(
                "{ACTIVE_MAX} tests run, which is the maximum: wait for the end of one, or stop one"
            );
            return Err(ErrorDocument::new(ErrorCode::Conflict, message));
        }
        let mut ended: Vec<_> =
            ended.into_iter().map(|test| (test.created_unix_ns, test.id)).collect();
        ended.sort();
        let excess = (ended.len() + 1).saturating_sub(ENDED_MAX);
        for (_, id) in ended.drain(..excess) {
            list.remove(&id);
            for end in [STATUS, RESULT] {
                // A test that did not start has no results. A file that stays goes with the next
                // start of the server.
                let _ = self.folder.delete(&format!("{id}{end}"));
            }
        }
        self.keep_status(&test.status());
        list.insert(test.summary().id, test);
        Ok(())
    }

    pub(super) fn get(&self, id: &str) -> Result<Arc<HostedTest>, ErrorDocument> {
        self.lock().get(id).cloned().ok_or_else(|| {
            let message = format!("no test {id:?}: it is an older one, or of another server");
            ErrorDocument::new(ErrorCode::NotFound, message)
        })
    }

    pub(super) fn all(&self) -> Vec<Arc<HostedTest>> {
        self.lock().values().cloned().collect()
    }

    /// Writes the results of a test.
    ///
    /// # Errors
    /// A message if there is no room, or the file cannot be written.
    pub(super) fn keep_document(
        &self,
        id: &str,
        document: &TestDocument<'_>,
    ) -> Result<(), String> {
        let text = serde_json::to_vec(document).map_err(|error| error.to_string());
        let kept = text.and_then(|text| self.write(&format!("{id}{RESULT}"), &text));
        kept.map_err(|error| format!("the result of the test is not kept: {error}"))
    }

    /// Writes the status of a test. Without the file, the next server does not know the test; its runs are
    /// in the history.
    pub(super) fn keep_status(&self, status: &TestStatus) {
        if let Ok(text) = serde_json::to_vec(status) {
            let _ = self.write(&format!("{}{STATUS}", status.test.id), &text);
        }
    }

    fn write(&self, name: &str, text: &[u8]) -> Result<(), String> {
        let written = self.folder.create(name).and_then(|mut upload| {
            upload.write(text)?;
            upload.finish().map(drop)
        });
        written.map_err(|error| error.message)
    }

    /// Returns the results of a test.
    ///
    /// # Errors
    /// There are none.
    pub(super) fn document(&self, id: &str) -> Result<String, ErrorDocument> {
        let path = self.folder.path(&format!("{id}{RESULT}"))?;
        fs::read_to_string(&path)
            .map_err(|error| ErrorDocument::new(ErrorCode::Storage, error.to_string()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<HostedTest>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns why a test has no end.
fn killed(test: &TestSummary) -> String {
    let id = &test.id;
    match test.on_bus {
        true => format!(
            "the server was killed during the test; `wirestorm test TEST --bus-credentials FILE \
             --recover {id}` prints what the agents measured"
        ),
        false => "the server was killed during the test; its results are lost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::TestOutcome;

    fn folder(directory: &std::path::Path) -> Folder {
        Folder::open(directory.to_owned(), "test", 1 << 20).unwrap()
    }

    fn test(number: u64) -> Arc<HostedTest> {
        let summary = TestSummary {
            id: format!("t{number}"),
            name: "two".into(),
            state: TestState::Running,
            is_stopping: false,
            on_bus: false,
            user: "ada".into(),
            session: String::new(),
            agents: Vec::new(),
            created_unix_ns: number,
            ended_unix_ns: None,
            phase: None,
            iteration: 0,
            iterations: 1,
            message: None,
        };
        Arc::new(HostedTest::new(summary, Vec::new()))
    }

    fn ended(tests: &Tests, number: u64) {
        let test = test(number);
        tests.add(Arc::clone(&test)).unwrap();
        let outcome = TestOutcome::default();
        tests.keep_document(&format!("t{number}"), &TestDocument::new("two", &outcome)).unwrap();
        test.end(TestState::Finished, None, |status| tests.keep_status(status));
    }

    #[test]
    fn number_of_active_tests_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let tests = Tests::open(folder(directory.path())).unwrap();
        let running: Vec<_> = (0..ACTIVE_MAX as u64).map(test).collect();
        running.iter().for_each(|it| tests.add(Arc::clone(it)).unwrap());
        assert_eq!(tests.add(test(100)).unwrap_err().code, ErrorCode::Conflict);
        running[3].end(TestState::Finished, None, |_| {});
        tests.add(test(100)).unwrap();
    }

    #[test]
    fn oldest_ended_tests_go_and_the_next_server_has_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let tests = Tests::open(folder(directory.path())).unwrap();
        (0..=ENDED_MAX as u64).for_each(|number| ended(&tests, number));
        assert_eq!(tests.get("t0").err().unwrap().code, ErrorCode::NotFound);
        assert!(tests.document("t0").is_err() && tests.document("t1").is_ok());
        // Files without a status that this version reads.
        tests.write(&format!("t900{RESULT}"), b"{}").unwrap();
        tests.write(&format!("t901{STATUS}"), b"{").unwrap();
        let tests = Tests::open(folder(directory.path())).unwrap();
        assert_eq!(tests.all().len(), ENDED_MAX);
        assert!(tests.get("t64").is_ok_and(|test| test.summary().state == TestState::Finished));
        let document: serde_json::Value =
            serde_json::from_str(&tests.document("t64").unwrap()).unwrap();
        assert_eq!(document["schema"], "wirestorm.test/1");
        assert!(tests.document("t900").is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2 * ENDED_MAX);
    }

    #[test]
    fn test_of_a_killed_server_is_interrupted_and_stays_in_the_list() {
        let directory = tempfile::tempdir().unwrap();
        let tests = Tests::open(folder(directory.path())).unwrap();
        let on_bus = |number: u64| {
            let status = test(number).status();
            let test = TestSummary { on_bus: true, is_stopping: true, ..status.test };
            Arc::new(HostedTest::of(TestStatus { test, ..status }))
        };
        tests.add(on_bus(7)).unwrap();
        tests.add(test(8)).unwrap();
        ended(&tests, 9);
        // Killed: nothing else is written. The second start finds what the first one has written.
        for _ in 0..2 {
            let tests = Tests::open(folder(directory.path())).unwrap();
            let summary = |id: &str| tests.get(id).unwrap().summary();
            let killed = summary("t7");
            assert_eq!((killed.state, killed.is_stopping), (TestState::Interrupted, false));
            assert!(killed.ended_unix_ns.is_some());
            let message = killed.message.unwrap();
            assert!(message.contains("the server was killed") && message.contains("--recover t7"));
            assert_eq!(tests.get("t7").unwrap().status().lines.len(), 1);
            let local = summary("t8");
            assert_eq!(local.state, TestState::Interrupted);
            assert!(local.message.is_some_and(|it| !it.contains("--recover")));
            assert_eq!(summary("t9").state, TestState::Finished);
            tests.add(test(10)).unwrap();
            tests.get("t10").unwrap().end(TestState::Failed, None, |_| {});
        }
    }
}
