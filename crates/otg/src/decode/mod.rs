//! Decoding of messages from JSON and protobuf.
//!
//! ```text
//! JSON text ──── json.rs ─┐
//!                         ├─ canonical encoding ── finish.rs: choices, defaults ── T::decode
//! protobuf ─ protobuf.rs ─┘
//! ```
//!
//! Both forms are compared with the schema of all messages, so that no field is lost silently: a
//! field that the models do not have is a warning with its path. A value of the wrong type, or an
//! unknown value of an enum, is an error with its path.
//!
//! # Defaults
//!
//! Absent fields of a present message get the defaults of the models. `choice` is the variant that
//! is set if only one is, else the default of the models; then that variant has its own defaults.
//! Absent messages stay absent: [`default_of`] returns what they stand for.

mod finish;
mod json;
mod path;
mod protobuf;

use prost::{Message, Name};

use self::path::Context;
use crate::schema::{self, MessageInfo};

/// Maximum number of warnings of one message; the last one then counts the rest.
pub const WARNINGS_MAX: usize = 100;

/// Something in a message that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Path of the field, such as `flows[3].packet[0].foo`; empty for the message itself.
    pub path: String,
    /// What happens to it.
    pub message: String,
}

/// A message that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{message}", path, if path.is_empty() { "" } else { ": " })]
pub struct DecodeError {
    /// Path of the field, such as `flows[3].size.fixed`; empty if there is none.
    pub path: String,
    /// What was found and expected.
    pub message: String,
}

impl Warning {
    /// Returns the warnings; if some are left out, the last one counts them.
    pub(crate) fn counted(mut warnings: Vec<Self>, left_out: usize) -> Vec<Self> {
        if left_out > 0 {
            warnings.pop();
            let message = format!("{} more warnings", left_out + 1);
            warnings.push(Self { path: String::new(), message });
        }
        warnings
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let separator = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{}{separator}{}", self.path, self.message)
    }
}

/// Reads a message in the JSON form of the API. Numbers of 64 bits can be numbers or strings.
///
/// # Errors
/// If the text is no JSON, a value has the wrong type, or a required field is missing.
pub fn from_json<T: Message + Name + Default>(
    text: &str,
) -> Result<(T, Vec<Warning>), DecodeError> {
    let mut context = Context::default();
    json::read(info::<T>()?, text, &mut context)?;
    finished(context)
}

/// Reads a message in the protobuf encoding.
///
/// # Errors
/// As [`from_json`], if the bytes are no message, or a field that is no list occurs twice.
pub fn from_protobuf<T: Message + Name + Default>(
    bytes: &[u8],
) -> Result<(T, Vec<Warning>), DecodeError> {
    let mut context = Context::default();
    protobuf::read(info::<T>()?, bytes, &mut context)?;
    finished(context)
}

/// Returns the message that an absent one stands for: all fields have their defaults. Required
/// fields are empty.
pub fn default_of<T: Message + Name + Default>() -> T {
    let mut context = Context::default();
    if let Ok(info) = info::<T>() {
        finish::append_defaults(info, &mut context.out);
    }
    T::decode(context.out.as_slice()).unwrap_or_default()
}

fn info<T: Name>() -> Result<&'static MessageInfo, DecodeError> {
    schema::find(T::NAME).filter(|_| T::PACKAGE == "otg").ok_or_else(|| DecodeError {
        path: String::new(),
        message: format!("the models have no message {}", T::full_name()),
    })
}

fn finished<T: Message + Default>(context: Context) -> Result<(T, Vec<Warning>), DecodeError> {
    let message = T::decode(context.out.as_slice())
        .map_err(|error| DecodeError { path: String::new(), message: error.to_string() })?;
    Ok((message, context.into_warnings()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{
        Config, ControlState, FlowDuration, FlowRate, FlowSize, MetricsRequest, flow_duration,
        flow_rate, flow_size,
    };

    fn config(text: &str) -> (Config, Vec<String>) {
        let (config, warnings) = from_json(text).unwrap();
        (config, warnings.iter().map(ToString::to_string).collect())
    }

    fn error(text: &str) -> String {
        from_json::<Config>(text).unwrap_err().to_string()
    }

    #[test]
    fn unknown_fields_are_warnings_with_their_path() {
        let text = r#"{"flows": [{"name": "a", "tx_rx": {"device": {}}}, {"name": "b", "tx_rx":
            {"port": {"tx_name": "p"}}, "packet": [{"ethernet": {"foo": 1},
            "bar": [{"x": 1}]}]}], "baz": null}"#;
        let (config, warnings) = config(text);
        assert_eq!(config.flows[1].name(), "b");
        assert_eq!(
            warnings,
            [
                "flows[1].packet[0].ethernet.foo: unknown field, ignored",
                "flows[1].packet[0].bar: unknown field, ignored",
                "baz: unknown field, ignored",
            ]
        );
    }

    #[test]
    fn many_warnings_are_counted() {
        let fields: Vec<_> = (0..150).map(|index| format!("\"x{index}\": 1")).collect();
        let (_, warnings) = config(&format!("{{{}}}", fields.join(", ")));
        assert_eq!(warnings.len(), WARNINGS_MAX);
        assert_eq!(warnings[99], "51 more warnings");
    }

    #[test]
    fn wrong_values_are_errors_with_their_path() {
        let cases = [
            (r#"{"flows": [{"name": 1}]}"#, "flows[0].name: found 1, expected a text"),
            (
                r#"{"flows": [{"name": "a", "size": {"fixed": -1}}]}"#,
                "flows[0].size.fixed: found -1, expected a whole number from 0 to 4294967295",
            ),
            (
                r#"{"flows": [{"name": "a", "size": {"choice": "big"}}]}"#,
                "flows[0].size.choice: found \"big\", expected one of fixed, increment, random, \
                 weight_pairs",
            ),
            (r#"{"flows": {}}"#, "flows: found an object, expected a list"),
            (r#"{"flows": [3]}"#, "flows[0]: found 3, expected an object"),
            (r#"{"ports": [{}]}"#, "ports[0].name: found nothing, expected a value"),
            (
                r#"{"flows": [{"name": "a", "tx_rx": {}}]}"#,
                "flows[0].tx_rx.port.tx_name: found nothing, expected a value",
            ),
            (r#"{"ports": [], "ports": []}"#, "ports: found a second time"),
            (
                r#"{"flows": [{"name": "a", "metrics": {"enable": "yes"}}]}"#,
                "flows[0].metrics.enable: found \"yes\", expected true or false",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(error(text), expected, "{text}");
        }
        assert!(error("{").starts_with("EOF while parsing"), "{}", error("{"));
        assert!(error("[]").starts_with("found a list, expected an object"), "{}", error("[]"));
        assert!(error(r#"{"ports": [],}"#).contains("line 1 column"));
    }

    #[test]
    fn numbers_of_64_bits_can_be_texts() {
        for text in [r#"{"pps": "1000000000000"}"#, r#"{"pps": 1000000000000}"#] {
            let (rate, _) = from_json::<FlowRate>(text).unwrap();
            assert_eq!(rate.pps, Some(1_000_000_000_000), "{text}");
            assert_eq!(rate.choice(), flow_rate::choice::Enum::Pps);
        }
        let (rate, _) =
            from_json::<FlowRate>(r#"{"choice": "percentage", "percentage": 1}"#).unwrap();
        assert_eq!(rate.percentage, Some(1.0));
    }

    #[test]
    fn absent_fields_have_the_defaults_of_the_models() {
        let size = default_of::<FlowSize>();
        assert_eq!((size.choice(), size.fixed), (flow_size::choice::Enum::Fixed, Some(64)));
        let rate = default_of::<FlowRate>();
        assert_eq!((rate.choice(), rate.pps), (flow_rate::choice::Enum::Pps, Some(1000)));
        assert_eq!(rate.percentage, None);
        let duration = default_of::<FlowDuration>();
        assert_eq!(duration.choice(), flow_duration::choice::Enum::Continuous);
        assert_eq!(duration.continuous.unwrap().gap, Some(12));
    }

    #[test]
    fn the_choice_follows_the_variant_that_is_set() {
        let (size, _) = from_json::<FlowSize>(r#"{"increment": {}}"#).unwrap();
        assert_eq!(size.choice(), flow_size::choice::Enum::Increment);
        assert_eq!(size.fixed, None);
        let increment = size.increment.unwrap();
        assert_eq!((increment.start, increment.end), (Some(64), Some(1518)));
        let (size, _) = from_json::<FlowSize>(r#"{"choice": "random"}"#).unwrap();
        assert_eq!(size.random.unwrap().min, Some(64));
        // Where the choice itself is required.
        let text = r#"{"choice": "port", "port": {"choice": "capture", "capture": {"state":
            "start"}}}"#;
        let (with, _) = from_json::<ControlState>(text).unwrap();
        let text = r#"{"port": {"capture": {"state": "start"}}}"#;
        assert_eq!(from_json::<ControlState>(text).unwrap().0, with);
        let (_, warnings) =
            from_json::<FlowSize>(r#"{"choice": "fixed", "increment": {}}"#).unwrap();
        assert_eq!(warnings[0].to_string(), "increment: ignored, since choice is fixed");
        let error = from_json::<FlowSize>(r#"{"fixed": 64, "increment": {}}"#).unwrap_err();
        assert_eq!(error.to_string(), "found fixed and increment, expected choice or one of them");
    }

    #[test]
    fn both_encodings_decode_to_the_same_message() {
        let text = r#"{"ports": [{"name": "p"}], "flows": [{"name": "f", "tx_rx": {"port": {"tx_name": "p"}}, "packet": [{"ipv4":
            {"src": {"increment": {"start": "10.0.0.1", "count": 5}}}}], "size": {}}]}"#;
        let (from_text, _) = from_json::<Config>(text).unwrap();
        let bytes = from_text.encode_to_vec();
        let (from_bytes, warnings) = from_protobuf::<Config>(&bytes).unwrap();
        assert_eq!(from_bytes, from_text);
        assert_eq!(warnings, []);
    }

    #[test]
    fn unknown_numbers_in_protobuf_are_warnings() {
        // Field 99 of a port, field 6 of the configuration as a number.
        let bytes = [10, 8, 18, 1, b'p', 0x98, 6, 7, 0x9a, 6];
        assert!(from_protobuf::<Config>(&bytes).is_err());
        let bytes = [10, 6, 18, 1, b'p', 0x98, 6, 7];
        let (_, warnings) = from_protobuf::<Config>(&bytes).unwrap();
        assert_eq!(warnings[0].to_string(), "ports[0]: unknown field number 99, ignored");
        let error = from_protobuf::<Config>(&[48, 1]).unwrap_err();
        assert_eq!(error.to_string(), "flows: found a number, expected messages");
        // Value 9 of the choice of a size.
        let error = from_protobuf::<FlowSize>(&[8, 9]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "choice: found 9, expected one of fixed, increment, random, weight_pairs"
        );
    }

    #[test]
    fn requests_are_decoded() {
        let (request, _) = from_json::<MetricsRequest>("{}").unwrap();
        assert!(request.port.is_some());
        let text = r#"{"choice": "traffic", "traffic": {"choice": "flow_transmit",
            "flow_transmit": {"state": "start"}}}"#;
        let (state, warnings) = from_json::<ControlState>(text).unwrap();
        assert!(state.traffic.unwrap().flow_transmit.unwrap().flow_names.is_empty());
        assert_eq!(warnings, []);
    }
}
