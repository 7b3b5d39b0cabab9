//! Parameters of methods of frames as people write them: the flags of `wirestorm bench`, and the keys
//! of `bench` in a test.
//!
//! The flag `--frame-sizes` and the key `frame_sizes` have the same values and the same default.

mod document;
mod mlrsearch;
mod ndr;
mod paths;
mod rfc2544;
mod schema;
mod value;
mod y1564;

pub use document::{BenchParameters, MethodParameters};
pub use mlrsearch::MlrsearchParameters;
pub use ndr::NdrParameters;
pub use paths::{Links, PathParameters};
pub use rfc2544::Rfc2544Parameters;
pub use schema::bench_schema;
pub use value::{ParameterError, parse_load, parse_percent, parse_wait};
pub use y1564::Y1564Parameters;
