//! The `--backend` flag. Its values are the names of the available backends.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use wirestorm_control::backend::Backend;

/// Returns a parser for the name of a backend that sends, or `auto`.
pub(crate) fn sending() -> impl TypedValueParser<Value = Backend> {
    parser(false)
}

/// Returns a parser for the name of a backend that sends and receives, or `auto`.
pub(crate) fn both_ways() -> impl TypedValueParser<Value = Backend> {
    parser(true)
}

fn parser(both_ways: bool) -> impl TypedValueParser<Value = Backend> {
    let value = |backend: Backend| PossibleValue::new(backend.name()).help(backend.summary());
    let values: Vec<_> = Backend::all(both_ways).map(value).collect();
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Backend>())
}
