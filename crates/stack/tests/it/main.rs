//! Connections and endpoints in virtual time.

mod content;
mod disturbed;
mod endpoint;
mod memory;
mod own_bytes;
mod support;
mod tcp_dialogues;
mod tcp_network;
