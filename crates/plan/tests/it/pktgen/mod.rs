//! The kernel's packet generator: its files, scripts and frames.

mod files;
mod frames;
mod properties;
mod script;
mod transmission;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use wirestorm_plan::pktgen::{Effect, Errno, Link, LoweredDevice, Pktgen, PktgenError, Problem};
use wirestorm_wire::packet::MacAddress;

/// Returns the state of a machine with two CPUs. `eth0` and `eth1` are up, `eth2` is down.
fn machine() -> Pktgen {
    let link = |last: u8, is_up| Link {
        mac: MacAddress([2, 0, 0, 0, 0, last]),
        is_up,
        ipv4: Some(Ipv4Addr::new(192, 0, 2, last)),
        ipv6: Some(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last.into())),
    };
    let links = [("eth0", 10, true), ("eth1", 11, true), ("eth2", 12, false)];
    let links = links.map(|(name, last, is_up)| (name.to_owned(), link(last, is_up)));
    Pktgen::new(2, BTreeMap::from(links))
}

/// Returns a machine with the device `eth0` after these commands.
fn device(commands: &[&str]) -> Pktgen {
    let mut pktgen = machine();
    let effect = pktgen.write("kpktgend_0", "add_device eth0\n");
    assert_eq!(effect, Ok(Effect::Added("eth0".to_owned())));
    for command in commands {
        set(&mut pktgen, command);
    }
    pktgen
}

#[track_caller]
fn set(pktgen: &mut Pktgen, command: &str) {
    let outcome = pktgen.write("eth0", &format!("{command}\n"));
    assert_eq!(outcome, Ok(Effect::Set), "{command}");
}

/// Lowers the device with these commands.
#[track_caller]
fn lowered(commands: &[&str]) -> LoweredDevice {
    let mut devices = device(commands).lower().expect("settings that can be followed");
    assert_eq!(devices.len(), 1);
    devices.remove(0)
}

/// Returns the text after `Result: ` in a file.
fn result(pktgen: &Pktgen, file: &str) -> String {
    let text = pktgen.show(file).expect("a file");
    let (_, result) = text.split_once("Result: ").expect("a result");
    result.strip_suffix('\n').expect("a line").to_owned()
}

#[track_caller]
fn refused(pktgen: &mut Pktgen, file: &str, text: &str) -> (Problem, Option<Errno>) {
    let PktgenError { problem, .. } = pktgen.write(file, text).expect_err(text);
    let errno = problem.errno();
    (problem, errno)
}
