//! Benchmark methods: RFC 2544, MLRsearch and others.
//!
//! A method is a function over a [`Trial`](trial::Trial): it asks for trials, one after the other,
//! and computes findings from their outputs. Interfaces, a simulation or other machines execute the
//! trials. A method depends only on these outputs, so it continues from recorded trials
//! ([`recorded`]) and shows its plan without sending ([`estimate`]).
#![forbid(unsafe_code)]

pub mod collector;
pub mod connections;
pub mod device;
pub mod distribution;
pub mod estimate;
pub mod flow_exporter;
pub mod method;
pub mod mlrsearch;
pub mod ndr;
pub mod rate;
pub mod recorded;
mod repeating;
pub mod rfc2544;
pub mod rfc9411;
pub mod search;
mod seconds;
pub mod statistics;
pub mod trial;
pub mod y1564;
