//! What the two ends of a connection say to each other.
//!
//! A program is a list of instructions that each flow goes through on its own. What it sends lies
//! in buffers that all flows share; a flow only knows where in them it is.
//!
//! Programs that write values into what they send, or look at what arrives, have [`Contents`]: then
//! each flow has bytes of its own ([`crate::content`]), and what it remembers beside them.
//!
//! ```text
//! Composition -> bytes to be sent
//! bytes that arrived -> Rule takes some -> Check expects, Extraction remembers a part
//! ```

mod arrivals;
mod buffer;
mod check;
mod composition;
mod compute;
mod contents;
mod datagrams;
mod dns;
mod findings;
mod http;
mod own;
mod reply;
mod rtsp;
mod rule;
mod run;
mod variables;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::num::NonZeroU16;

pub use buffer::{Buffer, BufferId, Buffers};
pub use check::{Check, Extraction};
pub(crate) use composition::Ends;
pub use contents::Contents;
pub(crate) use datagrams::{DatagramRun, Sent, Step};
pub use findings::{Cause, Failure, Findings, TransactionTimes};
pub(crate) use own::{Own, Ports};
pub(crate) use run::{Outside, Progress, Run, Wish};
pub use variables::Statistics;
use wirestorm_model::program::{
    Comparison, Statistic, TextVariable, TickVariable, Transaction, Variable,
};

/// One step of a program. Those of the other transport do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Waits until the connection is established.
    Connect,
    /// Sends a buffer. Waits until all of it is acknowledged, or, where [`Self::SendBlocking`] says
    /// so, until the last of it has been sent.
    Send {
        /// Which.
        buffer: BufferId,
    },
    /// Whether sending waits for acknowledgements. It does at first.
    SendBlocking {
        /// Whether it does from now on.
        waits: bool,
    },
    /// Waits until so many bytes have arrived in all. Where the peer closes before that, the
    /// program ends there.
    Receive {
        /// Number of datagrams.
        bytes: u64,
        /// Whether counting begins anew then.
        clear: bool,
    },
    /// The same, counted anew then. Where the peer closes before, the flow has failed.
    Need {
        /// Number of datagrams.
        bytes: u64,
    },
    /// From now on packets of the flow have this traffic class, or type of service, in place of its
    /// template's: differentiated services (RFC 2474) in the upper six bits; the lower two are those
    /// of ECN.
    SetTrafficClass {
        /// Which.
        class: u8,
    },
    /// Sends a buffer as one datagram, in fragments where it does not fit a packet of its path. One
    /// that is too long for any is counted, and not sent.
    SendDatagram {
        /// Which.
        buffer: BufferId,
    },
    /// Waits until so many datagrams have arrived in all.
    ReceiveDatagrams {
        /// Number of datagrams.
        count: u64,
        /// Whether counting begins anew then.
        clear: bool,
    },
    /// After how long without traffic a flow of UDP is dropped, whatever it waits for; a second
    /// where nothing is said.
    SetIdle {
        /// How many milliseconds; 0: it is not dropped.
        millis: u32,
        /// Whether only what arrives is traffic.
        receive_only: bool,
    },
    /// Waits for a time.
    Delay {
        /// Microseconds.
        micros: u32,
    },
    /// Waits for a time that is drawn, equally likely from `min` to `max`.
    DelayUniform {
        /// The least, in microseconds.
        min: u32,
        /// The greatest, in microseconds.
        max: u32,
    },
    /// The same, counted from when the last byte arrived of what was taken last: what was not taken
    /// at once, as the program was waiting for another one, is not waited for again. Of UDP it is
    /// counted from now.
    DelaySinceTaken {
        /// The least, in microseconds.
        min: u32,
        /// The greatest, in microseconds.
        max: u32,
    },
    /// Waits for a time that is drawn from the exponential distribution.
    DelayExponential {
        /// On average, in microseconds.
        mean: u32,
    },
    /// Waits for a time that is drawn from the normal distribution; not at all where that is
    /// below 0.
    DelayNormal {
        /// On average, in microseconds.
        mean: u32,
        /// The standard deviation, in microseconds.
        deviation: u32,
    },
    /// Says of which group the next template is.
    SetTemplate {
        /// Its place among the groups of the endpoint.
        group: u16,
    },
    /// Makes a flow of a template of the group that was said, drawn at random, else of its own,
    /// from the same client; waits until it is over. Where none can be made, it does not wait.
    ExecTemplate,
    /// Makes such a flow to the same server, at the port that a value says: in decimal, or as two
    /// numbers below 256 with a comma between them. It goes on beside this one, and belongs to it:
    /// where the value says no port, or that flow cannot be made or fails, this one has failed as
    /// well, and its program ends; where this one's program ends before, that flow is reset.
    StartTemplate {
        /// The value's place in [`Contents`].
        port: u16,
        /// That of a value that says the client's own port, as the other one; `None`: any of its
        /// template's.
        own_port: Option<u16>,
    },
    /// Waits until the flow that belongs to this one is over, or in TIME-WAIT.
    AwaitTemplate,
    /// Listens at a free port of the flow's own address for one connection of the same peer, which
    /// [`Self::AcceptTemplate`] takes. Where none is free, the flow has failed.
    Listen {
        /// What becomes the number of the port.
        variable: Variable,
        /// The least port.
        first: u16,
        /// Maximum.
        last: u16,
    },
    /// Waits for the connection that comes to where the flow listens, makes it one of a template
    /// of [`Role::Accepted`](crate::endpoint::Role::Accepted) of the group that was said, drawn at
    /// random, which belongs to this one, and waits until it is over, or in TIME-WAIT. Where the
    /// flow does not listen, its own peer closes before, there is no such template, or the
    /// connection fails, it has failed as well.
    AcceptTemplate,
    /// Goes on over a new connection of the same client to the same server, where the peer has said
    /// that nothing more comes; it waits until that is open, with its session. What the old one brought and was not
    /// taken is forgotten. Where none can be made, the flow has failed. Only for programs of clients
    /// that do not begin their sessions themselves.
    Reconnect {
        /// A check's place in [`Contents`]: where what was taken last does not pass it, a new
        /// connection is made as well.
        unless: Option<u16>,
    },
    /// Where the peer has said that nothing more comes, the flow has failed, and the program ends.
    NeedOpen,
    /// Waits until the peer closes; the last instruction.
    WaitForPeerClose,
    /// Resets the connection; the last instruction.
    Reset,
    /// Goes on with another instruction.
    Jump {
        /// Its place.
        to: u16,
    },
    /// Sets a variable of the flow; all begin with 0.
    Set {
        /// Which.
        variable: Variable,
        /// To what.
        value: u64,
    },
    /// Adds to a variable, modulo 2^64.
    Add {
        /// Which.
        variable: Variable,
        /// What.
        value: u64,
    },
    /// Takes 1 off a variable that is greater than 0, and goes on elsewhere where it is still
    /// greater than 0 then. So a loop around it is gone through as often as the variable says.
    DecrementAndJump {
        /// Which.
        variable: Variable,
        /// Where it goes on.
        to: u16,
    },
    /// Goes on elsewhere where a comparison holds.
    JumpIf {
        /// Variable to compare.
        variable: Variable,
        /// How.
        comparison: Comparison,
        /// With what.
        value: u64,
        /// Where it goes on.
        to: u16,
    },
    /// Goes on elsewhere where what was taken last, or the last datagram, is as is said.
    JumpIfTaken {
        /// The check's place in [`Contents`].
        check: u16,
        /// Where it goes on.
        to: u16,
    },
    /// Remembers the present time.
    SetTick {
        /// Where.
        tick: TickVariable,
    },
    /// Add a duration to a saved time.
    AddTick {
        /// Which.
        tick: TickVariable,
        /// By how many milliseconds.
        millis: u32,
    },
    /// Goes on elsewhere as long as less than a time has passed since a remembered one.
    JumpWithin {
        /// Which.
        tick: TickVariable,
        /// How many milliseconds.
        millis: u32,
        /// Where it goes on.
        to: u16,
    },
    /// Adds to a statistic.
    Count {
        /// Which.
        statistic: Statistic,
        /// What.
        value: u64,
    },
    /// Adds the whole units of time that have passed since a remembered time to a statistic.
    CountSince {
        /// Which.
        statistic: Statistic,
        /// Since when.
        tick: TickVariable,
        /// The unit, in milliseconds.
        unit: NonZeroU16,
    },
    /// A transaction begins.
    BeginTransaction {
        /// Of which name.
        transaction: Transaction,
    },
    /// A transaction ends, if it had begun.
    EndTransaction {
        /// Of which name.
        transaction: Transaction,
    },
    /// Sends what a composition makes, as [`Self::Send`] does with a buffer.
    SendOwn {
        /// Its place in [`Contents`].
        composition: u16,
    },
    /// Sends what a composition makes as one datagram.
    SendOwnDatagram {
        /// Its place in [`Contents`].
        composition: u16,
    },
    /// Waits until all has arrived that a rule takes, and takes it from what arrived. Where the
    /// peer closes before that, the program ends there; the flow has failed if some of it had come.
    Take {
        /// The rule's place in [`Contents`].
        rule: u16,
        /// Whether the flow has failed as well if nothing of it had come.
        is_awaited: bool,
    },
    /// Compares what was taken last, or the last datagram. Where that is not as expected, the flow
    /// has failed, and the program ends.
    Expect {
        /// The check's place in [`Contents`].
        check: u16,
    },
    /// Compares in the same way. Where it is not as expected, the flow has failed, and goes on
    /// elsewhere: to take its leave, say.
    ExpectOr {
        /// The check's place in [`Contents`].
        check: u16,
        /// Where it goes on.
        to: u16,
    },
    /// Makes a part of what was taken last a text. Where that is not there, the flow has failed, and
    /// the program ends.
    Extract {
        /// The extraction's place in [`Contents`].
        extraction: u16,
    },
    /// Sets a text to what a composition makes.
    SetText {
        /// Which.
        text: TextVariable,
        /// Its place in [`Contents`].
        composition: u16,
    },
    /// Sets a variable to a number that differs from flow to flow.
    SetNumber {
        /// Which.
        variable: Variable,
        /// The number's place in [`Contents`].
        number: u16,
    },
    /// Begins the session that stands between program and connection from here on
    /// ([`Template::sessions`](crate::endpoint::Template::sessions)), and waits until it is open;
    /// where there is none, it goes on at once. What has come and was not taken is the session's:
    /// nothing that was said before it is taken by a step behind it.
    StartSession,
}

impl Instruction {
    /// Where it may go on, but for the next one.
    const fn target(self) -> Option<u16> {
        match self {
            Self::Jump { to }
            | Self::DecrementAndJump { to, .. }
            | Self::JumpIf { to, .. }
            | Self::JumpIfTaken { to, .. }
            | Self::ExpectOr { to, .. }
            | Self::JumpWithin { to, .. } => Some(to),
            _ => None,
        }
    }
}

/// What one end says. Behind the last instruction the connection is closed, a flow of UDP over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    instructions: Box<[Instruction]>,
    contents: Option<Arc<Contents>>,
    starts_session: bool,
    stamp: Option<u32>,
}

impl Program {
    /// The most instructions of a program.
    pub const LENGTH_MAX: usize = u16::MAX as usize;

    /// A program of these instructions. `None` where there are more than [`Self::LENGTH_MAX`], a
    /// jump leads beyond the end, or an instruction refers to contents.
    pub fn new(instructions: impl Into<Box<[Instruction]>>) -> Option<Self> {
        Self::with_contents(instructions, Contents::default())
    }

    /// The same with contents; `None` as well where an instruction refers to what they have not,
    /// or counts what arrives in a program with [`Instruction::StartSession`]: what was counted is
    /// not taken, and would be the session's. Nor may such a program reconnect, or one that listens.
    pub fn with_contents(
        instructions: impl Into<Box<[Instruction]>>,
        contents: Contents,
    ) -> Option<Self> {
        let instructions = instructions.into();
        let length = instructions.len();
        let leads_beyond =
            |it: &Instruction| it.target().is_some_and(|to| usize::from(to) > length);
        let is_good = length <= Self::LENGTH_MAX
            && !instructions.iter().any(leads_beyond)
            && instructions.iter().all(|it| contents.has(it));
        let has = |wanted: fn(&Instruction) -> bool| instructions.iter().any(wanted);
        let starts_session = has(|it| matches!(it, Instruction::StartSession));
        let counts = has(|it| matches!(it, Instruction::Receive { .. } | Instruction::Need { .. }));
        let reconnects = has(|it| matches!(it, Instruction::Reconnect { .. }));
        let listens = has(|it| matches!(it, Instruction::Listen { .. }));
        let is_good =
            is_good && !(starts_session && counts) && !(reconnects && (starts_session || listens));
        let has_own = starts_session || contents != Contents::default();
        let contents = has_own.then(|| Arc::new(contents));
        is_good.then_some(Self { instructions, contents, starts_session, stamp: None })
    }

    /// The same with the time of departure before what each of its datagrams says, as TRex's add-on
    /// `latency` has it (`udp_latency.cpp` there): 12 bytes with 0, a sequence number, microseconds,
    /// and `source`, by which its servers know whose a flow is. Who sends first writes its own time,
    /// and who answers sends back that of the last datagram which came, so that the first one
    /// measures round trips. The clock is the endpoint's: what servers measure is right where both
    /// ends have the same one, as those of one process do.
    #[must_use]
    pub fn stamped(self, source: u32) -> Self {
        Self { stamp: Some(source), ..self }
    }

    /// Whose datagrams with their time of departure are, where they have that.
    pub const fn stamp(&self) -> Option<u32> {
        self.stamp
    }

    /// Says nothing until the peer closes.
    pub(crate) fn waiting() -> Self {
        let instructions = Box::new([Instruction::WaitForPeerClose]);
        Self { instructions, contents: None, starts_session: false, stamp: None }
    }

    /// Whether it listens for other flows.
    pub(crate) fn listens(&self) -> bool {
        self.instructions.iter().any(|it| matches!(it, Instruction::Listen { .. }))
    }

    /// Whether it says itself where its session begins.
    pub(crate) const fn starts_session(&self) -> bool {
        self.starts_session
    }

    /// Whether what arrives is looked at, or kept for a session.
    pub(crate) fn keeps(&self) -> bool {
        self.starts_session || self.contents().is_some_and(Contents::looks)
    }

    /// What is said of bytes of single flows, where anything is.
    pub(crate) fn contents(&self) -> Option<&Contents> {
        self.contents.as_deref()
    }

    pub(crate) fn instruction(&self, place: u16) -> Option<Instruction> {
        self.instructions.get(usize::from(place)).copied()
    }
}
