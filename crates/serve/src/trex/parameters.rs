//! Parameters of commands, with the errors of TRex.

use serde_json::{Map, Value};

use super::rpc::{Answer, RpcError};

/// Parameters of a command, or an object in them.
#[derive(Clone, Copy)]
pub(super) struct Parameters<'a>(pub(super) &'a Map<String, Value>);

type Checked<T> = Result<T, RpcError>;

impl<'a> Parameters<'a> {
    /// Returns a value that is neither missing nor null.
    pub(super) fn find(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn value(&self, name: &str) -> Checked<&'a Value> {
        self.find(name).ok_or_else(|| RpcError::parameters(format!("field '{name}' value is null")))
    }

    fn required<T>(&self, name: &str, read: impl Fn(&str, &'a Value) -> Checked<T>) -> Checked<T> {
        read(name, self.value(name)?)
    }

    fn optional<T>(
        &self,
        name: &str,
        default: T,
        read: impl Fn(&str, &'a Value) -> Checked<T>,
    ) -> Checked<T> {
        self.find(name).map_or(Ok(default), |value| read(name, value))
    }

    pub(super) fn text(&self, name: &str) -> Checked<&'a str> {
        self.required(name, text)
    }

    pub(super) fn text_or(&self, name: &str, default: &'a str) -> Checked<&'a str> {
        self.optional(name, default, text)
    }

    pub(super) fn flag(&self, name: &str) -> Checked<bool> {
        self.required(name, flag)
    }

    pub(super) fn flag_or(&self, name: &str, default: bool) -> Checked<bool> {
        self.optional(name, default, flag)
    }

    pub(super) fn number(&self, name: &str) -> Checked<f64> {
        self.required(name, number)
    }

    pub(super) fn number_or(&self, name: &str, default: f64) -> Checked<f64> {
        self.optional(name, default, number)
    }

    pub(super) fn u64(&self, name: &str) -> Checked<u64> {
        self.required(name, |name, value| unsigned(name, value, "uint64", u64::MAX))
    }

    pub(super) fn u64_or(&self, name: &str, default: u64) -> Checked<u64> {
        self.optional(name, default, |name, value| unsigned(name, value, "uint64", u64::MAX))
    }

    pub(super) fn u32(&self, name: &str) -> Checked<u32> {
        self.required(name, u32_of)
    }

    pub(super) fn u32_or(&self, name: &str, default: u32) -> Checked<u32> {
        self.optional(name, default, u32_of)
    }

    pub(super) fn u16(&self, name: &str) -> Checked<u16> {
        self.required(name, u16_of)
    }

    pub(super) fn u16_or(&self, name: &str, default: u16) -> Checked<u16> {
        self.optional(name, default, u16_of)
    }

    pub(super) fn byte_or(&self, name: &str, default: u8) -> Checked<u8> {
        self.optional(name, default, |name, value| {
            unsigned(name, value, "uint8", u8::MAX.into()).map(|value| value as u8)
        })
    }

    pub(super) fn int(&self, name: &str) -> Checked<i64> {
        self.required(name, |name, value| {
            integer(value).ok_or_else(|| wrong_type(name, value, "int"))
        })
    }

    pub(super) fn object(&self, name: &str) -> Checked<Parameters<'a>> {
        self.required(name, |name, value| {
            value.as_object().map(Parameters).ok_or_else(|| wrong_type(name, value, "object"))
        })
    }

    pub(super) fn array(&self, name: &str) -> Checked<&'a [Value]> {
        self.required(name, |name, value| {
            value.as_array().map(Vec::as_slice).ok_or_else(|| wrong_type(name, value, "array"))
        })
    }

    pub(super) fn u32s(&self, name: &str) -> Checked<Vec<u32>> {
        let items = self.array(name)?.iter().enumerate();
        items.map(|(at, item)| u32_of(&format!("array element: {} ", at + 1), item)).collect()
    }

    pub(super) fn u16s(&self, name: &str) -> Checked<Vec<u16>> {
        let items = self.array(name)?.iter().enumerate();
        items.map(|(at, item)| u16_of(&format!("array element: {} ", at + 1), item)).collect()
    }

    /// Returns a text that is one of `choices`.
    pub(super) fn choice(&self, name: &str, choices: &[&str]) -> Checked<&'a str> {
        let Some(value) = self.find(name) else {
            return Err(RpcError::parameters(format!("field '{name}' is missing")));
        };
        value.as_str().filter(|text| choices.contains(text)).ok_or_else(|| {
            let choices: Vec<String> = choices.iter().map(|it| format!("'{it}'")).collect();
            let choices = choices.join(" ,");
            RpcError::parameters(format!("field '{name}' can only be one of [{choices}]"))
        })
    }
}

/// Returns an item of an array as an object.
pub(super) fn object_of<'a>(at: usize, item: &'a Value) -> Checked<Parameters<'a>> {
    let name = format!("array element: {} ", at + 1);
    item.as_object().map(Parameters).ok_or_else(|| wrong_type(&name, item, "object"))
}

fn text<'a>(name: &str, value: &'a Value) -> Checked<&'a str> {
    value.as_str().ok_or_else(|| wrong_type(name, value, "string"))
}

fn flag(name: &str, value: &Value) -> Checked<bool> {
    value.as_bool().ok_or_else(|| wrong_type(name, value, "bool"))
}

fn number(name: &str, value: &Value) -> Checked<f64> {
    value.as_f64().ok_or_else(|| wrong_type(name, value, "double"))
}

fn u32_of(name: &str, value: &Value) -> Checked<u32> {
    unsigned(name, value, "uint32", u32::MAX.into()).map(|value| value as u32)
}

fn u16_of(name: &str, value: &Value) -> Checked<u16> {
    unsigned(name, value, "uint16", u16::MAX.into()).map(|value| value as u16)
}

fn unsigned(name: &str, value: &Value, kind: &str, most: u64) -> Checked<u64> {
    let found =
        value.as_u64().or_else(|| integer(value).and_then(|value| u64::try_from(value).ok()));
    match found {
        Some(found) if found <= most => Ok(found),
        Some(_) => Err(RpcError::parameters(format!(
            "error at offset: 0 - '{name}' has size bigger than {kind}."
        ))),
        None => Err(wrong_type(name, value, kind)),
    }
}

/// Returns an integer. TRex accepts `2000.0` for one.
fn integer(value: &Value) -> Option<i64> {
    let whole = |value: f64| {
        let is_whole = value.fract() == 0.0 && value.abs() < i64::MAX as f64;
        is_whole.then_some(value as i64)
    };
    value.as_i64().or_else(|| value.as_f64().and_then(whole))
}

fn wrong_type(name: &str, value: &Value, expected: &str) -> RpcError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() => "uint",
        Value::Number(number) if number.is_i64() => "int",
        Value::Number(_) => "double",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    RpcError::parameters(format!(
        "error at offset: 0 - '{name}' is '{found}', expecting '{expected}'"
    ))
}

/// Returns the empty object, the result of most commands.
pub(super) fn done() -> Answer {
    Ok(Value::Object(Map::new()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_checked_as_in_trex() {
        let document = json!({
            "a": 2000.0, "b": null, "c": -1, "d": u64::MAX, "e": "x", "f": [1, "2"], "g": 0.5,
        });
        let parameters = Parameters(document.as_object().unwrap());
        assert_eq!(parameters.u32("a"), Ok(2000));
        assert_eq!(parameters.u64("d"), Ok(u64::MAX));
        assert_eq!(parameters.u32_or("b", 7), Ok(7));
        let text = |error: Result<u32, RpcError>| error.unwrap_err().text().to_owned();
        assert_eq!(text(parameters.u32("b")), "field 'b' value is null");
        assert!(text(parameters.u32("c")).contains("'c' is 'int', expecting 'uint32'"));
        assert!(text(parameters.u32("d")).contains("'d' has size bigger than uint32."));
        assert!(text(parameters.u32("g")).contains("'g' is 'double'"));
        assert!(parameters.u32s("f").unwrap_err().text().contains("'array element: 2 '"));
        let choice = parameters.choice("e", &["y", "z"]).unwrap_err();
        assert_eq!(choice.text(), "field 'e' can only be one of ['y' ,'z']");
    }
}
