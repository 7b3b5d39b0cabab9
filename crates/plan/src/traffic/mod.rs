//! Plans of streams: what flows of frames are sent from which port, as it is written in YAML or
//! JSON with Open Traffic Generator's words, and as it was understood.

mod duration;
mod error;
mod pattern;
mod place;
mod rate;
mod size;

pub use duration::{Extent, parse_time};
pub use error::{PlanError, PlanErrors};
pub use rate::AskedRate;
pub use size::Size;
