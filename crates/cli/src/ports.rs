//! `wirestorm ports`: lists the interfaces and the backend that `auto` chooses for each.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::json;
use wirestorm_control::inventory::{self, InterfaceFacts, NamespaceFacts};
use wirestorm_control::namespace::Namespace;

use crate::status;
use crate::wrap::wrapped;

const EXAMPLES: &str = "\
Examples:
  wirestorm ports
      the interfaces of this network namespace
  wirestorm ports eth1 netns/lab:veth0
      two interfaces, one in another namespace
  wirestorm ports --all
      those of every namespace that `ip netns` knows, too
  wirestorm ports --json | jq -r '.namespaces[].interfaces[].interface'
      their names, for a script

`wirestorm doctor INTERFACE` lists the problems of each backend and their fixes.";

/// List interfaces and the backend that `--backend auto` chooses
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PortsFlags {
    /// Interfaces to list: veth0 or netns/NAME:veth0
    #[arg(
        value_name = "INTERFACE",
        num_args = 0..=1024,
        conflicts_with_all = ["namespace", "all"]
    )]
    interfaces: Vec<String>,

    /// List this namespace: an `ip netns` name or a path
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    namespace: Option<String>,

    /// List this namespace and all named namespaces
    #[arg(long)]
    all: bool,

    /// Print JSON (wirestorm.ports/1)
    #[arg(long)]
    json: bool,
}

/// Lists the interfaces of this network namespace by name, one a line, as tcpreplay does.
///
/// # Errors
/// The directory that cannot be read, and the system's error.
pub(crate) fn names() -> Result<String, String> {
    const INTERFACES: &str = "/sys/class/net";
    let names = || -> io::Result<Vec<String>> {
        fs::read_dir(INTERFACES)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    };
    let mut names = names().map_err(|error| format!("cannot list {INTERFACES}: {error}"))?;
    names.sort();
    let mut text = String::from("Available network interfaces:\n");
    for name in names {
        text.push_str(&name);
        text.push('\n');
    }
    Ok(text)
}

/// Runs the command.
pub(crate) fn run(flags: &PortsFlags) -> ExitCode {
    if !flags.interfaces.is_empty() {
        let found = flags.interfaces.iter().map(|name| inventory::interface(name)).collect();
        return match found {
            Ok(found) => {
                print(&found, flags.json);
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("wirestorm: {error}");
                ExitCode::from(status::USAGE)
            }
        };
    }
    let namespaces = match &flags.namespace {
        Some(path) if path.starts_with('/') => vec![Namespace::Path(path.into())],
        Some(name) => vec![Namespace::Named(name.clone())],
        None if flags.all => Namespace::all(),
        None => vec![Namespace::Current],
    };
    let found: Vec<NamespaceFacts> = namespaces.iter().map(inventory::interfaces).collect();
    print(&found, flags.json);
    let errors = found.iter().filter_map(|it| it.error.as_deref());
    errors.clone().for_each(|error| eprintln!("wirestorm: {error}"));
    // Other processes can delete one of several namespaces meanwhile; that is not an error.
    if errors.count() == found.len() { ExitCode::from(status::USAGE) } else { ExitCode::SUCCESS }
}

fn print(found: &Vec<NamespaceFacts>, json: bool) {
    if json {
        let document = json!({ "schema": "wirestorm.ports/1", "namespaces": found });
        show(&format!("{document:#}\n"));
    } else {
        show(&Table(found).to_string());
    }
}

/// Writes to standard output. Ignores errors: the reader can close the pipe early, as `head` does.
pub(crate) fn show(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Writes a document as JSON to standard output, as [`show`] does.
///
/// # Errors
/// A message if the document does not serialise.
pub(crate) fn show_json(document: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(document);
    show(&format!("{}\n", text.map_err(|error| error.to_string())?));
    Ok(())
}

/// The table for `wirestorm ports` without `--json`.
struct Table<'a>(&'a [NamespaceFacts]);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let listed = self.0.iter().filter(|it| it.error.is_none());
        for (position, facts) in listed.enumerate() {
            if position > 0 {
                writeln!(f)?;
            }
            if let Some(name) = &facts.namespace {
                writeln!(f, "network namespace {name}; an interface is netns/{name}:INTERFACE")?;
            } else if self.0.len() > 1 {
                writeln!(f, "this network namespace")?;
            }
            writeln!(
                f,
                "{:<15}  {:<10}  {:<12}  {:>5}  {:>7}  {:>8}  AUTO",
                "INTERFACE", "STATE", "DRIVER", "MTU", "TX/RX", "SPEED"
            )?;
            for interface in &facts.interfaces {
                row(f, interface)?;
            }
        }
        Ok(())
    }
}

fn row(f: &mut Formatter<'_>, facts: &InterfaceFacts) -> fmt::Result {
    // For a virtual interface, the kind tells a user more than the driver's name.
    let made_of = match facts.kind.as_str() {
        "physical" if !facts.driver.is_empty() => &facts.driver,
        kind => kind,
    };
    writeln!(
        f,
        "{:<15}  {:<10}  {:<12.12}  {:>5}  {:>7}  {:>8}  {}",
        facts.name,
        facts.state,
        made_of,
        facts.mtu,
        format!("{}/{}", facts.transmit_queues, facts.receive_queues),
        facts.speed_bps.map_or_else(|| "-".to_owned(), speed),
        facts.auto.unwrap_or("none"),
    )?;
    writeln!(f, "{}", wrapped("    ", &facts.why))?;
    if facts.default_route {
        writeln!(f, "    the default route uses this interface; sending needs --force-interface")?;
    }
    Ok(())
}

/// Formats bits per second in Gb/s or Mb/s, as data sheets do.
fn speed(bits_per_second: u64) -> String {
    match bits_per_second {
        1_000_000_000.. => format!("{} Gb/s", bits_per_second as f64 / 1e9),
        _ => format!("{} Mb/s", bits_per_second / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrap::COLUMNS;

    fn facts() -> InterfaceFacts {
        InterfaceFacts {
            mac: None,
            interface: "enp1s0f0np0abcd".into(),
            name: "enp1s0f0np0abcd".into(),
            state: "no carrier",
            kind: "physical".into(),
            driver: "a-driver-with-a-long-name".into(),
            driver_version: String::new(),
            firmware: String::new(),
            bus: String::new(),
            mtu: 65_536,
            transmit_queues: 128,
            receive_queues: 128,
            speed_bps: Some(100_000_000_000),
            default_route: true,
            auto: Some("af_packet"),
            why: "not xdp: its peer has neither an XDP program nor GRO, which can be changed; \
                  and so on"
                .into(),
        }
    }

    #[test]
    fn table_is_at_most_80_columns_wide() {
        let found = [NamespaceFacts {
            namespace: Some("lab".into()),
            interfaces: vec![facts(), facts()],
            error: None,
        }];
        let text = Table(&found).to_string();
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|columns| columns <= COLUMNS), "{longest:?}\n{text}");
        assert!(text.contains("100 Gb/s"), "{text}");
        assert!(text.contains("--force-interface"), "{text}");
    }

    #[test]
    fn speeds_have_the_unit_of_a_data_sheet() {
        assert_eq!(speed(2_500_000_000), "2.5 Gb/s");
        assert_eq!(speed(10_000_000), "10 Mb/s");
    }
}
