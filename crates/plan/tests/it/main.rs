//! What is written, and the plan that it becomes.

mod captured;
mod conversations;
mod edit;
mod pktgen;
mod ready;
mod schema;
mod traffic;
mod trex;
mod trex_documents;
