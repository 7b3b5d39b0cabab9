//! JSON Schema (2020-12) of traffic plans, built from the tables that the reader uses. Schema and
//! reader therefore know the same fields.
//!
//! The schema does not check everything that the reader checks, such as unique names. Every plan
//! that the reader accepts matches the schema, but not always the reverse.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wirestorm_wire::layout::{self, Field, Layout, Role, ValueKind};

use super::captured_packet::CAPTURE;
use super::{PLAN, duration, flow, packet, pattern, size};
use crate::document::rate;
use crate::document::schema::{
    any_of, choice, described, integer, list, matches_nothing, number, object, pattern, port, seed,
    text, time,
};

/// Returns the schema, without `$id` and `title`.
pub fn schema() -> Value {
    let mut definitions = Definitions::default();
    let packet = packet(&mut definitions);
    let mut schema = object(&PLAN, &PLAN, |name| match name {
        "ports" => described("Ports where frames leave and arrive.", list(port())),
        "flows" => described("Flows of frames.", list(flow(&packet))),
        _ => matches_nothing(),
    });
    schema["$defs"] = definitions.0.into_iter().collect::<Map<_, _>>().into();
    schema
}

fn flow(packet: &Value) -> Value {
    object(&flow::FLOW, &["name", "tx", "packet"], |name| match name {
        "name" => described("Name of the flow in results.", text()),
        "tx" => described("Port that the flow leaves.", text()),
        "rx" => {
            let ports = any_of([text(), list(text())]);
            described("Port, or list of ports, where the flow should arrive.", ports)
        }
        "packet" => packet.clone(),
        "size" => {
            described("Size of the frames. Default: the shortest that holds the packet.", size())
        }
        "rate" => described("Rate of the flow. Default: 1000pps.", rate()),
        "duration" => described("Duration of the flow. Default: continuous.", extent()),
        "inter_departure" => {
            described("Distribution of the gaps between frames. Default: constant.", departures())
        }
        "start_delay" => described("Delay before the first frame. Default: none.", time()),
        "start" => {
            let names: Vec<_> = flow::STARTS.iter().map(|(name, _)| *name).collect();
            described(
                "Start of the flow: `immediate`, `paused` (until it is resumed), or `triggered` (by \
                the `next` of another flow). Default: immediate.",
                json!({"enum": names}),
            )
        }
        "next" => described(
            "Flow that starts when this one ends: with its time, or else with its last frame.",
            next(),
        ),
        "metrics" => described(
            "Measurement at the ports of `rx`, by a signature in the last 18 bytes of each frame.",
            metrics(),
        ),
        _ => matches_nothing(),
    })
}

fn metrics() -> Value {
    object(&flow::METRICS, &[], |name| match name {
        "enable" => {
            json!({"type": "boolean", "description": "Measure the flow. Default: true."})
        }
        _ => matches_nothing(),
    })
}

fn next() -> Value {
    let with_times = object(&flow::NEXT, &["flow"], |name| match name {
        "flow" => described("Name of that flow.", text()),
        "times" => {
            described("Most starts of this flow. Default: no limit.", integer(1, u32::MAX.into()))
        }
        _ => matches_nothing(),
    });
    any_of([text(), with_times])
}

fn departures() -> Value {
    let forms = choice(&flow::DEPARTURES, |name| match name {
        "poisson" => {
            let seeded = object(&flow::POISSON, &[], |name| match name {
                "seed" => seed(),
                _ => matches_nothing(),
            });
            described("Poisson process: exponential gaps.", seeded)
        }
        "on_off" => {
            let periods = object(&flow::ON_OFF, &flow::ON_OFF, |name| match name {
                "on" => described("Length of a period with frames.", time()),
                "off" => described("Length of a period without frames.", time()),
                _ => matches_nothing(),
            });
            described("Periods with and without frames. The rate is the mean over both.", periods)
        }
        _ => matches_nothing(),
    });
    any_of([json!({"enum": ["constant", "poisson"]}), forms])
}

fn extent() -> Value {
    let forms = choice(&duration::FORMS, |name| match name {
        "fixed_packets" => described("Number of frames.", integer(1, u64::MAX)),
        "fixed_seconds" => described("Number of seconds.", number()),
        "burst" => {
            let bursts = object(&duration::BURST, &[], |name| match name {
                "bursts" => described("Number of bursts; 0 means no end.", integer(0, u64::MAX)),
                "packets" => described("Frames of a burst.", integer(1, u64::MAX)),
                "inter_burst_gap" => described(
                    "Time from the last frame of a burst to the first of the next.",
                    time(),
                ),
                _ => matches_nothing(),
            });
            described("Bursts of frames.", bursts)
        }
        _ => matches_nothing(),
    });
    any_of([json!({"const": "continuous"}), time(), forms])
}

fn rate() -> Value {
    let word =
        r"\s*(max|[0-9]*\.?[0-9]*[kKmMgGtT]?\s*(pps|(bps)?-[lL][12])|[0-9]*\.?[0-9]*\s*%)\s*";
    let forms = choice(&rate::UNITS, |name| {
        let text = match name {
            "pps" => "Frames a second.",
            "bps" | "bps_l1" => "Bits a second of the wire, with preamble and gap.",
            "kbps" => "Thousands of bits a second of the wire.",
            "mbps" => "Millions of bits a second of the wire.",
            "gbps" => "Billions of bits a second of the wire.",
            "bps_l2" => "Bits a second of frames with FCS.",
            "percentage" => "Percent of the port's speed, counted on the wire.",
            _ => return matches_nothing(),
        };
        described(text, number())
    });
    any_of([
        described("1Mpps, 10G-l1 (the wire), 10G-l2 (frames with FCS), 50% or max.", pattern(word)),
        forms,
    ])
}

fn size() -> Value {
    let with_fcs = || {
        let bytes = integer(size::FRAME_WITH_FCS_MIN, size::FRAME_WITH_FCS_MAX);
        described("Bytes of a frame with its FCS.", bytes)
    };
    let mixes: Vec<_> = size::MIXES.iter().map(|(name, _)| *name).collect();
    let mix = || described("Name of a mix of sizes.", json!({"enum": mixes}));
    let pair = || {
        object(&size::PAIR, &size::PAIR, |name| match name {
            "size" => with_fcs(),
            "weight" => described("Weight of this size.", integer(0, u32::MAX.into())),
            _ => matches_nothing(),
        })
    };
    let forms = choice(&size::FORMS, |name| match name {
        "fixed" => with_fcs(),
        "frame" => {
            let bytes = integer(size::FRAME_WITH_FCS_MIN - 4, size::FRAME_WITH_FCS_MAX - 4);
            described("Bytes of a frame without FCS.", bytes)
        }
        "ip" => described("Bytes of the first IP packet.", integer(20, 65_535)),
        "increment" => object(&size::INCREMENT, &["start", "end"], |name| match name {
            "start" | "end" => with_fcs(),
            "step" => described("Difference between two sizes. Default: 1.", integer(1, 65_535)),
            _ => matches_nothing(),
        }),
        "random" => object(&size::RANDOM, &["min", "max"], |name| match name {
            "min" | "max" => with_fcs(),
            "seed" => seed(),
            _ => matches_nothing(),
        }),
        "weight_pairs" => choice(&size::WEIGHT_PAIRS, |name| match name {
            "predefined" => mix(),
            "custom" => described("Sizes with their weights.", list(pair())),
            _ => matches_nothing(),
        }),
        _ => matches_nothing(),
    });
    any_of([with_fcs_number(), mix(), forms])
}

/// Returns the schema of a bare length. It is a number, because a string is the name of a mix.
fn with_fcs_number() -> Value {
    let (min, max) = (size::FRAME_WITH_FCS_MIN, size::FRAME_WITH_FCS_MAX);
    let number = json!({"type": "integer", "minimum": min, "maximum": max});
    described("Bytes of a frame with its FCS.", number)
}

fn packet(definitions: &mut Definitions) -> Value {
    let mut names: Vec<_> = layout::all().iter().map(|layout| layout.name).collect();
    names.extend(packet::NON_HEADERS);
    let item = choice(&names, |name| match (name, layout::find(name)) {
        ("payload", _) => described("Payload behind all headers.", payload()),
        ("capture", _) => described(
            "A frame of a capture file; it stands alone in `packet`.",
            capture(definitions),
        ),
        (_, Some(layout)) => definitions.header(layout, name),
        (_, None) => matches_nothing(),
    });
    let mut packet = described("Headers, outermost first.", list(item));
    packet["minItems"] = 1.into();
    packet
}

fn payload() -> Value {
    let forms = choice(&packet::PAYLOADS, |name| match name {
        "fixed" => described("These bytes, repeated.", bytes()),
        "bytes" => described("These bytes, then zeros.", bytes()),
        "text" => described("A text, then zeros.", text()),
        "increment_byte" => {
            described("Bytes that increase by one, from this one.", integer(0, 255))
        }
        "increment_word" => {
            described("16-bit words that increase by one, from this one.", integer(0, 65_535))
        }
        "zeros" => described("Zeros.", json!({"enum": [null, true]})),
        _ => matches_nothing(),
    });
    any_of([json!({"const": "zeros"}), forms])
}

fn bytes() -> Value {
    pattern("([0-9a-fA-F]|[: \\n])*")
}

fn capture(definitions: &mut Definitions) -> Value {
    object(&CAPTURE, &["file"], |name| match name {
        "file" => described("Capture file, relative to the plan.", text()),
        "number" => described("Number of the packet, from 1. Default: 1.", integer(1, u64::MAX)),
        "fields" => {
            let mut patterns = Map::new();
            patterns.insert(r"^bytes\[[0-9]+\.\.[0-9]+\]$".into(), definitions.field_of_bytes());
            for layout in layout::all() {
                for field in layout.fields.iter().filter(|field| field.kind != ValueKind::Bytes) {
                    let name = format!(r"^{}(\[[0-9]+\])?\.{}$", layout.name, field.name);
                    patterns.insert(name, definitions.field(field));
                }
            }
            json!({
                "type": "object",
                "description": "Changes: header fields such as `ipv4.src`, or bytes by offset.",
                "patternProperties": patterns,
                "additionalProperties": false,
            })
        }
        _ => matches_nothing(),
    })
}

/// Shared definitions, by name.
#[derive(Default)]
struct Definitions(BTreeMap<String, Value>);

impl Definitions {
    /// Returns a reference to the definition `name`, and creates it on first use.
    fn define(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Value) -> Value {
        if !self.0.contains_key(name) {
            let definition = make(self);
            self.0.insert(name.to_owned(), definition);
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }

    /// Returns the schema of a header, or of a header's item, at `path`.
    fn header(&mut self, layout: &'static Layout, path: &str) -> Value {
        self.define(path, |definitions| {
            let fields: Vec<_> = layout.fields.iter().map(|field| field.name).collect();
            let mut schema = object(&fields, &[], |name| match layout.field(name) {
                Some(field) => described(&field_description(field), definitions.field(field)),
                None => matches_nothing(),
            });
            if !layout.items.name.is_empty() {
                let (name, layouts) = (layout.items.name, layout.items.layouts);
                let names: Vec<_> = layouts.iter().map(|item| item.name).collect();
                let item = choice(&names, |item| match layout.item(item) {
                    Some(layout) => definitions.header(layout, &format!("{path}.{name}.{item}")),
                    None => matches_nothing(),
                });
                schema["properties"][name] = list(item);
            }
            if layout.is(&layout::custom::CUSTOM) && path == layout.name {
                let ranges = json!({r"^bytes\[[0-9]+\.\.[0-9]+\]$": definitions.field_of_bytes()});
                schema["patternProperties"] = ranges;
            }
            // A header without fields may be null.
            schema["type"] = json!(["object", "null"]);
            described(layout.description, schema)
        })
    }

    /// Returns the schema of a header field.
    fn field(&mut self, field: &Field) -> Value {
        let is_checksum = matches!(field.role, Role::Checksum(_));
        match field.kind {
            ValueKind::Bytes => self.define("bytes", |_| bytes()),
            kind if is_checksum => self.define(&format!("checksum{}", field.bits), |definitions| {
                let number = definitions.pattern(kind, field.bits);
                any_of([number, json!({"const": "bad", "description": "Wrong on purpose."})])
            }),
            kind => self.pattern(kind, field.bits),
        }
    }

    fn field_of_bytes(&mut self) -> Value {
        let field = self.pattern(ValueKind::Uint, 128);
        described("Bytes at these offsets, 16 at most, as a number.", field)
    }

    /// Returns the schema of a constant, `auto` or a pattern of values.
    fn pattern(&mut self, kind: ValueKind, bits: usize) -> Value {
        let scalar_name = match kind {
            ValueKind::Uint => format!("uint{bits}"),
            ValueKind::Mac => "mac".to_owned(),
            ValueKind::Ipv4 => "ipv4_address".to_owned(),
            ValueKind::Ipv6 => "ipv6_address".to_owned(),
            ValueKind::Bytes => "bytes".to_owned(),
        };
        self.define(&format!("field_{scalar_name}"), |definitions| {
            let scalar = definitions.define(&scalar_name, |_| scalar(kind, bits));
            any_of([
                scalar.clone(),
                json!({"const": "auto", "description": "Computed from the rest of the frame."}),
                definitions.forms(&scalar),
            ])
        })
    }
}

fn scalar(kind: ValueKind, bits: usize) -> Value {
    let number = "0[xX][0-9a-fA-F]+|[0-9]+";
    match kind {
        ValueKind::Uint => {
            let max = u64::try_from(u128::MAX >> (128 - bits.clamp(1, 128))).unwrap_or(u64::MAX);
            integer(0, max)
        }
        ValueKind::Mac => {
            let byte = "[0-9a-fA-F]{1,2}";
            pattern(&format!("{byte}(:{byte}){{5}}|{byte}(-{byte}){{5}}|{number}"))
        }
        ValueKind::Ipv4 => pattern(&format!(r"[0-9]{{1,3}}(\.[0-9]{{1,3}}){{3}}|{number}")),
        ValueKind::Ipv6 => pattern(&format!("[0-9a-fA-F:.]+|{number}")),
        ValueKind::Bytes => bytes(),
    }
}

impl Definitions {
    /// Returns the schema of a pattern of values.
    fn forms(&mut self, scalar: &Value) -> Value {
        let weight = self.define("weight", |_| integer(0, u32::MAX.into()));
        let seed = self.define("seed", |_| seed());
        let count = self.define("count", |_| {
            described("Number of values before they repeat.", integer(1, u64::MAX))
        });
        let weight = || {
            json!({
                "type": "array",
                "prefixItems": [scalar, weight],
                "minItems": 2,
                "maxItems": 2,
            })
        };
        let counter = || {
            object(&pattern::COUNTER, &[], |name| match name {
                "start" => described("The first value.", scalar.clone()),
                "step" => {
                    let step = any_of([integer(1, u64::MAX), scalar.clone()]);
                    described("Difference between two values. Default: 1.", step)
                }
                "count" => count.clone(),
                _ => matches_nothing(),
            })
        };
        let names = [&pattern::FORMS[..], &pattern::FORM_OPTIONS].concat();
        let mut schema = object(&names, &[], |name| match name {
            "value" => described("A constant; with `mask`, the bits outside it.", scalar.clone()),
            "values" => {
                let mut values = list(scalar.clone());
                values["minItems"] = 1.into();
                described("These values, round robin.", values)
            }
            "increment" => described("Increasing values.", counter()),
            "decrement" => described("Decreasing values.", counter()),
            "random" => {
                let random = object(&pattern::RANDOM, &[], |name| match name {
                    "min" => described("The least value.", scalar.clone()),
                    "max" => described("The greatest value.", scalar.clone()),
                    "seed" => seed.clone(),
                    "count" => count.clone(),
                    _ => matches_nothing(),
                });
                described("Random values.", random)
            }
            "weighted" => {
                let seeded = object(&pattern::WEIGHTED, &["choices"], |name| match name {
                    "choices" => list(weight()),
                    "seed" => seed.clone(),
                    _ => matches_nothing(),
                });
                described(
                    "Random values by weight: a list of [value, weight].",
                    any_of([list(weight()), seeded]),
                )
            }
            "after" => described(
                "Field that must complete its values before this one advances, such as \
                `tcp.dst_port`.",
                text(),
            ),
            "restart_after" => described(
                "Number of frames after which this field restarts, together with the fields that \
                wait for it.",
                integer(1, u64::MAX),
            ),
            "mask" => described("Bits of the field that vary. Default: all.", scalar.clone()),
            "shift" => {
                let bits = json!({"type": "integer", "minimum": -127, "maximum": 127});
                described(
                    "Shift of the values to the left, in bits (negative: right). Default: 0.",
                    bits,
                )
            }
            _ => matches_nothing(),
        });
        schema["allOf"] = json!([self.define("one_form", |_| one_form())]);
        schema
    }
}

/// Requires exactly one form. `value` is a form by itself; beside another form it sets the bits
/// outside the mask.
fn one_form() -> Value {
    let requires = |name: &str| json!({"required": [name]});
    let part = [requires("mask"), requires("shift")];
    let is_part = any_of([json!({"not": requires("value")}), part[0].clone(), part[1].clone()]);
    let varying = pattern::FORMS[1..].iter().map(|name| requires(name));
    let others: Vec<_> = varying.clone().chain(part).collect();
    let constant = json!({"required": ["value"], "not": {"anyOf": others}});
    let varying = varying.map(|form| json!({"allOf": [form, is_part]}));
    json!({"oneOf": varying.chain([constant]).collect::<Vec<_>>()})
}

/// Describes a field and its default.
fn field_description(field: &Field) -> String {
    let what = match field.role {
        Role::Plain if field.kind == ValueKind::Bytes => return "Any bytes.".to_owned(),
        Role::Plain => {
            let default = field.kind.display(field.default);
            return format!("{} bits. Default: {default}.", field.bits);
        }
        Role::View => "an alias of bits that other fields have",
        Role::HeaderLength { .. } => "the length of the header. Default: computed",
        Role::LengthToEnd { .. } => "the length of the packet. Default: computed",
        Role::ItemCount { .. } => "the number of items. Default: computed",
        Role::Checksum(_) => "the checksum. Default: computed",
        Role::NextProtocol(_) => "the number of the next header. Default: computed",
        Role::OwnNumber(_) => "the number of this header. Default: computed",
        Role::IsLast => "whether this is the last of its kind. Default: computed",
        Role::Flag(_) => "whether the optional field is present. Default: computed",
    };
    format!("{} bits: {what}.", field.bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::schema::{closed_objects, walk};

    #[test]
    fn describes_every_field_and_allows_no_other() {
        let objects = closed_objects(&schema());
        assert!(objects > 100, "{objects}");
    }

    #[test]
    fn every_reference_has_a_definition() {
        let schema = schema();
        let mut count = 0;
        walk(&schema, "", &mut |value, path| {
            if let Some(Value::String(reference)) = value.get("$ref") {
                let target = schema.pointer(reference.trim_start_matches('#'));
                assert!(target.is_some(), "{path}: {reference}");
                count += 1;
            }
        });
        assert!(count > 500, "{count}");
    }
}
