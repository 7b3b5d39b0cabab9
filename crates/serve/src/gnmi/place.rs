//! An entry of a list as a place in the telemetry: the paths of its values.

use serde_json::json;
use wirestorm_gnmi::gnmi::{Path, TypedValue, Update};

use super::path::concrete;
use super::schema::{self, LISTS, Node, Value};
use super::tagged::Tag;
use super::value::Form;

/// Key of the entries of `tags` in updates. The schema has none, but paths must differ.
const TAG_KEY: &str = "tag-name";

/// An entry of a list, for a path that selects something of it.
pub(super) struct Place<'a> {
    /// Index of the list of the schema.
    pub(super) index: usize,
    /// Names of the entries that it is in, the outermost first, and its own.
    pub(super) names: &'a [&'a str],
    /// Origin of the path.
    pub(super) origin: &'a str,
    /// Whether the path selects the entry as a whole.
    pub(super) is_entry: bool,
}

impl Place<'_> {
    /// Returns the path of a node of the entry.
    pub(super) fn path(&self, node: &Node) -> Path {
        concrete(node, self.names, self.origin)
    }

    /// Returns the path of the entry.
    pub(super) fn entry(&self) -> Path {
        self.path(schema::list(self.index))
    }

    /// Returns the updates of a leaf.
    ///
    /// The list `tags` has no key, so no path names a leaf in it. Libraries such as ygot read it
    /// from the JSON of the whole entry, or as one object for each of its entries: the first if the
    /// entry is selected, and the second if only something below is, because the paths of updates
    /// are not above the selected ones.
    pub(super) fn updates(&self, leaf: usize, value: &Value, form: Form) -> Vec<Update> {
        let node = schema::leaf_nodes(self.index)[leaf];
        let update = |path: Path, val: TypedValue| Update {
            path: Some(path),
            val: Some(val),
            ..Update::default()
        };
        let Value::Tags(tags) = value else {
            return vec![update(self.path(node), form.leaf(value))];
        };
        let list = LISTS.iter().find(|it| it.container == node.path[0]);
        let module = form.prefix(list.map_or("", |it| it.module));
        if self.is_entry {
            let tags: Vec<_> = tags.iter().map(|tag| tag.json("")).collect();
            let state = json!({ (format!("{module}state")): {"tags": tags} });
            return vec![update(self.entry(), form.json(&state))];
        }
        let of = |tag: &Tag| update(self.tag(node, tag), form.json(&tag.json(&module)));
        tags.iter().map(of).collect()
    }

    /// Returns the paths of the values of a leaf that is no more.
    pub(super) fn deletes(&self, leaf: usize, value: &Value) -> Vec<Path> {
        let node = schema::leaf_nodes(self.index)[leaf];
        match value {
            Value::Tags(tags) => tags.iter().map(|tag| self.tag(node, tag)).collect(),
            _ => vec![self.path(node)],
        }
    }

    fn tag(&self, tags: &Node, tag: &Tag) -> Path {
        let mut path = self.path(tags);
        if let Some(elem) = path.elem.last_mut() {
            elem.key.insert(TAG_KEY.to_owned(), tag.name.clone());
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_gnmi::gnmi::typed_value::Value as Typed;
    use wirestorm_otg::proto::{FlowMetricTag, FlowMetricTagValue, FlowTaggedMetric};

    use super::super::path::tests::path;
    use super::super::schema::TAGGED;
    use super::super::tagged::Tagged;
    use super::*;

    #[test]
    fn tags_are_json_of_the_entry_or_an_object_each() {
        let tag = |name: &str| FlowMetricTag {
            name: Some(name.to_owned()),
            value: Some(FlowMetricTagValue { hex: Some("0x1".to_owned()), ..Default::default() }),
        };
        let metric = FlowTaggedMetric { tags: vec![tag("b"), tag("a")], ..Default::default() };
        let value = Value::Tags(Tagged::of(&[metric])[0].tags.clone());
        let entry =
            "/flows/flow[name=f]/tagged-metrics/tagged-metric[name-value-pairs=a=0x1&b=0x1]";
        let updates = |is_entry: bool, form: Form| -> Vec<_> {
            let names = &["f", "a=0x1&b=0x1"];
            let place = Place { index: TAGGED, names, origin: "", is_entry };
            let updates = place.updates(2, &value, form).into_iter();
            updates.map(|it| (it.path.unwrap(), it.val.unwrap().value.unwrap())).collect()
        };
        let of_entry = |module: &str| {
            let tag = |name: &str| {
                format!(
                    r#"{{"tag-name":"{name}","tag-value":{{"value-as-hex":"0x1","value-type":"HEX"}}}}"#
                )
            };
            let tags = format!("[{},{}]", tag("a"), tag("b"));
            format!(r#"{{"{module}state":{{"tags":{tags}}}}}"#).into_bytes()
        };
        let module = "open-traffic-generator-flow:";
        assert_eq!(
            updates(true, Form::Proto),
            [(path(entry), Typed::JsonIetfVal(of_entry(module)))]
        );
        assert_eq!(updates(true, Form::Json), [(path(entry), Typed::JsonVal(of_entry("")))]);
        let names = ["a", "b"].map(|name| path(&format!("{entry}/state/tags[tag-name={name}]")));
        let of_tags = updates(false, Form::Proto).into_iter().map(|it| it.0);
        assert_eq!(of_tags.collect::<Vec<_>>(), names);
    }
}
