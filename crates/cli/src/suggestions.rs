//! Suggestions for an unknown flag.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Maximum number of suggested flags.
const SUGGESTIONS_MAX: usize = 4;

/// Replaces the parser's suggestion by all likely flags.
///
/// These are the flags that the unknown one abbreviates, else those with the smallest edit
/// distance. The parser itself suggests a single flag, even at a large distance.
pub(crate) fn with_suggestions(
    mut error: Error,
    command: &mut Command,
    arguments: &[OsString],
) -> Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let Some(unknown) = unknown.strip_prefix("--").map(str::to_owned) else { return error };
    command.build();
    let names = arguments.iter().filter_map(|argument| argument.to_str());
    let command = match names.into_iter().find(|name| command.find_subcommand(name).is_some()) {
        Some(name) => command.find_subcommand_mut(name),
        None => Some(command),
    };
    let Some(command) = command else { return error };
    let visible = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let tips = similar_names(&unknown, visible.filter_map(|argument| argument.get_long()));
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::Suggested);
    if !tips.is_empty() {
        let tips = tips.into_iter().map(|tip| format!("--{tip}")).collect();
        error.insert(ContextKind::SuggestedArg, ContextValue::Strings(tips));
    }
    error.insert(ContextKind::Usage, ContextValue::StyledStr(command.render_usage()));
    error
}

/// Returns the names that `unknown` abbreviates, else the nearest ones.
fn similar_names<'a>(unknown: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let unknown = unknown.split('=').next().unwrap_or_default().to_lowercase().replace('_', "-");
    let names: Vec<&str> = names.collect();
    let begins = |name: &&&str| !unknown.is_empty() && name.starts_with(&unknown);
    let abbreviated: Vec<&str> = names.iter().filter(begins).copied().collect();
    if !abbreviated.is_empty() {
        return abbreviated.into_iter().take(SUGGESTIONS_MAX).collect();
    }
    // One typing error in a short name, up to three in a long one.
    let distance_max = (unknown.len() / 4).clamp(1, 3);
    let distances = names.iter().map(|name| (distance(&unknown, name), *name));
    let near: Vec<_> = distances.filter(|(distance, _)| *distance <= distance_max).collect();
    let least = near.iter().map(|(distance, _)| *distance).min();
    let nearest = near.into_iter().filter(|(distance, _)| Some(*distance) == least);
    nearest.map(|(_, name)| name).take(SUGGESTIONS_MAX).collect()
}

/// Returns the edit distance with transpositions (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            rows[i][j] = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            let is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if is_swapped {
                rows[i][j] = rows[i][j].min(rows[i - 2][j - 2] + 1);
            }
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 8] =
        ["intf1", "intf2", "pps", "pps-multi", "unique-ip", "unique-flows", "topspeed", "verify"];

    #[test]
    fn suggestions_include_all_equally_likely_flags() {
        for (unknown, expected) in [
            ("intf3", &["intf1", "intf2"][..]),
            ("intf", &["intf1", "intf2"]),
            ("unique_p", &["unique-ip"]),
            ("unique", &["unique-ip", "unique-flows"]),
            ("ppsmulti", &["pps-multi"]),
            ("toppspede", &["topspeed"]),
            ("vreify", &["verify"]),
            ("nothing-like-it", &[]),
        ] {
            assert_eq!(similar_names(unknown, NAMES.into_iter()), expected, "{unknown}");
        }
    }
}
