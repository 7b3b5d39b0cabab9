//! The Helm chart in `deploy/helm`. There is no Kubernetes here: the tests render the chart, and run
//! the commands of its containers in namespaces.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use wirestorm_e2e::{Outcome, run_command};
use wirestorm_testkit::require::{find_tool, skip};

use super::{Container, EXAMPLE, ROOT, Site, capabilities_of_unit, strings, yaml};

/// Environment variable with the path of Helm.
const PROGRAM: &str = "WIRESTORM_HELM";
/// Values that have a director.
const WITH_TEST: [&str; 6] = [
    "--set-file",
    concat!("director.test=", env!("CARGO_MANIFEST_DIR"), "/../../examples/two-nodes.yaml"),
    "--set",
    "director.args={--port,left=test0,--port,right=test0}",
    "--set",
    "agents.args={--interface,test0}",
];

/// Returns Helm; prints that the test is skipped if there is none.
fn require_helm() -> Option<PathBuf> {
    let set = std::env::var_os(PROGRAM).map(PathBuf::from);
    let program = set.or_else(|| find_tool("helm"));
    if program.is_none() {
        skip("helm is not installed; cargo xtask setup installs it if Go is there");
    }
    program
}

fn helm(program: &Path, command: &str, values: &[&str]) -> Outcome {
    let mut helm = Command::new(program);
    helm.arg(command);
    if command == "template" {
        helm.args(["ws", "--kube-version", "1.30"]);
    }
    run_command(helm.arg(Path::new(ROOT).join("deploy/helm/wirestorm")).args(values))
}

/// A rendered chart.
struct Chart(Vec<Value>);

impl Chart {
    fn render(program: &Path, values: &[&str]) -> Self {
        let outcome = helm(program, "template", values).expect(0);
        let documents = outcome.output.split("\n---\n").map(|text| text.trim_start_matches("---"));
        Self(documents.map(yaml).filter(|it| !it.is_null()).collect())
    }

    /// The object of a kind and a part of the chart, if there is one.
    fn find(&self, kind: &str, part: &str) -> Option<&Value> {
        let is_it = |it: &&Value| {
            it["kind"] == kind && it["metadata"]["labels"]["app.kubernetes.io/component"] == part
        };
        self.0.iter().find(is_it)
    }

    #[track_caller]
    fn get(&self, kind: &str, part: &str) -> &Value {
        self.find(kind, part).unwrap_or_else(|| panic!("there is no {kind} of {part}"))
    }

    /// The pods of all parts.
    fn pods(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().filter_map(|it| it.pointer("/spec/template/spec"))
    }
}

/// The items of a list.
fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// Returns what a pod gives its container. `index` is that of the pod in its Job. The files of
/// Secrets are those of `site`; those of ConfigMaps are written there.
fn container(chart: &Chart, pod: &Value, index: Option<usize>, site: &Site) -> Container {
    let container = &pod["containers"][0];
    let mut mounts = Vec::new();
    for mount in items(&container["volumeMounts"]) {
        let volume = items(&pod["volumes"]).find(|it| it["name"] == mount["name"]);
        let target = text(&mount["mountPath"]);
        let Some(volume) = volume else { continue };
        if let Some(map) = volume.pointer("/configMap/name") {
            let map = chart.0.iter().find(|it| it["metadata"]["name"] == *map).unwrap();
            for (name, content) in map["data"].as_object().unwrap() {
                let file = site.scratch.file(name);
                std::fs::write(&file, text(content)).unwrap();
                mounts.push((format!("{target}/{name}"), file));
            }
        }
        for item in items(&volume["secret"]["items"]) {
            let file = site.credentials(text(&item["key"]));
            let path = text(&item["path"]);
            match mount["subPathExpr"].as_str().zip(index) {
                None => mounts.push((format!("{target}/{path}"), file)),
                Some((pattern, index)) => {
                    let chosen = pattern.replace("$(JOB_COMPLETION_INDEX)", &index.to_string());
                    if chosen == path {
                        mounts.push((target.to_owned(), file));
                    }
                }
            }
        }
    }
    Container {
        arguments: strings(&container["args"]),
        capabilities: strings(&container["securityContext"]["capabilities"]["add"]),
        mounts,
    }
}

#[test]
fn each_index_of_the_job_is_an_agent_with_its_own_credentials() {
    let Some(helm) = require_helm() else { return };
    for (values, names) in [
        (&[][..], &["tx", "rx"][..]),
        (&WITH_TEST, &["tx", "rx"]),
        (&["--set", "agents.names={a,b,c},agents.hostNetwork=true"], &["a", "b", "c"]),
    ] {
        let chart = Chart::render(&helm, values);
        let job = &chart.get("Job", "agents")["spec"];
        assert_eq!(job["completionMode"], "Indexed");
        assert_eq!(
            (&job["completions"], &job["parallelism"]),
            (&names.len().into(), &names.len().into())
        );
        let pod = &job["template"]["spec"];
        let mount =
            items(&pod["containers"][0]["volumeMounts"]).find(|it| it["name"] == "credentials");
        assert_eq!(mount.unwrap()["subPathExpr"], "$(JOB_COMPLETION_INDEX).json");
        let volume = items(&pod["volumes"]).find(|it| it["name"] == "credentials").unwrap();
        let keys =
            items(&volume["secret"]["items"]).map(|it| (text(&it["path"]), text(&it["key"])));
        let found: Vec<_> = keys.map(|(path, key)| (path.to_owned(), key.to_owned())).collect();
        let expected = names.iter().enumerate();
        let expected: Vec<_> = expected
            .map(|(index, name)| (format!("{index}.json"), format!("{name}.json")))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn agents_are_spread_as_the_values_say() {
    let Some(helm) = require_helm() else { return };
    for (spread, key) in [
        ("required", Some("requiredDuringSchedulingIgnoredDuringExecution")),
        ("preferred", Some("preferredDuringSchedulingIgnoredDuringExecution")),
        ("none", None),
    ] {
        let chart = Chart::render(&helm, &["--set", &format!("agents.spread={spread}")]);
        let template = &chart.get("Job", "agents")["spec"]["template"];
        let affinity = &template["spec"]["affinity"]["podAntiAffinity"];
        let Some(key) = key else {
            assert!(affinity.is_null(), "{affinity}");
            continue;
        };
        let term = &affinity[key][0];
        let term = term.get("podAffinityTerm").unwrap_or(term);
        assert_eq!(term["topologyKey"], "kubernetes.io/hostname");
        let labels = template["metadata"]["labels"].as_object().unwrap();
        for (label, value) in term["labelSelector"]["matchLabels"].as_object().unwrap() {
            assert_eq!(labels.get(label), Some(value), "{label} does not select the agents");
        }
    }
}

#[test]
fn agents_have_the_capabilities_of_the_unit_and_the_others_none() {
    let Some(helm) = require_helm() else { return };
    // There is no limit of locked memory in a pod.
    let mut expected: BTreeSet<String> = capabilities_of_unit().into_iter().collect();
    expected.insert("IPC_LOCK".to_owned());
    for (values, is_more) in
        [(&WITH_TEST[..], false), (&["--set", "agents.otherNamespaces=true"], true)]
    {
        let chart = Chart::render(&helm, values);
        if is_more {
            expected.insert("SYS_ADMIN".to_owned());
        }
        assert!(chart.pods().count() >= 2);
        for pod in chart.pods() {
            assert_eq!(pod["automountServiceAccountToken"], false);
            assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
            for container in items(&pod["containers"]) {
                let name = text(&container["name"]);
                let context = &container["securityContext"];
                assert!(context.get("privileged").is_none(), "{name}");
                assert_eq!(context["allowPrivilegeEscalation"], false, "{name}");
                assert_eq!(context["readOnlyRootFilesystem"], true, "{name}");
                assert_eq!(strings(&context["capabilities"]["drop"]), ["ALL"], "{name}");
                let found = strings(&context["capabilities"]["add"]).into_iter().collect();
                let none = BTreeSet::new();
                assert_eq!(if name == "agent" { &expected } else { &none }, &found, "{name}");
                assert_eq!(pod["securityContext"]["runAsNonRoot"] == true, name != "agent");
                for kind in ["requests", "limits"] {
                    for resource in ["cpu", "memory"] {
                        assert!(container["resources"][kind].get(resource).is_some(), "{name}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_test_runs_once_and_another_one_is_another_job() {
    let Some(helm) = require_helm() else { return };
    let chart = Chart::render(&helm, &WITH_TEST);
    let job = chart.get("Job", "director");
    assert_eq!(job["spec"]["backoffLimit"], 0);
    assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "Never");
    let test = std::fs::read_to_string(EXAMPLE).unwrap();
    assert_eq!(chart.get("ConfigMap", "director")["data"]["test.yaml"], test);
    assert!(text(&job["metadata"]["name"]).ends_with("-1"), "no revision: {job}");
    // The template of a Job cannot change.
    let name = |values: &[&str]| {
        let chart = Chart::render(&helm, values);
        text(&chart.get("Job", "agents")["metadata"]["name"]).to_owned()
    };
    assert_eq!(name(&[]), name(&["--set", "director.test=x"]));
    assert_ne!(name(&[]), name(&["--set", "agents.hostNetwork=true"]));
}

#[test]
fn without_a_bus_or_a_test_there_is_none() {
    let Some(helm) = require_helm() else { return };
    let chart = Chart::render(&helm, &["--set", "bus.enabled=false"]);
    assert!(chart.find("StatefulSet", "bus").is_none() && chart.find("Service", "bus").is_none());
    assert!(chart.find("Job", "director").is_none(), "there is no test");
    assert!(chart.find("Job", "agents").is_some());
}

#[test]
fn wrong_values_are_refused() {
    let Some(program) = require_helm() else { return };
    helm(&program, "lint", &["--strict", "--kube-version", "1.30"]).expect(0);
    for (values, words) in [
        ("agents.name=tx", "name"),
        ("agents.names={a.b}", "names"),
        ("agents.names={a,a}", "names"),
        ("agents.names=null", "names"),
        ("agents.spread=maybe", "spread"),
        ("bus.directory=cluster", "directory"),
        ("wait=soon", "wait"),
    ] {
        helm(&program, "template", &["--set", values]).expect_error(1, &[words]);
    }
}

#[test]
fn commands_of_the_chart_run_a_test() {
    let Some(helm) = require_helm() else { return };
    let Some(site) = Site::new() else { return };
    let chart = Chart::render(&helm, &WITH_TEST);
    let of_job = |part: &str, index: Option<usize>| {
        let pod = &chart.get("Job", part)["spec"]["template"]["spec"];
        let container = container(&chart, pod, index, &site);
        container.assert_is_known();
        container
    };
    let bus = text(&chart.get("Service", "bus")["metadata"]["name"]);
    let pod = &chart.get("StatefulSet", "bus")["spec"]["template"]["spec"];
    let arguments = strings(&pod["containers"][0]["args"]);
    let directory = arguments.last().unwrap().strip_suffix("/nats-server.conf").unwrap().to_owned();
    let of = |arguments: Vec<String>| Container {
        arguments,
        mounts: vec![(directory.clone(), site.cluster())],
        ..Container::default()
    };
    let init = ["cluster", "init", "--dir", &directory, "--listen", "0.0.0.0:4222", "--host", bus];
    let init = init.into_iter().chain(["--agents", "tx,rx"]).map(str::to_owned).collect();
    site.init(&of(init), bus);

    // The server finds in its container what its configuration names.
    let mounts: BTreeSet<&str> =
        items(&pod["containers"][0]["volumeMounts"]).map(|it| text(&it["mountPath"])).collect();
    let configuration = std::fs::read_to_string(site.cluster().join("nats-server.conf")).unwrap();
    let outside = site.cluster().display().to_string();
    let files = configuration.split('"').filter_map(|it| it.strip_prefix(&outside));
    let files: BTreeSet<String> = files.map(|it| format!("{directory}{it}")).collect();
    assert!(files.len() >= 4, "{configuration}");
    for file in files.iter().filter(|it| !it.ends_with(".pid")) {
        assert!(mounts.contains(&**file), "{file} is not in {mounts:?}");
    }

    let agents = [of_job("agents", Some(0)), of_job("agents", Some(1))];
    site.run([&agents[0], &agents[1]], &of_job("director", None), &of(arguments));
}
