//! TLS between two endpoints.

#[path = "../../../stack/tests/it/disturbed/mod.rs"]
mod disturbed;
mod network;
mod settings;
