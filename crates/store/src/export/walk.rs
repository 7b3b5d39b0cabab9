//! Histograms and time series in a document, wherever they are.
//!
//! A histogram is an object with `buckets`, a time series one with `interval_s` and lists. A path
//! names list items by their `name` or `port`, or else by their place from 1:
//! `flows/voice/measured/right/delay`.

use serde_json::Value;

use super::Cell;

/// Appends a row for each bucket: lower bound and count.
pub(super) fn histograms(rows: &mut Vec<Vec<Cell>>, head: &[Cell], document: &Value) {
    each_object(document, &mut String::new(), &mut |path, object| {
        let Some(buckets) = object.get("buckets").and_then(Value::as_array) else { return };
        for bucket in buckets {
            let pair = |index| integer(bucket.get(index));
            rows.push([head, &[Cell::Text(path.to_owned()), pair(0), pair(1)]].concat());
        }
    });
}

/// Appends a row for each value: start of the interval, name and value. Skips absent values.
pub(super) fn series(rows: &mut Vec<Vec<Cell>>, head: &[Cell], document: &Value) {
    each_object(document, &mut String::new(), &mut |path, object| {
        let Some(interval) = object.get("interval_s").and_then(Value::as_f64) else { return };
        for (name, values) in object.as_object().into_iter().flatten() {
            for (index, value) in values.as_array().into_iter().flatten().enumerate() {
                let Some(value) = value.as_f64() else { continue };
                let start = Cell::Real(index as f64 * interval);
                let cells = [
                    Cell::Text(path.to_owned()),
                    start,
                    Cell::Text(name.clone()),
                    Cell::Real(value),
                ];
                rows.push([head, &cells].concat());
            }
        }
    });
}

/// Calls `found` for each object with its path.
fn each_object(value: &Value, path: &mut String, found: &mut dyn FnMut(&str, &Value)) {
    let length = path.len();
    let mut enter = |segment: &str, value: &Value, found: &mut dyn FnMut(&str, &Value)| {
        if length > 0 {
            path.push('/');
        }
        path.push_str(segment);
        each_object(value, path, found);
        path.truncate(length);
    };
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                enter(name, field, found);
            }
            found(path, value);
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                // Numbers have no objects in them; buckets and series are long lists of them.
                if !(item.is_object() || item.is_array()) {
                    continue;
                }
                let label = |key| item.get(key).and_then(Value::as_str);
                match label("name").or_else(|| label("port")) {
                    Some(name) => enter(name, item, found),
                    None => enter(&(index + 1).to_string(), item, found),
                }
            }
        }
        _ => {}
    }
}

fn integer(value: Option<&Value>) -> Cell {
    match value {
        Some(value) if value.is_u64() => Cell::count(value.as_u64().unwrap_or_default()),
        Some(value) => value.as_i64().map_or(Cell::None, Cell::Integer),
        None => Cell::None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn histograms_and_series_are_found_by_their_path() {
        let document = json!({
            "flows": [{"name": "voice", "measured": [{
                "port": "right",
                "delay": {"count": 3, "buckets": [[-8, 1], [16, 2]]},
                "series": {"interval_s": 0.5, "packets": [4, 5], "delay_mean_ns": [1.5, null]},
            }]}],
            "output": {"offers": [{"steps": [{"delay": {"buckets": [[7, 9]]}}]}]},
        });
        let mut rows = Vec::new();
        histograms(&mut rows, &[], &document);
        let text = |text: &str| Cell::Text(text.to_owned());
        let delay = "flows/voice/measured/right/delay";
        assert_eq!(
            rows,
            [
                [text(delay), Cell::Integer(-8), Cell::Integer(1)],
                [text(delay), Cell::Integer(16), Cell::Integer(2)],
                [text("output/offers/1/steps/1/delay"), Cell::Integer(7), Cell::Integer(9)],
            ]
        );
        let mut rows = Vec::new();
        series(&mut rows, &[], &document);
        let path = "flows/voice/measured/right/series";
        let row =
            |start, name, value| [text(path), Cell::Real(start), text(name), Cell::Real(value)];
        rows.sort_by_key(|row| format!("{row:?}"));
        assert_eq!(
            rows,
            [row(0.0, "delay_mean_ns", 1.5), row(0.0, "packets", 4.0), row(0.5, "packets", 5.0)]
        );
    }
}
