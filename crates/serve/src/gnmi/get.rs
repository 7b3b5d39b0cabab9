//! The RPC Get.

use tonic::Status;
use wirestorm_gnmi::gnmi::get_request::DataType;
use wirestorm_gnmi::gnmi::{GetRequest, GetResponse, Notification, Path, Update};

use super::path::concrete;
use super::schema::{self, LISTS};
use super::selection::Selection;
use super::service::{PATHS_MAX, check_extensions, echo, form, select};
use super::tree::{Tree, indices};
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
        let mut updates = Vec::new();
        let mut add = |path: Path, val, count: usize| {
            *values += count;
            if *values > VALUES_MAX {
                let message = format!(
                    "the response would have more than {VALUES_MAX} values: ask for fewer, or \
                     use Subscribe"
                );
                return Err(Status::resource_exhausted(message));
            }
            updates.push(Update { path: Some(path), val: Some(val), ..Update::default() });
            Ok(())
        };
        let origin = &selection.origin;
        for node in selection.above.iter().filter(|_| self.form != Form::Proto) {
            let sizes = tree.lists.iter().enumerate();
            let count =
                sizes.map(|(index, it)| it.all().count() * schema::leaf_nodes(index).len()).sum();
            let json = self.form.above(node, tree, &selection.lists);
            add(concrete(node, None, origin), self.form.json(&json), count)?;
        }
        for index in 0..LISTS.len() {
            let of_list = &selection.lists[index];
            for entry in tree.lists[index].selected(of_list) {
                let selected = of_list.of(&entry.name);
                if self.form == Form::Proto {
                    for leaf in indices(selected.leaves) {
                        let Some(value) = &entry.values[leaf] else { continue };
                        let node = schema::leaf_nodes(index)[leaf];
                        let path = concrete(node, Some(&entry.name), origin);
                        add(path, self.form.leaf(value), 1)?;
                    }
                    continue;
                }
                for node in &selected.nodes {
                    let Some(json) = self.form.node(node, entry) else { continue };
                    let path = concrete(node, Some(&entry.name), origin);
                    add(path, self.form.json(&json), node.leaves.count_ones() as usize)?;
                }
            }
        }
        if updates.is_empty() {
            self.check_exists(selection, tree)?;
        }
        Ok(updates)
    }

    /// Checks that what a path without wildcards names exists.
    fn check_exists(&self, selection: &Selection, tree: &Tree) -> Result<(), Status> {
        let Some((node, name)) = &selection.exact else { return Ok(()) };
        let has_entry = LISTS
            .iter()
            .zip(&tree.lists)
            .any(|(list, entries)| list.container == node.path[0] && entries.get(name).is_some());
        match (has_entry, node.is_leaf()) {
            (false, _) => Err(Status::not_found(format!(
                "{}: the configuration has no {} {name:?}",
                selection.text, node.path[1]
            ))),
            (true, true) => Err(Status::not_found(format!("{}: no value", selection.text))),
            (true, false) => Ok(()),
        }
    }
}
