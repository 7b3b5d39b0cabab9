//! `wirestorm doctor`: checks the backends and prints the command that fixes each problem.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use wirestorm_control::backend::Backend;
use wirestorm_control::inventory::{self, Finding, Grade, InterfaceDiagnosis, OpenTest};
use wirestorm_control::namespace::Namespace;

use crate::ports::show;
use crate::status;
use crate::wrap::wrapped;

const EXAMPLES: &str = "\
Examples:
  wirestorm doctor
      this machine, and every interface of this network namespace
  wirestorm doctor --open eth1 netns/lab:veth0
      two interfaces, one in another namespace; each backend is tried
  wirestorm doctor eth1 --backend xdp
      whether the in-kernel sender can send on eth1: the exit status says it

Exit status: 0 the selected backend (auto) can send on all interfaces named;
2 wrong input or usage; 3 it cannot. Without names, one interface suffices.";

/// Check which backends can send on an interface, and print fixes
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorFlags {
    /// Interfaces to check: eth1 or netns/NAME:veth0
    #[arg(value_name = "INTERFACE", num_args = 0..=1024)]
    interfaces: Vec<String>,

    /// Backend that decides the exit status
    #[arg(long, value_parser = crate::backend::sending(), default_value = "auto")]
    backend: Backend,

    /// Open a port with each backend; sends nothing, may reset queues
    #[arg(long = "open")]
    trial: bool,

    /// Print JSON (wirestorm.doctor/1)
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(flags: &DoctorFlags) -> ExitCode {
    let names = if flags.interfaces.is_empty() {
        let here = inventory::interfaces(&Namespace::Current);
        if let Some(error) = here.error {
            eprintln!("wirestorm: {error}");
            return ExitCode::from(status::FAILED);
        }
        here.interfaces.into_iter().map(|facts| facts.interface).collect()
    } else {
        flags.interfaces.clone()
    };
    let trial = if flags.trial { OpenTest::Open } else { OpenTest::None };
    let mut examined = Vec::new();
    for name in &names {
        match inventory::examine(name, trial) {
            Ok(examination) => examined.push(examination),
            Err(error) => {
                eprintln!("wirestorm: {error}");
                return ExitCode::from(status::USAGE);
            }
        }
    }
    let mut machine = inventory::machine();
    machine.extend(crate::unit::check());
    let backend = flags.backend.name();
    let works = |it: &InterfaceDiagnosis| !flags.backend.needs_interface() || it.can_send(backend);
    let can_send = if flags.interfaces.is_empty() {
        examined.iter().any(works)
    } else {
        examined.iter().all(works)
    };
    if flags.json {
        let document = json!({
            "schema": "wirestorm.doctor/1",
            "machine": machine,
            "interfaces": examined,
            "backend": backend,
            "can_send": can_send,
        });
        show(&format!("{document:#}\n"));
    } else {
        let verdict = match (can_send, flags.interfaces.is_empty()) {
            (true, true) => format!("{backend} can send on at least one interface"),
            (true, false) => format!("{backend} can send"),
            (false, true) => format!("{backend} can send on no interface"),
            (false, false) => {
                let cannot = examined.iter().filter(|it| !works(it));
                let names: Vec<&str> = cannot.map(|it| it.facts.interface.as_str()).collect();
                format!("{backend} cannot send on {}", names.join(", "))
            }
        };
        let report = Report { machine: &machine, examined: &examined };
        show(&format!("{report}\n{}\n", wrapped("", &verdict)));
    }
    if can_send { ExitCode::SUCCESS } else { ExitCode::from(status::SHORT) }
}

/// The table for `wirestorm doctor` without `--json`.
struct Report<'a> {
    machine: &'a [Finding],
    examined: &'a [InterfaceDiagnosis],
}

impl Display for Report<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine")?;
        self.machine.iter().try_for_each(|finding| line(f, finding))?;
        for InterfaceDiagnosis { facts, backends, remarks } in self.examined {
            let queues = match facts.transmit_queues {
                1 => "1 transmit queue".to_owned(),
                count => format!("{count} transmit queues"),
            };
            let state = facts.state;
            writeln!(
                f,
                "\n{}: {}, {state}, MTU {}, {queues}",
                facts.interface, facts.kind, facts.mtu
            )?;
            let choice = match facts.auto {
                Some(backend) => Finding {
                    subject: "auto",
                    grade: Grade::Good,
                    found: format!("{backend}: {}", facts.why),
                    repair: None,
                },
                None => Finding {
                    subject: "auto",
                    grade: Grade::Missing,
                    found: facts.why.clone(),
                    repair: None,
                },
            };
            line(f, &choice)?;
            backends.iter().chain(remarks).try_for_each(|finding| line(f, finding))?;
        }
        Ok(())
    }
}

fn line(f: &mut Formatter<'_>, finding: &Finding) -> fmt::Result {
    let mark = match finding.grade {
        Grade::Good => "ok",
        Grade::Remark => "note",
        Grade::Missing => "NO",
    };
    let head = format!("  {:<13}  {mark:<4}  ", finding.subject);
    writeln!(f, "{}", wrapped(&head, &finding.found))?;
    if let Some(command) = &finding.repair {
        // Not wrapped, so that a user can copy the command.
        writeln!(f, "{:23}repair: {command}", "")?;
    }
    Ok(())
}
