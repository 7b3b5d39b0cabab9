//! Tests of the `wirestorm` command in separate network namespaces.

mod bench;
mod bench_collector;
mod bench_connections;
mod bench_services;
mod clock;
mod console;
mod deploy;
mod distributed;
mod emulation;
mod flow_exporter;
mod links;
mod metrics;
mod replay;
mod rfc9411;
mod runs;
mod server;
mod streams;
mod trex_clients;
mod trex_console;
