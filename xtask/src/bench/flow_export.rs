//! Benchmarks of flow export: decoding, and sending by emulated exporters.

use std::net::UdpSocket;
use std::process::Command;

use serde_json::Value;
use wirestorm_testkit::Scratch;

use super::Settings;
use super::contender::{number, output};
use super::figures::{Figures, Row, Target};
use crate::{Fallible, workspace};

const UNIT: &str = "M records/s";
/// Goal for one core, in millions of records per second.
const TARGET: Target = Target::AtLeast(1.0);

/// Decodes records of NetFlow v9 and IPFIX on one core, also with a table of 100,000 keys.
pub(super) fn decode(settings: &Settings) -> Fallible<Vec<Row>> {
    const CASES: [(&str, [&str; 3]); 4] = [
        ("decode v9", ["9", "50000000", "decode"]),
        ("decode ipfix", ["10", "50000000", "decode"]),
        ("sum v9", ["9", "5000000", "table"]),
        ("sum ipfix", ["10", "5000000", "table"]),
    ];
    let example = workspace::build_example("wirestorm-flowexport", "decode")?;
    let mut rows = CASES.map(|(name, _)| row(name));
    for _ in 0..settings.rounds {
        for (row, (_, arguments)) in rows.iter_mut().zip(CASES) {
            let printed = output(Command::new(&example).args(arguments))?;
            let result: Value = serde_json::from_str(&printed)?;
            row.wirestorm.push(number(&result, "/records_per_second")? / 1e6);
        }
    }
    rows[0].notes.push("64 datagrams again and again".into());
    rows[2].notes.push("adds each record to a table of 100,000 keys".into());
    Ok(rows.into())
}

/// Sends as many records as `bench collector` can to a socket on loopback that nobody reads.
pub(super) fn export(settings: &Settings) -> Fallible<Vec<Row>> {
    const CASES: [(&str, &str); 3] = [
        ("export v5", "--protocol=v5"),
        ("export v9", "--protocol=v9"),
        ("export ipfix", "--protocol=ipfix"),
    ];
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let target = format!("--target={}", socket.local_addr()?);
    let scratch = Scratch::new()?;
    let mut rows = CASES.map(|(name, _)| row(name));
    for _ in 0..settings.rounds {
        for (row, (_, protocol)) in rows.iter_mut().zip(CASES) {
            let mut command = Command::new(&settings.wirestorm);
            command.args(["bench", "collector", "--json", "-", "--quiet", &target, protocol]);
            command.args(["--records-per-second", "100M", "--exporters", "100", "--settle", "0"]);
            command.arg(format!("--trial={}s", settings.seconds));
            command.arg("--runs-dir").arg(scratch.file("history"));
            let result: Value = serde_json::from_str(&output(&mut command)?)?;
            row.wirestorm.push(number(&result, "/findings/points/0/sent_per_s")? / 1e6);
        }
    }
    rows[0]
        .notes
        .push("100 exporters on one thread; the kernel's work on loopback included".into());
    Ok(rows.into())
}

fn row(name: &'static str) -> Row {
    let (wirestorm, notes) = (Figures::default(), Vec::new());
    Row { name, unit: UNIT, wirestorm, peer: None, target: TARGET, notes }
}
