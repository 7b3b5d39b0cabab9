//! Edits of frames: the options of tcpreplay's editor, and a few more.
//!
//! [`EditWords`] hold each option as it was written, [`EditOptions`] what it means;
//! [`EditWords::meaning`] goes from the one to the other and says what is wrong, with the
//! option's name, what it has and what it should have.

mod error;
mod parse;
mod words;

pub use error::EditError;
pub use parse::{
    parse_captured_short, parse_endpoints, parse_mac_addresses, parse_mac_substitution,
    parse_port_map, parse_prefix, parse_prefix_mappings, parse_time_to_live,
};
pub use wirestorm_model::edit::{
    CapturedShort, EditOptions, Fuzz, MacSeed, MacSubstitution, PortMapping, PrefixMapping,
    TimeToLiveEdit, VlanChange, VlanEdit, VlanTag,
};
pub use wirestorm_wire::prefix::Prefix;
pub use words::EditWords;
