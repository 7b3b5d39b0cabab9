//! NetFlow v5 and v9 (RFC 3954), IPFIX (RFC 7011) and sFlow v5: a collector and exporters as state.
//!
//! ```text
//! Exporter -> datagram -> Collector -> Record -> FlowTable   per key: packets, bytes
//!                            |           |----> Accuracy    per field: present, in range
//!                            '-> Domain: templates, sequence gaps, counters
//! ```
//!
//! This crate is pure: datagrams and times come in, records and datagrams come out. No input can
//! make it panic. Every table has a bound, and a counter shows when it is reached. Nothing
//! allocates per record.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod accuracy;
pub mod collector;
pub mod device_log;
pub mod element;
pub mod exporter;
pub mod flow_table;
mod header;
mod layout;
mod malformed;
mod reader;
mod record;
mod sflow;
pub mod template;

pub use header::Version;
pub use malformed::Malformed;
pub use record::{Counting, FieldSet, FlowRecord, Record, Source};
