//! Programs: what each end of a connection sends and expects.
//!
//! A program is a list of instructions, which each flow executes on its own. All flows share the
//! buffers that it sends; a flow stores only its position.
//!
//! A program that composes payload or examines received data has [`Contents`]. Each of its flows
//! then has a byte stream of its own ([`crate::content`]) and state in `payload`.
//!
//! ```text
//! Composition -> sent bytes
//! received bytes -> Rule: consumed data -> Check, Extraction
//! ```

mod arrivals;
mod buffer;
mod check;
mod composition;
mod compute;
mod contents;
mod context;
mod datagrams;
mod dns;
mod findings;
mod http;
mod payload;
mod reading;
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
pub(crate) use context::ProgramContext;
pub(crate) use datagrams::{DatagramRun, Sent, Step};
pub use findings::{Cause, Failure, ProgramResults, TransactionTimes};
pub(crate) use payload::{FlowPayload, Ports};
pub(crate) use run::{FlowRequest, Progress, Run};
pub use variables::Statistics;
use wirestorm_model::program::{
    Comparison, TextVariable, TimeVariable, TransactionId, UserCounter, Variable,
};

/// One step of a program. Instructions of the other transport have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Waits until the connection is established.
    Connect,
    /// Sends a buffer and waits until all of it is acknowledged. After [`Self::SendBlocking`] with
    /// false, waits only until its last byte has been sent.
    Send {
        /// Buffer to send.
        buffer: BufferId,
    },
    /// Sets whether sending waits for acknowledgements. The default is true.
    SendBlocking {
        /// Whether later sends wait.
        waits: bool,
    },
    /// Waits until this many bytes have arrived in total. If the peer closes before, the program
    /// ends without a failure.
    Receive {
        /// Number of bytes.
        bytes: u64,
        /// Whether to reset the count afterwards.
        clear: bool,
    },
    /// Like [`Self::Receive`] with `clear`. If the peer closes before, the flow fails.
    Need {
        /// Number of bytes.
        bytes: u64,
    },
    /// Sets the traffic class, or type of service, of later packets, instead of that of the
    /// template. The upper six bits are DSCP (RFC 2474), the lower two are ECN.
    SetTrafficClass {
        /// Traffic class.
        class: u8,
    },
    /// Sends a buffer as one datagram, in fragments if it exceeds the path MTU. One that exceeds
    /// the maximum packet size is counted and not sent.
    SendDatagram {
        /// Buffer to send.
        buffer: BufferId,
    },
    /// Waits until this many datagrams have arrived in total.
    ReceiveDatagrams {
        /// Number of datagrams.
        count: u64,
        /// Whether to reset the count afterwards.
        clear: bool,
    },
    /// Sets the idle timeout of a UDP flow, which ends the flow at any instruction. The default is
    /// 1 second.
    SetIdle {
        /// Timeout in milliseconds; 0: none.
        millis: u32,
        /// Whether only received datagrams restart the timeout.
        receive_only: bool,
    },
    /// Waits for a fixed time.
    Delay {
        /// Microseconds.
        micros: u32,
    },
    /// Waits for a random time, uniform from `min` to `max`.
    DelayUniform {
        /// Minimum, in microseconds.
        min: u32,
        /// Maximum, in microseconds.
        max: u32,
    },
    /// Like [`Self::DelayUniform`], counted from the arrival of the last byte that was consumed.
    /// Time in which that byte waited for the program is part of the delay. UDP counts from now.
    DelaySinceRead {
        /// Minimum, in microseconds.
        min: u32,
        /// Maximum, in microseconds.
        max: u32,
    },
    /// Waits for a random time of an exponential distribution.
    DelayExponential {
        /// Mean, in microseconds.
        mean: u32,
    },
    /// Waits for a random time of a normal distribution; values below 0 count as 0.
    DelayNormal {
        /// Mean, in microseconds.
        mean: u32,
        /// Standard deviation, in microseconds.
        deviation: u32,
    },
    /// Selects the group of the next template.
    SetTemplate {
        /// Index of the group in the endpoint.
        group: u16,
    },
    /// Starts a flow from the same client and waits until it is over. Its template is a random one
    /// of the selected group; without a group, that of this flow. If no flow can start, the program
    /// continues at once.
    ExecTemplate,
    /// Starts such a flow to the same server at the port in a value, and continues. The value is
    /// decimal or two bytes separated by a comma. The started flow is a child of this one. If the
    /// value is no port, or the child fails or cannot start, this flow fails as well. If this
    /// program ends first, the child is reset.
    StartTemplate {
        /// Index of the server port in [`Contents`].
        port: u16,
        /// Index of the client port in [`Contents`]. `None`: any client port of the template.
        local_port: Option<u16>,
    },
    /// Waits until the child flow is over or in TIME-WAIT.
    AwaitTemplate,
    /// Listens at a free port of the flow's own address for one connection of the same peer.
    /// [`Self::AcceptTemplate`] accepts it. If no port is free, the flow fails.
    Listen {
        /// Variable that receives the port.
        variable: Variable,
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
    /// Accepts the connection to the port of [`Self::Listen`], and waits until it is over or in
    /// TIME-WAIT. The connection becomes a child of this flow. Its template is a random one of the
    /// selected group with [`Role::Accepted`](crate::endpoint::Role::Accepted).
    ///
    /// The flow fails if it does not listen, its own peer closes first, no such template exists, or
    /// the connection fails.
    AcceptTemplate,
    /// If the peer has closed, continues over a new connection of the same client to the same
    /// server. Waits until the connection and its session are open. Unconsumed data of the old
    /// connection is discarded. If no connection can be made, the flow fails. Only for programs of
    /// clients without [`Self::StartSession`].
    Reconnect {
        /// Index of a check in [`Contents`]. If the last consumed data fails it, the client
        /// reconnects as well.
        unless: Option<u16>,
    },
    /// Fails the flow and ends the program if the peer has closed.
    FailIfClosed,
    /// Waits until the peer closes. Must be the last instruction.
    WaitForPeerClose,
    /// Resets the connection. Must be the last instruction.
    Reset,
    /// Jumps to an instruction.
    Jump {
        /// Index of the next instruction.
        to: u16,
    },
    /// Sets a variable of the flow. The initial value is 0.
    Set {
        /// Variable to set.
        variable: Variable,
        /// New value.
        value: u64,
    },
    /// Adds to a variable, modulo 2^64.
    Add {
        /// Variable to change.
        variable: Variable,
        /// Number to add.
        value: u64,
    },
    /// Decrements a variable that is greater than 0, and jumps if it is still greater than 0. A
    /// loop with it at the end runs as often as the variable's value.
    DecrementAndJump {
        /// Variable to decrement.
        variable: Variable,
        /// Jump target.
        to: u16,
    },
    /// Jumps if a comparison holds.
    JumpIf {
        /// Variable to compare.
        variable: Variable,
        /// Comparison operator.
        comparison: Comparison,
        /// Value to compare with.
        value: u64,
        /// Jump target.
        to: u16,
    },
    /// Jumps if the last consumed data, or the last datagram, passes a check.
    JumpIfMatches {
        /// Index of the check in [`Contents`].
        check: u16,
        /// Jump target.
        to: u16,
    },
    /// Saves the current time.
    SetTick {
        /// Variable to set.
        tick: TimeVariable,
    },
    /// Adds a duration to a saved time.
    AddTick {
        /// Variable to change.
        tick: TimeVariable,
        /// Milliseconds to add.
        millis: u32,
    },
    /// Jumps if less than a duration has passed since a saved time.
    JumpWithin {
        /// Saved time.
        tick: TimeVariable,
        /// Duration in milliseconds.
        millis: u32,
        /// Jump target.
        to: u16,
    },
    /// Adds to a statistic.
    Count {
        /// Statistic to change.
        statistic: UserCounter,
        /// Number to add.
        value: u64,
    },
    /// Adds the whole time units since a saved time to a statistic.
    CountSince {
        /// Statistic to change.
        statistic: UserCounter,
        /// Saved time.
        tick: TimeVariable,
        /// Unit in milliseconds.
        unit: NonZeroU16,
    },
    /// Starts a transaction.
    BeginTransaction {
        /// Name of the transaction.
        transaction: TransactionId,
    },
    /// Ends a transaction, if it has started.
    EndTransaction {
        /// Name of the transaction.
        transaction: TransactionId,
    },
    /// Sends the output of a composition, like [`Self::Send`].
    SendComposed {
        /// Index of the composition in [`Contents`].
        composition: u16,
    },
    /// Sends the output of a composition as one datagram.
    SendComposedDatagram {
        /// Index of the composition in [`Contents`].
        composition: u16,
    },
    /// Waits until a rule is satisfied, and consumes the data. If the peer closes before, the
    /// program ends. The flow fails if a part of the data had arrived.
    Take {
        /// Index of the rule in [`Contents`].
        rule: u16,
        /// Whether the flow also fails if no part had arrived.
        is_required: bool,
    },
    /// Checks the last consumed data, or the last datagram. If the check fails, the flow fails and
    /// the program ends.
    Expect {
        /// Index of the check in [`Contents`].
        check: u16,
    },
    /// Like [`Self::Expect`], but a failed check jumps, for example to an orderly logout. The flow
    /// still counts as failed.
    ExpectOr {
        /// Index of the check in [`Contents`].
        check: u16,
        /// Jump target.
        to: u16,
    },
    /// Copies a part of the last consumed data to a text variable. If the part is missing, the flow
    /// fails and the program ends.
    Extract {
        /// Index of the extraction in [`Contents`].
        extraction: u16,
    },
    /// Sets a text variable to the output of a composition.
    SetText {
        /// Variable to set.
        text: TextVariable,
        /// Index of the composition in [`Contents`].
        composition: u16,
    },
    /// Sets a variable to the next number of a generator.
    SetNumber {
        /// Variable to set.
        variable: Variable,
        /// Index of the generator in [`Contents`].
        number: u16,
    },
    /// Starts the session of [`Template::sessions`](crate::endpoint::Template::sessions) and waits
    /// until it is open. Without one, the program continues at once. The session gets the
    /// unconsumed data: later steps see only data of the session.
    StartSession,
}

impl Instruction {
    /// Returns the jump target, if any.
    const fn target(self) -> Option<u16> {
        match self {
            Self::Jump { to }
            | Self::DecrementAndJump { to, .. }
            | Self::JumpIf { to, .. }
            | Self::JumpIfMatches { to, .. }
            | Self::ExpectOr { to, .. }
            | Self::JumpWithin { to, .. } => Some(to),
            _ => None,
        }
    }
}

/// Instructions of one end. After the last one the connection closes, and a UDP flow is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    instructions: Box<[Instruction]>,
    contents: Option<Arc<Contents>>,
    starts_session: bool,
    stamp: Option<u32>,
}

impl Program {
    /// Maximum number of instructions.
    pub const LENGTH_MAX: usize = u16::MAX as usize;

    /// Creates a program without contents. Returns `None` if there are more than
    /// [`Self::LENGTH_MAX`] instructions, a jump leads beyond the end, or an instruction refers to
    /// contents.
    pub fn new(instructions: impl Into<Box<[Instruction]>>) -> Option<Self> {
        Self::with_contents(instructions, Contents::default())
    }

    /// Creates a program with contents. Returns `None` as [`Self::new`] does, and if an instruction
    /// refers to a missing entry.
    ///
    /// A program with [`Instruction::StartSession`] may not count received bytes, since counted
    /// bytes would stay for the session. It may not reconnect either, and neither may one that
    /// listens.
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
        let has = |predicate: fn(&Instruction) -> bool| instructions.iter().any(predicate);
        let starts_session = has(|it| matches!(it, Instruction::StartSession));
        let counts = has(|it| matches!(it, Instruction::Receive { .. } | Instruction::Need { .. }));
        let reconnects = has(|it| matches!(it, Instruction::Reconnect { .. }));
        let listens = has(|it| matches!(it, Instruction::Listen { .. }));
        let is_good =
            is_good && !(starts_session && counts) && !(reconnects && (starts_session || listens));
        let has_contents = starts_session || contents != Contents::default();
        let contents = has_contents.then(|| Arc::new(contents));
        is_good.then_some(Self { instructions, contents, starts_session, stamp: None })
    }

    /// Returns the program with a time stamp at the start of each datagram, as in TRex's add-on
    /// `latency` (`udp_latency.cpp`). The 12 bytes are 0, a sequence number, the time in
    /// microseconds and `source`, which identifies the server.
    ///
    /// The end that sends first writes its own time. The other end sends back the stamp of the last
    /// received datagram, so the first end measures round trips. The clock is that of the endpoint:
    /// servers measure correctly if both ends share one, as in one process.
    #[must_use]
    pub fn stamped(self, source: u32) -> Self {
        Self { stamp: Some(source), ..self }
    }

    /// Returns the `source` of the time stamps, if datagrams have them.
    pub const fn stamp(&self) -> Option<u32> {
        self.stamp
    }

    /// Creates a program that sends nothing until the peer closes.
    pub(crate) fn waiting() -> Self {
        let instructions = Box::new([Instruction::WaitForPeerClose]);
        Self { instructions, contents: None, starts_session: false, stamp: None }
    }

    /// Whether the program listens for other flows.
    pub(crate) fn listens(&self) -> bool {
        self.instructions.iter().any(|it| matches!(it, Instruction::Listen { .. }))
    }

    /// Whether the program starts its session itself.
    pub(crate) const fn starts_session(&self) -> bool {
        self.starts_session
    }

    /// Whether the program examines received data or keeps it for a session.
    pub(crate) fn keeps(&self) -> bool {
        self.starts_session || self.contents().is_some_and(Contents::examines_data)
    }

    /// Returns the tables of the payload instructions, if any.
    pub(crate) fn contents(&self) -> Option<&Contents> {
        self.contents.as_deref()
    }

    pub(crate) fn instruction(&self, place: u16) -> Option<Instruction> {
        self.instructions.get(usize::from(place)).copied()
    }
}
