//! Reading of plans, scripts and options, and what they lower to.

mod captured;
mod conversations;
mod edit;
mod pktgen;
mod presets;
mod schema;
mod traffic;
mod trex;
mod trex_documents;
