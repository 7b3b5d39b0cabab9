//! HTTP/2 between two endpoints, and with peers that violate the protocol.

#[path = "../../../stack/tests/it/disturbed/mod.rs"]
mod disturbed;
mod messages;
mod network;
mod peer;
mod peers;
