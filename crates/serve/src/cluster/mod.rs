//! Tests across machines: agents that execute runs, and a director that starts and merges them.
//!
//! ```text
//! director                         bus                        agent
//!   lease of each agent ──────────> bucket `leases`
//!   files, large plans ───────────> objects `plans` ───────────> fetched, checked by SHA-256
//!   signed orders ─────────────────────────────────────────────> runs, sessions
//!   answers to lease requests <──────────────────────────────── every third of a lease
//!   results <────────────────────── log `results` <───────────── results, exchanges
//! ```

mod agent;
mod content;
mod director;
mod document;
mod local;
mod log;
mod protocol;
mod schema;

pub use agent::{Agent, AgentError, AgentOptions};
pub use director::{
    BenchOutcome, Director, DirectorOptions, IterationOutcome, JudgedLimit, RunOutcome, TestError,
    TestOutcome, TestProgress,
};
pub use document::{BenchDocument, IterationDocument, RunDocument, TEST_SCHEMA, TestDocument};
pub use local::{LocalAgents, LocalError};
pub use protocol::{Event, PortPresence, Presence};
pub use schema::{test_plan_schema, test_schema};
