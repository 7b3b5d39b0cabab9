//! Programs: converts numbered commands to steps with labels.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use wirestorm_base::time::Duration;
use wirestorm_model::program::{
    Comparison, CountAmount, JumpCondition, Label, Step, TimeVariable, UserCounter, Variable,
};

use super::buffers::{Bytes, entry};
use crate::document::error::PlanError;
use crate::document::value_at::{Fields, ValueAt};
use crate::emulation::Transport;

/// Tick of TRex's clock in milliseconds (`TICK_MSEC` of `tick_cmd_clock.h`).
const TICK_MS: NonZeroU16 = NonZeroU16::new(10).expect("more than 0");

const PROGRAM: [&str; 3] = ["commands", "stream", "addon"];
const COMPARISONS: [(&str, Comparison); 6] = [
    ("lt", Comparison::Less),
    ("le", Comparison::LessOrEqual),
    ("eq", Comparison::Equal),
    ("ne", Comparison::NotEqual),
    ("ge", Comparison::GreaterOrEqual),
    ("gt", Comparison::Greater),
];

/// Program of one side, and its transport.
#[derive(Clone, Debug, Default)]
pub(super) struct SideProgram {
    pub(super) transport: Transport,
    pub(super) steps: Vec<Step>,
    /// Whether its datagrams start with their time of departure.
    pub(super) is_stamped: bool,
}

impl SideProgram {
    /// Returns the first bytes that the program sends, without the fill.
    pub(super) fn first_bytes(&self) -> &[u8] {
        let sent = |step: &Step| matches!(step, Step::Send { .. } | Step::SendDatagram { .. });
        match self.steps.iter().find(|step| sent(step)) {
            Some(Step::Send { text, .. } | Step::SendDatagram { text, .. }) => text,
            _ => &[],
        }
    }
}

pub(super) fn read(
    place: &ValueAt<'_>,
    buffers: &[Bytes],
    groups: &[String],
    notes: &mut Vec<String>,
) -> Result<SideProgram, PlanError> {
    let fields = place.fields(&PROGRAM)?;
    let is_stream = fields.get("stream").map_or(Ok(true), |it| it.boolean())?;
    let transport = if is_stream { Transport::Tcp } else { Transport::Udp };
    let is_stamped = match fields.get("addon") {
        Some(addon) => is_latency(&addon, transport, notes)?,
        None => false,
    };
    let commands = fields.required("commands", "a list of commands")?.items("commands")?;
    let mut reading = ProgramReader {
        buffers,
        groups,
        transport,
        length: commands.len(),
        targets: BTreeMap::new(),
    };
    let mut steps = Vec::new();
    for (position, command) in commands.iter().enumerate() {
        steps.push(reading.command(command, position)?);
    }
    // Insert a label before each jump target. The last one may be after the last command.
    let mut labelled = Vec::new();
    let mut targets = reading.targets.into_iter().peekable();
    for (position, step) in steps.into_iter().enumerate() {
        while let Some((_, label)) = targets.next_if(|(target, _)| *target == position) {
            labelled.push(Step::Label(label));
        }
        labelled.extend(step);
    }
    labelled.extend(targets.map(|(_, label)| Step::Label(label)));
    Ok(SideProgram { transport, steps: labelled, is_stamped })
}

/// Returns whether the add-on is `latency` on UDP. TRex ignores it on TCP, and ignores any other.
fn is_latency(
    place: &ValueAt<'_>,
    transport: Transport,
    notes: &mut Vec<String>,
) -> Result<bool, PlanError> {
    let name = place.string("the name of an add-on")?;
    let is_known = name == "latency";
    let is_latency = is_known && transport == Transport::Udp;
    if !is_latency {
        let what = if is_known { "needs UDP" } else { "is unknown to TRex" };
        notes.push(format!("{}: {name} {what}, so it has no effect, as in TRex", place.path()));
    }
    Ok(is_latency)
}

struct ProgramReader<'a> {
    buffers: &'a [Bytes],
    groups: &'a [String],
    transport: Transport,
    length: usize,
    targets: BTreeMap<usize, Label>,
}

impl ProgramReader<'_> {
    /// Converts one command. Returns `None` for one that needs no step.
    fn command(&mut self, place: &ValueAt<'_>, position: usize) -> Result<Option<Step>, PlanError> {
        const NAME: &str = "the name of a command";
        let name = place.value().get("name").and_then(serde_json::Value::as_str);
        let Some(name) = name else {
            return Err(place.message_error(format!("has no name: {NAME}")));
        };
        let fields = |known: &[&str]| {
            let mut all = vec!["name"];
            all.extend(known);
            place.fields(&all)
        };
        self.check_transport(place, name)?;
        let step = match name {
            "tx" => {
                let Bytes { text, size, fill } = self.buffer(&fields(&["buf_index"])?)?;
                Step::Send { text, size, fill }
            }
            "tx_msg" => {
                let Bytes { text, size, fill } = self.buffer(&fields(&["buf_index"])?)?;
                Step::SendDatagram { text, size, fill }
            }
            "rx" => {
                let fields = fields(&["min_bytes", "clear"])?;
                let bytes = need(&fields, "min_bytes", 0, u64::MAX)?;
                match flag(&fields, "clear")? {
                    true => Step::Receive(bytes),
                    false => Step::ReceiveTotal(bytes),
                }
            }
            "rx_msg" => {
                let fields = fields(&["min_pkts", "clear"])?;
                let count = need(&fields, "min_pkts", 1, u64::MAX)?;
                Step::ReceiveDatagrams { count, clear: flag(&fields, "clear")? }
            }
            "keepalive" => {
                let fields = fields(&["msec", "rx_mode"])?;
                let millis = need(&fields, "msec", 0, u32::MAX.into())?;
                let receive_only = flag(&fields, "rx_mode")?;
                Step::SetIdleTimeout { time: Duration::from_millis(millis), receive_only }
            }
            "tx_mode" => {
                let flags = need(&fields(&["flags"])?, "flags", 0, u64::MAX)?;
                Step::SetBlocking(flags & 1 == 0)
            }
            "connect" => {
                fields(&[])?;
                Step::Connect
            }
            "reset" => {
                fields(&[])?;
                Step::Reset
            }
            "nc" => {
                fields(&[])?;
                Step::WaitForClose
            }
            "close_msg" => {
                fields(&[])?;
                return Ok(self.end(position));
            }
            "delay" => {
                let time = micros(&fields(&["usec"])?, "usec")?;
                Step::Delay { min: time, max: time }
            }
            "delay_rnd" => {
                let fields = fields(&["min_usec", "max_usec"])?;
                let (min, max) = (micros(&fields, "min_usec")?, micros(&fields, "max_usec")?);
                if max < min {
                    return Err(place.message_error("max_usec is less than min_usec"));
                }
                Step::Delay { min, max }
            }
            "set_template" => {
                let group = need(&fields(&["tg_id"])?, "tg_id", 1, u64::MAX)?;
                let name = usize::try_from(group - 1).ok().and_then(|it| self.groups.get(it));
                let Some(name) = name else {
                    let found = format!("group {group}");
                    let expected = format!("one of the {} groups, from 1", self.groups.len());
                    return Err(place.error(found, expected));
                };
                Step::SelectGroup(name.clone())
            }
            "exec_template" => {
                fields(&[])?;
                Step::RunFlow
            }
            _ => self.control(place, name, position)?,
        };
        Ok(Some(step))
    }

    /// Converts commands for jumps, variables, times and counters.
    fn control(
        &mut self,
        place: &ValueAt<'_>,
        name: &str,
        position: usize,
    ) -> Result<Step, PlanError> {
        let fields = |known: &[&str]| {
            let mut all = vec!["name"];
            all.extend(known);
            place.fields(&all)
        };
        let variable =
            |fields: &Fields<'_>| number(fields, "id", Variable::COUNT).map(Variable::named);
        let time = |fields: &Fields<'_>, name| {
            number(fields, name, TimeVariable::COUNT).map(TimeVariable::named)
        };
        Ok(match name {
            "set_var" => {
                let fields = fields(&["id", "val"])?;
                Step::Set {
                    variable: variable(&fields)?,
                    value: need(&fields, "val", 0, u64::MAX)?,
                }
            }
            "add_var" => {
                let fields = fields(&["id", "val"])?;
                let value = fields.required("val", "a whole number")?;
                let value = match value.value().as_i64() {
                    Some(number) => number.cast_unsigned(),
                    None => value.integer(0, u64::MAX)?,
                };
                Step::Add { variable: variable(&fields)?, value }
            }
            "jmp_nz" => {
                let fields = fields(&["id", "offset"])?;
                let to = self.target(&fields, position)?;
                Step::DecrementAndJump { variable: variable(&fields)?, to }
            }
            "jmp_cmp" => {
                let fields = fields(&["id", "offset", "cmp_op", "cmp_val"])?;
                let to = self.target(&fields, position)?;
                if fields.get("id").is_none() {
                    return Ok(Step::Jump { to, when: JumpCondition::Always });
                }
                let operator = fields.required("cmp_op", "gt, lt, eq, ge, le or ne")?;
                let text = operator.text("gt, lt, eq, ge, le or ne")?;
                let Some((_, comparison)) = COMPARISONS.iter().find(|(name, _)| *name == text)
                else {
                    return Err(operator.unexpected("gt, lt, eq, ge, le or ne"));
                };
                let when = JumpCondition::Compares {
                    variable: variable(&fields)?,
                    comparison: *comparison,
                    value: need(&fields, "cmp_val", 0, u64::MAX)?,
                };
                Step::Jump { to, when }
            }
            "jmp_dp" => {
                let fields = fields(&["id", "offset", "duration"])?;
                let to = self.target(&fields, position)?;
                let (span, since) = (seconds(&fields, "duration")?, time(&fields, "id")?);
                Step::Jump { to, when: JumpCondition::Within { span, since } }
            }
            "set_tick_var" => Step::StoreTime(time(&fields(&["id"])?, "id")?),
            "add_tick_var" => {
                let fields = fields(&["id", "duration"])?;
                Step::AdvanceTime { time: time(&fields, "id")?, by: seconds(&fields, "duration")? }
            }
            "add_stats" => {
                let fields = fields(&["stats_id", "val"])?;
                let counter = UserCounter::new(number(&fields, "stats_id", UserCounter::COUNT)?)
                    .ok_or_else(|| place.message_error("has no such statistic"))?;
                let what = CountAmount::Number(need(&fields, "val", 0, u64::MAX)?);
                Step::AddToCounter { counter, what }
            }
            "add_tick_stats" => {
                let fields = fields(&["stats_id", "var_id"])?;
                let counter = UserCounter::new(number(&fields, "stats_id", UserCounter::COUNT)?)
                    .ok_or_else(|| place.message_error("has no such statistic"))?;
                let time = time(&fields, "var_id")?;
                Step::AddToCounter { counter, what: CountAmount::Since { time, unit: TICK_MS } }
            }
            _ => {
                let message = format!("found a command {name:?}, which TRex does not have");
                return Err(place.message_error(message));
            }
        })
    }

    fn check_transport(&self, place: &ValueAt<'_>, name: &str) -> Result<(), PlanError> {
        let needs = match name {
            "tx" | "rx" | "tx_mode" | "connect" | "reset" | "nc" => Transport::Tcp,
            "tx_msg" | "rx_msg" | "keepalive" | "close_msg" => Transport::Udp,
            _ => return Ok(()),
        };
        // TRex's own profiles also set the idle time in TCP programs, where it has no effect.
        if needs == self.transport || name == "keepalive" {
            return Ok(());
        }
        let (of, program) = match needs {
            Transport::Tcp => ("TCP", "UDP"),
            Transport::Udp => ("UDP", "TCP"),
        };
        Err(place.message_error(format!("{name} is a command of {of}, in a program of {program}")))
    }

    fn buffer(&self, fields: &Fields<'_>) -> Result<Bytes, PlanError> {
        let place = fields.required("buf_index", "the number of a buffer")?;
        entry(&place, self.buffers, "buffers").cloned()
    }

    /// Returns a jump to the end of the program, or `None` at its last command.
    fn end(&mut self, position: usize) -> Option<Step> {
        let is_last = position + 1 == self.length;
        (!is_last).then(|| Step::Jump { to: self.label(self.length), when: JumpCondition::Always })
    }

    fn target(&mut self, fields: &Fields<'_>, position: usize) -> Result<Label, PlanError> {
        let place = fields.required("offset", "a number of commands")?;
        let target = place
            .value()
            .as_i64()
            .and_then(|offset| i64::try_from(position).ok()?.checked_add(offset))
            .and_then(|target| usize::try_from(target).ok())
            .filter(|target| *target <= self.length);
        let target = target.ok_or_else(|| {
            place.unexpected("a number of commands, to a target within the program")
        })?;
        Ok(self.label(target))
    }

    fn label(&mut self, target: usize) -> Label {
        let next = Label(self.targets.len() as u32);
        *self.targets.entry(target).or_insert(next)
    }
}

fn need(fields: &Fields<'_>, name: &str, min: u64, max: u64) -> Result<u64, PlanError> {
    fields.required(name, "a whole number")?.integer(min, max)
}

/// Reads an integer below `count`.
fn number(fields: &Fields<'_>, name: &str, count: usize) -> Result<usize, PlanError> {
    need(fields, name, 0, count as u64 - 1).map(|it| it as usize)
}

fn flag(fields: &Fields<'_>, name: &str) -> Result<bool, PlanError> {
    fields.get(name).map_or(Ok(false), |it| it.boolean())
}

/// Reads microseconds, which TRex's clients may write as fractions.
fn micros(fields: &Fields<'_>, name: &str) -> Result<Duration, PlanError> {
    const EXPECTED: &str = "microseconds, at most 4294967295";
    let place = fields.required(name, EXPECTED)?;
    match place.value().as_f64() {
        Some(micros) if (0.0..=f64::from(u32::MAX)).contains(&micros) => {
            Ok(Duration::from_micros(micros.round() as u64))
        }
        _ => Err(place.unexpected(EXPECTED)),
    }
}

/// Reads seconds, rounded to milliseconds.
fn seconds(fields: &Fields<'_>, name: &str) -> Result<Duration, PlanError> {
    const EXPECTED: &str = "seconds, at most 49 days";
    let place = fields.required(name, EXPECTED)?;
    match place.value().as_f64().map(|seconds| (seconds * 1e3).round()) {
        Some(millis) if (0.0..=f64::from(u32::MAX)).contains(&millis) => {
            Ok(Duration::from_millis(millis as u64))
        }
        _ => Err(place.unexpected(EXPECTED)),
    }
}
