//! `deploy/compose.yaml`. Docker itself is not used: the tests run its commands in namespaces.

use std::path::Path;

use serde_json::Value;

use super::{Container, ROOT, Site, capabilities_of_unit, strings, yaml};

struct Compose {
    file: Value,
}

impl Compose {
    fn read() -> Self {
        let text = std::fs::read_to_string(Path::new(ROOT).join("deploy/compose.yaml")).unwrap();
        Self { file: yaml(&text) }
    }

    fn service(&self, name: &str) -> &Value {
        let service = &self.file["services"][name];
        assert!(service.is_object(), "there is no service {name}");
        service
    }

    /// Returns what a service gives its container. `site` has the folder `deploy/cluster`.
    fn container(&self, name: &str, site: Option<&Site>) -> Container {
        let service = self.service(name);
        let mut mounts = Vec::new();
        let outside = |path: &str| match (path.strip_prefix("./").unwrap_or(path), site) {
            (path, Some(site)) if path.starts_with("cluster") => site.scratch.file(path),
            (path, _) => Path::new(ROOT).join("deploy").join(path),
        };
        for secret in strings(&service["secrets"]) {
            let file = self.file["secrets"][&secret]["file"].as_str();
            let file = file.unwrap_or_else(|| panic!("there is no secret {secret}"));
            mounts.push((format!("/run/secrets/{secret}"), outside(file)));
        }
        for volume in strings(&service["volumes"]) {
            let mut parts = volume.split(':');
            let (Some(source), Some(target)) = (parts.next(), parts.next()) else {
                panic!("{name}: volume {volume}");
            };
            if source.starts_with('.') {
                mounts.push((target.to_owned(), outside(source)));
            } else {
                assert!(self.file["volumes"].get(source).is_some(), "{name}: volume {volume}");
            }
        }
        Container {
            arguments: strings(&service["command"]),
            capabilities: strings(&service["cap_add"]),
            mounts,
        }
    }
}

#[test]
fn services_have_their_own_credentials_and_no_more_rights_than_the_unit() {
    let compose = Compose::read();
    let networks = |service: &str| match &compose.service(service)["networks"] {
        Value::Object(networks) => networks.keys().cloned().collect(),
        list => strings(list),
    };
    for agent in ["tx", "rx"] {
        let mut capabilities = compose.container(agent, None).capabilities;
        capabilities.sort();
        assert_eq!(capabilities, capabilities_of_unit(), "{agent}");
        assert_eq!(strings(&compose.service(agent)["secrets"]), [agent]);
        assert_eq!(networks(agent), ["management", "test"]);
        assert_eq!(compose.service(agent)["ulimits"]["memlock"], -1);
    }
    assert_eq!(compose.container("director", None).capabilities, [""; 0]);
    assert_eq!(networks("director"), ["management"]);
    assert_eq!(networks("bus"), ["management"]);
    for (name, service) in compose.file["services"].as_object().unwrap() {
        assert!(service.get("privileged").is_none(), "{name}");
        if name != "init" {
            assert_eq!(strings(&service["cap_drop"]), ["ALL"], "{name}");
            assert_eq!(strings(&service["security_opt"]), ["no-new-privileges:true"], "{name}");
        }
        for network in networks(name) {
            assert!(compose.file["networks"].get(&network).is_some(), "{name}: {network}");
        }
    }
}

#[test]
fn commands_of_the_compose_file_run_a_test() {
    let Some(site) = Site::new() else { return };
    let compose = Compose::read();
    for name in ["init", "tx", "rx", "director"] {
        compose.container(name, Some(&site)).assert_is_known();
    }
    let container = |name: &str| compose.container(name, Some(&site));
    // The name of a service is that of its container.
    assert!(compose.file["services"].get("bus").is_some());
    site.init(&container("init"), "bus");
    site.run([&container("tx"), &container("rx")], &container("director"), &container("bus"));
}
