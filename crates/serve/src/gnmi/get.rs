//! The RPC Get.

use tonic::Status;
use wirestorm_gnmi::gnmi::get_request::DataType;
use wirestorm_gnmi::gnmi::{GetRequest, GetResponse, Notification, Path, TypedValue, Update};

use super::path::concrete;
use super::place::Place;
use super::schema::{LISTS, TAGGED};
use super::selection::{Exact, Selected, Selection};
use super::service::{PATHS_MAX, check_extensions, echo, form, select};
use super::tree::{Entries, Entry, Tree, indices};
use super::value::Form;

/// Maximum number of values in a response.
const VALUES_MAX: usize = 500_000;

/// A valid request.
#[derive(Clone)]
pub(super) struct Query {
    prefix: Option<Path>,
    selections: Vec<Selection>,
    form: Form,
    /// Whether the request is for configuration, which this schema does not have.
    is_config: bool,
}

impl Query {
    /// Checks a request.
    ///
    /// # Errors
    /// A path is not valid, or the request asks for something that is not supported.
    pub(super) fn new(mut request: GetRequest) -> Result<Self, Status> {
        check_extensions(&request.extension)?;
        let kind = DataType::try_from(request.r#type)
            .map_err(|_| Status::invalid_argument(format!("type: found {}", request.r#type)))?;
        let form = form(request.encoding)?;
        if request.path.len() > PATHS_MAX {
            let found = request.path.len();
            let message = format!("path: found {found} paths, expected at most {PATHS_MAX}");
            return Err(Status::invalid_argument(message));
        }
        if request.path.is_empty() {
            request.path.push(Path::default());
        }
        let prefix = request.prefix.as_ref();
        let paths = request.path.iter();
        let selections = paths
            .map(|path| select(prefix, Some(path), &request.use_models))
            .collect::<Result<_, _>>();
        Ok(Self {
            selections: selections?,
            prefix: echo(prefix),
            form,
            is_config: kind == DataType::Config,
        })
    }

    /// Returns whether it selects tagged metrics.
    pub(super) fn has_tagged(&self) -> bool {
        self.selections.iter().any(Selection::has_tagged)
    }

    /// Returns the response: one notification for each path.
    ///
    /// # Errors
    /// A path without wildcards has no value, or the response would be too long.
    pub(super) fn response(&self, tree: &Tree) -> Result<GetResponse, Status> {
        let mut values = 0;
        let mut notification = Vec::with_capacity(self.selections.len());
        for selection in &self.selections {
            let update = match self.is_config {
                true => Vec::new(),
                false => self.updates(selection, tree, &mut values)?,
            };
            let timestamp = tree.unix_ns;
            let prefix = self.prefix.clone();
            notification.push(Notification {
                timestamp,
                prefix,
                update,
                ..Notification::default()
            });
        }
        Ok(GetResponse { notification, ..GetResponse::default() })
    }

    fn updates(
        &self,
        selection: &Selection,
        tree: &Tree,
        values: &mut usize,
    ) -> Result<Vec<Update>, Status> {
        let mut found = Found { form: self.form, updates: Vec::new(), values };
        let origin = &selection.origin;
        for node in selection.above.iter().filter(|_| self.form != Form::Proto) {
            let count = tree.lists.iter().map(Entries::size).sum();
            let json = self.form.above(node, tree, &selection.lists);
            found.add(concrete(node, &[], origin), self.form.json(&json), count)?;
        }
        for index in 0..LISTS.len() {
            let of_list = &selection.lists[index];
            for entry in tree.lists[index].selected(of_list) {
                let selected = of_list.of(&entry.name);
                let is_entry = selected.is_entry;
                let names = &[&*entry.name];
                found.add_entry(&Place { index, names, origin, is_entry }, entry, selected)?;
                let Some(inner) = &selected.inner else { continue };
                for tagged in entry.inner.selected(inner) {
                    let selected = inner.of(&tagged.name);
                    let is_entry = selected.is_entry;
                    let names = &[&*entry.name, &*tagged.name];
                    let place = Place { index: TAGGED, names, origin, is_entry };
                    found.add_entry(&place, tagged, selected)?;
                }
            }
        }
        if found.updates.is_empty() {
            check_exists(selection, tree)?;
        }
        Ok(found.updates)
    }
}

/// Updates for a path.
struct Found<'a> {
    form: Form,
    updates: Vec<Update>,
    /// Number of values of the response.
    values: &'a mut usize,
}

impl Found<'_> {
    /// Adds what is selected of an entry, without the list inside of it.
    fn add_entry(
        &mut self,
        place: &Place<'_>,
        entry: &Entry,
        selected: &Selected,
    ) -> Result<(), Status> {
        if self.form == Form::Proto {
            for leaf in indices(selected.leaves) {
                let Some(value) = &entry.values[leaf] else { continue };
                self.count(1)?;
                self.updates.extend(place.updates(leaf, value, self.form));
            }
            return Ok(());
        }
        for node in &selected.nodes {
            let Some(json) = self.form.node(node, entry) else { continue };
            let inner = if node.list_below().is_some() { entry.inner.size() } else { 0 };
            let count = node.leaves.count_ones() as usize + inner;
            self.add(place.path(node), self.form.json(&json), count)?;
        }
        Ok(())
    }

    fn add(&mut self, path: Path, val: TypedValue, count: usize) -> Result<(), Status> {
        self.count(count)?;
        self.updates.push(Update { path: Some(path), val: Some(val), ..Update::default() });
        Ok(())
    }

    fn count(&mut self, count: usize) -> Result<(), Status> {
        *self.values += count;
        if *self.values > VALUES_MAX {
            let message = format!(
                "the response would have more than {VALUES_MAX} values: ask for fewer, or use \
                 Subscribe"
            );
            return Err(Status::resource_exhausted(message));
        }
        Ok(())
    }
}

/// Checks that what a path without wildcards names exists.
fn check_exists(selection: &Selection, tree: &Tree) -> Result<(), Status> {
    let Some(Exact { is_leaf, list, name, inner }) = &selection.exact else { return Ok(()) };
    let [container, list] = list;
    let text = &selection.text;
    let of_list = LISTS.iter().zip(&tree.lists).find(|(list, _)| list.container == *container);
    let Some(entry) = of_list.and_then(|(_, entries)| entries.get(name)) else {
        let message = format!("{text}: the configuration has no {list} {name:?}");
        return Err(Status::not_found(message));
    };
    if let Some(inner) = inner
        && entry.inner.get(inner).is_none()
    {
        let message = format!("{text}: the {list} {name:?} has no tagged metric {inner:?}");
        return Err(Status::not_found(message));
    }
    match is_leaf {
        true => Err(Status::not_found(format!("{text}: no value"))),
        false => Ok(()),
    }
}
