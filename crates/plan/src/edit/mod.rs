//! Edits of frames: the options of tcpreplay's editor, and a few more.
//!
//! [`EditWords`] hold each option as it was written, [`EditPlan`] what it means;
//! [`EditPlan::new`] goes from the one to the other and says what is wrong, with the option's
//! name, what it has and what it should have.

mod error;
mod parse;
mod types;
mod words;

pub use error::EditError;
pub use parse::{
    parse_captured_short, parse_endpoints, parse_mac_addresses, parse_mac_substitution,
    parse_port_map, parse_prefix, parse_prefix_mappings, parse_time_to_live,
};
pub use types::{
    CapturedShort, EditPlan, Fuzz, MacSeed, MacSubstitution, PortMapping, Prefix, PrefixMapping,
    TimeToLiveEdit, VlanChange, VlanEdit, VlanTag,
};
pub use words::EditWords;
