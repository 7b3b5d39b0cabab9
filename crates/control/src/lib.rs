//! The life of a run: files opened, threads started and pinned, counters merged, a result told.

pub mod bridge;
pub mod capture;
pub mod emulation;
pub mod host;
pub mod inventory;
pub mod pktgen;
pub mod port;
mod receive;
mod records;
pub mod replay;
pub mod result;
pub mod schema;
pub mod traffic;
mod work;
mod workers;

pub use wirestorm_base as base;
pub use wirestorm_io::{link, namespace};
pub use wirestorm_plan as plan;
pub use wirestorm_stack as stack;
pub use wirestorm_wire as wire;
