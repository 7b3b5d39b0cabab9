//! `--stats` in tcpreplay's format: loop lines, start and end times, and intermediate totals.

use std::io::Write;

use jiff::{SignedDuration, Zoned};
use wirestorm_control::Snapshot;
use wirestorm_control::plan::replay::ReplayPlan;

use super::summary::Totals;

/// State of the statistics output.
pub(super) struct LoopStatistics {
    /// Seconds between totals; 0 means after every pass.
    interval_s: u64,
    next_s: u64,
    /// Passes over the captures; `u64::MAX` means endless.
    passes: u64,
    /// Passes with the same addresses, in thousandths. `None` if addresses do not change.
    unique_milli: Option<u64>,
    /// Number of passes whose `Loop` line is printed.
    announced: u64,
    /// Time of the first due frame.
    start: Option<Zoned>,
}

impl LoopStatistics {
    /// Creates the state. `interval_s` is in seconds; 0 means after every pass.
    pub(super) fn new(interval_s: u64, plan: &ReplayPlan) -> Self {
        Self {
            interval_s,
            next_s: interval_s,
            passes: plan.limits.passes,
            unique_milli: plan.unique.map(|unique| unique.passes_milli),
            announced: 0,
            start: None,
        }
    }

    /// Prints what is due at this progress.
    pub(super) fn update(&mut self, progress: &Snapshot, output: &mut impl Write) {
        let elapsed_s = progress.elapsed.as_secs_f64();
        self.start(elapsed_s, output);
        let done = progress.replay.passes;
        let is_due = if self.interval_s == 0 {
            // The summary has the totals of the last pass.
            progress.pass_ended && done < self.passes
        } else {
            elapsed_s >= self.next_s as f64
        };
        if !is_due {
            return;
        }
        if self.interval_s == 0 {
            self.announce(done, output);
        }
        while self.interval_s > 0 && self.next_s as f64 <= elapsed_s {
            self.next_s += self.interval_s;
        }
        let sent = &progress.transmitted;
        let per_second = |count: u64| count as f64 / elapsed_s.max(1e-9);
        let totals = Totals {
            packets: sent.sent,
            bytes: sent.sent_bytes,
            elapsed_s,
            bytes_per_second: per_second(sent.sent_bytes),
            packets_per_second: per_second(sent.sent),
        };
        // Ignores write errors: a closed pipe does not stop the replay.
        let _ = write!(output, "{totals}");
        if self.interval_s == 0 {
            self.announce(done + 1, output);
        }
    }

    /// Prints the end of the run.
    pub(super) fn finish(&mut self, passes: u64, elapsed_s: f64, output: &mut impl Write) {
        self.start(elapsed_s, output);
        if self.interval_s == 0 {
            self.announce(passes, output);
        }
        let Some(start) = &self.start else { return };
        let _ = writeln!(output, "Test complete: {}", date(&after(start, elapsed_s)));
    }

    fn start(&mut self, elapsed_s: f64, output: &mut impl Write) {
        if self.start.is_some() {
            return;
        }
        if self.interval_s == 0 {
            self.announce(1, output);
        }
        let start = after(&Zoned::now(), -elapsed_s);
        let _ = writeln!(output, "Test start: {} ...", date(&start));
        self.start = Some(start);
    }

    /// Prints the `Loop` lines up to `pass`.
    fn announce(&mut self, pass: u64, output: &mut impl Write) {
        while self.announced < pass {
            self.announced += 1;
            let _ =
                writeln!(output, "{}", loop_line(self.announced, self.passes, self.unique_milli));
        }
    }
}

fn loop_line(pass: u64, passes: u64, unique_milli: Option<u64>) -> String {
    let of = if passes == u64::MAX { String::new() } else { format!(" of {passes}") };
    let unique = unique_milli
        .map(|milli| 1 + (pass - 1).saturating_mul(1_000) / milli.max(1))
        .filter(|unique| *unique != pass);
    match unique {
        None => format!("Loop {pass}{of}..."),
        Some(unique) => format!("Loop {pass}{of} ({unique} unique)..."),
    }
}

fn after(time: &Zoned, seconds: f64) -> Zoned {
    time.saturating_add(SignedDuration::from_secs_f64(seconds))
}

/// Formats local time with nanoseconds.
fn date(time: &Zoned) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S.%9f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_control::base::time::Duration;

    fn follow(interval_s: u64, passes: u64) -> LoopStatistics {
        LoopStatistics {
            interval_s,
            next_s: interval_s,
            passes,
            unique_milli: None,
            announced: 0,
            start: None,
        }
    }

    fn progress(passes: u64, sent: u64, elapsed_ms: u64) -> Snapshot {
        let elapsed = Duration::from_millis(elapsed_ms);
        let mut progress = Snapshot { elapsed, ..Snapshot::default() };
        progress.replay.passes = passes;
        progress.transmitted.sent = sent;
        progress.transmitted.sent_bytes = sent * 60;
        progress
    }

    fn pass_end(passes: u64, sent: u64, elapsed_ms: u64) -> Snapshot {
        Snapshot { pass_ended: true, ..progress(passes, sent, elapsed_ms) }
    }

    /// Returns the lines without their dates.
    fn lines(output: &[u8]) -> Vec<String> {
        let text = std::str::from_utf8(output).unwrap();
        text.lines().map(|line| line.split_inclusive(": 2").next().unwrap().to_owned()).collect()
    }

    #[test]
    fn each_pass_has_one_loop_line_and_totals() {
        let mut output = Vec::new();
        let mut follow = follow(0, 3);
        follow.update(&progress(0, 5, 100), &mut output);
        follow.update(&pass_end(1, 10, 200), &mut output);
        follow.update(&progress(1, 12, 300), &mut output);
        follow.update(&pass_end(2, 18, 360), &mut output);
        follow.update(&pass_end(3, 30, 500), &mut output);
        follow.finish(3, 0.5, &mut output);
        assert_eq!(
            lines(&output),
            [
                "Loop 1 of 3...",
                "Test start: 2",
                "Actual: 10 packets (600 bytes) sent in 0.200000 seconds",
                "Rated: 3000.0 Bps, 0.024 Mbps, 50.00 pps",
                "Loop 2 of 3...",
                "Actual: 18 packets (1080 bytes) sent in 0.360000 seconds",
                "Rated: 3000.0 Bps, 0.024 Mbps, 50.00 pps",
                "Loop 3 of 3...",
                "Test complete: 2",
            ]
        );
    }

    #[test]
    fn totals_follow_the_interval_without_loop_lines() {
        let mut output = Vec::new();
        let mut follow = follow(1, 3);
        follow.update(&progress(0, 5, 900), &mut output);
        follow.update(&progress(2, 10, 1_050), &mut output);
        follow.update(&progress(2, 10, 1_150), &mut output);
        assert_eq!(
            lines(&output),
            [
                "Test start: 2",
                "Actual: 10 packets (600 bytes) sent in 1.05 seconds",
                "Rated: 571.4 Bps, 0.004 Mbps, 9.52 pps",
            ]
        );
    }

    #[test]
    fn loop_lines_count_unique_passes() {
        assert_eq!(loop_line(1, 4, Some(2_000)), "Loop 1 of 4...");
        assert_eq!(loop_line(2, 4, Some(2_000)), "Loop 2 of 4 (1 unique)...");
        assert_eq!(loop_line(3, 4, Some(2_000)), "Loop 3 of 4 (2 unique)...");
        assert_eq!(loop_line(3, 4, Some(1_000)), "Loop 3 of 4...");
        assert_eq!(loop_line(7, u64::MAX, None), "Loop 7...");
    }
}
