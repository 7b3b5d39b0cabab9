//! Objects of a JSON Schema, each once, under names that pages can link to.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

/// Name prefix of definitions for fields of packet headers.
const FIELD: &str = "field_";
/// The field definition that the page shows for all of them, and the scalar in it.
const FIELD_SHOWN: (&str, &str) = ("field_uint16", "#/$defs/uint16");

/// An object of a schema or several forms of it, and words allowed in its place.
pub(super) struct Section {
    /// Path of keys, such as `templates[].client`.
    pub name: String,
    pub description: String,
    pub objects: Vec<Map<String, Value>>,
    /// Words with their meanings.
    pub words: Vec<(String, String)>,
    /// Index of the document's page that contains the section.
    pub page: usize,
}

/// All sections of a schema, sorted by name.
pub(super) struct Reference {
    pub sections: Vec<Section>,
    /// Index of a section by the text of its schema; equal schemas share a section.
    by_schema: HashMap<String, usize>,
    definitions: Map<String, Value>,
}

impl Reference {
    /// # Parameters
    /// - `has_headers`: definitions of headers are on the document's second page.
    pub(super) fn new(schema: &Value, root: &str, has_headers: bool) -> Self {
        let definitions = schema["$defs"].as_object().cloned().unwrap_or_default();
        let mut reference =
            Self { sections: Vec::new(), by_schema: HashMap::new(), definitions: Map::new() };
        let mut waiting = VecDeque::from([(String::new(), schema.clone(), 0)]);
        for (name, definition) in &definitions {
            if name == FIELD_SHOWN.0 {
                waiting.push_back(("field".to_owned(), field(definition), 0));
            } else if !name.starts_with(FIELD) {
                waiting.push_back((name.clone(), definition.clone(), usize::from(has_headers)));
            }
        }
        while let Some((name, schema, page)) = waiting.pop_front() {
            reference.visit(&name, &schema, page, root, &mut waiting);
        }
        reference.definitions = definitions;
        reference.sections.sort_by(|a, b| {
            let rank = |it: &Section| (it.name != root, it.name.clone());
            rank(a).cmp(&rank(b))
        });
        reference.by_schema = reference
            .sections
            .iter()
            .enumerate()
            .map(|(number, it)| (key(&it.objects, &it.words), number))
            .collect();
        reference
    }

    fn visit(
        &mut self,
        name: &str,
        schema: &Value,
        page: usize,
        root: &str,
        waiting: &mut VecDeque<(String, Value, usize)>,
    ) {
        let (mut objects, mut words, mut suffix) = (Vec::new(), Vec::new(), String::new());
        collect(schema, "", &mut objects, &mut words, &mut suffix);
        let key = key(&objects, &words);
        if (objects.is_empty() && words.is_empty()) || self.by_schema.contains_key(&key) {
            return;
        }
        self.by_schema.insert(key, self.sections.len());
        let path = format!("{name}{suffix}");
        for object in &objects {
            for (key, value) in object["properties"].as_object().into_iter().flatten() {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                waiting.push_back((below, value.clone(), page));
            }
        }
        let description = schema["description"].as_str().unwrap_or_default().to_owned();
        let name = if path.is_empty() { root.to_owned() } else { path };
        self.sections.push(Section { name, description, objects, words, page });
    }

    /// Returns the section that describes this schema.
    pub(super) fn section(&self, schema: &Value) -> Option<&Section> {
        let (mut objects, mut words) = (Vec::new(), Vec::new());
        collect(schema, "", &mut objects, &mut words, &mut String::new());
        self.sections.get(*self.by_schema.get(&key(&objects, &words))?)
    }

    /// Returns the section for header fields if `reference` is the name of one.
    pub(super) fn field(&self, reference: &str) -> Option<&Section> {
        reference.starts_with(FIELD).then_some(())?;
        self.sections.iter().find(|it| it.name == "field")
    }

    /// Returns the definition that a schema refers to, with its name.
    pub(super) fn definition<'a>(&'a self, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
        let name = schema["$ref"].as_str()?.strip_prefix("#/$defs/")?;
        Some((name, self.definitions.get(name)?))
    }
}

/// Replaces the scalar type in a field definition by the word `value`.
fn field(definition: &Value) -> Value {
    let scalar = format!(r#"{{"$ref":"{}"}}"#, FIELD_SHOWN.1);
    let text = definition.to_string().replace(&scalar, r#"{"type":"value"}"#);
    let text = text.replace(&format!(r#""$ref":"{}""#, FIELD_SHOWN.1), r#""type":"value""#);
    serde_json::from_str(&text).unwrap_or_default()
}

fn key(objects: &[Map<String, Value>], words: &[(String, String)]) -> String {
    format!("{objects:?}{words:?}")
}

/// Collects the objects with keys and the words of a schema; of a list, those of its items.
fn collect(
    schema: &Value,
    suffix: &str,
    objects: &mut Vec<Map<String, Value>>,
    words: &mut Vec<(String, String)>,
    suffix_found: &mut String,
) {
    let Some(map) = schema.as_object() else { return };
    if map.get("properties").is_some_and(Value::is_object) {
        let mut object = map.clone();
        object.remove("description");
        objects.push(object);
        suffix.clone_into(suffix_found);
    }
    for choices in ["anyOf", "oneOf"] {
        for choice in map.get(choices).and_then(Value::as_array).into_iter().flatten() {
            if let (Some(word), Some(meaning)) = (choice.get("const"), choice.get("description")) {
                words.push((plain(word), plain(meaning)));
            }
            collect(choice, suffix, objects, words, suffix_found);
        }
    }
    if let Some(items) = map.get("items") {
        collect(items, &format!("{suffix}[]"), objects, words, suffix_found);
    }
    if let Some(values) = map.get("additionalProperties").filter(|it| it.is_object()) {
        collect(values, &format!("{suffix}.NAME"), objects, words, suffix_found);
    }
}

/// Formats a value without the quotes of strings.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
