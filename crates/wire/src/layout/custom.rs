//! Bytes of which nothing is known.

use super::Layout;
use super::field::bytes;

/// A header of any bytes.
pub static CUSTOM: Layout = Layout::new("custom", "Any bytes", &[bytes("bytes", 0)]);
