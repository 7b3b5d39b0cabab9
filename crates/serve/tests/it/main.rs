//! Tests of the servers over real connections, with real runs.

mod metrics;
