//! Checks that docs/reference/counters.md maps TRex counters to keys that exist, and that the schema
//! of results lists all counters.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use wirestorm_testkit::Scratch;

const PAGE: &str = include_str!("../../../../docs/reference/counters.md");
const SCHEMA: &str = include_str!("../../../../schemas/wirestorm.result.2.json");

/// TRex's tables by heading, with the number of counters in each.
const TABLES: [(&str, usize); 7] = [
    ("## General", 10),
    ("## TCP", 76),
    ("## UDP", 10),
    ("## Programs", 6),
    ("## Add-on `latency`", 5),
    ("## Flow table", 25),
    ("## Tunnels", 15),
];

const PLAN: &str = "
ports: [{name: c, addresses: 10.0.0.1/16}, {name: s, addresses: 10.0.1.1/16}]
templates:
  - name: page
    group: pages
    client: {tx: c, servers: 10.0.1.1, load: {rate: 10}, limit: 3, program: [{send: a}, {receive: 1}]}
    server: {tx: s, port: 80, program: [{receive: 1}, {send: b}]}
";

fn simulated() -> Value {
    let scratch = Scratch::new().expect("a folder");
    let plan = scratch.file("plan.yaml");
    std::fs::write(&plan, PLAN).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wirestorm"));
    let output = command.arg("sim").arg(&plan).args(["--full", "--json", "-"]).output();
    let output = output.expect("the program runs");
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|reason| panic!("{reason}: {error}"))
}

/// Returns the texts between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns the rows of all tables in a section as cells, without the head rows.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// Returns the section of the page below a heading, up to the next heading.
fn below(head: &str) -> &'static str {
    let (_, part) = PAGE.split_once(&format!("\n{head}\n")).unwrap_or_else(|| panic!("no {head}"));
    part.split("\n#").next().unwrap_or(part)
}

/// Returns the paths of all counters on the page.
fn paths() -> Vec<&'static str> {
    let mut paths = Vec::new();
    for (head, _) in TABLES {
        paths.extend(rows(below(head)).iter().flat_map(|row| quoted(row[1])));
    }
    paths
}

/// Returns a property of a definition in the schema.
fn member<'a>(schema: &'a Value, definition: &str, name: &str) -> Option<&'a Value> {
    schema["$defs"][definition]["properties"].get(name)
}

/// Returns the name of the definition that a property refers to. `None` for a plain value.
fn referred(member: &Value) -> Option<&str> {
    let choices = member["anyOf"].as_array().into_iter().flatten();
    let found = choices.chain([member]).find_map(|it| it["$ref"].as_str());
    found?.rsplit('/').next()
}

/// Definitions with counters of ports and templates.
const DEFINITIONS: [&str; 3] = ["PortReport", "ConnectionsReport", "TemplateReport"];

/// Returns whether a path exists in the report of a port or template.
fn leads_somewhere(schema: &Value, result: &Value, path: &str) -> bool {
    let pointer = format!("/{}", path.replace('.', "/"));
    let port = &result["ports"][0];
    let values = [result, port, &port["connections"], &port["templates"][0]];
    if values.iter().any(|it| it.pointer(&pointer).is_some()) {
        return true;
    }
    // Optional sections exist in the schema even if the result lacks them.
    match path.split_once('.') {
        None => DEFINITIONS.iter().any(|of| member(schema, of, path).is_some()),
        Some((first, second)) => DEFINITIONS.into_iter().any(|of| {
            let definition = member(schema, of, first).and_then(referred);
            definition.is_some_and(|it| member(schema, it, second).is_some())
        }),
    }
}

#[test]
fn trex_counters_are_on_the_page_exactly_once() {
    let mut names = BTreeSet::new();
    for (head, count) in TABLES {
        let rows = rows(below(head));
        assert_eq!(rows.len(), count, "{head}");
        for row in rows {
            assert_eq!(row.len(), 3, "{row:?}");
            let [name] = quoted(row[0])[..] else { panic!("{row:?}") };
            assert!(names.insert(name), "{name} is there twice");
            assert!(row[1] == "–" || !quoted(row[1]).is_empty(), "{row:?}");
            // A counter of the same name must have the same path.
            if let Some(name) = name.strip_prefix("tcps_")
                && row[1].starts_with("`tcp.")
            {
                assert_eq!(row[1], format!("`tcp.{name}`"));
            }
        }
    }
}

#[test]
fn all_paths_on_the_page_exist() {
    let (schema, result) = (serde_json::from_str(SCHEMA).expect("a schema"), simulated());
    for path in paths() {
        assert!(leads_somewhere(&schema, &result, path), "{path} is nowhere");
    }
    assert!(!leads_somewhere(&schema, &result, "tcp.connect"));
    assert!(!leads_somewhere(&schema, &result, "tls.handshakes"));
}

#[test]
fn the_schema_lists_the_counters_of_a_result() {
    let (schema, result): (Value, _) =
        (serde_json::from_str(SCHEMA).expect("a schema"), simulated());
    let port = &result["ports"][0];
    let reports = [
        ("ConnectionsReport", &port["connections"]),
        ("TemplateReport", &port["templates"][0]),
        ("TemplateReport", &result["groups"][0]),
    ];
    let keys = |value: &Value| -> BTreeSet<String> {
        value.as_object().into_iter().flat_map(|it| it.keys().cloned()).collect()
    };
    for (definition, report) in reports {
        for map in ["flows", "tcp", "udp"] {
            let of = member(&schema, definition, map).and_then(referred).expect("a definition");
            let listed = keys(&schema["$defs"][of]["properties"]);
            assert_eq!(keys(&report[map]), listed, "{definition}.{map}");
            assert!(listed.len() >= 10, "{definition}.{map}: {listed:?}");
        }
    }
}
