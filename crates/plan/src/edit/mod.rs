//! Frame edits: the options of tcpreplay's editor, with additions.
//!
//! [`EditArguments`] hold each option as text, [`EditOptions`] the parsed values.
//! [`EditArguments::parse`] parses them. Its errors name the option, the value found and the accepted
//! notation.

mod arguments;
mod error;
mod parse;

pub use arguments::EditArguments;
pub use error::EditError;
pub use parse::{
    parse_captured_short, parse_endpoints, parse_mac_addresses, parse_mac_substitution,
    parse_port_map, parse_prefix, parse_prefix_mappings, parse_time_to_live,
};
pub use wirestorm_model::edit::{
    EditOptions, Fuzz, MacSeed, MacSubstitution, PortReplacement, PrefixReplacement,
    TimeToLiveEdit, TruncatedFrameAction, VlanChange, VlanEdit, VlanTag,
};
pub use wirestorm_wire::prefix::Prefix;
