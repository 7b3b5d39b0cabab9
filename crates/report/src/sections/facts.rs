//! Facts about runs: device, machine, interfaces, report fields of the RFCs.

use wirestorm_store::record::RunRecord;

use super::{Context, fields, kind};
use crate::document::{Cell, Column, Section, Table, Unit, scaled};

/// Text of a fact that nobody gave.
pub(super) const NOT_GIVEN: &str = "not given";

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let mut device =
        Section::new("Device under test", "RFC 9971 section 4.9.3, RFC 2544 section 7");
    device.table(device_table(context));
    let mut fields = Section::new("Parameters and report fields", "");
    fields.table(fields::table(context));
    fields.table(deviations(context));
    let mut machine = Section::new("Tester", "");
    machine.table(machine_table(context));
    machine.table(interfaces(context));
    machine.table(backends(context));
    vec![device, fields, machine]
}

/// Returns a time in UTC; empty without one.
pub(crate) fn time(unix_ns: u64) -> String {
    let time = jiff::Timestamp::from_nanosecond(unix_ns.into());
    match time {
        Ok(time) if unix_ns > 0 => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        _ => String::new(),
    }
}

/// A table with a row for each fact and a column for each run.
pub(super) struct Facts<'a, 'b> {
    context: &'a Context<'b>,
    table: Table,
}

impl<'a, 'b> Facts<'a, 'b> {
    pub(super) fn new(context: &'a Context<'b>, caption: &str, more: &[&str]) -> Self {
        let mut columns = vec![Column::text("Fact")];
        columns.extend(more.iter().map(|title| Column::text(title)));
        columns.extend((0..context.runs.len()).map(|run| {
            let title = if context.has_several() { context.label(run) } else { "Value" };
            Column::text(title)
        }));
        Self { context, table: Table::new(caption, columns) }
    }

    /// Adds a fact, unless no run has it.
    pub(super) fn add(&mut self, name: &str, more: &[&str], value: impl Fn(usize) -> String) {
        let values: Vec<String> = (0..self.context.runs.len()).map(value).collect();
        if values.iter().all(String::is_empty) {
            return;
        }
        let mut row = vec![Cell::text(name)];
        row.extend(more.iter().map(|text| Cell::text(*text)));
        row.extend(values.into_iter().map(Cell::text));
        self.table.row(row);
    }

    pub(super) fn table(self) -> Table {
        self.table
    }
}

fn device_table(context: &Context<'_>) -> Table {
    let mut facts = Facts::new(context, "Device under test", &[]);
    let record = |run: usize| &context.runs[run].record;
    facts.add("Name", &[], |run| {
        match (&*record(run).device.name, context.runs[run].is_simulated()) {
            ("", true) => "simulated device".to_owned(),
            (name, true) => format!("{name} (simulated)"),
            ("", false) => NOT_GIVEN.to_owned(),
            (name, false) => name.to_owned(),
        }
    });
    let mut names: Vec<&String> =
        context.runs.iter().flat_map(|run| run.record.device.facts.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        facts.add(name, &[], |run| record(run).device.facts.get(name).cloned().unwrap_or_default());
    }
    facts.table()
}

fn machine_table(context: &Context<'_>) -> Table {
    let mut facts = Facts::new(context, "Machine and program", &[]);
    let record = |run: usize| &context.runs[run].record;
    facts.add("Run", &[], |run| record(run).id.clone());
    facts.add("Kind", &[], |run| kind(&context.runs[run]));
    facts.add("Command", &[], |run| command(record(run)));
    facts.add("Plan", &[], |run| {
        context.runs[run].run_result().map(|it| it.plan.join(", ")).unwrap_or_default()
    });
    facts.add("Input files", &[], |run| {
        record(run).files.keys().cloned().collect::<Vec<_>>().join(", ")
    });
    facts.add("Start", &[], |run| time(record(run).started_unix_ns));
    facts.add("End", &[], |run| time(record(run).ended_unix_ns.unwrap_or(0)));
    facts.add("Wirestorm", &[], |run| record(run).version.clone());
    facts.add("Machine", &[], |run| record(run).host.name.clone());
    facts.add("Kernel", &[], |run| record(run).host.kernel.clone());
    facts.add("Architecture", &[], |run| record(run).host.architecture.clone());
    facts.add("CPUs", &[], |run| match record(run).host.cpus {
        0 => String::new(),
        cpus => cpus.to_string(),
    });
    let machine = |run: usize| &record(run).machine;
    facts.add("CPU", &[], |run| machine(run).cpu_model.clone());
    facts.add("Isolated CPUs", &[], |run| machine(run).cpus_isolated.clone());
    facts.add("CPU governor", &[], |run| machine(run).cpu_governor.clone());
    facts.add("Clock source", &[], |run| machine(run).clock_source.clone());
    facts.add("Memory", &[], |run| match machine(run).memory_bytes {
        0 => String::new(),
        bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    });
    facts.add("Hardware", &[], |run| machine(run).product.clone());
    facts.add("Hypervisor", &[], |run| machine(run).hypervisor.clone().unwrap_or_default());
    facts.add("Operating system", &[], |run| machine(run).operating_system.clone());
    facts.add("Kernel command line", &[], |run| machine(run).kernel_command_line.clone());
    facts.table()
}

/// Returns the command line as a shell reads it.
fn command(record: &RunRecord) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:=,@%+".contains(it);
    let word = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    record.command.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn interfaces(context: &Context<'_>) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::text("Interface"),
        Column::text("Kind"),
        Column::text("Driver"),
        Column::text("Version"),
        Column::text("Firmware"),
        Column::number("MTU", Unit::Bytes),
        Column::text("Speed"),
        Column::number("Transmit queues", Unit::None),
        Column::number("Receive queues", Unit::None),
    ];
    let mut table = Table::new("Interfaces", columns);
    for (run, it) in context.runs.iter().enumerate() {
        for interface in &it.record.interfaces {
            let speed = interface.speed_bps.map(|speed| {
                let (number, unit) = scaled(speed as f64, Unit::BitsPerSecond);
                format!("{number} {unit}")
            });
            table.row(vec![
                Cell::text(context.label(run)),
                Cell::text(interface.interface.clone()),
                Cell::text(interface.kind.clone()),
                Cell::text(interface.driver.clone()),
                Cell::text(interface.driver_version.clone()),
                Cell::text(interface.firmware.clone()),
                Cell::count(interface.mtu.into()),
                Cell::text(speed.unwrap_or_default()),
                Cell::count(interface.transmit_queues.into()),
                Cell::count(interface.receive_queues.into()),
            ]);
        }
    }
    context.finish(table)
}

fn backends(context: &Context<'_>) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::text("Port"),
        Column::text("Interface"),
        Column::text("Sends by"),
        Column::text("Departure stamps"),
        Column::text("Arrival stamps"),
        Column::text("Reason for the backend"),
    ];
    let mut table = Table::new("Ports", columns);
    for (run, it) in context.runs.iter().enumerate() {
        for port in it.run_result().iter().flat_map(|result| &result.ports) {
            let tx = port.tx.as_ref().and_then(|tx| tx.timestamp_point.clone());
            let rx = port.rx.as_ref().and_then(|rx| rx.timestamp_point.clone());
            table.row(vec![
                Cell::text(context.label(run)),
                Cell::text(port.name.clone()),
                Cell::text(port.interface.clone()),
                Cell::text(port.backend.clone().unwrap_or_default()),
                Cell::text(tx.unwrap_or_default()),
                Cell::text(rx.unwrap_or_default()),
                Cell::text(port.backend_reason.clone().unwrap_or_default()),
            ]);
        }
    }
    context.finish(table)
}

fn deviations(context: &Context<'_>) -> Table {
    let columns = vec![Column::text("Run"), Column::text("Deviation")];
    let mut table = Table::new("Deviations from the documents of the method", columns);
    for (run, it) in context.runs.iter().enumerate() {
        for deviation in it.bench_result().iter().flat_map(|result| &result.deviations) {
            table.row(vec![Cell::text(context.label(run)), Cell::text(deviation.clone())]);
        }
    }
    context.finish(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc() {
        assert_eq!(time(1_795_734_301_000_000_000), "2026-11-26 23:05:01 UTC");
        assert_eq!(time(0), "");
    }
}
