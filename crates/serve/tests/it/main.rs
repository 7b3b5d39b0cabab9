//! Tests of the servers over real connections, with real runs.

mod access;
mod cluster;
mod cluster_files;
mod directed;
mod leases;
mod live;
mod metrics;
mod runs;
mod service;
mod trex;
mod trex_capture_endpoint;
mod trex_capture_port;
mod trex_nodes;
mod trex_stateful;
mod trex_tagged;
