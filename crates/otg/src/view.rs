//! Reading access to encoded messages, by the names of their fields.

use crate::encoded::EncodedMessage;
use crate::schema::{self, FieldInfo, Kind, MessageInfo};
use crate::wire::{Fields, Payload, varint};

/// An encoded message. Absent fields have the defaults of the models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) info: &'static MessageInfo,
    bytes: &'a [u8],
}

/// A value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Number(u64),
    Text(&'a str),
}

impl<'a> View<'a> {
    /// Returns a view of a message with this name; `None` if the models have none.
    pub(crate) fn of(name: &str, message: &'a EncodedMessage) -> Option<Self> {
        Some(Self { info: schema::find(name)?, bytes: message.as_bytes() })
    }

    fn payloads(&self, field: &FieldInfo) -> impl Iterator<Item = Payload<'a>> + use<'a> {
        let number = field.number;
        Fields::new(self.bytes)
            .filter_map(Result::ok)
            .filter(move |found| found.number == number)
            .map(|found| found.payload)
    }

    fn payload(&self, field: &FieldInfo) -> Option<Payload<'a>> {
        self.payloads(field).last()
    }

    /// Returns the message of a field; `None` if it is absent.
    pub(crate) fn given(&self, field: &FieldInfo) -> Option<View<'a>> {
        match self.payload(field)? {
            Payload::Bytes(bytes) => Some(View { info: field.message()?, bytes }),
            _ => None,
        }
    }

    /// Returns the value of a field, or its default.
    fn scalar(&self, name: &str) -> Option<(&'static FieldInfo, Payload<'a>)> {
        let field = self.info.field(name)?;
        Some((field, self.payload_or_default(field)?))
    }

    fn payload_or_default(&self, field: &'static FieldInfo) -> Option<Payload<'a>> {
        let default = || Fields::new(field.default).next()?.ok().map(|found| found.payload);
        self.payload(field).or_else(default)
    }

    /// Returns whether the message has this field.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.info.field(name).is_some_and(|field| self.payload(field).is_some())
    }

    /// Returns the name of an enum's value, or of its default.
    pub(crate) fn enum_name(&self, name: &str) -> Option<&'static str> {
        self.enum_value(self.info.field(name)?)
    }

    fn enum_value(&self, field: &'static FieldInfo) -> Option<&'static str> {
        match self.payload_or_default(field)? {
            Payload::Varint(number) => field.values()?.name(i32::try_from(number).ok()?),
            _ => None,
        }
    }

    /// Returns the name of the chosen variant, or of the default one.
    pub(crate) fn choice(&self) -> Option<&'static str> {
        self.enum_value(self.info.fields.get(self.info.choice?)?)
    }

    /// Returns a number, or its default. A boolean is 0 or 1.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.scalar(name)?.1 {
            Payload::Varint(number) => Some(number),
            _ => None,
        }
    }

    /// Returns a number with fractions, or its default.
    pub(crate) fn float(&self, name: &str) -> Option<f32> {
        match self.scalar(name)?.1 {
            Payload::Fixed32(bits) => Some(f32::from_bits(bits)),
            _ => None,
        }
    }

    /// Returns a text, or its default.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        match self.scalar(name)?.1 {
            Payload::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Returns a number or a text, or its default.
    pub(crate) fn value(&self, name: &str) -> Option<Scalar<'a>> {
        match self.scalar(name)?.1 {
            Payload::Varint(number) => Some(Scalar::Number(number)),
            Payload::Bytes(bytes) => std::str::from_utf8(bytes).ok().map(Scalar::Text),
            Payload::Fixed32(_) | Payload::Fixed64(_) => None,
        }
    }

    /// Returns the values of a list of numbers or texts, or its default.
    pub(crate) fn values(&self, name: &str) -> Vec<Scalar<'a>> {
        let Some(field) = self.info.field(name) else { return Vec::new() };
        let mut values = Vec::new();
        let mut add = |payload: Payload<'a>| match (payload, field.kind) {
            (Payload::Bytes(text), Kind::String) => {
                values.extend(std::str::from_utf8(text).ok().map(Scalar::Text));
            }
            (Payload::Bytes(mut packed), _) => {
                while let Some((number, used)) = varint(packed) {
                    values.push(Scalar::Number(number));
                    packed = &packed[used..];
                }
            }
            (Payload::Varint(number), _) => values.push(Scalar::Number(number)),
            (Payload::Fixed32(_) | Payload::Fixed64(_), _) => {}
        };
        if self.payload(field).is_some() {
            self.payloads(field).for_each(add);
        } else {
            let defaults = Fields::new(field.default).filter_map(Result::ok);
            defaults.for_each(|found| add(found.payload));
        }
        values
    }

    /// Returns the message of a field; an empty one if it is absent.
    pub(crate) fn message(&self, name: &str) -> Option<View<'a>> {
        let field = self.info.field(name)?;
        let bytes = match self.payload(field) {
            Some(Payload::Bytes(bytes)) => bytes,
            _ => &[],
        };
        Some(View { info: field.message()?, bytes })
    }

    /// Returns the messages of a list.
    pub(crate) fn messages(&self, name: &str) -> Vec<View<'a>> {
        let Some((field, info)) =
            self.info.field(name).and_then(|field| Some((field, field.message()?)))
        else {
            return Vec::new();
        };
        let bytes = |payload| match payload {
            Payload::Bytes(bytes) => Some(View { info, bytes }),
            _ => None,
        };
        self.payloads(field).filter_map(bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{from_json, proto::Config};

    #[test]
    fn fields_of_a_header_are_read_by_name() {
        let text = r#"{"flows": [{"name": "f", "tx_rx": {"device": {}}, "packet": [{"ipv4":
            {"src": {"values": ["10.0.0.1", "10.0.0.2"]}, "identification": {"values": [1, 300]},
            "options": [{"choice": "router_alert"}, {"choice": "end_of_options"}]}}]}]}"#;
        let (config, _) = from_json::<Config>(text).unwrap();
        let header = View::of("FlowHeader", &config.flows[0].packet[0]).unwrap();
        assert_eq!(header.choice(), Some("ipv4"));
        let ipv4 = header.message("ipv4").unwrap();
        assert!(ipv4.has("src") && !ipv4.has("dst"));
        let source = ipv4.message("src").unwrap();
        assert_eq!(source.choice(), Some("values"));
        assert_eq!(source.values("values"), ["10.0.0.1", "10.0.0.2"].map(Scalar::Text));
        let identification = ipv4.message("identification").unwrap();
        assert_eq!(identification.values("values"), [1, 300].map(Scalar::Number));
        let absent = ipv4.message("time_to_live").unwrap();
        assert_eq!((absent.choice(), absent.number("value")), (Some("value"), Some(64)));
        assert_eq!(absent.values("values"), [Scalar::Number(64)]);
        let options = ipv4.messages("options");
        assert_eq!(options[1].choice(), Some("end_of_options"));
        assert_eq!(ipv4.message("dst").unwrap().text("value"), Some("0.0.0.0"));
        assert!(ipv4.message("no_such").is_none());
    }
}
