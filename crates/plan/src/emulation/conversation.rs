//! Programs made from captured conversations.

use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::{self, Action, Conversation, Side, Turn};

use super::Tcp;
use super::delay::read_delay;
use super::dialogue::{Dialogue, LoadCapture};
use super::types::Transport;
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

pub(super) const CONVERSATION: [&str; 4] = ["file", "flow", "timing", "server_delay"];

/// Returns the default TCP settings of conversations. Nagle's algorithm is off: it would hold back
/// the last short segment of a message until the peer's delayed acknowledgement.
pub(super) fn default_tcp() -> Tcp {
    Tcp { no_delay: Some(true), ..Tcp::default() }
}

/// Maximum delay: a step has 32 bits for microseconds.
const DELAY_MAX: Duration = Duration::from_micros(u32::MAX as u64);

/// Pauses of a dialogue made from a conversation.
struct Timing {
    /// Whether both sides pause as captured.
    keeps_pauses: bool,
    /// Delay of the server before each answer, if captured pauses are dropped.
    server_delay: Option<Step>,
}

/// Reads the field `conversation`. Returns a dialogue for each selected flow of the capture; at
/// least one.
pub(super) fn read(
    place: &ValueAt<'_>,
    load: &mut LoadCapture<'_>,
) -> Result<Vec<Dialogue>, PlanError> {
    const FILE: &str = "the name of a capture file";
    if place.value().is_string() {
        let timing = Timing { keeps_pauses: true, server_delay: None };
        return find(place, None, &timing, load);
    }
    if !place.value().is_object() {
        return Err(place.unexpected(format!("{FILE}, or the fields {}", CONVERSATION.join(", "))));
    }
    let fields = place.fields(&CONVERSATION)?;
    let file = fields.required("file", FILE)?;
    file.string(FILE)?;
    let server_delay = fields.get("server_delay").map(|it| read_delay(&it)).transpose()?;
    let keeps = match fields.get("timing") {
        None => server_delay.is_none(),
        Some(timing) => match timing.text("keep or drop")? {
            "keep" if server_delay.is_some() => {
                return Err(timing.unexpected("drop, because server_delay is set"));
            }
            "keep" => true,
            "drop" => false,
            _ => return Err(timing.unexpected("keep or drop")),
        },
    };
    find(&file, fields.get("flow"), &Timing { keeps_pauses: keeps, server_delay }, load)
}

fn find(
    file: &ValueAt<'_>,
    flow: Option<ValueAt<'_>>,
    timing: &Timing,
    load: &mut LoadCapture<'_>,
) -> Result<Vec<Dialogue>, PlanError> {
    let name = file.string("the name of a capture file")?;
    let flows = load(name).map_err(|message| file.message_error(message))?.flows;
    let numbers = match &flow {
        None => None,
        Some(place) => Some(read_numbers(place, flows.len())?),
    };
    let is_selected = |number| numbers.as_ref().is_none_or(|numbers| numbers.contains(&number));
    let mut dialogues = Vec::new();
    for (index, found) in flows.into_iter().enumerate() {
        let number = index + 1;
        if !is_selected(number) {
            continue;
        }
        let wrong = |message: String| {
            let others = if flow.is_none() { "; or select other flows with `flow`" } else { "" };
            file.message_error(format!("{name}: flow {number}: {message}{others}"))
        };
        let conversation = found.map_err(|error| wrong(error.to_string()))?;
        if !conversation.has_data() {
            if flow.is_some() {
                return Err(wrong("neither side sends data".to_owned()));
            }
            continue;
        }
        dialogues.push(to_dialogue(number, conversation, timing).map_err(wrong)?);
    }
    match dialogues.as_mut_slice() {
        [] => Err(file.message_error(format!("{name}: no flow with data"))),
        [one] => {
            one.part = None;
            Ok(dialogues)
        }
        _ => Ok(dialogues),
    }
}

/// Reads the number of a flow, or a list of numbers.
fn read_numbers(place: &ValueAt<'_>, count: usize) -> Result<Vec<usize>, PlanError> {
    let number = |place: &ValueAt<'_>| {
        place.integer(1, count as u64).map(|number| number as usize).map_err(|_| {
            let flows = if count == 1 { "1 flow".to_owned() } else { format!("{count} flows") };
            place.unexpected(format!("the number of one of the capture's {flows}, from 1"))
        })
    };
    if !place.value().is_array() {
        return Ok(vec![number(place)?]);
    }
    let items = place.items("numbers of flows")?;
    if items.is_empty() {
        return Err(place.unexpected("at least one number of a flow"));
    }
    items.iter().map(number).collect()
}

/// Converts flow `number` of a capture into a dialogue with the captured pauses.
pub(crate) fn captured_dialogue(
    number: usize,
    conversation: Conversation,
) -> Result<Dialogue, String> {
    to_dialogue(number, conversation, &Timing { keeps_pauses: true, server_delay: None })
}

fn to_dialogue(
    number: usize,
    conversation: Conversation,
    timing: &Timing,
) -> Result<Dialogue, String> {
    let mut notes = Vec::new();
    if !conversation.has_beginning {
        notes.push(format!(
            "flow {number} of the capture has no SYN: {}, which sends first, is the client",
            conversation.client
        ));
    }
    let transport = match conversation.transport {
        conversation::Transport::Tcp => Transport::Tcp,
        conversation::Transport::Udp => Transport::Udp,
    };
    Ok(Dialogue {
        is_http2: false,
        part: Some(number.to_string()),
        on_demand: None,
        client: steps(&conversation.turns, Side::Client, transport, timing)?,
        server: steps(&conversation.turns, Side::Server, transport, timing)?,
        transport,
        port: conversation.server.port(),
        notes,
    })
}

/// Returns the steps of one side.
fn steps(
    turns: &[Turn],
    side: Side,
    transport: Transport,
    timing: &Timing,
) -> Result<Vec<Step>, String> {
    let mut steps = build_steps(turns, side, transport, timing)?;
    make_sends_non_blocking(&mut steps);
    Ok(steps)
}

/// Makes sends non-blocking if a pause follows one of them. The pause then starts when the data
/// leaves, and not when it is acknowledged.
fn make_sends_non_blocking(steps: &mut Vec<Step>) {
    let pauses = |two: &[Step]| matches!(two, [Step::Send { .. }, Step::Delay { .. }]);
    if !steps.windows(2).any(pauses) {
        return;
    }
    // The reset would discard data that the peer has not acknowledged.
    let is_send = |step: &Step| matches!(step, Step::Send { .. });
    let is_receive = |step: &Step| matches!(step, Step::Receive(_) | Step::WaitForClose);
    if steps.last() == Some(&Step::Reset)
        && let Some(last) = steps.iter().rposition(is_send)
        && !steps[last..].iter().any(is_receive)
    {
        steps.insert(last, Step::SetBlocking(true));
    }
    steps.insert(0, Step::SetBlocking(false));
}

fn build_steps(
    turns: &[Turn],
    side: Side,
    transport: Transport,
    timing: &Timing,
) -> Result<Vec<Step>, String> {
    let steps = Vec::new();
    let mut builder =
        StepBuilder { side, transport, timing, steps, awaited: 0, is_peer_done: false };
    builder.extend_idle_timeout(turns);
    for turn in turns {
        match &turn.act {
            Action::Send(bytes) if turn.side == side => builder.send(bytes, turn.gap)?,
            Action::Close if turn.side == side => {
                builder.pause(turn.gap)?;
                // The connection closes after the last step.
                return Ok(builder.steps);
            }
            Action::Reset if turn.side == side => {
                builder.pause(turn.gap)?;
                builder.steps.push(Step::Reset);
                return Ok(builder.steps);
            }
            Action::Send(bytes) if transport == Transport::Tcp => {
                builder.awaited += bytes.len() as u64
            }
            Action::Send(_) => builder.awaited += 1,
            Action::Close | Action::Reset => builder.is_peer_done = true,
        }
    }
    // If the capture ends before the connection, the client closes it.
    builder.is_peer_done |= side == Side::Server && transport == Transport::Tcp;
    builder.wait_for_peer();
    Ok(builder.steps)
}

/// Returns the maximum of a delay; for a mean, a value that it practically never exceeds.
fn delay_upper_bound(delay: &Step) -> Duration {
    let times = |time: Duration, factor: u64| Duration::from_nanos(time.as_nanos() * factor);
    match delay {
        Step::Delay { max, .. } => *max,
        Step::RandomDelay { mean, stddev: Some(deviation) } => {
            mean.saturating_add(times(*deviation, 10))
        }
        Step::RandomDelay { mean, stddev: None } => times(*mean, 20),
        _ => Duration::ZERO,
    }
}

/// Builds the steps of one side from the turns of both.
struct StepBuilder<'a> {
    side: Side,
    transport: Transport,
    timing: &'a Timing,
    steps: Vec<Step>,
    /// Bytes (TCP) or datagrams (UDP) of the other side that no step waits for yet.
    awaited: u64,
    /// Whether the other side has closed and no step waits for that yet.
    is_peer_done: bool,
}

impl StepBuilder<'_> {
    /// Raises the idle timeout of a UDP flow to twice its longest pause if the default is too
    /// short.
    fn extend_idle_timeout(&mut self, turns: &[Turn]) {
        /// Half of the default idle timeout.
        const LONG: Duration = Duration::from_millis(500);
        let longest = if self.timing.keeps_pauses {
            turns.iter().map(|turn| turn.gap).max().unwrap_or(Duration::ZERO)
        } else {
            self.timing.server_delay.as_ref().map_or(Duration::ZERO, delay_upper_bound)
        };
        if self.transport == Transport::Udp && longest >= LONG {
            let time = Duration::from_millis(longest.as_nanos() / 1_000_000 * 2);
            self.steps.push(Step::SetIdleTimeout { time, receive_only: false });
        }
    }

    /// Adds steps that wait for the pending data and FIN of the other side. Returns whether there
    /// were any.
    fn wait_for_peer(&mut self) -> bool {
        let listens = self.awaited > 0 || self.is_peer_done;
        if self.awaited > 0 {
            self.steps.push(match self.transport {
                Transport::Tcp => Step::Receive(self.awaited),
                Transport::Udp => Step::ReceiveDatagrams { count: self.awaited, clear: true },
            });
            self.awaited = 0;
        }
        if self.is_peer_done {
            self.steps.push(Step::WaitForClose);
            self.is_peer_done = false;
        }
        listens
    }

    /// Adds steps that wait for the other side and then pause for `gap`. Returns whether there were
    /// any.
    ///
    /// # Errors
    /// The pause exceeds [`DELAY_MAX`].
    fn pause(&mut self, gap: Duration) -> Result<bool, String> {
        /// Resolution of the connections' clock.
        const TICK: Duration = Duration::from_millis(1);
        let listened = self.wait_for_peer();
        if !self.timing.keeps_pauses {
            if listened && self.side == Side::Server {
                self.steps.extend(self.timing.server_delay.clone());
            }
            return Ok(listened);
        }
        let ticks = (gap.as_nanos() + TICK.as_nanos() / 2) / TICK.as_nanos();
        let delay = Duration::from_millis(ticks);
        if delay > DELAY_MAX {
            let seconds = delay.as_secs_f64();
            return Err(format!("a pause of {seconds:.0} s, at most 4294 s: set `timing: drop`"));
        }
        if delay > Duration::ZERO {
            // A delay ends at the next tick: half a tick less gives the nearest one.
            let nearly = Duration::from_nanos(delay.as_nanos() - TICK.as_nanos() / 2);
            self.steps.push(Step::Delay { min: nearly, max: nearly });
        }
        Ok(listened || delay > Duration::ZERO)
    }

    fn send(&mut self, bytes: &[u8], gap: Duration) -> Result<(), String> {
        let has_waited = self.pause(gap)?;
        if self.transport == Transport::Udp {
            let (text, size) = (bytes.to_vec(), bytes.len() as u32);
            self.steps.push(Step::SendDatagram { text, size, fill: Vec::new() });
            return Ok(());
        }
        match self.steps.last_mut() {
            // No wait separates it from the previous send, so both become one.
            Some(Step::Send { text, size, .. }) if !has_waited => {
                text.extend_from_slice(bytes);
                *size = text.len() as u32;
            }
            _ => {
                let (text, size) = (bytes.to_vec(), bytes.len() as u32);
                self.steps.push(Step::Send { text, size, fill: Vec::new() });
            }
        }
        Ok(())
    }
}
