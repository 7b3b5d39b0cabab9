//! JSON Schema (2020-12) of tests, built from the key lists of the reader.
//!
//! Every test that the reader accepts matches the schema if its plans, captures, methods and
//! options have no error. The schema does not check that names exist and that values fit together.

use serde_json::{Map, Value, json};

use super::{CLOCK, KINDS, NODE, NODES_MAX, PORT, PORTS_MAX, RUN, RUNS_MAX, TEST};
use crate::document::schema::{
    any_of, described, integer, list, matches_nothing, object, port, signed_time, text, time,
};
use crate::{emulation, traffic};

/// Schemas of the keys of a run that the reader passes on as they are.
#[derive(Clone, Debug)]
pub struct RunSchemas {
    /// Captures and ports of a replay.
    pub replay: Value,
    /// Benchmark method with its parameters.
    pub bench: Value,
    /// Options of a run.
    pub options: Value,
}

/// Returns the schema, without `title` and `$id`.
pub fn schema(of_runs: RunSchemas) -> Value {
    let mut schema = object(&TEST, &["nodes", "ports", "runs"], |name| match name {
        "name" => described("Name in the run history. Default: test.", text()),
        "nodes" => {
            described("Machines, or parts of one: names, or objects.", bounded(node(), NODES_MAX))
        }
        "ports" => described("Ports of the nodes.", bounded(port_of_node(), PORTS_MAX)),
        "runs" => described(
            "Runs, which start together. Each has one kind: `streams`, `emulate`, `replay` or `bench`.",
            bounded(run(), RUNS_MAX),
        ),
        "duration" => described("Duration of each run. Default: the end of its plan.", time()),
        "iterations" => {
            described("Number of times that all runs start. Default: 1.", integer(1, 1_000_000))
        }
        "pause" => described("Time between two iterations. Default: 0s.", time()),
        "drain" => described(
            "Time without arrivals after which missing frames count as lost, up to 60s. It begins \
            when all nodes have sent their frames. Make it longer than the delay of the path. \
            Default: 2s.",
            time(),
        ),
        "fail_if" => described(
            "Limits as `wirestorm report --fail-if` takes them, such as `loss>0.1%`: the test fails \
            if one is true. Default: none.",
            list(text()),
        ),
        "clock" => described("Comparison of the clocks.", clock()),
        "when_agent_lost" => described(
            "Whether the other agents stop if one is lost. Default: abort.",
            json!({"enum": ["abort", "continue"]}),
        ),
        _ => matches_nothing(),
    });
    let RunSchemas { replay, bench, options } = of_runs;
    let mut definitions = Map::new();
    for (name, mut plan) in [("streams", traffic::schema()), ("emulate", emulation::schema())] {
        if let Some(Value::Object(of_plan)) = plan.as_object_mut().and_then(|it| it.remove("$defs"))
        {
            definitions.extend(of_plan);
        }
        // A plan in a test has the ports of the test.
        if let Some(required) = plan["required"].as_array_mut() {
            required.retain(|name| name != "ports");
        }
        definitions.insert(name.to_owned(), plan);
    }
    for (name, definition) in [("replay", replay), ("bench", bench), ("options", options)] {
        definitions.insert(name.to_owned(), definition);
    }
    schema["$defs"] = definitions.into();
    schema
}

fn bounded(item: Value, most: usize) -> Value {
    let mut schema = list(item);
    schema["minItems"] = 1.into();
    schema["maxItems"] = most.into();
    schema
}

fn node() -> Value {
    let with_agent = object(&NODE, &["name"], |name| match name {
        "name" => described("Name in the test.", text()),
        "agent" => described("Name of its agent. Default: the name.", text()),
        _ => matches_nothing(),
    });
    any_of([described("Name of the node and of its agent.", text()), with_agent])
}

fn port_of_node() -> Value {
    let of_plans = port();
    object(&PORT, &["name", "node", "interface"], |name| match name {
        "name" => described("Name in the test and in its plans.", text()),
        "node" => described("Name of its node.", text()),
        "interface" => described(
            "Interface on the node: `eth1`, or `netns/NAME:veth0`. `--port NAME=INTERFACE` takes \
            precedence.",
            text(),
        ),
        name => of_plans["properties"].get(name).cloned().unwrap_or_else(matches_nothing),
    })
}

fn run() -> Value {
    let definition = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
    let plan =
        |name: &str| any_of([described("File, relative to the test.", text()), definition(name)]);
    let mut schema = object(&RUN, &[], |name| match name {
        "name" => described("Name in the test. Default: `run-` with its number.", text()),
        "streams" => described("Plan of streams. Its ports may be on several nodes.", plan(name)),
        "emulate" => described("Plan of clients and servers on the ports of one node.", plan(name)),
        "replay" => described("Captures to replay on the ports of one node.", definition(name)),
        "bench" => described(
            "Benchmark method between ports. It is the only run, without `duration`, `iterations` \
            and `pause`.",
            definition(name),
        ),
        "options" => described("Options of the run.", definition(name)),
        _ => matches_nothing(),
    });
    let of_one_kind = KINDS.map(|kind| json!({"required": [kind]}));
    schema["oneOf"] = of_one_kind.to_vec().into();
    schema
}

fn clock() -> Value {
    object(&CLOCK, &[], |name| match name {
        "path" => described(
            "Path of the exchanges of time stamps; `none` compares no clocks. Default: management.",
            json!({"enum": ["management", "none"]}),
        ),
        "source" => described(
            "What clocks are compared by: references of the machines, exchanges of time stamps \
            (STAMP), PTP sessions of the agents with the same grandmaster, or all; the one with the \
            smallest bound counts. Default: auto.",
            json!({"enum": ["auto", "reference", "stamp", "ptp"]}),
        ),
        "interval" => described(
            "Time between two exchanges, 1ms to 1s; the first 50 are faster. Default: 20ms.",
            time(),
        ),
        "error_max" => described(
            "The test does not start with a larger error of an offset. Default: no limit.",
            time(),
        ),
        "asymmetry" => described(
            "Delay of the exchanges from sender to receiver minus the opposite, also negative. \
            Default: 0ms.",
            signed_time(),
        ),
        "bias" => described(
            "Constant delay of the testers, which is subtracted from all delays. Default: 0ns.",
            time(),
        ),
        "lead" => described("Time from the order to start to the start. Default: 500ms.", time()),
        _ => matches_nothing(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::schema::{closed_objects, walk};

    fn of_runs() -> RunSchemas {
        let any = json!({"type": "object"});
        RunSchemas { replay: any.clone(), bench: any.clone(), options: any }
    }

    #[test]
    fn every_key_is_described_and_no_other_is_allowed() {
        assert!(closed_objects(&schema(of_runs())) > 150);
    }

    #[test]
    fn definitions_of_both_plans_have_different_names() {
        let schema = schema(of_runs());
        let names = |schema: &Value| schema["$defs"].as_object().map_or(0, |it| it.len());
        let plans = names(&traffic::schema()) + names(&emulation::schema());
        assert_eq!(names(&schema), plans + 5);
        walk(&schema, "", &mut |value, path| {
            if let Some(Value::String(reference)) = value.get("$ref") {
                let target = schema.pointer(reference.trim_start_matches('#'));
                assert!(target.is_some(), "{path}: {reference}");
            }
        });
    }
}
