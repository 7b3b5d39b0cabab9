//! Frames made from headers, with tshark as the reference.

mod assemble_properties;
mod assemble_tshark;
