//! HTTP/2 between two endpoints, and with peers that violate the protocol.

#[path = "../../../stack/tests/it/impaired/mod.rs"]
mod impaired;
mod messages;
mod network;
mod peer;
mod peers;
