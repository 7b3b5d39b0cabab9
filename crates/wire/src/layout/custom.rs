//! Headers of arbitrary bytes.

use super::Layout;
use super::field::bytes;

/// A header of arbitrary bytes.
pub static CUSTOM: Layout = Layout::new("custom", "Any bytes", &[bytes("bytes", 0)]);
