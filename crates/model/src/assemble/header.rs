//! Headers as they are wanted.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use wirestorm_wire::layout::Layout;

/// A header, or an item of one: a layout, and what was said of it.
#[derive(Clone, Debug)]
pub struct Header {
    /// Its layout.
    pub layout: &'static Layout,
    /// Fields by name, with their values. Fields that are not here are filled in.
    pub values: Vec<(Cow<'static, str>, Value)>,
    /// What stands behind its fields.
    pub items: Vec<Self>,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// What the field's role says, or its default; an optional field is there by it.
    Auto,
    /// A number, or an address as a number in network order.
    Number(u128),
    /// Bytes, as many as the field has.
    Bytes(Vec<u8>),
    /// A checksum that is wrong in every frame.
    Bad,
}

impl Header {
    /// A header of which nothing was said.
    pub const fn new(layout: &'static Layout) -> Self {
        Self { layout, values: Vec::new(), items: Vec::new() }
    }

    /// With a value for a field.
    #[must_use]
    pub fn with(mut self, field: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.values.push((field.into(), value.into()));
        self
    }

    /// With another item behind those that there are.
    #[must_use]
    pub fn item(mut self, item: Self) -> Self {
        self.items.push(item);
        self
    }

    /// What was said of a field.
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
