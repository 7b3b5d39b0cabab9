//! TLS between two endpoints.

#[path = "../../../stack/tests/it/impaired/mod.rs"]
mod impaired;
mod network;
mod settings;
