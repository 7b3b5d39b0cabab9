//! Reports as JUnit XML, which CI systems read.
//!
//! The document is valid for the schema of Apache Ant's JUnit task and for that of Jenkins.

use std::fmt::Write;

use wirestorm_base::time::Duration;
use wirestorm_control::result::{Outcome, Verdict};
use wirestorm_method::method::Findings;
use wirestorm_method::ndr::Limit;
use wirestorm_method::trial::TrialInput;
use wirestorm_method::y1564::Y1564Row;
use wirestorm_store::record::BenchResult;

use crate::limit::Judged;
use crate::run::{Run, RunOutput};
use crate::sections::Context;

/// Result of a test case.
enum Case {
    Passed,
    /// Name of the kind and message.
    Failed(&'static str, String),
    Error(&'static str, String),
    Skipped(String),
}

struct TestCase {
    name: String,
    seconds: f64,
    case: Case,
}

struct Suite {
    name: String,
    host: String,
    timestamp: String,
    cases: Vec<TestCase>,
}

pub(crate) fn junit(runs: &[Run], limits: &[Judged], title: &str) -> String {
    let context = Context::new(runs);
    let mut suites: Vec<Suite> = (0..runs.len()).map(|run| suite(&context, run)).collect();
    if !limits.is_empty() {
        let first = suites.first();
        suites.push(Suite {
            name: format!("limits: {title}"),
            host: first.map(|it| it.host.clone()).unwrap_or_default(),
            timestamp: first.map(|it| it.timestamp.clone()).unwrap_or_default(),
            cases: limits.iter().map(|judged| limit(&context, judged)).collect(),
        });
    }
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for (id, suite) in suites.iter().enumerate() {
        write(&mut text, id, suite);
    }
    text + "</testsuites>\n"
}

fn suite(context: &Context<'_>, place: usize) -> Suite {
    let run = &context.runs[place];
    let cases = match &run.result {
        Some(RunOutput::Bench(result)) => groups(run, result),
        Some(RunOutput::Run(result)) => {
            vec![verdict("verdict", &result.verdict, result.times.elapsed_s)]
        }
        None => {
            let message =
                run.record.error.clone().unwrap_or_else(|| "the run has no result".into());
            let case = Case::Error("no result", message);
            vec![TestCase { name: "result".into(), seconds: 0.0, case }]
        }
    };
    // The format has no time zone and allows no fractions of a second.
    let started = jiff::Timestamp::from_nanosecond(run.record.started_unix_ns.into());
    let started = started.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    Suite {
        name: context.label(place).to_owned(),
        host: run.record.host.name.clone(),
        timestamp: started.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        cases,
    }
}

fn verdict(name: &str, verdict: &Verdict, seconds: f64) -> TestCase {
    let reasons = verdict.reasons.join("; ");
    let case = match verdict.outcome {
        Outcome::Met => Case::Passed,
        Outcome::FellShort => Case::Failed("fell short", reasons),
        Outcome::Failed => Case::Error("failed", reasons),
        Outcome::Interrupted => Case::Error("interrupted", reasons),
    };
    TestCase { name: name.to_owned(), seconds, case }
}

/// Returns a case for each group of trials: a test, traffic and frame size; and one for the method.
fn groups(run: &Run, result: &BenchResult) -> Vec<TestCase> {
    let mut cases = Vec::new();
    let mut add = |test: &str, traffic: &str, size: u32, case: Case| {
        let is_part = |it: &TrialInput| it.test == test && is_of(it, traffic, Some(size));
        let seconds = seconds(run, is_part);
        cases.push(TestCase { name: format!("{test} {traffic} {size} bytes"), seconds, case });
    };
    let limited = || Case::Skipped("limited by the tester, not by the device".to_owned());
    match &result.findings {
        Findings::Rfc2544(findings) => {
            for row in &findings.throughput {
                let case = if row.is_contradictory {
                    let text = "the upper bound passed when it was verified";
                    Case::Failed("contradictory", text.to_owned())
                } else if row.is_tester_limited {
                    limited()
                } else if row.load == 0 {
                    Case::Failed("no throughput", "all trials lost frames".to_owned())
                } else if row.confirmed < row.confirmations {
                    let text = format!("{} of {} trials", row.confirmed, row.confirmations);
                    Case::Failed("not confirmed", text)
                } else {
                    Case::Passed
                };
                add("throughput", &row.traffic, row.frame_size, case);
            }
            for row in &findings.latency {
                let case = match (row.lost, row.mean_ns) {
                    (_, None) => Case::Failed("no delay", "no frame was timed".to_owned()),
                    (0, Some(_)) => Case::Passed,
                    (lost, Some(_)) => Case::Failed("loss", format!("{lost} frames lost")),
                };
                add("latency", &row.traffic, row.frame_size, case);
            }
            for row in &findings.frame_loss {
                let unsent: u64 = row.points.iter().map(|point| point.unsent).sum();
                let case = if unsent > 0 { limited() } else { Case::Passed };
                add("frame-loss", &row.traffic, row.frame_size, case);
            }
            for row in &findings.back_to_back {
                let case = row.skipped.clone().map_or(Case::Passed, Case::Skipped);
                add("back-to-back", &row.traffic, row.frame_size, case);
            }
            for row in &findings.recovery {
                let case = match row.is_overloaded {
                    true => Case::Passed,
                    false => Case::Skipped("the overload lost no frames each time".to_owned()),
                };
                add("recovery", &row.traffic, row.frame_size, case);
            }
            for row in &findings.reset {
                add("reset", &row.traffic, row.frame_size, Case::Passed);
            }
        }
        Findings::FlowExporter(findings) => {
            for point in &findings.points {
                let seconds = point.seconds;
                let case = match (point.is_tester_limited, point.is_lossless) {
                    (true, _) => limited(),
                    (false, true) => Case::Passed,
                    (false, false) => {
                        let text = format!(
                            "{:.4} % of the flows and {:.4} % of the packets lost",
                            point.flow_loss_percent, point.packet_loss_percent
                        );
                        Case::Failed("loss", text)
                    }
                };
                cases.push(TestCase { name: format!("{} flows/s", point.load), seconds, case });
            }
        }
        Findings::Collector(findings) => {
            for point in &findings.points {
                let case = match (point.is_tester_limited, point.is_lossless) {
                    (true, _) => limited(),
                    (false, Some(true)) => Case::Passed,
                    (false, Some(false)) => {
                        let percent = point.loss_percent.unwrap_or_default();
                        Case::Failed("loss", format!("{percent:.4} % of the records lost"))
                    }
                    (false, None) => Case::Skipped("nothing counted the stored records".to_owned()),
                };
                let name = format!("{} records/s", point.load);
                cases.push(TestCase { name, seconds: point.seconds, case });
            }
        }
        Findings::Ndr(findings) => {
            for row in &findings.rows {
                let case = match (row.limit, row.best) {
                    (Some(Limit::Tester), _) => limited(),
                    (_, Some(_)) => Case::Passed,
                    (_, None) => Case::Failed("no rate", "no load passed".to_owned()),
                };
                let size = row.frame_size.map_or_else(String::new, |size| format!(" {size} bytes"));
                let name = format!("ndr {}{size}", row.traffic);
                let seconds = seconds(run, |it| is_of(it, &row.traffic, row.frame_size));
                cases.push(TestCase { name, seconds, case });
            }
        }
        Findings::Y1564(findings) => {
            for row in &findings.rows {
                let case = match row.is_passed() {
                    true => Case::Passed,
                    false => Case::Failed("criteria", row.total.failures.join("; ")),
                };
                let (test, service, load) = (row.test.name(), &row.service, row.load_percent);
                let name = format!("{test} {service} {load:.0} % {} bytes", row.frame_size);
                cases.push(TestCase { name, seconds: y1564_seconds(run, row), case });
            }
        }
        Findings::Rfc9411(findings) => {
            for row in &findings.rows {
                let unmet = row.criteria.iter().filter(|value| !value.is_met);
                let unmet: Vec<_> = unmet.map(|value| value.criterion.name()).collect();
                let case = match (row.is_tester_limited, row.is_valid()) {
                    (true, _) => limited(),
                    (false, true) => Case::Passed,
                    (false, false) => Case::Failed("criteria", unmet.join("; ")),
                };
                let seconds = seconds(run, |it| {
                    let unit = it.connections.as_ref().map(|connections| connections.unit);
                    it.test == row.test.name()
                        && is_of(it, &row.traffic, None)
                        && unit == Some(row.unit)
                });
                // The latency test has the same traffic at loads of two units.
                let name = format!("{}, load in {}", row.subject(), row.unit.name());
                cases.push(TestCase { name, seconds, case });
            }
        }
        Findings::Mlrsearch(findings) => {
            for row in &findings.searches {
                let irregular = row.results.iter().filter(|result| !result.is_regular);
                let irregular: Vec<&str> = irregular.map(|result| &*result.goal).collect();
                let case = match (irregular.as_slice(), row.is_tester_limited) {
                    (_, true) => limited(),
                    ([], false) => Case::Passed,
                    (goals, false) => Case::Failed("irregular", goals.join(", ")),
                };
                add("search", &row.traffic, row.frame_size, case);
            }
        }
    }
    cases.push(verdict("method", &result.verdict, result.elapsed_s));
    cases
}

/// Returns the time of the trials that `is_part` selects, in seconds.
fn seconds(run: &Run, is_part: impl Fn(&TrialInput) -> bool) -> f64 {
    let trials = run.trials.iter().filter(|trial| is_part(&trial.input));
    let time = |sum: Duration, seconds: f64| {
        sum.saturating_add(Duration::from_nanos((seconds * 1e9) as u64))
    };
    trials.map(|trial| trial.output.elapsed_s).fold(Duration::ZERO, time).as_secs_f64()
}

/// Returns the time of a step of a service. Services of a performance test share its trial.
fn y1564_seconds(run: &Run, row: &Y1564Row) -> f64 {
    let is_part = |it: &TrialInput| {
        let is_same = it.test == row.test.name();
        let is_step = is_of(it, &row.service, Some(row.frame_size)) && load(it) == Some(row.load);
        is_same && (is_step || row.test == wirestorm_method::y1564::Test::Performance)
    };
    let trials = run.trials.iter().filter(|trial| is_part(&trial.input));
    let services = trials.map(|trial| trial.input.offers.len()).max().unwrap_or(1);
    seconds(run, is_part) / services.max(1) as f64
}

/// Returns whether the first offer of a trial is of a traffic.
fn is_of(input: &TrialInput, traffic: &str, size: Option<u32>) -> bool {
    input.offers.first().is_some_and(|it| it.traffic == traffic && it.frame_size == size)
}

/// Returns the load of the first offer of a trial.
fn load(input: &TrialInput) -> Option<u64> {
    input.offers.first().and_then(|offer| offer.steps.first()).map(|step| step.load)
}

fn limit(context: &Context<'_>, judged: &Judged) -> TestCase {
    let case = if judged.values == 0 {
        Case::Error("no value", "the limit concerns no figure of the runs".to_owned())
    } else if judged.failing.is_empty() {
        Case::Passed
    } else {
        let shown = judged.failing.iter().map(|figure| {
            format!("{}: {} is {}", context.label(figure.run), figure.place, figure.shown())
        });
        Case::Failed("limit", shown.collect::<Vec<_>>().join("; "))
    };
    TestCase { name: judged.limit.text().to_owned(), seconds: 0.0, case }
}

fn write(text: &mut String, id: usize, suite: &Suite) {
    let count = |is: fn(&Case) -> bool| suite.cases.iter().filter(|it| is(&it.case)).count();
    let host = if suite.host.is_empty() { "unknown" } else { &suite.host };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "  <testsuite id=\"{id}\" package=\"wirestorm\" name=\"{}\" timestamp=\"{}\" \
         hostname=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\">\n    \
         <properties/>",
        token(&suite.name),
        suite.timestamp,
        token(host),
        suite.cases.len(),
        count(|case| matches!(case, Case::Failed(..))),
        count(|case| matches!(case, Case::Error(..))),
        count(|case| matches!(case, Case::Skipped(_))),
        suite.cases.iter().map(|case| case.seconds).sum::<f64>(),
    );
    for TestCase { name, seconds, case } in &suite.cases {
        let (name, class) = (token(name), token(&suite.name));
        let _ = write!(
            text,
            "    <testcase name=\"{name}\" classname=\"{class}\" time=\"{seconds:.3}\""
        );
        let _ = match case {
            Case::Passed => writeln!(text, "/>"),
            Case::Failed(kind, message) => writeln!(
                text,
                ">\n      <failure type=\"{kind}\" message=\"{}\"/>\n    </testcase>",
                escape(message)
            ),
            Case::Error(kind, message) => writeln!(
                text,
                ">\n      <error type=\"{kind}\" message=\"{}\"/>\n    </testcase>",
                escape(message)
            ),
            Case::Skipped(message) => writeln!(
                text,
                ">\n      <skipped message=\"{}\"/>\n    </testcase>",
                escape(message)
            ),
        };
    }
    let _ = writeln!(text, "    <system-out/>\n    <system-err/>\n  </testsuite>");
}

/// Escapes a name that must not be empty and whose spaces XML may join.
fn token(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() { "unnamed".to_owned() } else { escape(&words.join(" ")) }
}

/// Escapes an attribute. XML 1.0 has no way to write control characters.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ if character.is_control() && character < ' ' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}
