//! From a plan to the templates and programs of an endpoint.

mod contents;
pub(super) mod endpoint;
mod program;
pub(super) mod sessions;
