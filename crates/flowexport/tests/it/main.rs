//! Collector and exporters together, examples of the RFCs, and real exporters and collectors.

mod dialogues;
mod examples;
mod programs;
mod properties;
mod real_collectors;
mod real_exporters;
mod round_trip;
mod support;
