//! `wirestorm capture`: captures frames from an interface to a file or a pipe.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget};
use wirestorm_api::client::Client;
use wirestorm_control::base::time::Duration;
use wirestorm_control::capture::{CaptureError, CaptureOptions, CaptureReport, capture};
use wirestorm_control::plan::traffic::parse_time;

use crate::number::{count_of, grouped, seconds};
use crate::remote::ServerFlags;
use crate::signals::Signals;
use crate::status;
use crate::terminal_width::{columns, fit_beside_bar};
use crate::traffic::usage;

const EXAMPLES: &str = "\
Examples:
  wirestorm capture eth1 -w out.pcapng
  wirestorm capture netns/dut:eth1 'udp port 53' -w dns.pcapng --packets 100
  wirestorm capture eth1 -w - | wireshark -k -i -
      live, in Wireshark
  wirestorm capture port0 --server lab -w - | wireshark -k -i -
      of a port of the server lab";

/// Captures received frames as pcapng, with the kernel's nanosecond timestamps.
///
/// The capture excludes frames that the interface itself sends.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CaptureFlags {
    /// Interface to capture on: eth1 or netns/NAME:eth1
    #[arg(value_name = "INTERFACE")]
    interface: String,

    /// pcap filter, such as 'udp port 53' (needs tcpdump) [default: all]
    #[arg(value_name = "FILTER", num_args = 0..)]
    filter: Vec<String>,

    /// Output file; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,

    /// Stop after N frames
    #[arg(short = 'c', long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    packets: u64,

    /// Stop after this time, such as 30s
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// Maximum bytes stored of each frame
    #[arg(short, long, value_name = "BYTES", default_value_t = 262_144)]
    snaplen: usize,

    /// Print statistics as JSON (to stderr if the capture goes to stdout)
    #[arg(long, conflicts_with = "quiet")]
    json: bool,

    /// Print no progress line and no statistics
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    server: ServerFlags,
}

/// Runs the command.
pub(crate) fn run(flags: &CaptureFlags) -> ExitCode {
    let duration = match flags.duration.as_deref().map(|text| (text, parse_time(text))) {
        None => Duration::MAX,
        Some((_, Some(duration))) => duration,
        Some((text, None)) => {
            eprintln!("wirestorm: --duration {text:?}: expected a time with its unit, such as 30s");
            return ExitCode::from(status::USAGE);
        }
    };
    let options = CaptureOptions {
        interface: flags.interface.clone(),
        filter: flags.filter.join(" "),
        packets: flags.packets,
        duration,
        snap_length: flags.snaplen,
        survives_outages: false,
    };
    let bar = ProgressBar::new_spinner();
    let is_piped = flags.write == Path::new("-");
    if is_piped && io::stdout().is_terminal() {
        eprintln!("wirestorm: --write -: standard output is a terminal; pipe it to a reader");
        return ExitCode::from(status::USAGE);
    }
    if flags.quiet || !io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let mut output: Box<dyn Write> = if is_piped {
        Box::new(io::stdout().lock())
    } else {
        match File::create(&flags.write) {
            Ok(file) => Box::new(BufWriter::new(file)),
            Err(error) => {
                eprintln!("wirestorm: {}: {error}", flags.write.display());
                return ExitCode::from(status::USAGE);
            }
        }
    };
    let client = match flags.server.client() {
        Ok(client) => client,
        Err(message) => return usage(message),
    };
    if let Some(client) = client {
        return from_server(&client, flags, &mut *output, &bar);
    }
    let stop = Signals::catch().stop_flag();
    let outcome = capture(&options, &mut *output, &stop, |packets, bytes| {
        let parts = [count_of(packets, "packet", "packets"), count_of(bytes, "byte", "bytes")];
        bar.set_message(fit_beside_bar(columns(), &parts));
        bar.tick();
    });
    bar.finish_and_clear();
    match outcome {
        Ok(report) => {
            print_report(&report, flags, is_piped);
            ExitCode::from(if report.missed > 0 { status::SHORT } else { 0 })
        }
        // The reader closed the pipe, as `head` does. That is a normal end of a capture.
        Err(CaptureError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("wirestorm: {error}");
            let failed = matches!(error, CaptureError::Port(_) | CaptureError::Write(_));
            ExitCode::from(if failed { status::FAILED } else { status::USAGE })
        }
    }
}

/// Captures on a server until a limit is reached. Each chunk is written at once, so a signal can end
/// the program at any time.
fn from_server(
    client: &Client,
    flags: &CaptureFlags,
    output: &mut dyn Write,
    bar: &ProgressBar,
) -> ExitCode {
    let mut query = vec![("snap_length", flags.snaplen.to_string())];
    if !flags.filter.is_empty() {
        query.push(("filter", flags.filter.join(" ")));
    }
    if flags.packets != u64::MAX {
        query.push(("packets", flags.packets.to_string()));
    }
    query.extend(flags.duration.clone().map(|duration| ("duration", duration)));
    let mut frames = match client.capture(&flags.interface, &query) {
        Ok(frames) => frames,
        Err(error) => return usage(error),
    };
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    let done = loop {
        let length = match frames.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(length) => length,
            Err(error) => break Err(format!("server {}: {error}", client.server())),
        };
        let written = output.write_all(&buffer[..length]).and_then(|()| output.flush());
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break Ok(()),
            Err(error) => break Err(format!("cannot write the capture: {error}")),
        }
        bytes += length as u64;
        bar.set_message(fit_beside_bar(columns(), &[count_of(bytes, "byte", "bytes")]));
        bar.tick();
    };
    bar.finish_and_clear();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("wirestorm: {message}");
            ExitCode::from(status::FAILED)
        }
    }
}

fn print_report(report: &CaptureReport, flags: &CaptureFlags, is_piped: bool) {
    if flags.quiet {
        return;
    }
    let text = match serde_json::to_string_pretty(report) {
        Ok(json) if flags.json => json,
        _ => format!(
            "{}, {} in {} s on {}{}",
            count_of(report.packets, "packet", "packets"),
            count_of(report.bytes, "byte", "bytes"),
            seconds(report.elapsed_s),
            report.interface,
            match report.missed {
                0 => String::new(),
                missed => format!("; {} dropped: the socket buffer was full", grouped(missed)),
            }
        ),
    };
    if is_piped {
        eprintln!("{text}");
    } else {
        println!("{text}");
    }
}
