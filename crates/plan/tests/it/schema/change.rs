//! Random changes to documents.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};

/// Applies one change at a random place of a document.
pub(crate) fn change(document: &mut Value, at: Index, how: u8, value: &Value) {
    fn places<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Value>) {
        match value {
            Value::Object(map) => map.values_mut().for_each(|value| places(value, found)),
            Value::Array(items) => items.iter_mut().for_each(|value| places(value, found)),
            other => found.push(other),
        }
    }
    fn maps<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Map<String, Value>>) {
        // Only objects without nested containers, which would be borrowed twice.
        let is_leaf = |map: &Map<String, Value>| {
            map.values().all(|value| !value.is_object() && !value.is_array())
        };
        match value {
            Value::Object(map) => match is_leaf(map) {
                true => found.push(map),
                false => map.values_mut().for_each(|value| maps(value, found)),
            },
            Value::Array(items) => items.iter_mut().for_each(|value| maps(value, found)),
            _ => {}
        }
    }
    if how == 0 {
        let mut found = Vec::new();
        places(document, &mut found);
        let place = at.index(found.len());
        *found[place] = value.clone();
        return;
    }
    let mut found = Vec::new();
    maps(document, &mut found);
    if found.is_empty() {
        return;
    }
    let place = at.index(found.len());
    let map = &mut found[place];
    if how == 1 {
        let first = map.keys().next().cloned();
        first.and_then(|name| map.remove(&name));
    } else {
        map.insert("surprise".into(), value.clone());
    }
}

/// Returns the values that changes insert.
pub(crate) fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec![
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(64),
            json!(65_536),
            json!(1.5),
            json!(-1),
            json!(u64::MAX),
            json!([]),
            json!({}),
            json!("auto"),
            json!("bad"),
            json!("zeros"),
            json!("max"),
            json!("10.0.0.1"),
            json!("::1"),
            json!("02:00:00:00:00:01"),
            json!("02-0-0-0-0-1"),
            json!("1_000"),
            json!("0x_1"),
            json!("5"),
            json!("1.5ms"),
            json!("imix"),
            json!("a"),
            json!("f0"),
            json!(" 5 pps "),
            json!("5k%"),
            json!(".5G-L1"),
            json!("1 h"),
            json!("aa"),
            json!("0b_1"),
            json!(["a"]),
            json!({"value": 1}),
            json!({"values": ["1", 2]}),
            json!({"increment": {"count": "2"}}),
            json!({"random": {}}),
            json!({"weighted": {"choices": [[1, 1]]}}),
            json!({"fixed": 64}),
        ]),
        "[0-9a-fx:._%+kM -]{0,6}".prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
    ]
}
