//! Connections and endpoints in virtual time.

mod content;
mod endpoint;
mod impaired;
mod memory;
mod per_flow_payload;
mod support;
mod tcp_dialogues;
mod tcp_network;
