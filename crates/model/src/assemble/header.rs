//! Description of the headers to assemble.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use wirestorm_wire::layout::Layout;

/// A header or an item of one: a layout and its given values.
#[derive(Clone, Debug)]
pub struct Header {
    /// Layout of the header.
    pub layout: &'static Layout,
    /// Given values by field name. Other fields are computed.
    pub values: Vec<(Cow<'static, str>, Value)>,
    /// Items behind the fields.
    pub items: Vec<Self>,
    /// Bytes at the end of the frame that this header does not count, such as the FCS of a frame in
    /// a tunnel. All frames then have the length of the assembled one.
    pub trailer: usize,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The value of the field's role, or its default. It makes an optional field present.
    Auto,
    /// A number, or an address as a number in network order.
    Number(u128),
    /// Bytes; their number must match the field.
    Bytes(Vec<u8>),
    /// A wrong checksum in every frame.
    WrongChecksum,
}

impl Header {
    /// Creates a header without given values.
    pub const fn new(layout: &'static Layout) -> Self {
        Self { layout, values: Vec::new(), items: Vec::new(), trailer: 0 }
    }

    /// Adds a value for a field.
    #[must_use]
    pub fn with(mut self, field: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.values.push((field.into(), value.into()));
        self
    }

    /// Adds an item behind the existing ones.
    #[must_use]
    pub fn item(mut self, item: Self) -> Self {
        self.items.push(item);
        self
    }

    /// Returns the given value of a field.
    pub(super) fn value(&self, field: &str) -> Option<&Value> {
        self.values.iter().find(|(name, _)| name == field).map(|(_, value)| value)
    }
}

impl From<u128> for Value {
    fn from(number: u128) -> Self {
        Self::Number(number)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}
