//! Arbitrary input causes errors, never panics.

use proptest::prelude::*;
use prost::Message;
use wirestorm_base::rate::Rate;
use wirestorm_otg::proto::Config;
use wirestorm_otg::{Resolve, from_json, from_protobuf, lower, to_json};
use wirestorm_plan::Multiplier;

use crate::support::{fixture, frames};

/// Decodes and lowers, whatever the outcome; what decodes must survive a round trip.
fn try_json(text: &str) {
    let Ok((config, _)) = from_json::<Config>(text) else { return };
    try_config(&config);
    let (again, warnings) = from_json::<Config>(&to_json(&config)).unwrap();
    assert!(warnings.iter().all(|warning| !warning.message.starts_with("unknown")));
    assert_eq!(to_json(&again), to_json(&config));
}

/// Lowers, and sends the first frames if there are no errors.
fn try_config(config: &Config) {
    let Ok(lowered) = lower(config, &Resolve::default()) else { return };
    let ten_gigabits = Some(Rate::TEN_GIGA);
    for port in 0..lowered.plan.ports.len() {
        let Ok(streams) = lowered.plan.streams(port, ten_gigabits, Multiplier::ONE) else {
            continue;
        };
        for (_, stream) in streams {
            assert!(frames(&stream, 3).len() <= 3);
        }
    }
}

fn fixtures() -> impl Strategy<Value = Config> {
    prop::sample::select(vec!["patterns", "devices", "all_headers"]).prop_map(fixture)
}

/// Values that replace others in a configuration.
const REPLACEMENTS: [&str; 14] = [
    "0",
    "-1",
    "1",
    "65536",
    "4294967295",
    "1e30",
    "0.5",
    "\"\"",
    "\"x\"",
    "\"10.0.0.1\"",
    "null",
    "[]",
    "{}",
    "true",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn changed_json_does_not_panic(
        config in fixtures(),
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..REPLACEMENTS.len()),
            1..4,
        ),
    ) {
        let mut text = to_json(&config);
        for (place, replacement) in changes {
            // Replace the value behind a colon, up to the next comma or brace.
            let colons: Vec<usize> = text.match_indices("\":").map(|(at, _)| at + 2).collect();
            let start = colons[place.index(colons.len())];
            let length = text[start..].find([',', '}', ']']).unwrap_or(0);
            text.replace_range(start..start + length, REPLACEMENTS[replacement]);
        }
        try_json(&text);
    }

    #[test]
    fn changed_protobuf_does_not_panic(
        config in fixtures(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = config.encode_to_vec();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Ok((config, _)) = from_protobuf::<Config>(&bytes) {
            try_config(&config);
            try_json(&to_json(&config));
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok((config, _)) = from_protobuf::<Config>(&bytes) {
            try_config(&config);
        }
        try_json(&String::from_utf8_lossy(&bytes));
    }
}
