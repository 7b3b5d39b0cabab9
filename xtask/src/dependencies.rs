//! Allowed dependencies between crates, and purity checks. See ARCHITECTURE.md.

use serde_json::Value;

use crate::{Fallible, workspace};

/// Packages of the workspace with their allowed dependencies within the workspace.
const DIRECTIONS: [(&str, &[&str]); 28] = [
    ("wirestorm-base", &[]),
    ("wirestorm-wire", &["wirestorm-base"]),
    ("wirestorm-model", &["wirestorm-base", "wirestorm-wire"]),
    ("wirestorm-plan", &["wirestorm-base", "wirestorm-wire", "wirestorm-model"]),
    ("wirestorm-otg", &["wirestorm-base", "wirestorm-wire", "wirestorm-model", "wirestorm-plan"]),
    ("wirestorm-gnmi", &[]),
    ("wirestorm-bus", &[]),
    ("wirestorm-engine", &["wirestorm-base", "wirestorm-wire", "wirestorm-model"]),
    ("wirestorm-stack", &["wirestorm-base", "wirestorm-wire", "wirestorm-model"]),
    ("wirestorm-sim", PURE),
    ("wirestorm-tls", &["wirestorm-stack"]),
    ("wirestorm-http2", &["wirestorm-stack"]),
    ("wirestorm-flowexport", &["wirestorm-base", "wirestorm-wire"]),
    ("wirestorm-method", &["wirestorm-base"]),
    ("wirestorm-clock", &["wirestorm-base"]),
    ("wirestorm-io", &["wirestorm-base", "wirestorm-wire", "wirestorm-clock"]),
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
            "wirestorm-method",
            "wirestorm-flowexport",
            "wirestorm-clock",
        ],
    ),
    ("wirestorm-store", &["wirestorm-method", "wirestorm-control"]),
    ("wirestorm-api", &["wirestorm-control"]),
    ("wirestorm-console", &["wirestorm-api"]),
    (
        "wirestorm-serve",
        &[
            "wirestorm-control",
            "wirestorm-store",
            "wirestorm-report",
            "wirestorm-api",
            "wirestorm-bus",
            "wirestorm-otg",
            "wirestorm-gnmi",
        ],
    ),
    (
        "wirestorm-report",
        &["wirestorm-base", "wirestorm-control", "wirestorm-method", "wirestorm-store"],
    ),
    (
        "wirestorm",
        &[
            "wirestorm-control",
            "wirestorm-store",
            "wirestorm-api",
            "wirestorm-bus",
            "wirestorm-console",
            "wirestorm-serve",
            "wirestorm-report",
        ],
    ),
    ("wirestorm-python", &["wirestorm-control"]),
    ("wirestorm-testkit", ANYTHING),
    ("wirestorm-e2e", ANYTHING),
    ("wirestorm-fuzz-targets", ANYTHING),
    ("xtask", ANYTHING),
];

const ANYTHING: &[&str] = &["*"];

/// Packages for tests only, which no shipped package may use.
const FOR_TESTS_ONLY: [&str; 4] =
    ["wirestorm-testkit", "wirestorm-e2e", "wirestorm-fuzz-targets", "xtask"];

/// Dependencies of the simulator.
const PURE: &[&str] = &[
    "wirestorm-base",
    "wirestorm-wire",
    "wirestorm-model",
    "wirestorm-plan",
    "wirestorm-engine",
    "wirestorm-stack",
];

/// Crates whose purity the compiler enforces with `no_std`.
const NO_STD: [&str; 6] = ["base", "wire", "model", "engine", "stack", "flowexport"];
/// Crates whose purity clippy enforces with a list of banned calls.
const BANS: [&str; 4] = ["plan", "otg", "sim", "method"];

/// Checks the checkout; each line describes one violation.
pub(crate) fn check() -> Fallible<Vec<String>> {
    let mut wrong = forbidden_dependencies(&edges(&workspace::metadata()?));
    wrong.extend(impure_crates()?);
    Ok(wrong)
}

/// A dependency of one package on another; `for_tests` for a dev-dependency.
#[derive(Debug)]
struct Edge {
    from: String,
    to: String,
    for_tests: bool,
}

/// Lists the dependencies between the workspace's packages. Each package also has an edge to
/// itself, so that packages without dependencies are checked too.
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

/// Describes forbidden dependencies. Dev-dependencies may point to any package.
fn forbidden_dependencies(edges: &[Edge]) -> Vec<String> {
    let sentence = |Edge { from, to, for_tests }: &Edge| {
        let Some((_, allowed)) = DIRECTIONS.iter().find(|(name, _)| name == from) else {
            return Some(format!(
                "{from} is in the workspace but not in DIRECTIONS \
                 (xtask/src/directions.rs): add it with its allowed dependencies"
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
        forbidden_dependencies(&edges(&metadata(from, to, kind)))
    }

    #[test]
    fn checkout_has_no_violations() {
        assert_eq!(check().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn forbidden_dependency_is_reported() {
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
    fn test_kit_is_allowed_only_as_dev_dependency() {
        assert_eq!(sentences("wirestorm-io", "wirestorm-testkit", "dev"), Vec::<String>::new());
        let wrong = sentences("wirestorm-io", "wirestorm-testkit", "");
        assert!(wrong[0].contains("make it a dev-dependency"), "{wrong:?}");
    }

    #[test]
    fn unlisted_package_is_reported() {
        let wrong = sentences("wirestorm-new", "wirestorm-base", "");
        assert!(wrong[0].starts_with("wirestorm-new is in the workspace but not"), "{wrong:?}");
    }
}
