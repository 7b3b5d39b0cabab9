//! Plan of a method for `--dry-run`.

use std::fmt::Write;

use wirestorm_control::method::estimate::remaining;
use wirestorm_control::method::method::Method;
use wirestorm_control::method::trial::TrialInput;

use super::rfc9411::load_text;
use crate::number::grouped;
use crate::wrap::wrapped;

/// Capacities of the assumed devices, as fractions of the largest load.
const CAPACITIES: [f64; 3] = [0.1, 0.5, 1.0];

/// Returns the trials of a method by test and frame size, with the expected duration.
///
/// A search needs a number of trials that depends on the device, so the plan is that of an assumed
/// device.
pub(super) fn of_plan(method: &Method, waits_s: f64) -> String {
    let plans = CAPACITIES.map(|capacity| remaining(method, &[], capacity));
    let length = |trials: &[TrialInput]| {
        let sum: f64 = trials.iter().map(|input| input.duration().as_secs_f64()).sum();
        sum + waits_s * trials.len() as f64
    };
    let [_, middle, _] = &plans;
    let mut text = format!(
        "{:<14} {:<7} {:>7} {:>8} {:>13} {:>12}\n",
        "test", "traffic", "size", "trials", "first load", "duration"
    );
    // Trials of one test and size follow one another.
    for group in middle.chunk_by(|a, b| key(a) == key(b)) {
        let (test, traffic, size) = key(&group[0]);
        let load = group[0].offers.first().and_then(|it| it.steps.first()).map_or(0, |it| it.load);
        let size = size.map_or_else(String::new, |size| format!("{size} B"));
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{test:<14} {:<15} {:>8} {:>13} {:>12}",
            format!("{traffic:<7} {size:>7}").trim_end(),
            grouped(group.len() as u64),
            match &group[0].connections {
                Some(connections) => load_text(connections.unit, load),
                None => format!("{}/s", grouped(load)),
            },
            duration(length(group))
        );
    }
    let durations = plans.each_ref().map(|trials| length(trials));
    let (least, most) = durations.iter().fold((f64::MAX, 0.0_f64), |(least, most), &duration| {
        (least.min(duration), most.max(duration))
    });
    let sum = format!(
        "{} {}, about {}, for a device that forwards half of the largest load.",
        grouped(middle.len() as u64),
        if middle.len() == 1 { "trial" } else { "trials" },
        duration(length(middle))
    );
    let _ = writeln!(text, "\n{}", wrapped("", &sum));
    let (least, most) = (duration(least), duration(most));
    let range = match least == most {
        true => format!("A device that forwards 10 % or all of it needs {least}."),
        false => format!("A device that forwards 10 % or all of it needs {least} to {most}."),
    };
    let waits =
        format!("{range} Each trial includes {waits_s} s of waits (--settle, --learning-wait).");
    let _ = writeln!(text, "{}", wrapped("", &waits));
    for deviation in method.deviations() {
        let _ = writeln!(text, "{}", wrapped("deviation  ", &deviation));
    }
    text
}

/// Returns what a group of trials has in common.
fn key(input: &TrialInput) -> (&str, &str, Option<u32>) {
    let offer = input.offers.first();
    (&input.test, offer.map_or("", |it| &it.traffic), offer.and_then(|it| it.frame_size))
}

/// Formats a duration in seconds with its two largest units: `2 h 05 min`.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3_600 => format!("{} min {:02} s", whole / 60, whole % 60),
        3_600..86_400 => format!("{} h {:02} min", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{} d {:02} h", whole / 86_400, whole % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_their_two_largest_units() {
        let shown = [0.4, 59.0, 61.0, 3_660.0, 90_000.0].map(duration);
        assert_eq!(shown, ["0 s", "59 s", "1 min 01 s", "1 h 01 min", "1 d 01 h"]);
    }
}
