//! Which crate may use which, and which of them are pure. ARCHITECTURE.md says why.

use serde_json::Value;

use crate::{Fallible, workspace};

/// Each package, and the packages of the workspace that it may use.
const DIRECTIONS: [(&str, &[&str]); 17] = [
    ("wirestorm-base", &[]),
    ("wirestorm-wire", &["wirestorm-base"]),
    ("wirestorm-model", &["wirestorm-base", "wirestorm-wire"]),
    ("wirestorm-plan", &["wirestorm-base", "wirestorm-wire", "wirestorm-model"]),
    ("wirestorm-engine", &["wirestorm-base", "wirestorm-wire", "wirestorm-model"]),
    ("wirestorm-stack", &["wirestorm-base", "wirestorm-wire", "wirestorm-model"]),
    ("wirestorm-sim", PURE),
    ("wirestorm-tls", &["wirestorm-stack"]),
    ("wirestorm-http2", &["wirestorm-stack"]),
    ("wirestorm-io", &["wirestorm-base", "wirestorm-wire"]),
    (
        "wirestorm-control",
        &[
            "wirestorm-base",
            "wirestorm-wire",
            "wirestorm-model",
            "wirestorm-plan",
            "wirestorm-engine",
            "wirestorm-stack",
            "wirestorm-sim",
            "wirestorm-io",
            "wirestorm-tls",
            "wirestorm-http2",
        ],
    ),
    ("wirestorm", &["wirestorm-control"]),
    ("wirestorm-python", &["wirestorm-control"]),
    ("wirestorm-testkit", ANYTHING),
    ("wirestorm-e2e", ANYTHING),
    ("wirestorm-fuzz-targets", ANYTHING),
    ("xtask", ANYTHING),
];

const ANYTHING: &[&str] = &["*"];

/// What a test needs and nothing that is shipped.
const FOR_TESTS_ONLY: [&str; 4] =
    ["wirestorm-testkit", "wirestorm-e2e", "wirestorm-fuzz-targets", "xtask"];

/// What the simulator stands on.
const PURE: &[&str] = &[
    "wirestorm-base",
    "wirestorm-wire",
    "wirestorm-model",
    "wirestorm-plan",
    "wirestorm-engine",
    "wirestorm-stack",
];

/// Crates whose purity the compiler proves.
const NO_STD: [&str; 5] = ["base", "wire", "model", "engine", "stack"];
/// Crates whose purity a list of banned calls holds up.
const BANS: [&str; 2] = ["plan", "sim"];

/// Checks the checkout; each sentence names one thing that is wrong.
pub(crate) fn check() -> Fallible<Vec<String>> {
    let mut wrong = wrong_edges(&edges(&workspace::metadata()?));
    wrong.extend(impure_crates()?);
    Ok(wrong)
}

/// One package uses another; `for_tests` where only its tests do.
#[derive(Debug)]
struct Edge {
    from: String,
    to: String,
    for_tests: bool,
}

/// The dependencies between the workspace's own packages, each with an edge to itself so that
/// one without dependencies is known too.
fn edges(metadata: &Value) -> Vec<Edge> {
    let list = |value: &Value, key: &str| -> Vec<Value> {
        value.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let text = |value: &Value, key: &str| -> String {
        value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let packages = list(metadata, "packages");
    let mut edges = Vec::new();
    for package in &packages {
        let from = text(package, "name");
        edges.push(Edge { from: from.clone(), to: from.clone(), for_tests: false });
        for dependency in list(package, "dependencies") {
            let to = text(&dependency, "name");
            if packages.iter().any(|package| text(package, "name") == to) {
                let for_tests = text(&dependency, "kind") == "dev";
                edges.push(Edge { from: from.clone(), to, for_tests });
            }
        }
    }
    edges
}

/// Tests may use anything, and so one package's dev-dependencies point anywhere.
fn wrong_edges(edges: &[Edge]) -> Vec<String> {
    let sentence = |Edge { from, to, for_tests }: &Edge| {
        let Some((_, allowed)) = DIRECTIONS.iter().find(|(name, _)| name == from) else {
            return Some(format!(
                "{from} is in the workspace but not in the list of directions \
                 (xtask/src/directions.rs): add it with what it may use"
            ));
        };
        if from == to || *for_tests || *allowed == ANYTHING || allowed.contains(&to.as_str()) {
            return None;
        }
        if FOR_TESTS_ONLY.contains(&to.as_str()) {
            return Some(format!(
                "{from} uses {to}, which only tests may: make it a dev-dependency"
            ));
        }
        let allowed = if allowed.is_empty() { "nothing".into() } else { allowed.join(", ") };
        Some(format!("{from} uses {to}, but of the workspace it may use only: {allowed}"))
    };
    let mut sentences: Vec<String> = edges.iter().filter_map(sentence).collect();
    sentences.dedup();
    sentences
}

fn impure_crates() -> Fallible<Vec<String>> {
    let crates = workspace::root().join("crates");
    let mut wrong = Vec::new();
    for name in NO_STD.into_iter().chain(BANS) {
        let library = crates.join(name).join("src/lib.rs");
        if !library.exists() {
            continue;
        }
        let source = std::fs::read_to_string(&library)?;
        let mut attributes = vec!["#![forbid(unsafe_code)]"];
        if NO_STD.contains(&name) {
            attributes.push("#![no_std]");
        } else if !crates.join(name).join("clippy.toml").exists() {
            wrong.push(format!("crates/{name}/clippy.toml is missing; it keeps the crate pure"));
        }
        for attribute in attributes {
            if !source.lines().any(|line| line.trim() == attribute) {
                wrong.push(format!("crates/{name}/src/lib.rs must contain {attribute}"));
            }
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(from: &str, to: &str, kind: &str) -> Value {
        let dependency = serde_json::json!({ "name": to, "kind": kind });
        serde_json::json!({ "packages": [
            { "name": from, "dependencies": [dependency, { "name": "libc", "kind": null }] },
            { "name": to, "dependencies": [] },
        ] })
    }

    fn sentences(from: &str, to: &str, kind: &str) -> Vec<String> {
        wrong_edges(&edges(&metadata(from, to, kind)))
    }

    #[test]
    fn the_checkout_keeps_its_directions_and_its_purity() {
        assert_eq!(check().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn an_edge_against_the_direction_is_named() {
        for kind in ["", "build"] {
            let wrong = sentences("wirestorm-wire", "wirestorm-io", kind);
            assert_eq!(
                wrong,
                ["wirestorm-wire uses wirestorm-io, but of the workspace it may use only: \
                 wirestorm-base"]
            );
        }
        assert_eq!(sentences("wirestorm-io", "wirestorm-wire", ""), Vec::<String>::new());
    }

    #[test]
    fn the_test_kit_is_for_tests_alone() {
        assert_eq!(sentences("wirestorm-io", "wirestorm-testkit", "dev"), Vec::<String>::new());
        let wrong = sentences("wirestorm-io", "wirestorm-testkit", "");
        assert!(wrong[0].contains("make it a dev-dependency"), "{wrong:?}");
    }

    #[test]
    fn a_package_that_is_not_listed_is_named() {
        let wrong = sentences("wirestorm-new", "wirestorm-base", "");
        assert!(wrong[0].starts_with("wirestorm-new is in the workspace but not"), "{wrong:?}");
    }
}
