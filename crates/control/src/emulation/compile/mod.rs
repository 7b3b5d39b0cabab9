//! Compiles a plan into the templates and programs of endpoints.

mod contents;
pub(super) mod endpoint;
mod program;
pub(super) mod sessions;
