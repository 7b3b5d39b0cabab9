//! Interactive hooks of a replay: printed packets and the prompt for packets.

use std::io::{self, BufRead, Write};
use std::process::{Child, Command, Stdio};

use wirestorm_control::base::time::Instant;
use wirestorm_control::plan::replay::{PacketDisplay, ReplayPlan, Target};
use wirestorm_control::replay::{Callbacks, FrameCallback, PacketPrompt};
use wirestorm_control::wire::capture::{LinkType, PcapWriter};
use wirestorm_control::wire::print::Summary;

/// Returns the hooks for a plan and for `--stats`, whose value is in seconds.
///
/// # Errors
/// tcpdump does not start.
pub(crate) fn hooks(plan: &ReplayPlan, stats: Option<u64>) -> Result<Callbacks, String> {
    Ok(Callbacks {
        ask: plan.one_at_a_time.then(|| ask(&plan.target)),
        show: match &plan.show {
            None => None,
            Some(PacketDisplay::Lines) => Some(Box::new(show_line)),
            Some(PacketDisplay::Tcpdump(arguments)) => Some(pipe_to_tcpdump(arguments)?),
        },
        passes: stats == Some(0),
    })
}

/// Prompts as tcpreplay does: a number, empty for one, `c` for the rest, `q` to end.
fn ask(target: &Target) -> PacketPrompt {
    let out = match target {
        Target::Interfaces { primary, .. } => primary.clone(),
        Target::File(path) => path.display().to_string(),
        Target::Memory { .. } => "memory".to_owned(),
    };
    Box::new(move |next| {
        let mut input = io::stdin().lock();
        loop {
            eprint!("**** Next packet #{next} out {out}.  How many packets do you wish to send? ");
            let _ = io::stderr().flush();
            let mut answer = String::new();
            match input.read_line(&mut answer) {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
            match answer.trim() {
                "" => return Some(1),
                "c" => return Some(u64::MAX),
                "q" => return None,
                number => match number.parse() {
                    Ok(count) if count > 0 => return Some(count),
                    _ => eprintln!("expected a number, c to send all that is left, or q to end"),
                },
            }
        }
    })
}

fn show_line(time: Instant, frame: &[u8]) {
    let summary = Summary {
        timestamp: time,
        link_type: LinkType::EN10MB,
        data: frame,
        original_length: frame.len() as u32,
    };
    // Ignores write errors: a closed pipe does not stop the replay.
    let _ = writeln!(io::stdout(), "{summary}");
}

/// A tcpdump process that prints frames. The drop waits for its end.
struct Tcpdump {
    child: Child,
    writer: PcapWriter,
    record: Vec<u8>,
}

fn pipe_to_tcpdump(arguments: &str) -> Result<FrameCallback, String> {
    let child = Command::new("tcpdump")
        .args(arguments.split_whitespace())
        .args(["-l", "-r", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| {
            format!(
                "--decode: tcpdump does not start: {error}; install tcpdump, or leave \
                 --decode away for a line of our own"
            )
        })?;
    let writer = PcapWriter::new(LinkType::EN10MB);
    let mut tcpdump = Tcpdump { child, record: writer.header().to_vec(), writer };
    Ok(Box::new(move |time, frame| tcpdump.show(time, frame)))
}

impl Tcpdump {
    fn show(&mut self, time: Instant, frame: &[u8]) {
        // A time that pcap cannot represent becomes the epoch.
        let length = frame.len() as u32;
        if self.writer.push_record(&mut self.record, time, length, frame).is_err() {
            let _ = self.writer.push_record(&mut self.record, Instant::ZERO, length, frame);
        }
        if let Some(input) = &mut self.child.stdin {
            // Ignores write errors: the end of tcpdump does not stop the replay.
            let _ = input.write_all(&self.record);
        }
        self.record.clear();
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        // The end of its input ends tcpdump.
        self.child.stdin = None;
        let _ = self.child.wait();
    }
}
