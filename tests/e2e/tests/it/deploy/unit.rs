//! `wirestorm agent unit`.

use std::process::Command;

use wirestorm_e2e::{run_command, wirestorm};
use wirestorm_testkit::require::require_tool;

use super::{Container, EXAMPLE, Site, capabilities_of_unit};

/// The printed unit.
pub(super) struct Unit(String);

impl Unit {
    pub(super) fn read() -> Self {
        let outcome = run_command(Command::new(wirestorm()).args(["agent", "unit"]));
        Self(outcome.expect(0).output)
    }

    fn values(&self, key: &str) -> Vec<&str> {
        let value = |line: &'_ str| line.split_once('=').filter(|(name, _)| *name == key).is_some();
        let lines = self.0.lines().filter(|line| value(line));
        lines.filter_map(|line| Some(line.split_once('=')?.1)).collect()
    }

    /// Returns the words of all values of a key.
    pub(super) fn words(&self, key: &str) -> Vec<String> {
        let values = self.values(key).into_iter();
        values.flat_map(str::split_whitespace).map(str::to_owned).collect()
    }
}

/// What the unit starts.
fn container(unit: &Unit) -> Container {
    let words = unit.words("ExecStart");
    assert_eq!(words.first().map(String::as_str), Some("/usr/local/bin/wirestorm"));
    let arguments = words.into_iter().skip(1).filter(|it| it != "$WIRESTORM_FLAGS").collect();
    Container { arguments, capabilities: capabilities_of_unit(), mounts: Vec::new() }
}

#[test]
fn systemd_accepts_the_unit() {
    if !require_tool("systemd-analyze") {
        return;
    }
    let unit = Unit::read();
    let scratch = wirestorm_testkit::Scratch::new().unwrap();
    let file = scratch.file("wirestorm-agent.service");
    let program = wirestorm().display().to_string();
    std::fs::write(&file, unit.0.replace("/usr/local/bin/wirestorm", &program)).unwrap();
    let outcome =
        run_command(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file))
            .expect(0);
    let about_it = outcome.messages.lines().filter(|line| line.contains("wirestorm-agent"));
    assert_eq!(about_it.collect::<Vec<_>>(), [""; 0], "{outcome}");
}

#[test]
fn agents_work_with_the_rights_of_the_unit() {
    let Some(site) = Site::new() else { return };
    let unit = Unit::read();
    let mut agents = [container(&unit), container(&unit)];
    agents[0].assert_is_known();
    let director = format!("test {EXAMPLE} --wait 60s --port left=test0 --port right=test0");
    let directory = site.cluster().display().to_string();
    let of = |text: &str| -> Container {
        let arguments = text.split(' ').map(str::to_owned).collect();
        Container { arguments, ..Container::default() }
    };
    let init = of("cluster init --listen 0.0.0.0:4222 --host bus --agents tx,rx --dir");
    let mut init = init;
    init.arguments.push(directory.clone());
    site.init(&init, "bus");
    for (agent, name) in agents.iter_mut().zip(["tx.json", "rx.json"]) {
        let credentials = "${CREDENTIALS_DIRECTORY}/agent.json".to_owned();
        agent.mounts.push((credentials, site.credentials(name)));
        // What systemd does with Restart=on-failure.
        agent.arguments.extend(["--wait".to_owned(), "60s".to_owned()]);
    }
    let mut director = of(&director);
    let credentials = site.credentials("director.json").display().to_string();
    director.arguments.extend(["--bus-credentials".to_owned(), credentials]);
    let mut bus = of("-c");
    bus.arguments.push(format!("{directory}/nats-server.conf"));
    site.run([&agents[0], &agents[1]], &director, &bus);
}
