//! HTTP/2 between two endpoints, and with peers that break its rules.

#[path = "../../../stack/tests/it/disturbed/mod.rs"]
mod disturbed;
mod messages;
mod network;
mod peer;
mod peers;
