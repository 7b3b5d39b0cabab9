//! Benchmarks without a network: in memory, and the start of the program.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{FixedFrames, FixedOptions, Traffic, TrafficOptions, write_file};

use super::Settings;
use super::contender::{TIME_LIMIT, number, output, wirestorm, wirestorm_command};
use super::figures::{Figures, Row, Target};
use crate::Fallible;

const TO_MEMORY: [&str; 3] = ["--backend", "memory", "-t"];

/// Number of packets that make 4 GB of mixed traffic.
const STREAM_PACKETS: u64 = 6_400_000;

/// Interval at which a program's memory is read.
const WATCH: Duration = Duration::from_millis(20);

pub(super) fn memory(settings: &Settings) -> Fallible<Vec<Row>> {
    let scratch = Scratch::new()?;
    let capture = scratch.file("fixed.pcap");
    let options = FixedOptions { flows: 10, packets: 1_000, ..FixedOptions::default() };
    write_file(FixedFrames::new(options), Resolution::Microseconds, &capture)?;
    let seconds = settings.seconds.to_string();
    let options = [&TO_MEMORY[..], &["-K", "--loop", "0", "--duration", &seconds]].concat();
    let mut figures = Figures::default();
    for _ in 0..settings.rounds {
        figures.push(number(&wirestorm(settings, "memory", &options, &capture)?, "/pps")? / 1e6);
    }
    Ok(vec![row("memory", "Mpps", figures, Target::AtLeast(20.0))])
}

/// Reads the capture once before each run, so that it is in the page cache.
pub(super) fn stream(settings: &Settings) -> Fallible<Vec<Row>> {
    let scratch = Scratch::new()?;
    let capture = scratch.file("stream.pcap");
    let options = TrafficOptions {
        conversations: 1_000,
        duration: 1_000_000_000,
        packets: Some(STREAM_PACKETS),
        ..TrafficOptions::default()
    };
    write_file(Traffic::new(options), Resolution::Microseconds, &capture)?;
    let (mut speed, mut resident) = (Figures::default(), Figures::default());
    for _ in 0..settings.rounds {
        let bytes = io::copy(&mut File::open(&capture)?, &mut io::sink())?;
        let json = scratch.file("result.json");
        let mut command = wirestorm_command(settings, "memory", &TO_MEMORY, &capture);
        command.stdout(File::create(&json)?).stderr(Stdio::null());
        let mut child = command.spawn()?;
        resident.push(watch_resident_bytes(&mut child)? as f64 / 1e6);
        let result = serde_json::from_str(&std::fs::read_to_string(&json)?)?;
        speed.push(bytes as f64 / number(&result, "/elapsed_s")? / 1e9);
    }
    Ok(vec![
        row("stream read", "GB/s", speed, Target::AtLeast(1.0)),
        row("stream memory", "MB", resident, Target::AtMost(256.0)),
    ])
}

/// Measures from the start of the program to the kernel's time stamp of the first frame at the
/// peer.
pub(super) fn start(settings: &Settings) -> Fallible<Vec<Row>> {
    let lab = Lab::new()?;
    let scratch = Scratch::new()?;
    let capture = scratch.file("small.pcap");
    let options = TrafficOptions { conversations: 100, ..TrafficOptions::default() };
    write_file(Traffic::new(options), Resolution::Microseconds, &capture)?;
    let options = ["--backend", "af_packet", "-t"];
    let mut tcpreplay = lab.a.command("tcpreplay");
    tcpreplay.args(["-i", lab.a.interface(), "-t"]).arg(&capture);
    let mut commands = [wirestorm_command(settings, &lab.a.port(), &options, &capture), tcpreplay];
    let mut figures = [Figures::default(), Figures::default()];
    for _ in 0..settings.rounds {
        for (command, figures) in commands.iter_mut().zip(&mut figures) {
            let arrivals = lab.b.capture()?;
            let started = SystemTime::now().duration_since(UNIX_EPOCH)?;
            output(command)?;
            let arrivals = arrivals.finish(1)?;
            let first = arrivals.packets.first().ok_or("no frame arrived")?;
            let span = Duration::from_nanos(first.time).saturating_sub(started);
            figures.push(span.as_secs_f64() * 1e3);
        }
    }
    let [mine, tcpreplay] = figures;
    let mut row = row("start", "ms", mine, Target::AtMost(100.0));
    row.peer = Some(tcpreplay);
    row.notes.push("the time of tcpreplay includes ip netns exec".to_owned());
    Ok(vec![row])
}

fn row(name: &'static str, unit: &'static str, wirestorm: Figures, target: Target) -> Row {
    Row { name, unit, wirestorm, peer: None, target, notes: Vec::new() }
}

/// Peak resident memory of the program in bytes, as the kernel reports it.
fn watch_resident_bytes(child: &mut Child) -> Fallible<u64> {
    let status = Path::new("/proc").join(child.id().to_string()).join("status");
    let deadline = Instant::now() + TIME_LIMIT;
    let mut most = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        most = resident_bytes_max(&text).unwrap_or(0).max(most);
        if let Some(ended) = child.try_wait()? {
            return if ended.success() { Ok(most) } else { Err(format!("{ended}").into()) };
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(format!("did not end within {} s", TIME_LIMIT.as_secs()).into());
        }
        std::thread::sleep(WATCH);
    }
}

/// Parses the line `VmHWM:   1234 kB` (proc_pid_status(5)).
fn resident_bytes_max(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn high_water_mark_is_parsed() {
        let status = "Name:\tsleep\nVmHWM:\t    1840 kB\nVmRSS:\t    1000 kB\n";
        assert_eq!(resident_bytes_max(status), Some(1_840 * 1_024));
        assert_eq!(resident_bytes_max("Name:\tgone\n"), None);
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(resident_bytes_max(&text).unwrap() > 100_000);
    }
}
