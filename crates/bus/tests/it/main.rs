//! The contract of the buses, and the NATS back end against a real server.

mod contract;
