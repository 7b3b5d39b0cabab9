//! Table of all messages of the models, with those that the Rust types leave encoded.
//!
//! `build.rs` generates it from `otg.proto` and from the defaults of `openapi.yaml`.

include!(concat!(env!("OUT_DIR"), "/schema.rs"));

/// A message of the models.
#[derive(Debug)]
pub(crate) struct MessageInfo {
    /// Name without the package, such as `FlowSize`.
    pub(crate) name: &'static str,
    /// Index of the field `choice`, which selects one of the variants.
    pub(crate) choice: Option<usize>,
    /// Index of the variant that is chosen by default, if it is a field.
    default_variant: Option<usize>,
    /// Fields by number; at most 128.
    pub(crate) fields: &'static [FieldInfo],
    /// Indices of the fields by name.
    by_name: &'static [u8],
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct FieldInfo {
    /// Name in JSON, and in paths.
    pub(crate) name: &'static str,
    /// Number on the wire.
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) is_repeated: bool,
    pub(crate) is_required: bool,
    /// Number of the choice that selects this field.
    pub(crate) variant: Option<i32>,
    /// The default as an encoded field; empty if there is none.
    pub(crate) default: &'static [u8],
}

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int32,
    Uint32,
    Uint64,
    Float,
    Double,
    String,
    Bytes,
    /// An enum, by its index.
    Enum(u16),
    /// A message, by its index.
    Message(u16),
}

/// Values of an enum.
#[derive(Debug)]
pub(crate) struct EnumInfo {
    values: &'static [(&'static str, i32)],
}

/// A field of a packet header, in the order on the wire.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Name of the field in its message.
    pub(crate) field: &'static str,
    /// Length in bits; 0 for a part with a layout of its own, or of variable length.
    pub(crate) bits: u32,
}

/// Returns the message with this name, without its package.
pub(crate) fn find(name: &str) -> Option<&'static MessageInfo> {
    let index = MESSAGES.binary_search_by_key(&name, |message| message.name).ok()?;
    MESSAGES.get(index)
}

/// Returns the fields of a packet header, or of a part of one, in the order on the wire.
pub(crate) fn layout(message: &str) -> Option<&'static [Slot]> {
    let index = LAYOUTS.binary_search_by_key(&message, |(name, _)| *name).ok()?;
    LAYOUTS.get(index).map(|(_, slots)| *slots)
}

impl MessageInfo {
    /// Returns the index of the field with this name.
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        let place = self
            .by_name
            .binary_search_by_key(&name, |index| self.fields[usize::from(*index)].name)
            .ok()?;
        Some(usize::from(self.by_name[place]))
    }

    /// Returns the field with this name.
    pub(crate) fn field(&self, name: &str) -> Option<&'static FieldInfo> {
        self.fields.get(self.index(name)?)
    }

    /// Returns the variant that is chosen by default, if it is a field.
    pub(crate) fn default_variant(&self) -> Option<&'static FieldInfo> {
        self.fields.get(self.default_variant?)
    }

    /// Returns the index of the field with this number.
    pub(crate) fn index_of_number(&self, number: u32) -> Option<usize> {
        self.fields.binary_search_by_key(&number, |field| field.number).ok()
    }
}

impl FieldInfo {
    /// Returns the field's message, if it has one.
    pub(crate) fn message(&self) -> Option<&'static MessageInfo> {
        match self.kind {
            Kind::Message(index) => MESSAGES.get(usize::from(index)),
            _ => None,
        }
    }

    /// Returns the field's enum, if it has one.
    pub(crate) fn values(&self) -> Option<&'static EnumInfo> {
        match self.kind {
            Kind::Enum(index) => ENUMS.get(usize::from(index)),
            _ => None,
        }
    }
}

impl EnumInfo {
    /// Returns the number of a value; `None` for `unspecified`, which JSON does not have.
    pub(crate) fn number(&self, name: &str) -> Option<i32> {
        let found = self.values.iter().find(|(known, _)| *known == name)?.1;
        (found != 0).then_some(found)
    }

    /// Returns the name of a value; `None` for `unspecified`.
    pub(crate) fn name(&self, number: i32) -> Option<&'static str> {
        let found = self.values.iter().find(|(_, known)| *known == number && number != 0)?;
        Some(found.0)
    }

    /// Returns the names of all values, for messages.
    pub(crate) fn names(&self) -> String {
        let named = self.values.iter().filter(|(_, number)| *number != 0);
        named.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_fields_and_enums_are_found() {
        let size = find("FlowSize").unwrap();
        let choice = size.field("choice").unwrap();
        assert_eq!(size.choice, size.index("choice"));
        assert_eq!(choice.values().unwrap().names(), "fixed, increment, random, weight_pairs");
        assert_eq!(size.field("increment").unwrap().message().unwrap().name, "FlowSizeIncrement");
        assert!(size.field("choices").is_none());
        // Field 2, default 64.
        assert_eq!(size.field("fixed").unwrap().default, [0x10, 64]);
        let metrics = find("FlowTaggedMetric").unwrap();
        assert!(metrics.field("tags").unwrap().is_repeated);
        assert!(find("NoSuch").is_none());
    }

    /// Returns the number of levels of a message, itself included.
    fn depth(message: &'static MessageInfo, above: &mut Vec<&'static str>) -> usize {
        assert!(!above.contains(&message.name), "{} contains itself", message.name);
        above.push(message.name);
        let inner = message.fields.iter().filter_map(FieldInfo::message);
        let deepest = inner.map(|message| depth(message, above)).max().unwrap_or(0);
        above.pop();
        deepest + 1
    }

    #[test]
    fn messages_do_not_contain_themselves() {
        let deepest = ["Config", "MetricsResponse", "StatesResponse", "ControlAction"]
            .map(|name| depth(find(name).unwrap(), &mut Vec::new()));
        assert!(deepest.iter().all(|depth| *depth < 32), "{deepest:?}");
    }

    #[test]
    fn layouts_have_the_order_of_the_wire() {
        let slots: Vec<_> =
            layout("FlowUdp").unwrap().iter().map(|it| (it.field, it.bits)).collect();
        assert_eq!(slots, [("src_port", 16), ("dst_port", 16), ("length", 16), ("checksum", 16)]);
    }
}
