//! Markdown tables for the sections of a reference.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::COLUMNS_MAX;
use super::keys::{Reference, Section, plain};

/// Columns of the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// key, type, default, range, meaning
    Plan,
    /// key, type, meaning
    Result,
}

/// Formats the sections of page `number` of `files`.
pub(super) fn body(
    reference: &Reference,
    columns: Columns,
    files: &[&str],
    number: usize,
) -> String {
    let writer = Writer { reference, columns, files, number };
    let mut text = String::new();
    for section in reference.sections.iter().filter(|it| it.page == number) {
        writer.section(&mut text, section);
    }
    text
}

/// Writes the tables of a page.
pub(super) struct Writer<'a> {
    pub(super) reference: &'a Reference,
    pub(super) columns: Columns,
    /// Files of the pages.
    pub(super) files: &'a [&'a str],
    /// Index of the page.
    pub(super) number: usize,
}

impl Writer<'_> {
    fn section(&self, text: &mut String, section: &Section) {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n## `{}`\n\n", section.name);
        if !section.description.is_empty() {
            let _ = write!(text, "{}\n\n", wrapped(&escaped(meaning(&section.description).0)));
        }
        if section.objects.is_empty() {
            text.push_str("| value | meaning |\n| --- | --- |\n");
            for (word, meaning) in &section.words {
                let _ = writeln!(text, "| `{word}` | {} |", escaped(meaning));
            }
            return;
        }
        text.push_str(&self.table(&section.words, &section.objects));
    }

    /// Formats the words and the keys of a section.
    pub(super) fn table(
        &self,
        words: &[(String, String)],
        objects: &[Map<String, Value>],
    ) -> String {
        let mut text = match self.columns {
            Columns::Plan => {
                "| key | type | default | range | meaning |\n| --- | --- | --- | --- | --- |\n"
            }
            Columns::Result => "| key | type | meaning |\n| --- | --- | --- |\n",
        }
        .to_owned();
        for (word, meaning) in words {
            self.row(&mut text, word, "the word alone", "–", "", meaning);
        }
        for object in objects {
            self.keys(&mut text, object);
        }
        text
    }

    fn keys(&self, text: &mut String, object: &Map<String, Value>) {
        let required = object.get("required").and_then(Value::as_array);
        for (key, schema) in object["properties"].as_object().into_iter().flatten() {
            let description = schema["description"].as_str();
            let definition = self.reference.definition(schema);
            let inherited = definition.and_then(|(_, it)| it["description"].as_str());
            let (meaning, default) = meaning(description.or(inherited).unwrap_or_default());
            let is_required = required.is_some_and(|it| it.iter().any(|name| name == key.as_str()));
            let default = match default {
                None if is_required => "required",
                default => default.unwrap_or("–"),
            };
            let kind = self.kind(schema);
            self.row(text, key, &kind, default, &self.range(schema), meaning);
        }
        let patterns = object.get("patternProperties").and_then(Value::as_object);
        for schema in patterns.into_iter().flatten().map(|(_, schema)| schema) {
            let meaning = schema["description"].as_str().unwrap_or_default();
            self.row(text, "bytes[4..8]", &self.kind(schema), "–", "", meaning);
        }
    }

    fn row(
        &self,
        text: &mut String,
        key: &str,
        kind: &str,
        default: &str,
        range: &str,
        meaning: &str,
    ) {
        let (kind, meaning) = (escaped(kind), escaped(meaning));
        let _ = match self.columns {
            Columns::Plan => {
                let default = escaped(default);
                writeln!(text, "| `{key}` | {kind} | {default} | {range} | {meaning} |")
            }
            Columns::Result => writeln!(text, "| `{key}` | {kind} | {meaning} |"),
        };
    }

    /// Formats the type of a value, with links to the sections of its keys.
    fn kind(&self, schema: &Value) -> String {
        let mut kinds = Vec::new();
        self.kinds(schema, &mut kinds);
        if kinds.len() > 1 {
            kinds.retain(|kind| kind != "null");
        }
        kinds.join(" or ")
    }

    fn kinds(&self, schema: &Value, kinds: &mut Vec<String>) {
        let mut add = |kind: String| {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        };
        if let Some((name, definition)) = self.reference.definition(schema) {
            return match (self.reference.field(name), self.reference.section(definition)) {
                (Some(section), _) => add(self.link(of_field(name), section)),
                (None, Some(section)) => add(self.link(&section.name, section)),
                (None, None) => self.kinds(definition, kinds),
            };
        }
        if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            // The table of the object lists these words.
            let is_linked = choices.iter().any(|it| it.get("properties").is_some());
            for choice in choices {
                if !(is_linked && choice.get("const").is_some()) {
                    self.kinds(choice, kinds);
                }
            }
            return;
        }
        if let Some(word) = schema.get("const") {
            return add(format!("`{}`", plain(word)));
        }
        if let Some(words) = schema["enum"].as_array() {
            let words: Vec<_> = words.iter().filter(|it| !it.is_null()).collect();
            return words.iter().for_each(|it| add(format!("`{}`", plain(it))));
        }
        if schema.get("properties").is_some() {
            let section = self.reference.section(schema);
            return match section {
                Some(section) => add(self.link("object", section)),
                // The table of the object lists all of its forms.
                None => add(self.link_to_form(schema)),
            };
        }
        if schema.get("patternProperties").is_some() {
            return add("fields by name".to_owned());
        }
        if let Some(items) = schema.get("items").or(schema.get("prefixItems")) {
            let items = match self.reference.section(schema) {
                Some(section) if items.get("properties").is_some() => self.link("objects", section),
                _ => self.kind(items),
            };
            return add(if items.is_empty() {
                "list".to_owned()
            } else {
                format!("list of {items}")
            });
        }
        if let Some(values) = schema.get("additionalProperties").filter(|it| it.is_object()) {
            return add(format!("map of {}", self.kind(values)));
        }
        if let Some(pattern) = schema["pattern"].as_str() {
            if let Some(kind) = of_pattern(pattern) {
                add(kind.to_owned());
            }
            return;
        }
        match &schema["type"] {
            Value::String(kind) => add(of_type(kind).to_owned()),
            Value::Array(types) => {
                let types = types.iter().filter_map(Value::as_str).filter(|it| *it != "null");
                types.for_each(|it| add(of_type(it).to_owned()));
            }
            _ => {}
        }
    }

    fn link_to_form(&self, schema: &Value) -> String {
        let has = |section: &&Section| {
            section.objects.iter().any(|it| Some(&it["properties"]) == schema.get("properties"))
        };
        match self.reference.sections.iter().find(has) {
            Some(section) => self.link("object", section),
            None => "object".to_owned(),
        }
    }

    fn link(&self, text: &str, section: &Section) -> String {
        let file = match section.page == self.number {
            true => "",
            false => self.files.get(section.page).copied().unwrap_or_default(),
        };
        format!("[{text}]({file}#{})", anchor(&section.name))
    }

    /// Formats the bounds of numbers or the number of items of a list.
    fn range(&self, schema: &Value) -> String {
        let choices = schema["anyOf"].as_array().into_iter().flatten();
        let definition = self.reference.definition(schema).map(|(_, it)| it);
        let is_field = |it: &&Value| it["$ref"].as_str().is_some_and(|it| it.contains("/field_"));
        if is_field(&schema) {
            return String::new();
        }
        let nested = choices.chain(definition).map(|it| self.range(it)).find(|it| !it.is_empty());
        let number = |name: &str| schema[name].as_u64();
        let items = match (number("minItems"), number("maxItems")) {
            (_, None) => None,
            (min, Some(max)) if min == Some(max) => Some(format!("{max} items")),
            (min, Some(max)) => Some(format!("{}-{max} items", min.unwrap_or(0))),
        };
        let bounds = match (schema["minimum"].as_i64(), number("maximum")) {
            (Some(min), Some(u64::MAX)) => Some(format!("≥ {min}")),
            (Some(min), Some(max)) if min < 0 => Some(format!("{min} to {max}")),
            (Some(min), Some(max)) => Some(format!("{min}-{max}")),
            _ => None,
        };
        let above = schema["exclusiveMinimum"].as_u64().map(|min| format!("> {min}"));
        bounds.or(above).or(items).or(nested).unwrap_or_default()
    }
}

/// Splits a description into meaning and default, which is its last sentence.
fn meaning(description: &str) -> (&str, Option<&str>) {
    match description.rsplit_once("Default: ") {
        Some((meaning, default)) => {
            (meaning.trim_end(), Some(default.strip_suffix('.').unwrap_or(default)))
        }
        None => (description, None),
    }
}

/// Returns the link fragment of a heading, as mdBook and code hosts generate it.
pub(super) fn anchor(heading: &str) -> String {
    let characters = heading.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
    characters.map(|it| if it == ' ' { '-' } else { it.to_ascii_lowercase() }).collect()
}

fn escaped(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|").replace('<', "&lt;")
}

/// Wraps a paragraph at [`COLUMNS_MAX`] columns; longer words stay whole.
pub(super) fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|it| {
            it.is_empty() || it.chars().count() + 1 + word.chars().count() <= COLUMNS_MAX
        });
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

fn of_type(name: &str) -> &str {
    match name {
        "string" => "text",
        other => other,
    }
}

/// Type of a header field, from the name of its definition.
fn of_field(name: &str) -> &str {
    match name.trim_start_matches("field_") {
        "mac" => "MAC address",
        "ipv4_address" => "IPv4 address",
        "ipv6_address" => "IPv6 address",
        _ => "integer",
    }
}

/// Type of a text with this pattern; `None` if it is another notation of a number.
fn of_pattern(pattern: &str) -> Option<&'static str> {
    let kinds = [
        ("(ns|us|ms", "time"),
        (r"[0-9a-fA-F:.]+\s*", "address or range"),
        (r"\s*(-\s*[0-9]+", "range"),
        ("(pps|", "rate"),
        ("{1,2}(:", "MAC address"),
        ("[0-9a-fA-F:.]+|", "IPv6 address"),
        ("{1,3})", "IPv4 address"),
        ("[0-9a-fA-F]\\s*", "hexadecimal text"),
        ("[0-9a-fA-F]|[: ", "hexadecimal text"),
    ];
    if pattern.starts_with("^(0[xX]") || pattern.starts_with(r"^([0-9]*\.?") {
        return None;
    }
    let kind = kinds.iter().find(|(part, _)| pattern.contains(part));
    Some(kind.map_or("text", |(_, kind)| *kind))
}
