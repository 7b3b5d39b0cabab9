//! Units of systemd: `serve unit` and `agent unit` print them, `wirestorm doctor` checks the
//! installed ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wirestorm_control::inventory::{Finding, Grade};

/// A unit of a service.
#[derive(Debug)]
pub(crate) struct Unit {
    /// Name of its file.
    name: &'static str,
    text: &'static str,
    /// What `wirestorm doctor` calls it.
    subject: &'static str,
    /// Capabilities that it may need beyond [`NEEDED`].
    optional: &'static [&'static str],
    /// Command that installs it.
    install: &'static str,
}

/// The unit of `wirestorm serve`. It may use `netns/NAME:INTERFACE`, and port 443 for `--otg`.
pub(crate) const SERVER: Unit = Unit {
    name: "wirestorm.service",
    text: concat!(include_str!("wirestorm.service"), "\n", include_str!("rights.conf")),
    subject: "service",
    optional: &["CAP_SYS_ADMIN", "CAP_NET_BIND_SERVICE"],
    install: "wirestorm serve unit > /etc/systemd/system/wirestorm.service && \
              systemctl daemon-reload",
};

/// The unit of `wirestorm agent`. It may use `netns/NAME:INTERFACE`, and port 862 for its reflector.
pub(crate) const AGENT: Unit = Unit {
    name: "wirestorm-agent.service",
    text: concat!(include_str!("wirestorm-agent.service"), "\n", include_str!("rights.conf")),
    subject: "agent",
    optional: &["CAP_SYS_ADMIN", "CAP_NET_BIND_SERVICE"],
    install: "wirestorm agent unit > /etc/systemd/system/wirestorm-agent.service && \
              systemctl daemon-reload",
};

/// Directories of units, the most significant first (systemd.unit(5)).
const DIRECTORIES: [&str; 4] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "lib/systemd/system",
];

/// Capabilities that the backends need on interfaces of the service's own network namespace.
const NEEDED: [&str; 4] = ["CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON"];

/// Checks the units of this machine; none without a unit.
pub(crate) fn check() -> Vec<Finding> {
    [SERVER, AGENT].iter().filter_map(|unit| unit.check_in(Path::new("/"))).collect()
}

impl Unit {
    /// Prints the unit.
    pub(crate) fn print(&self) -> ExitCode {
        print!("{}", self.text);
        ExitCode::SUCCESS
    }

    fn check_in(&self, root: &Path) -> Option<Finding> {
        let places = DIRECTORIES.iter().map(|it| root.join(it).join(self.name));
        let unit = places.into_iter().find(|it| it.exists())?;
        let shown = unit.display();
        let settings = match Settings::read(root, &unit, self.name) {
            Ok(settings) => settings,
            Err(error) => return Some(self.finding(Grade::Missing, format!("{shown}: {error}"))),
        };
        let problems = settings.problems(root);
        if !problems.is_empty() {
            let found = format!("{shown}: {}", problems.join("; "));
            return Some(self.finding(Grade::Missing, found));
        }
        let excess = settings.excess(self.optional);
        if !excess.is_empty() {
            let found = format!("{shown}: grants more than it needs: {}", excess.join(", "));
            return Some(self.finding(Grade::Remark, found));
        }
        Some(self.finding(Grade::Good, format!("{shown}: grants what every backend needs")))
    }

    fn finding(&self, grade: Grade, found: String) -> Finding {
        let repair = (grade != Grade::Good).then(|| self.install.to_owned());
        Finding { subject: self.subject, grade, found, repair }
    }
}

/// Settings of an installed unit that decide whether the backends work.
#[derive(Debug, Default)]
struct Settings {
    user: Option<String>,
    is_dynamic: bool,
    /// `None` without the setting: all capabilities.
    bounding: Option<Vec<String>>,
    ambient: Vec<String>,
    families: Option<Vec<String>>,
    locked_memory: Option<String>,
    program: Option<String>,
}

impl Settings {
    /// Reads a unit, and the files in the directories `NAME.d`.
    fn read(root: &Path, unit: &Path, name: &str) -> std::io::Result<Self> {
        let mut settings = Self::default();
        settings.add(&fs::read_to_string(unit)?);
        let mut more = Vec::new();
        for directory in DIRECTORIES {
            let Ok(entries) = fs::read_dir(root.join(directory).join(format!("{name}.d"))) else {
                continue;
            };
            let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
            more.extend(paths.filter(|path| path.extension().is_some_and(|it| it == "conf")));
        }
        more.sort_by_key(|path: &PathBuf| path.file_name().map(ToOwned::to_owned));
        for path in more {
            settings.add(&fs::read_to_string(path)?);
        }
        Ok(settings)
    }

    fn add(&mut self, text: &str) {
        let text = text.replace("\\\n", " ");
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim(), value.trim());
            match key {
                "User" => self.user = Some(value.to_owned()).filter(|user| !user.is_empty()),
                "DynamicUser" => self.is_dynamic = is_true(value),
                "CapabilityBoundingSet" => {
                    let all = self.bounding.get_or_insert_default();
                    add_words(all, value);
                }
                "AmbientCapabilities" => add_words(&mut self.ambient, value),
                "RestrictAddressFamilies" => {
                    let all = self.families.get_or_insert_default();
                    add_words(all, value);
                }
                "LimitMEMLOCK" => self.locked_memory = Some(value.to_owned()),
                "ExecStart" => {
                    let program = value.trim_start_matches(['-', '@', ':', '+', '!']);
                    self.program = program.split_whitespace().next().map(str::to_owned);
                }
                _ => {}
            }
        }
    }

    /// Returns whether the service runs as root, with all capabilities of the bounding set.
    fn is_root(&self) -> bool {
        !self.is_dynamic && self.user.as_deref().is_none_or(|user| user == "root" || user == "0")
    }

    fn grants(&self, capability: &str) -> bool {
        let has = |list: &[String]| list.iter().any(|it| it == capability);
        let bounded = self.bounding.as_deref().is_none_or(has);
        bounded && (self.is_root() || has(&self.ambient))
    }

    /// Returns why backends do not work.
    fn problems(&self, root: &Path) -> Vec<String> {
        let mut problems = Vec::new();
        match &self.program {
            None => problems.push("has no ExecStart".to_owned()),
            Some(program) => {
                let path = root.join(program.trim_start_matches('/'));
                if program.starts_with('/') && !path.exists() {
                    problems.push(format!("starts {program}, which does not exist"));
                }
            }
        }
        let lacking: Vec<&str> = NEEDED.into_iter().filter(|it| !self.grants(it)).collect();
        if !lacking.is_empty() {
            problems.push(format!("lacks {}", lacking.join(", ")));
        }
        if let Some(families) = &self.families {
            let is_open = |family: &str| families.iter().any(|it| it == family);
            for family in ["AF_PACKET", "AF_XDP", "AF_NETLINK"] {
                if !is_open(family) {
                    problems.push(format!("RestrictAddressFamilies= lacks {family}"));
                }
            }
        }
        if self.locked_memory.as_deref() != Some("infinity") {
            problems.push("LimitMEMLOCK= is not infinity: too little for af_xdp".to_owned());
        }
        problems
    }

    /// Returns what the service has and does not need.
    fn excess(&self, optional: &[&str]) -> Vec<&str> {
        if self.is_root() && self.bounding.is_none() {
            return vec!["all capabilities"];
        }
        let granted = if self.is_root() { self.bounding.as_deref() } else { None };
        let known = |it: &&str| !NEEDED.contains(it) && !optional.contains(it);
        granted.unwrap_or(&self.ambient).iter().map(String::as_str).filter(known).collect()
    }
}

/// Adds the words of a list; an empty value clears it (systemd.exec(5)).
fn add_words(list: &mut Vec<String>, value: &str) {
    if value.is_empty() {
        list.clear();
    }
    list.extend(value.split_whitespace().map(str::to_owned));
}

fn is_true(value: &str) -> bool {
    ["1", "yes", "true", "on"].contains(&value.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A machine with files; removed at the end.
    struct Machine(PathBuf);

    impl Machine {
        fn with(files: &[(&str, &str)]) -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("wirestorm-unit-{}-{number}", std::process::id());
            let root = std::env::temp_dir().join(name);
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }

        fn check(&self) -> Option<(Grade, String)> {
            SERVER.check_in(&self.0).map(|finding| (finding.grade, finding.found))
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const UNIT: &str = SERVER.text;
    const PLACE: &str = "etc/systemd/system/wirestorm.service";
    const PROGRAM: (&str, &str) = ("usr/local/bin/wirestorm", "");

    #[test]
    fn a_machine_without_the_unit_has_no_finding() {
        assert_eq!(Machine::with(&[PROGRAM]).check(), None);
    }

    #[test]
    fn the_printed_unit_grants_what_is_needed_and_no_more() {
        let (grade, found) = Machine::with(&[PROGRAM, (PLACE, UNIT)]).check().unwrap();
        assert_eq!(grade, Grade::Good, "{found}");
    }

    #[test]
    fn the_unit_of_the_agent_is_checked_too() {
        let place = "etc/systemd/system/wirestorm-agent.service";
        let check = |text: &str| {
            let machine = Machine::with(&[PROGRAM, (place, text)]);
            assert_eq!(machine.check(), None, "it is not the unit of the server");
            AGENT.check_in(&machine.0).unwrap()
        };
        let finding = check(AGENT.text);
        assert_eq!((finding.grade, finding.subject), (Grade::Good, "agent"), "{}", finding.found);
        let finding = check(&AGENT.text.replace("LimitMEMLOCK=infinity", ""));
        assert_eq!(finding.grade, Grade::Missing);
        assert!(finding.repair.unwrap().starts_with("wirestorm agent unit"));
    }

    #[test]
    fn what_a_unit_lacks_is_named() {
        let without = UNIT.replace(" CAP_PERFMON\nCapabilityBounding", "\nCapabilityBounding");
        let without = without.replace(" AF_XDP", "").replace("LimitMEMLOCK=infinity", "");
        let (grade, found) = Machine::with(&[(PLACE, &without)]).check().unwrap();
        assert_eq!(grade, Grade::Missing);
        for part in [
            "starts /usr/local/bin/wirestorm, which does not exist",
            "lacks CAP_PERFMON",
            "RestrictAddressFamilies= lacks AF_XDP",
            "LimitMEMLOCK= is not infinity",
        ] {
            assert!(found.contains(part), "{part:?} is not in {found:?}");
        }
    }

    #[test]
    fn a_file_beside_the_unit_changes_it() {
        let more = "[Service]\nAmbientCapabilities=\nAmbientCapabilities=CAP_NET_RAW\n";
        let beside = "etc/systemd/system/wirestorm.service.d/more.conf";
        let (_, found) = Machine::with(&[PROGRAM, (PLACE, UNIT), (beside, more)]).check().unwrap();
        assert!(found.contains("lacks CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON"), "{found}");
    }

    #[test]
    fn more_than_needed_is_a_remark() {
        let root = "[Service]\nExecStart=/usr/local/bin/wirestorm serve\nLimitMEMLOCK=infinity\n";
        let (grade, found) = Machine::with(&[PROGRAM, (PLACE, root)]).check().unwrap();
        assert_eq!(grade, Grade::Remark);
        assert!(found.contains("all capabilities"), "{found}");
        let more = UNIT.replace("CAP_PERFMON\n", "CAP_PERFMON CAP_SYS_PTRACE\n");
        let (grade, found) = Machine::with(&[PROGRAM, (PLACE, &more)]).check().unwrap();
        assert_eq!(grade, Grade::Remark);
        assert!(found.ends_with("CAP_SYS_PTRACE"), "{found}");
        let other = UNIT.replace("CAP_PERFMON\n", "CAP_PERFMON CAP_SYS_ADMIN\n");
        assert_eq!(Machine::with(&[PROGRAM, (PLACE, &other)]).check().unwrap().0, Grade::Good);
    }
}
