//! `wirestorm line-rate`: the maximum frame rate of a link speed.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use wirestorm_control::base::rate::{Layer, Rate};

use super::{read_speed, usage};
use crate::number::grouped;
use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm line-rate
  wirestorm line-rate --speed 10G --frame-size 64
  wirestorm line-rate --speed 400G --frame-size 64,1518,9018";

/// Frame sizes of RFC 2544 section 9.1, and of RFC 5180 section 5.1.1 for larger frames.
const SIZES: [u64; 12] = [64, 128, 256, 512, 1024, 1280, 1518, 1522, 2048, 4096, 8192, 9216];
const SPEEDS: [&str; 4] = ["1G", "10G", "25G", "100G"];

/// Prints the maximum frame rate by frame size and link speed (RFC 5180 appendix A).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LineRateFlags {
    /// Link speeds in bit/s, comma-separated
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    speed: Vec<String>,

    /// Frame sizes in bytes with FCS, comma-separated
    #[arg(long, value_name = "BYTES", value_delimiter = ',',
        value_parser = clap::value_parser!(u64).range(18..=65_535))]
    frame_size: Vec<u64>,
}

/// Runs the command.
pub(crate) fn run(flags: &LineRateFlags) -> ExitCode {
    let names: Vec<String> = match flags.speed.as_slice() {
        [] => SPEEDS.iter().map(|&name| name.to_owned()).collect(),
        names => names.to_vec(),
    };
    let speeds: Result<Vec<Rate>, String> =
        names.iter().map(|name| read_speed("--speed", name)).collect();
    let speeds = match speeds {
        Ok(speeds) => speeds,
        Err(message) => return usage(message),
    };
    let sizes = match flags.frame_size.as_slice() {
        [] => &SIZES[..],
        sizes => sizes,
    };
    match print(&names, &speeds, sizes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wirestorm: cannot write the table: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}

fn print(names: &[String], speeds: &[Rate], sizes: &[u64]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    write!(output, "{:>14}", "frame with FCS")?;
    for name in names {
        write!(output, " {:>15}", format!("{name}b/s"))?;
    }
    writeln!(output)?;
    for &size in sizes {
        write!(output, "{size:>14}")?;
        for speed in speeds {
            write!(output, " {:>15}", grouped(frames_per_second(*speed, size)))?;
        }
        writeln!(output)?;
    }
    Ok(())
}

/// Returns the whole frames per second, with preamble and inter-frame gap on the wire.
fn frames_per_second(speed: Rate, frame_size: u64) -> u64 {
    let fcs = Layer::FrameWithFcs.overhead();
    let bits = (frame_size - fcs + Layer::Wire.overhead()) * 8;
    speed.scaled(1, bits).map_or(0.0, Rate::per_second) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_rates_match_rfc_5180() {
        let of = |speed, size| frames_per_second(Rate::parse_per_second(speed, 1).unwrap(), size);
        // RFC 5180 appendix A.1.
        assert_eq!(of("1G", 64), 1_488_095);
        assert_eq!(of("10G", 64), 14_880_952);
        assert_eq!(of("10G", 1518), 812_743);
        assert_eq!(of("100M", 1280), 9_615);
        assert_eq!(of("10G", 8192), 152_216);
    }
}
