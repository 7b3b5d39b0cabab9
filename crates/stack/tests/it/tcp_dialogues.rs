//! Dialogues of one connection with a scripted peer, with times; `dialogues/README.md` describes
//! the notation.
//!
//! Each dialogue runs several times, with different initial numbers and clocks that wrap around in
//! the middle of it.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;

use wirestorm_model::tcp::Algorithm;
use wirestorm_model::tcp::RtoBounds;
use wirestorm_model::tcp::{EcnMode, Settings};
use wirestorm_stack::tcp::connection::{Connection, EndReason, State};
use wirestorm_stack::tcp::counters::TcpCounters;
use wirestorm_stack::tcp::now::Now;
use wirestorm_stack::tcp::ranges::SequenceRange;
use wirestorm_stack::tcp::segment::{Ecn, Options, Outgoing, SACK_BLOCKS_MAX, Segment, Timestamps};
use wirestorm_stack::tcp::sequence::SequenceNumber;
use wirestorm_wire::packet::tcp::Flags;

/// Tolerance of transmission times in microseconds: one tick of the timers.
const TOLERANCE: u64 = 1_000;

/// Origin of all numbers and clocks of a run.
#[derive(Clone, Copy)]
struct Origin {
    ours: SequenceNumber,
    theirs: SequenceNumber,
    /// Start of the dialogue on our clock and on the peer's, in ms.
    clock: u32,
    peer_clock: u32,
}

const ORIGINS: [Origin; 3] = [
    Origin { ours: SequenceNumber(0), theirs: SequenceNumber(0), clock: 0, peer_clock: 0 },
    Origin {
        ours: SequenceNumber(u32::MAX - 1_500),
        theirs: SequenceNumber(u32::MAX - 500),
        clock: u32::MAX - 1_050,
        peer_clock: u32::MAX - 150,
    },
    Origin {
        ours: SequenceNumber(0x7fff_ff00),
        theirs: SequenceNumber(0x8000_0000 - 1),
        clock: 0x7fff_ff80,
        peer_clock: 0x8000_0000 - 100,
    },
];

/// A segment in the notation of dialogues; numbers are relative to the initial ones.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ScriptSegment {
    flags: Flags,
    start: i32,
    length: u32,
    acknowledgement: Option<i32>,
    /// `None` if the dialogue does not check it.
    window: Option<u16>,
    maximum_segment_size: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: bool,
    timestamps: Option<(u32, u32)>,
    sack: Vec<(i32, i32)>,
    /// ECN codepoint ECT(0) (`ect`) or CE (`ce`).
    is_ecn_capable: bool,
    met_congestion: bool,
    /// ECN codepoint ECT(1) (`ect1`), which a connection never sends.
    is_capable_otherwise: bool,
}

/// Letters of the flags, in the order of the notation.
const FLAGS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('U', Flags::URG),
    ('.', Flags::ACK),
];

impl fmt::Display for ScriptSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (letter, _) in FLAGS.iter().filter(|(_, flag)| self.flags.contains(*flag)) {
            write!(f, "{letter}")?;
        }
        write!(f, " {}:{}", self.start, i64::from(self.start) + i64::from(self.length))?;
        if let Some(number) = self.acknowledgement {
            write!(f, " ack {number}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        let mut options = Vec::new();
        options.extend(self.maximum_segment_size.map(|size| format!("mss {size}")));
        options.extend(self.sack_permitted.then(|| "sackOK".to_owned()));
        options.extend(self.timestamps.map(|(value, echo)| format!("ts {value}:{echo}")));
        options.extend(self.window_scale.map(|shift| format!("wscale {shift}")));
        if !self.sack.is_empty() {
            let blocks: Vec<_> = self.sack.iter().map(|(a, b)| format!("{a}:{b}")).collect();
            options.push(format!("sack {}", blocks.join(" ")));
        }
        if !options.is_empty() {
            write!(f, " <{}>", options.join(", "))?;
        }
        f.write_str(if self.is_ecn_capable { " ect" } else { "" })?;
        f.write_str(if self.met_congestion { " ce" } else { "" })
    }
}

type Fallible<T> = Result<T, String>;

fn parse<T: std::str::FromStr>(word: &str, what: &str) -> Fallible<T> {
    word.parse().map_err(|_| format!("notation: {what} must be a number, not {word:?}"))
}

fn parse_pair<T: std::str::FromStr>(word: &str, what: &str) -> Fallible<(T, T)> {
    let (first, second) =
        word.split_once(':').ok_or_else(|| format!("notation: {what} is a:b, not {word:?}"))?;
    Ok((parse(first, what)?, parse(second, what)?))
}

impl ScriptSegment {
    fn parse(text: &str) -> Fallible<Self> {
        let (head, options, tail) = match text.split_once('<') {
            None => (text, "", ""),
            Some((head, rest)) => {
                let (options, tail) = rest.split_once('>').ok_or("notation: < without >")?;
                (head, options, tail)
            }
        };
        let mut words = head.split_whitespace().chain(tail.split_whitespace());
        let mut flags = Flags(0);
        for letter in words.next().ok_or("notation: no flags")?.chars() {
            let known = FLAGS.iter().find(|(known, _)| *known == letter);
            flags |= known.ok_or_else(|| format!("notation: no flag is {letter:?}"))?.1;
        }
        let numbers = words.next().ok_or("notation: no sequence numbers")?;
        let (start, end): (i32, i32) = parse_pair(numbers, "sequence")?;
        let length = end.wrapping_sub(start);
        let length = u32::try_from(length).map_err(|_| "notation: it ends before it starts")?;
        let mut script_segment = Self {
            flags,
            start,
            length,
            acknowledgement: None,
            window: None,
            maximum_segment_size: None,
            window_scale: None,
            sack_permitted: false,
            timestamps: None,
            sack: Vec::new(),
            is_ecn_capable: false,
            met_congestion: false,
            is_capable_otherwise: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("notation: {word} of what?"));
            match word {
                "ack" => script_segment.acknowledgement = Some(parse(value()?, word)?),
                "win" => script_segment.window = Some(parse(value()?, word)?),
                "ect" => script_segment.is_ecn_capable = true,
                "ce" => script_segment.met_congestion = true,
                "ect1" => script_segment.is_capable_otherwise = true,
                _ => return Err(format!("notation: {word:?} in a segment")),
            }
        }
        if flags.contains(Flags::ACK) != script_segment.acknowledgement.is_some() {
            return Err("notation: the flag . and ack go together".to_owned());
        }
        for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            match option.split_once(' ').unwrap_or((option, "")) {
                ("mss", size) => script_segment.maximum_segment_size = Some(parse(size, "mss")?),
                ("wscale", shift) => script_segment.window_scale = Some(parse(shift, "wscale")?),
                ("sackOK", "") => script_segment.sack_permitted = true,
                ("ts", pair) => script_segment.timestamps = Some(parse_pair(pair, "ts")?),
                ("sack", blocks) => {
                    let blocks = blocks.split_whitespace().map(|block| parse_pair(block, "sack"));
                    script_segment.sack = blocks.collect::<Fallible<_>>()?;
                }
                _ => return Err(format!("notation: {option:?} is no option")),
            }
        }
        Ok(script_segment)
    }

    /// Converts a segment that the connection sends.
    fn of(outgoing: &Outgoing, blocks: &[SequenceRange], origin: &Origin) -> Self {
        let ours = |number: SequenceNumber| number.distance_from(origin.ours);
        let theirs = |number: SequenceNumber| number.distance_from(origin.theirs);
        let acknowledges = outgoing.flags.contains(Flags::ACK);
        let options = &outgoing.options;
        Self {
            flags: outgoing.flags,
            start: ours(outgoing.sequence),
            length: outgoing.length,
            acknowledgement: acknowledges.then(|| theirs(outgoing.acknowledgement)),
            window: Some(outgoing.window),
            maximum_segment_size: options.maximum_segment_size,
            window_scale: options.window_scale,
            sack_permitted: options.sack_permitted,
            timestamps: options.timestamps.map(|Timestamps { value, echo }| {
                let peer_clock = if acknowledges { origin.peer_clock } else { 0 };
                (value.wrapping_sub(origin.clock), echo.wrapping_sub(peer_clock))
            }),
            sack: blocks.iter().map(|block| (theirs(block.start), theirs(block.end))).collect(),
            is_ecn_capable: outgoing.is_ecn_capable,
            met_congestion: false,
            is_capable_otherwise: false,
        }
    }

    /// Passes this segment of the peer to `take`.
    fn arrive<T>(&self, origin: &Origin, take: impl FnOnce(&Segment<'_>) -> T) -> T {
        let ours = |number: i32| origin.ours + number.cast_unsigned();
        let mut sack = Vec::new();
        for (start, end) in &self.sack {
            sack.extend(ours(*start).0.to_be_bytes());
            sack.extend(ours(*end).0.to_be_bytes());
        }
        take(&Segment {
            sequence: origin.theirs + self.start.cast_unsigned(),
            acknowledgement: self.acknowledgement.map_or(SequenceNumber(0), ours),
            flags: self.flags,
            window: self.window.unwrap_or(PEER_WINDOW),
            options: Options {
                maximum_segment_size: self.maximum_segment_size,
                window_scale: self.window_scale,
                sack_permitted: self.sack_permitted,
                timestamps: self.timestamps.map(|(value, echo)| Timestamps {
                    value: value.wrapping_add(origin.peer_clock),
                    echo: echo.wrapping_add(origin.clock),
                }),
                cookie_length: None,
            },
            sack: &sack,
            cookie: &[],
            length: self.length,
            ecn: match (self.met_congestion, self.is_ecn_capable, self.is_capable_otherwise) {
                (true, ..) => Ecn::CE,
                (_, true, _) => Ecn::ECT_0,
                (.., true) => Ecn::ECT_1,
                _ => Ecn::NOT_ECT,
            },
            segments: 1,
        })
    }
}

/// Default window of the peer.
const PEER_WINDOW: u16 = 30_000;

/// Settings with round numbers and without options.
fn plain() -> Settings {
    Settings {
        maximum_segment_size: 1_000,
        receive_buffer: 10_000,
        window_scaling: false,
        timestamps: false,
        sack: false,
        rack: false,
        congestion: Algorithm::NewReno,
        ..Settings::default()
    }
}

fn set(settings: &mut Settings, text: &str) -> Fallible<()> {
    for item in text.split(',').map(str::trim) {
        let (key, value) = item.split_once(' ').unwrap_or((item, "on"));
        let is_on = value == "on";
        let millis = || -> Fallible<u32> { parse(value, key) };
        let rto = &mut settings.retransmission;
        match key {
            "mss" => settings.maximum_segment_size = parse(value, key)?,
            "initial_window" => settings.initial_window = parse(value, key)?,
            "buffer" => settings.receive_buffer = parse(value, key)?,
            "send_buffer" => settings.send_buffer = parse(value, key)?,
            "window_shift" => settings.window_shift = Some(parse(value, key)?),
            "reassembly_max" => settings.reassembly_max = parse(value, key)?,
            "dupack_threshold" => settings.dupack_threshold = parse(value, key)?,
            "ack_after_bytes" => settings.ack_after_bytes = parse(value, key)?,
            "connect_timeout" => settings.open_timeout_ms = millis()?,
            "scaling" => settings.window_scaling = is_on,
            "timestamps" => settings.timestamps = is_on,
            "sack" => settings.sack = is_on,
            "rack" => (settings.sack, settings.rack) = (is_on, is_on),
            "ecn" if value == "answer" => settings.ecn = EcnMode::Accept,
            "ecn" => settings.ecn = if is_on { EcnMode::Offer } else { EcnMode::Never },
            "cubic" => settings.congestion = Algorithm::Cubic,
            "rto" => *rto = RtoBounds { initial: millis()? * 1_000, ..*rto },
            "rto_min" => *rto = RtoBounds { min: millis()? * 1_000, ..*rto },
            "rto_max" => *rto = RtoBounds { max: millis()? * 1_000, ..*rto },
            "retries" => settings.retries = parse(value, key)?,
            "syn_retries" => settings.syn_retries = parse(value, key)?,
            "delayed_ack" => settings.delayed_ack_ms = parse(value, key)?,
            "no_delay" => settings.no_delay = is_on,
            "push_all" => settings.push_all = is_on,
            "time_wait" => settings.time_wait_ms = millis()?,
            "keepalive" => settings.keepalive_ms = millis()?,
            "keepalive_interval" => settings.keepalive_interval_ms = millis()?,
            "keepalive_probes" => settings.keepalive_probes = parse(value, key)?,
            _ => return Err(format!("notation: {key:?} cannot be set")),
        }
    }
    Ok(())
}

/// A running dialogue: one connection, and its segments that the dialogue has not checked yet.
struct DialogueRun {
    origin: Origin,
    settings: Settings,
    connection: Option<Connection>,
    counters: TcpCounters,
    /// Time since the start of the dialogue in microseconds.
    at: u64,
    departed: VecDeque<(u64, ScriptSegment)>,
    received: u32,
    is_listening: bool,
    is_peer_done: bool,
}

/// Number of unchecked segments that indicates an endless loop.
const DEPARTURES_MAX: usize = 1_000;

impl DialogueRun {
    fn new(origin: Origin) -> Self {
        Self {
            origin,
            settings: plain(),
            connection: None,
            counters: TcpCounters::default(),
            at: 0,
            departed: VecDeque::new(),
            received: 0,
            is_listening: false,
            is_peer_done: false,
        }
    }

    fn now(&self) -> Now {
        // More than 32 bits of milliseconds, so that only the clock of the connection wraps.
        Now::from_micros(u64::from(self.origin.clock) * 1_000 + self.at)
    }

    /// Advances the time and handles the timers that expire.
    fn pass(&mut self, to: u64) {
        while let Some(connection) = &mut self.connection {
            let now = Now::from_micros(u64::from(self.origin.clock) * 1_000 + self.at);
            let Some(at) = connection.deadline(&self.settings, now) else { break };
            let ahead = at.wrapping_sub(now.millis).cast_signed().max(0) as u64;
            let next = self.at.max((self.at / 1_000 + ahead) * 1_000);
            if next > to {
                break;
            }
            self.at = next;
            let now = Now::from_micros(u64::from(self.origin.clock) * 1_000 + next);
            connection.handle_timeout(&self.settings, now, &mut self.counters);
            assert_ne!(
                connection.deadline(&self.settings, now),
                Some(at),
                "an expired timer still runs"
            );
            self.transmit();
        }
        self.at = self.at.max(to);
    }

    fn transmit(&mut self) {
        let now = self.now();
        let Some(connection) = &mut self.connection else { return };
        while let Some(outgoing) = connection.poll_transmit(&self.settings, now, &mut self.counters)
        {
            let mut blocks = [SequenceRange::default(); SACK_BLOCKS_MAX];
            connection.sack_blocks(&mut blocks);
            let blocks = &blocks[..usize::from(outgoing.sack_blocks)];
            self.departed.push_back((self.at, ScriptSegment::of(&outgoing, blocks, &self.origin)));
            assert!(self.departed.len() < DEPARTURES_MAX, "endless transmission");
        }
    }

    fn arrive(&mut self, segment: &ScriptSegment) -> Fallible<()> {
        let now = self.now();
        let (settings, counters) = (self.settings, &mut self.counters);
        let Some(connection) = &mut self.connection else {
            if !self.is_listening || segment.flags != segment.flags_without(Flags::ACK) {
                return Err("notation: no connection receives it".to_owned());
            }
            let initial = self.origin.ours;
            let accept =
                |syn: &Segment<'_>| Connection::accept(&settings, syn, initial, now, counters);
            self.connection = Some(segment.arrive(&self.origin, accept));
            self.transmit();
            return Ok(());
        };
        let arrival = segment.arrive(&self.origin, |segment| {
            connection.handle_segment(segment, &settings, now, counters)
        });
        self.received += arrival.data;
        self.is_peer_done |= arrival.is_end;
        if let Some(number) = arrival.reset {
            let text = format!("R {0}:{0} win 0", number.distance_from(self.origin.ours));
            self.departed.push_back((self.at, ScriptSegment::parse(&text)?));
        }
        self.transmit();
        Ok(())
    }

    /// Fails if the connection has sent a segment that the dialogue does not list.
    fn expect_nothing(&self) -> Fallible<()> {
        match self.departed.front() {
            Some((at, segment)) => Err(format!("sent before that: {} > {segment}", seconds(*at))),
            None => Ok(()),
        }
    }

    fn expect(&mut self, at: u64, mut expected: ScriptSegment) -> Fallible<()> {
        if self.departed.is_empty() {
            self.pass(at + TOLERANCE);
        }
        let Some((when, mut segment)) = self.departed.pop_front() else {
            return Err(format!("nothing sent until {}", seconds(self.at)));
        };
        if expected.window.is_none() {
            segment.window = None;
        }
        expected.met_congestion = false;
        if segment != expected || when.abs_diff(at) > TOLERANCE {
            return Err(format!("sent instead: {} > {segment}", seconds(when)));
        }
        Ok(())
    }

    /// The handshake of most dialogues, which takes 100 ms.
    fn open(&mut self, is_active: bool, text: &str) -> Fallible<()> {
        const TOOK: u64 = 100_000;
        let opening = |flags: &str| ScriptSegment::parse(&format!("{flags} {text}"));
        let next = |at: u64, talk: &mut Self| {
            talk.pass(at);
            talk.departed.pop_front();
            talk.expect_nothing()
        };
        if is_active {
            self.call("connect")?;
            next(0, self)?;
            self.at = TOOK;
            self.arrive(&opening("S. 0:0 ack 1")?)?;
            next(TOOK, self)?;
        } else {
            self.call("listen")?;
            let syn = opening("S 0:0")?;
            self.arrive(&syn)?;
            next(0, self)?;
            self.at = TOOK;
            let mut answer = opening(". 1:1 ack 1")?;
            answer.window = syn.window.map(|window| window >> syn.window_scale.unwrap_or(0));
            self.arrive(&answer)?;
        }
        self.look_at_state("ESTABLISHED")
    }

    fn call(&mut self, text: &str) -> Fallible<()> {
        let now = self.now();
        let counters = &mut self.counters;
        match (text.split_once(' ').unwrap_or((text, "")), &mut self.connection) {
            (("listen", ""), None) => self.is_listening = true,
            (("connect", ""), None) => {
                let initial = self.origin.ours;
                let connection = Connection::connect(&self.settings, initial, now, counters);
                self.connection = Some(connection);
            }
            (("send", bytes), Some(connection)) => {
                connection.queue(parse(bytes, "send")?, counters);
            }
            (("close", ""), Some(connection)) => connection.close(),
            (("abort", ""), Some(connection)) => connection.abort(counters),
            _ => return Err(format!("notation: {text:?} cannot be called here")),
        }
        self.transmit();
        Ok(())
    }

    fn look_at_state(&self, name: &str) -> Fallible<()> {
        let state = match self.connection.as_ref().map(Connection::state) {
            None => "LISTEN",
            Some(State::SynSent) => "SYN-SENT",
            Some(State::SynReceived) => "SYN-RECEIVED",
            Some(State::Established) => "ESTABLISHED",
            Some(State::FinWait1) => "FIN-WAIT-1",
            Some(State::FinWait2) => "FIN-WAIT-2",
            Some(State::CloseWait) => "CLOSE-WAIT",
            Some(State::Closing) => "CLOSING",
            Some(State::LastAck) => "LAST-ACK",
            Some(State::TimeWait) => "TIME-WAIT",
            Some(State::Closed) => "CLOSED",
        };
        same(state, name, "the state")
    }

    fn look_at_end(&self, name: &str) -> Fallible<()> {
        let end = match self.connection.as_ref().and_then(Connection::end) {
            None => "none",
            Some(EndReason::Closed) => "closed",
            Some(EndReason::Reset) => "reset",
            Some(EndReason::ResetAfterClose) => "reset-after-close",
            Some(EndReason::Refused) => "refused",
            Some(EndReason::TimedOut) => "timed-out",
            Some(EndReason::Unanswered) => "unanswered",
            Some(EndReason::KeepaliveTimeout) => "keepalive_timeout",
            Some(EndReason::Aborted) => "aborted",
            Some(EndReason::Unreachable) => "unreachable",
        };
        same(end, name, "the end")
    }

    fn look_at_counter(&self, text: &str) -> Fallible<()> {
        let (name, value) = text.split_once(' ').ok_or("notation: counter NAME VALUE")?;
        let found = self.counters.iter().find(|(known, ..)| *known == name);
        let (.., found) = found.ok_or_else(|| format!("notation: no counter {name:?}"))?;
        same(found, parse(value, name)?, name)
    }

    /// Executes one line at its time.
    fn take(&mut self, at: Option<u64>, text: &str) -> Fallible<()> {
        let at = at.unwrap_or(self.at);
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        if verb == ">" {
            return self.expect(at, ScriptSegment::parse(rest)?);
        }
        if at + TOLERANCE < self.at {
            return Err(format!("notation: it is {} already", seconds(self.at)));
        }
        self.pass(at);
        self.expect_nothing()?;
        match verb {
            "set" => set(&mut self.settings, rest),
            "opened" => self.open(true, rest),
            "accepted" => self.open(false, rest),
            "call" => self.call(rest),
            "<" => self.arrive(&ScriptSegment::parse(rest)?),
            "state" => self.look_at_state(rest),
            "end" => self.look_at_end(rest),
            "received" => same(self.received, parse(rest, verb)?, "what was received"),
            "peer" => same(self.is_peer_done, rest == "done", "whether the peer is done"),
            "counter" => self.look_at_counter(rest),
            _ => Err(format!("notation: no line begins with {verb:?}")),
        }
    }
}

impl ScriptSegment {
    /// The flags without `flag`, but with SYN.
    fn flags_without(&self, flag: Flags) -> Flags {
        Flags((self.flags.0 & !flag.0) | Flags::SYN.0)
    }
}

fn same<T: PartialEq + fmt::Display>(found: T, expected: T, what: &str) -> Fallible<()> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found}, not {expected}")) }
}

fn seconds(micros: u64) -> String {
    format!("{}.{:03}", micros / 1_000_000, micros / 1_000 % 1_000)
}

/// Parses the time at the start of a line, in microseconds.
fn parse_time(word: &str) -> Option<u64> {
    let (seconds, millis) = word.split_once('.')?;
    (millis.len() == 3).then_some(())?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + millis.parse::<u64>().ok()? * 1_000)
}

struct Dialogue<'a> {
    name: &'a str,
    /// Lines with their numbers in the file.
    lines: Vec<(usize, &'a str)>,
}

/// Parses the dialogues of a file.
fn dialogues(text: &str) -> Vec<Dialogue<'_>> {
    let mut dialogues: Vec<Dialogue<'_>> = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if let Some(name) = line.strip_prefix("==") {
            dialogues.push(Dialogue { name: name.trim(), lines: Vec::new() });
        } else if !line.is_empty() && !line.starts_with('#') {
            let dialogue = dialogues.last_mut().expect("a dialogue begins with ==");
            dialogue.lines.push((number, line));
        }
    }
    dialogues
}

impl Dialogue<'_> {
    /// Runs the dialogue; an error describes the first deviation.
    fn run(&self, origin: Origin) -> Fallible<()> {
        let mut talk = DialogueRun::new(origin);
        let mut at = None;
        for (number, line) in &self.lines {
            let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
            let time = parse_time(first);
            at = time.or(at);
            let text = if time.is_some() { rest.trim() } else { line };
            talk.take(at, text).map_err(|fault| {
                let Self { name, .. } = self;
                let ours = origin.ours.0;
                format!("{name} (ours from {ours})\n  line {number}: {line}\n  {fault}")
            })?;
        }
        talk.expect_nothing().map_err(|fault| format!("{}\n  at the end: {fault}", self.name))
    }
}

fn hold_all(text: &str) {
    let dialogues = dialogues(text);
    let faults = dialogues.iter().filter_map(|dialogue| {
        assert!(dialogue.name.contains("RFC "), "{:?} names no RFC", dialogue.name);
        ORIGINS.into_iter().find_map(|origin| dialogue.run(origin).err())
    });
    let faults: Vec<_> = faults.collect();
    let (failed, all) = (faults.len(), dialogues.len());
    assert!(failed == 0, "{failed} of {all} failed:\n{}", faults.join("\n"));
}

macro_rules! subjects {
    ($($name:ident)*) => {
        const SUBJECTS: &[&str] = &[$(stringify!($name)),*];
        const TEXTS: &[&str] =
            &[$(include_str!(concat!("dialogues/", stringify!($name), ".txt"))),*];
        $(
            #[test]
            fn $name() {
                hold_all(include_str!(concat!("dialogues/", stringify!($name), ".txt")));
            }
        )*
    };
}

subjects! {
    opening closing resets acknowledgements windows congestion losses sack rack timers timestamps ecn keepalive urgent
    counters
}

#[test]
fn each_file_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/dialogues");
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        assert!(name == "README" || SUBJECTS.contains(&name), "{name} does not run");
    }
}

/// Counters of the endpoint, and those that need more segments than a dialogue has. Tests in
/// `endpoint` and unit tests cover them.
const ELSEWHERE: [&str; 12] = [
    "fast_open_sent",
    "fast_open_acked",
    "fast_open_accepted",
    "rcvoffloads",
    "mturesent",
    "rcvbadsum",
    "rcvbadoff",
    "rcvshort",
    "reas_hist_100",
    "reas_hist_other",
    "nombuf",
    "sack_sboverflow",
];

#[test]
fn each_counter_moves_in_some_dialogue() {
    let moved: Vec<&str> = TEXTS
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.trim_start().strip_prefix("counter "))
        .filter_map(|rest| rest.split_once(' ').filter(|(_, value)| *value != "0"))
        .map(|(name, _)| name)
        .collect();
    for (name, ..) in TcpCounters::default().iter() {
        assert_ne!(moved.contains(&name), ELSEWHERE.contains(&name), "{name}");
    }
}

/// Returns the error message of a dialogue that deviates.
#[track_caller]
fn fault(text: &str) -> String {
    dialogues(text)[0].run(ORIGINS[0]).expect_err("the dialogue fails")
}

#[test]
fn deviations_are_reported_with_their_line() {
    let failure = fault("== a\n0.000 call connect\n 0.000 > S 0:0 win 5 <mss 1000>");
    assert!(failure.ends_with("sent instead: 0.000 > S 0:0 win 10000 <mss 1000>"), "{failure}");
    assert!(failure.contains("line 3: 0.000 > S 0:0 win 5"), "{failure}");
    let failure = fault("== a\n0.000 call connect\n0.000 state SYN-SENT");
    assert!(failure.ends_with("sent before that: 0.000 > S 0:0 win 10000 <mss 1000>"), "{failure}");
    let failure = fault("== a\n0.000 call connect");
    assert!(failure.contains("at the end: sent before that:"), "{failure}");
    let late = "== a\n0.000 call connect\n0.000 > S 0:0 <mss 1000>\n";
    let failure = fault(&format!("{late}1.003 > S 0:0 <mss 1000>"));
    assert!(failure.ends_with("sent instead: 1.000 > S 0:0 <mss 1000>"), "{failure}");
    let failure = fault(&format!("{late}0.500 > S 0:0 <mss 1000>"));
    assert!(failure.ends_with("nothing sent until 0.501"), "{failure}");
}

#[test]
fn errors_of_the_notation_name_the_line() {
    for (line, expected) in [
        ("0.000 jump", "no line begins with \"jump\""),
        ("0.000 call sing", "\"sing\" cannot be called here"),
        ("0.000 call send 5", "\"send 5\" cannot be called here"),
        ("0.000 < S", "no sequence numbers"),
        ("0.000 < Q 0:0", "no flag is 'Q'"),
        ("0.000 < S 0", "sequence is a:b, not \"0\""),
        ("0.000 < S 5:0", "it ends before it starts"),
        ("0.000 < . 0:0", "the flag . and ack go together"),
        ("0.000 < S 0:0 <mss 5", "< without >"),
        ("0.000 < S 0:0 <mss x>", "mss must be a number, not \"x\""),
        ("0.000 < S 0:0 <md5>", "\"md5\" is no option"),
        ("0.000 < S 0:0 win", "win of what?"),
        ("0.000 < S 0:0", "no connection receives it"),
        ("set speed 5", "\"speed\" cannot be set"),
        ("counter flights 5", "no counter \"flights\""),
    ] {
        let failure = fault(&format!("== a\n# a remark\n{line}"));
        assert!(failure.contains(&format!("line 3: {line}")), "{failure}");
        assert!(failure.ends_with(&format!("notation: {expected}")), "{failure}");
    }
}
