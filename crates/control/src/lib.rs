//! The life of a run: files opened, threads started and pinned, counters merged, a result told.

pub mod inventory;
pub mod port;
pub mod replay;
pub mod result;
pub mod schema;

pub use wirestorm_base as base;
pub use wirestorm_io::namespace;
pub use wirestorm_plan as plan;
pub use wirestorm_wire as wire;
