//! Agents, and tests across machines.

use super::{Client, Result, encoded};
use crate::agent::AgentList;
use crate::test::{TestRequest, TestStatus, TestSummary};

impl Client {
    /// Returns the agents of the server's bus.
    ///
    /// # Errors
    /// See [`ClientError`](super::ClientError); so for the others.
    pub fn agents(&self) -> Result<AgentList> {
        self.get("/agents")
    }

    /// Starts a test.
    ///
    /// # Errors
    /// See [`Self::agents`].
    pub fn create_test(&self, request: &TestRequest) -> Result<TestSummary> {
        self.document(self.send(self.agent.post(self.url("/tests")), request)?)
    }

    /// Returns the tests of the server, the newest first.
    ///
    /// # Errors
    /// See [`Self::agents`].
    pub fn tests(&self) -> Result<Vec<TestSummary>> {
        self.get("/tests")
    }

    /// Returns a test with its progress and its results so far.
    ///
    /// # Errors
    /// See [`Self::agents`].
    pub fn test(&self, id: &str) -> Result<TestStatus> {
        self.get(&format!("/tests/{}", encoded(id)))
    }

    /// Stops a test. It ends a little later, with the results so far.
    ///
    /// # Errors
    /// See [`Self::agents`].
    pub fn stop_test(&self, id: &str) -> Result<TestSummary> {
        let path = format!("/tests/{}/stop", encoded(id));
        self.document(self.checked(self.request(self.agent.post(self.url(&path))).send_empty())?)
    }

    /// Returns the result of a test that is over: a document of the format `wirestorm.test/1`.
    ///
    /// # Errors
    /// See [`Self::agents`].
    pub fn test_result(&self, id: &str) -> Result<serde_json::Value> {
        self.get(&format!("/tests/{}/result", encoded(id)))
    }
}
