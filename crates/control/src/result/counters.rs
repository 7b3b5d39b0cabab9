//! Schemas of the counters that reports hold by name. Names and meanings are those of the stack.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use wirestorm_stack::endpoint::{FlowCounters, UdpCounters};
use wirestorm_stack::tcp::counters::TcpCounters;

/// Defines the schema of an object with one integer for each counter.
macro_rules! counter_schema {
    ($($name:ident: $text:literal, $counters:expr;)*) => {$(
        #[doc = $text]
        pub(super) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                schema($text, $counters)
            }
        }
    )*};
}

counter_schema! {
    TemplateFlowCounts: "Counts of the flows of a template.",
        FlowCounters::default().iter().chain(AT_THE_END);
    TcpCounts: "TCP counters by BSD name. TRex uses the same names with the prefix `tcps_`.",
        TcpCounters::default().iter();
    UdpCounts: "UDP counters by TRex name, without the prefix `udps_`.",
        UdpCounters::default().iter();
}

/// Counts that a report adds at the end of the run; the value is unused.
const AT_THE_END: [(&str, &str, u64); 2] = [
    ("syn_sent", "connections in SYN-SENT", 0),
    ("unfinished", "established flows that have not finished", 0),
];

/// Builds a schema from names and meanings; values are ignored.
fn schema(text: &str, counters: impl Iterator<Item = (&'static str, &'static str, u64)>) -> Schema {
    let properties: Map<String, Value> = counters
        .map(|(name, text, _)| {
            let value = json!({
                "description": sentence(text), "type": "integer", "format": "uint64", "minimum": 0,
            });
            (name.to_owned(), value)
        })
        .collect();
    let required: Vec<_> = properties.keys().cloned().collect();
    json_schema!({
        "description": text,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns a phrase with a capital and a full stop.
fn sentence(phrase: &str) -> String {
    let mut characters = phrase.chars();
    let first = characters.next().map(|it| it.to_ascii_uppercase());
    first.into_iter().chain(characters).chain(['.']).collect()
}
