//! The command `sample`: captures of synthetic traffic.

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::ValueExt;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{FixedFrames, FixedOptions, Traffic, TrafficOptions, write_file};

use crate::Fallible;

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// Default number of packets of one size.
const FIXED_PACKETS: u64 = 100_000;

/// Runs the command `sample`.
pub(crate) fn run(mut arguments: lexopt::Parser) -> Fallible<ExitCode> {
    let (mut path, mut size, mut packets) = (None::<PathBuf>, "mixed".to_owned(), None);
    let (mut flows, mut seconds, mut seed) = (2_000_u32, 10.0_f64, 1_u64);
    let mut resolution = Resolution::Microseconds;
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("flows") => flows = arguments.value()?.parse()?,
            lexopt::Arg::Long("seconds") => seconds = arguments.value()?.parse()?,
            lexopt::Arg::Long("seed") => seed = arguments.value()?.parse()?,
            lexopt::Arg::Long("size") => size = arguments.value()?.parse()?,
            lexopt::Arg::Long("packets") => packets = Some(arguments.value()?.parse()?),
            lexopt::Arg::Long("nanoseconds") => resolution = Resolution::Nanoseconds,
            lexopt::Arg::Long("help") => return Ok(crate::help()),
            lexopt::Arg::Value(value) if path.is_none() => path = Some(value.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    let path = path.ok_or("sample: missing OUT.pcap")?;
    if flows == 0 || !seconds.is_finite() || seconds <= 0.0 {
        return Err("sample: --flows and --seconds must be greater than zero".into());
    }
    let duration = (seconds * NANOSECONDS_PER_SECOND) as u64;
    let frame_length = match size.as_str() {
        "mixed" => None,
        "small" => Some(60),
        "large" => Some(1_514),
        _ => return Err(format!("--size {size}: expected small, mixed or large").into()),
    };
    let written = match frame_length {
        None => {
            let conversations = u64::from(flows);
            let options =
                TrafficOptions { conversations, duration, packets, seed, ..Default::default() };
            write_file(Traffic::new(options), resolution, &path)
        }
        Some(frame_length) => {
            let packets = packets.unwrap_or(FIXED_PACKETS);
            let gap = duration / packets.max(1);
            let options = FixedOptions { frame_length, flows, packets, gap, ..Default::default() };
            write_file(FixedFrames::new(options), resolution, &path)
        }
    };
    let written = written.map_err(|error| format!("{}: {error}", path.display()))?;
    println!(
        "{}: {} packets, {} bytes, {:.3} s",
        path.display(),
        written.packets,
        written.bytes,
        written.span as f64 / NANOSECONDS_PER_SECOND
    );
    Ok(ExitCode::SUCCESS)
}
