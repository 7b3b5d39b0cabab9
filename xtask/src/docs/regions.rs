//! Tables of keys in pages that are written by hand.
//!
//! ```text
//! <!-- keys test-plan.1 clock -->            schema, and section by its path of keys
//! | key | type | ...                         generated
//! <!-- /keys -->
//! ```
//!
//! A section with several objects, of which `method` names one, has a region for the keys that all of
//! them have, and one for the others of each: `<!-- keys test-plan.1 runs[].bench ndr -->`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::keys::Reference;
use super::table::{self, Columns};
use super::{FOLDER, read};
use crate::{Fallible, workspace};

/// Pages with regions.
pub(super) const FILES: [&str; 2] = ["test.md", "test-runs.md"];

/// Schemas of the regions, with the name of the outermost object and the columns of the tables.
const SCHEMAS: [(&str, &str, Columns); 2] =
    [("test-plan.1", "test", Columns::Plan), ("test.1", "result", Columns::Result)];

/// Definitions that other pages describe, and the types in their place.
const LINKED: [(&str, &str); 4] = [
    ("streams", "[plan](plan.md)"),
    ("emulate", "[plan](emulation-plan.md)"),
    ("RunResult", "[result](result.md)"),
    ("BenchResult", "`wirestorm.bench/1`"),
];

const START: &str = "<!-- keys ";
const END: &str = "<!-- /keys -->";

/// A region of a page.
#[derive(PartialEq, Eq)]
struct Region {
    schema: String,
    section: String,
    /// Value of `method` of the object; `None` for all objects.
    form: Option<String>,
}

/// Generates all pages: file name and text.
pub(super) fn pages() -> Fallible<Vec<(&'static str, String)>> {
    let folder = workspace::root().join(FOLDER);
    let mut texts = Vec::new();
    for file in FILES {
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path);
        texts.push(text.map_err(|error| format!("{}: {error}", path.display()))?);
    }
    let mut references = Vec::new();
    for (schema, root, columns) in SCHEMAS {
        let document = read(&workspace::root().join(format!("schemas/wirestorm.{schema}.json")))?;
        let mut reference = Reference::new(&inlined(document), root, false);
        for section in &mut reference.sections {
            let is_of = |region: &Region| region.schema == schema && region.section == section.name;
            let page = texts.iter().position(|text| regions(text).iter().any(is_of));
            section.page = page.ok_or_else(|| {
                format!("{FOLDER}: no page has `{START}{schema} {} -->`", section.name)
            })?;
        }
        references.push((schema, columns, reference));
    }
    let pages = FILES.into_iter().zip(&texts).enumerate().map(|(number, (file, text))| {
        let table = |region: &Region| {
            let (_, columns, reference) =
                references.iter().find(|(schema, ..)| *schema == region.schema)?;
            let section = reference.sections.iter().find(|it| it.name == region.section)?;
            let objects = match section.objects.as_slice() {
                [object] => vec![object.clone()],
                forms => vec![part_of(forms, region.form.as_deref())?],
            };
            let writer = table::Writer { reference, columns: *columns, files: &FILES, number };
            Some(writer.table(&section.words, &objects))
        };
        let page = filled(text, table);
        Ok((file, page.map_err(|error| format!("{FOLDER}/{file}: {error}"))?))
    });
    pages.collect()
}

/// Replaces the tables of all regions.
fn filled(text: &str, table: impl Fn(&Region) -> Option<String>) -> Result<String, String> {
    let mut page = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        page.push_str(line);
        page.push('\n');
        let Some(region) = region(line) else { continue };
        page.push_str(&table(&region).ok_or_else(|| format!("`{line}`: no such keys"))?);
        if !lines.any(|line| line == END) {
            return Err(format!("`{line}`: expected `{END}` after the table"));
        }
        page.push_str(END);
        page.push('\n');
    }
    Ok(page)
}

fn regions(text: &str) -> Vec<Region> {
    text.lines().filter_map(region).collect()
}

/// Reads the line before a table.
fn region(line: &str) -> Option<Region> {
    let words = line.strip_prefix(START)?.strip_suffix(" -->")?;
    let mut words = words.split(' ').map(str::to_owned);
    Some(Region { schema: words.next()?, section: words.next()?, form: words.next() })
}

/// Returns an object with the keys that all forms have, or with the others of one form.
fn part_of(forms: &[Map<String, Value>], form: Option<&str>) -> Option<Map<String, Value>> {
    let keys = |form: &Map<String, Value>| -> BTreeSet<String> {
        form["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let common = forms.iter().map(keys).reduce(|all, keys| &all & &keys)?;
    let is_selected = |object: &&Map<String, Value>| match form {
        Some(name) => object["properties"]["method"]["const"] == name,
        None => true,
    };
    let mut object = forms.iter().find(is_selected)?.clone();
    let properties = object.get_mut("properties")?.as_object_mut()?;
    properties.retain(|key, _| common.contains(key) == form.is_none());
    if let Some(method) = properties.get_mut("method") {
        let names = forms.iter().map(|form| &form["properties"]["method"]["const"]);
        *method = json!({"enum": names.collect::<Vec<_>>(), "description": "Method."});
    }
    Some(object)
}

/// Puts definitions in the place of their references, or the type of [`LINKED`]. Sections then have
/// the paths of their keys as names.
fn inlined(mut schema: Value) -> Value {
    let definitions = schema.as_object_mut().and_then(|schema| schema.remove("$defs"));
    inline(&mut schema, &definitions.unwrap_or_default());
    schema
}

fn inline(schema: &mut Value, definitions: &Value) {
    match schema {
        Value::Object(map) => {
            let reference = map.get("$ref").and_then(Value::as_str);
            let name = reference.and_then(|it| it.strip_prefix("#/$defs/")).map(str::to_owned);
            if let Some(name) = name {
                map.remove("$ref");
                let linked = LINKED.iter().find(|(linked, _)| *linked == name);
                let definition = match linked {
                    Some((_, kind)) => json!({"type": kind}),
                    None => definitions[&name].clone(),
                };
                for (key, value) in definition.as_object().into_iter().flatten() {
                    map.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
            map.values_mut().for_each(|value| inline(value, definitions));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| inline(item, definitions)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_replaced_and_the_text_is_kept() {
        let table = |region: &Region| (region.section == "a[].b").then(|| "new\n".to_owned());
        let page = "# Title\n<!-- keys x.1 a[].b -->\nold\n<!-- /keys -->\ntext\n";
        assert_eq!(filled(page, table).unwrap(), page.replace("old", "new"));
        assert!(filled(&page.replace("a[].b", "c"), table).unwrap_err().contains("no such keys"));
        assert!(filled(&page.replace("/keys", "keys"), table).is_err());
    }

    #[test]
    fn forms_have_their_common_keys_once() {
        let form = |name: &str, own: &str| {
            let form = json!({"properties": {"method": {"const": name}, "tx": {}, own: {}}});
            form.as_object().cloned().unwrap()
        };
        let forms = [form("one", "a"), form("two", "b")];
        let keys = |selected| part_of(&forms, selected).unwrap()["properties"].clone();
        let names = json!({"enum": ["one", "two"], "description": "Method."});
        assert_eq!(keys(None), json!({"method": names, "tx": {}}));
        assert_eq!(keys(Some("two")), json!({"b": {}}));
        assert!(part_of(&forms, Some("three")).is_none());
    }
}
