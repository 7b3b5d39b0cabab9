//! Tests of the command against the documents, the schemas and tcpreplay.

mod bench;
mod cluster;
mod counters;
mod documents;
mod emulate;
mod ports;
mod replay;
mod report;
mod runs;
mod schema;
mod tcpreplay;
