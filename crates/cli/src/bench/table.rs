//! Result tables of methods, at most 80 columns wide.

use std::fmt::{self, Display, Formatter};

use wirestorm_control::method::collector::CollectorFindings;
use wirestorm_control::method::flow_exporter::{FlowExporterFindings, FlowPoint};
use wirestorm_control::method::method::Findings;
use wirestorm_control::method::mlrsearch::{MlrsearchFindings, MlrsearchRow};
use wirestorm_control::method::ndr::{Limit, NdrFindings, is_connections};
use wirestorm_control::method::rfc2544::{Repeated, Rfc2544Findings};
use wirestorm_control::method::trial::{ExportOutput, FieldOutput, FlowDifference, StreamSent};
use wirestorm_control::method::y1564::{Y1564Direction, Y1564Findings};
use wirestorm_control::result::Outcome;
use wirestorm_store::record::BenchResult;

use super::summary::duration;
use crate::number::{count_of, grouped, rounded, scaled, signed_nanoseconds};
use crate::wrap::wrapped;

/// Most flows in the table that the device did not report as sent.
const DIFFERENCES_MAX: usize = 4;

/// Displays the result of a method.
pub(crate) struct Table<'a>(pub(crate) &'a BenchResult);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let result = self.0;
        let ended = match result.verdict.outcome {
            Outcome::Interrupted => "interrupted after",
            Outcome::Failed => "failed after",
            Outcome::Met | Outcome::FellShort => "done in",
        };
        let trials = count_of(u64::from(result.trials), "trial", "trials");
        writeln!(f, "{ended} {}, {trials}", duration(result.elapsed_s))?;
        match &result.findings {
            Findings::Rfc2544(findings) => rfc2544(f, findings)?,
            Findings::Mlrsearch(findings) => mlrsearch(f, findings)?,
            Findings::FlowExporter(findings) => flow_exporter(f, findings)?,
            Findings::Collector(findings) => collector(f, findings)?,
            Findings::Rfc9411(findings) => super::rfc9411::tables(f, findings)?,
            Findings::Ndr(findings) => ndr(f, findings)?,
            Findings::Y1564(findings) => y1564(f, findings)?,
        }
        writeln!(f)?;
        if result.is_simulated {
            writeln!(f, "{}", wrapped("note       ", "the device was simulated"))?;
        }
        for warning in &result.warnings {
            writeln!(f, "{}", wrapped("warning    ", warning))?;
        }
        for deviation in &result.deviations {
            writeln!(f, "{}", wrapped("deviation  ", deviation))?;
        }
        let is_short = result.verdict.outcome == Outcome::FellShort;
        let reason_head = if is_short { "failed     " } else { "error      " };
        for reason in &result.verdict.reasons {
            writeln!(f, "{}", wrapped(reason_head, reason))?;
        }
        Ok(())
    }
}

fn rfc2544(f: &mut Formatter<'_>, findings: &Rfc2544Findings) -> fmt::Result {
    if !findings.throughput.is_empty() {
        writeln!(
            f,
            "\n{:<20} {:>13} {:>10} {:>9} {:>9} {:>7}",
            "throughput", "frames/s", "% of max", "b/s L1", "b/s L2", "trials"
        )?;
    }
    for row in &findings.throughput {
        writeln!(
            f,
            "{:<20} {:>13} {:>8.3} % {:>9} {:>9} {:>7}",
            subject(&row.traffic, row.frame_size),
            grouped(row.load),
            row.line_rate_percent,
            scaled(row.bps_l1),
            scaled(row.bps_l2),
            row.trials
        )?;
        if row.confirmations > 0 {
            let (passed, all) = (row.confirmed, row.confirmations);
            writeln!(f, "{:<20} {passed} of {all} further trials passed", "")?;
        }
    }
    if !findings.latency.is_empty() {
        writeln!(
            f,
            "\n{:<20} {:>13} {:>9} {:>9} {:>9} {:>9}",
            "latency", "at frames/s", "mean", "typical", "worst", "PDV"
        )?;
    }
    for row in &findings.latency {
        let median = |value: Option<Repeated>| {
            value.map_or_else(|| "–".into(), |it| signed_nanoseconds(it.median_ns as i64))
        };
        writeln!(
            f,
            "{:<20} {:>13} {:>9} {:>9} {:>9} {:>9}",
            subject(&row.traffic, row.frame_size),
            grouped(row.load),
            row.mean_ns.map_or_else(|| "–".into(), |mean| signed_nanoseconds(mean as i64)),
            median(row.typical),
            median(row.worst_case),
            median(row.pdv)
        )?;
    }
    if !findings.frame_loss.is_empty() {
        writeln!(
            f,
            "\n{:<20} {:>9} {:>13} {:>14} {:>12}",
            "frame loss", "load", "frames/s", "lost", "loss"
        )?;
    }
    for row in &findings.frame_loss {
        for (number, point) in row.points.iter().enumerate() {
            let name = match number {
                0 => subject(&row.traffic, row.frame_size),
                _ => String::new(),
            };
            writeln!(
                f,
                "{name:<20} {:>7.1} % {:>13} {:>14} {:>10.4} %",
                point.load_percent,
                grouped(point.load),
                grouped(point.offered.saturating_sub(point.received)),
                point.loss_percent
            )?;
        }
    }
    if !findings.back_to_back.is_empty() {
        writeln!(
            f,
            "\n{:<20} {:>12} {:>11} {:>11} {:>9} {:>11}",
            "back-to-back", "average", "min", "max", "std dev", "buffer"
        )?;
    }
    for row in &findings.back_to_back {
        write!(f, "{:<20} ", subject(&row.traffic, row.frame_size))?;
        if row.skipped.is_some() {
            writeln!(f, "not tested: the throughput is the maximum load")?;
            continue;
        }
        let whole = |value: Option<u64>| value.map_or_else(|| "–".into(), grouped);
        writeln!(
            f,
            "{:>12} {:>11} {:>11} {:>9} {:>11}",
            row.average.map_or_else(|| "–".into(), rounded),
            whole(row.min),
            whole(row.max),
            row.standard_deviation.map_or_else(|| "–".into(), rounded),
            row.corrected_buffer_s
                .map_or_else(|| "–".into(), |buffer| signed_nanoseconds((buffer * 1e9) as i64))
        )?;
    }
    if !findings.recovery.is_empty() {
        writeln!(
            f,
            "\n{:<20} {:>14} {:>14} {:>14}",
            "system recovery", "throughput", "overload", "recovery"
        )?;
    }
    for row in &findings.recovery {
        writeln!(
            f,
            "{:<20} {:>14} {:>14} {:>12.3} s",
            subject(&row.traffic, row.frame_size),
            grouped(row.throughput),
            grouped(row.overload),
            row.mean_s.unwrap_or_default()
        )?;
    }
    if !findings.reset.is_empty() {
        writeln!(f, "\n{:<20} {:>14} {:>14} {:>14}", "reset", "frames/s", "by loss", "by time")?;
    }
    for row in &findings.reset {
        writeln!(
            f,
            "{:<20} {:>14} {:>12.3} s {:>12.3} s",
            subject(&row.traffic, row.frame_size),
            grouped(row.load),
            row.by_loss_s,
            row.by_timestamps_s.unwrap_or_default()
        )?;
    }
    Ok(())
}

fn mlrsearch(f: &mut Formatter<'_>, findings: &MlrsearchFindings) -> fmt::Result {
    if !findings.searches.is_empty() {
        writeln!(
            f,
            "\n{:<20} {:<12} {:>13} {:>13} {:>15}",
            "goal", "", "lower bound", "upper bound", "conditional"
        )?;
    }
    for row in &findings.searches {
        let MlrsearchRow { traffic, frame_size, results, trials, trial_seconds, .. } = row;
        for result in results {
            let bound = |bound: Option<u64>| bound.map_or_else(|| "none".into(), grouped);
            writeln!(
                f,
                "{:<20} {:<12} {:>13} {:>13} {:>15}{}",
                subject(traffic, *frame_size),
                crate::traffic::shortened(&result.goal, 12),
                bound(result.lower),
                bound(result.upper),
                result.conditional_throughput.map_or_else(|| "–".into(), rounded),
                if result.is_regular { "" } else { " *" }
            )?;
        }
        let seconds = duration(*trial_seconds);
        writeln!(f, "{:<20} {trials} trials, {seconds} of traffic", "")?;
    }
    let all = findings.searches.iter().flat_map(|row| &row.results);
    if all.clone().any(|result| !result.is_regular) {
        writeln!(f, "* irregular: a bound is missing, or the bounds are wider than the goal")?;
    }
    Ok(())
}

fn flow_exporter(f: &mut Formatter<'_>, findings: &FlowExporterFindings) -> fmt::Result {
    if findings.points.is_empty() {
        return Ok(());
    }
    writeln!(
        f,
        "\n{:>10} {:>11} {:>10} {:>10} {:>10} {:>9} {:>12}",
        "flows/s", "captured/s", "flow loss", "pkt loss", "Mb/s IP", "rec/pkt", "lost in seq"
    )?;
    for point in &findings.points {
        let export = &point.export;
        let records = export.records as f64 / export.datagrams.max(1) as f64;
        writeln!(
            f,
            "{:>10} {:>11} {:>8.3} % {:>8.3} % {:>10.2} {:>9.1} {:>12}",
            rounded(point.sent_per_s),
            rounded(point.captured_per_s),
            point.flow_loss_percent,
            point.packet_loss_percent,
            point.bps_ip / 1e6,
            records,
            grouped(export.sequence_lost)
        )?;
    }
    let text = match (findings.throughput, findings.loss_begins) {
        (None, _) => "loss at all rates".into(),
        (Some(lower), upper) => lossless_up_to("flows/s", lower, upper),
    };
    writeln!(f, "\n{}", wrapped("result     ", &text))?;
    fields(f, &findings.points)?;
    // Devices also report flows of other hosts.
    let is_sent = |difference: &&FlowDifference| difference.packets_sent.is_some();
    let differs = |point: &&FlowPoint| point.export.differences.iter().any(|it| is_sent(&it));
    let Some(point) = findings.points.iter().find(differs) else { return Ok(()) };
    for difference in point.export.differences.iter().filter(is_sent).take(DIFFERENCES_MAX) {
        let FlowDifference { flow, packets_sent, packets_reported, .. } = difference;
        let (sent, reported, unit) = match packets_sent == packets_reported {
            false => (*packets_sent, *packets_reported, ["packet", "packets"]),
            true => (difference.bytes_sent, difference.bytes_reported, ["byte", "bytes"]),
        };
        let count = |count: Option<u64>| match count {
            None => "none".to_owned(),
            Some(count) => count_of(count, unit[0], unit[1]),
        };
        let (rate, sent, reported) = (grouped(point.load), count(sent), count(reported));
        let text = format!("at {rate} flows/s: {flow}: {sent} sent, {reported} reported");
        writeln!(f, "{}", wrapped("differs    ", &text))?;
    }
    Ok(())
}

/// Writes the accuracy of the fields of records (RFC 6645 section 7), with the fields that are wrong.
fn fields(f: &mut Formatter<'_>, points: &[FlowPoint]) -> fmt::Result {
    let sum = |of: fn(&ExportOutput) -> u64| points.iter().map(|it| of(&it.export)).sum::<u64>();
    let checked = sum(|export| export.checked_records);
    if checked == 0 {
        return Ok(());
    }
    let accurate = grouped(sum(|export| export.accurate_records));
    let text = format!(
        "{accurate} of {} have all fields, with values that were sent",
        count_of(checked, "record", "records")
    );
    writeln!(f, "{}", wrapped("fields     ", &text))?;
    let Some(point) = points.iter().find(|it| it.export.fields.iter().any(FieldOutput::is_wrong))
    else {
        return Ok(());
    };
    let rate = grouped(point.load);
    for field in point.export.fields.iter().filter(|field| field.is_wrong()) {
        let (missing, wrong) = (grouped(field.missing), grouped(field.out_of_range));
        let text = format!(
            "at {rate} flows/s: {}: missing in {missing}, never sent in {wrong} records",
            field.name
        );
        writeln!(f, "{}", wrapped("fields     ", &text))?;
    }
    Ok(())
}

/// Returns a sentence about the rate where loss begins.
fn lossless_up_to(unit: &str, lower: u64, upper: Option<u64>) -> String {
    let lower = grouped(lower);
    match upper.map(grouped) {
        Some(upper) => format!("no loss up to {lower} {unit}; loss begins at {upper} {unit}"),
        None => format!("no loss up to {lower} {unit}"),
    }
}

fn collector(f: &mut Formatter<'_>, findings: &CollectorFindings) -> fmt::Result {
    /// Most streams in the table.
    const STREAMS_MAX: usize = 32;
    if findings.points.is_empty() {
        return Ok(());
    }
    writeln!(
        f,
        "\n{:>11} {:>11} {:>12} {:>11} {:>8} {:>12} {:>9}",
        "records/s", "sent/s", "sent", "datagrams", "Mb/s", "stored", "loss"
    )?;
    for point in &findings.points {
        let unknown = || "–".to_owned();
        writeln!(
            f,
            "{:>11} {:>11} {:>12} {:>11} {:>8.1} {:>12} {:>9}{}",
            grouped(point.load),
            rounded(point.sent_per_s),
            grouped(point.collector.records),
            grouped(point.collector.datagrams),
            point.bps / 1e6,
            point.collector.stored.map_or_else(unknown, grouped),
            point.loss_percent.map_or_else(unknown, |loss| format!("{loss:.3} %")),
            if point.is_tester_limited { " *" } else { "" }
        )?;
    }
    if findings.points.iter().any(|point| point.is_tester_limited) {
        writeln!(f, "* limited by the tester")?;
    }
    if !findings.streams.is_empty() {
        writeln!(
            f,
            "\n{:<21} {:>6} {:>13} {:>11} {:>9}  sequence",
            "source", "domain", "records", "datagrams", "templates"
        )?;
    }
    for stream in findings.streams.iter().take(STREAMS_MAX) {
        let number = |number: Option<u32>| number.map_or_else(|| "–".into(), |it| it.to_string());
        writeln!(
            f,
            "{:<21} {:>6} {:>13} {:>11} {:>9}  {} to {}",
            stream.source,
            stream.domain,
            grouped(stream.records),
            grouped(stream.datagrams),
            grouped(stream.template_datagrams),
            number(stream.first_sequence),
            number(stream.last_sequence)
        )?;
    }
    if let Some(more) = findings.streams.len().checked_sub(STREAMS_MAX).filter(|more| *more > 0) {
        writeln!(f, "and {more} more streams: --json lists all")?;
    }
    if !findings.streams.is_empty() {
        let sum = |of: fn(&StreamSent) -> u64| grouped(findings.streams.iter().map(of).sum());
        let (records, datagrams) = (sum(|it| it.records), sum(|it| it.datagrams));
        writeln!(f, "{:<28} {records:>13} {datagrams:>11}", "all trials")?;
    }
    let is_counted = findings.points.iter().any(|point| point.is_lossless.is_some());
    let text = match (findings.throughput, findings.loss_begins) {
        (Some(lower), upper) => lossless_up_to("records/s", lower, upper),
        (None, Some(_)) => "loss at all rates".into(),
        (None, None) if is_counted => "no rate without loss: the exporters reached none".into(),
        (None, None) => "compare the sent records with those of the collector, or count them with \
                         --received-command"
            .into(),
    };
    writeln!(f, "\n{}", wrapped("result     ", &text))
}

fn ndr(f: &mut Formatter<'_>, findings: &NdrFindings) -> fmt::Result {
    let Some(first) = findings.rows.first() else { return Ok(()) };
    // Connections are searched alone.
    let [unit, drops, latency, max] = match is_connections(&first.traffic) {
        true => ["connections/s", "failed", "rexmit", ""],
        false => ["frames/s", "drops", "latency", "max"],
    };
    writeln!(
        f,
        "\n{:<20} {unit:>13} {:>9} {drops:>8} {latency:>9} {max:>9} {:>6}",
        "non-drop rate", "of max", "limit"
    )?;
    for row in &findings.rows {
        let name = match row.frame_size {
            Some(size) => subject(&row.traffic, size),
            None => row.traffic.clone(),
        };
        let limit = row.limit.map_or("–", Limit::name);
        for (number, point) in row.best.iter().chain(&row.points).enumerate() {
            let nanoseconds =
                |value: Option<i64>| value.map_or_else(|| "–".into(), signed_nanoseconds);
            let [latency, max] = match is_connections(&row.traffic) {
                true => [percent(point.retransmitted_percent), String::new()],
                false => [
                    nanoseconds(point.latency_mean_ns.map(|mean| mean as i64)),
                    nanoseconds(point.latency_max_ns),
                ],
            };
            writeln!(
                f,
                "{:<20} {:>13} {:>7.2} % {:>6.3} % {latency:>9} {max:>9} {:>6}",
                if number == 0 { &*name } else { "" },
                grouped(point.load),
                point.load as f64 * 100.0 / row.rate_max.max(1) as f64,
                point.drop_percent,
                if number == 0 { limit } else { "" }
            )?;
        }
        if row.best.is_none() {
            writeln!(f, "{name:<20} {:>13} {:>47}", "none", limit)?;
        }
    }
    Ok(())
}

fn y1564(f: &mut Formatter<'_>, findings: &Y1564Findings) -> fmt::Result {
    if !findings.rows.is_empty() {
        writeln!(
            f,
            "\n{:<12} {:<11} {:>5} {:>6} {:>9} {:>9} {:>8} {:>8} {:>4}",
            "service", "test", "size", "load", "IR b/s", "FLR", "FTD", "FDV", ""
        )?;
    }
    for row in &findings.rows {
        let text = format!(
            "{:<12} {:<11} {:>5} {:>4.0} %",
            crate::traffic::shortened(&row.service, 12),
            row.test.name(),
            row.frame_size,
            row.load_percent,
        );
        if row.directions.is_empty() {
            service_figures(f, &text, &row.total)?;
            continue;
        }
        // The service passes if each direction does, so figures of both together say little.
        writeln!(f, "{text} {:>42}", passed(row.is_passed()))?;
        for direction in &row.directions {
            let text = format!("  {:<35}", crate::traffic::shortened(&direction.direction, 35));
            service_figures(f, &text, direction)?;
        }
    }
    Ok(())
}

/// Writes the figures of a direction behind a text of 37 columns.
fn service_figures(f: &mut Formatter<'_>, text: &str, direction: &Y1564Direction) -> fmt::Result {
    let nanoseconds = |value: Option<i64>| value.map_or_else(|| "–".into(), signed_nanoseconds);
    writeln!(
        f,
        "{text} {:>9} {:>7.3} % {:>8} {:>8} {:>4}",
        scaled(direction.ir_bps),
        direction.flr * 100.0,
        nanoseconds(direction.ftd_mean_ns.map(|mean| mean as i64)),
        nanoseconds(direction.fdv_ns),
        passed(direction.is_passed())
    )?;
    match direction.availability {
        Some(availability) => {
            writeln!(f, "{:<12} availability {:.4} %", "", availability * 100.0)
        }
        None => Ok(()),
    }
}

const fn passed(is_passed: bool) -> &'static str {
    if is_passed { "pass" } else { "FAIL" }
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.3} %"))
}

fn subject(traffic: &str, frame_size: u32) -> String {
    format!("{traffic:<10} {frame_size:>5} B")
}
