//! Reports of sample runs in all formats.

mod formats;
mod reading;
#[path = "../../examples/sample/data.rs"]
mod sample;
