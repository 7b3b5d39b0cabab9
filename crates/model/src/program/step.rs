//! The steps of a program.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU16;
use core::ops::RangeInclusive;

use wirestorm_base::time::Duration;
use wirestorm_wire::pattern::Pattern;

use super::composition::{Composition, Value};
use super::number::Number;
use super::part::Part;
use super::rule::Rule;
use super::variables::{Comparison, Statistic, TextVariable, TickVariable, Variable};

/// One step of a program. Behind the last one the connection is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends `text`, and behind it `fill` again and again until it is `size` bytes.
    Send {
        /// Text at the start.
        text: Vec<u8>,
        /// How many bytes in all; at least as many as `text` has.
        size: u32,
        /// What repeats; nothing: bytes that count from 0 to 255.
        fill: Vec<u8>,
    },
    /// The same with bytes that are put together for each flow.
    SendOwn(Composition),
    /// Waits until so many bytes have arrived since the last such step.
    Receive(u64),
    /// The same; where the other end closes before, the flow has failed.
    Need(u64),
    /// Waits until something has arrived, and takes that.
    ReceiveWhole(Rule),
    /// The same; where the other end closes before, the flow has failed.
    NeedWhole(Rule),
    /// Expects something of what was received last; else the flow has failed.
    Expect {
        /// What.
        expected: Expected,
        /// Where a flow that has failed goes on; else its program ends.
        otherwise: Option<Label>,
    },
    /// Makes a part of what was received last a text; where it is not there, the flow has failed.
    Extract {
        /// Which text.
        text: TextVariable,
        /// What part.
        part: Part,
    },
    /// Sets a text.
    SetText {
        /// Which.
        text: TextVariable,
        /// To what.
        composition: Composition,
    },
    /// Sets a variable to a number that differs from flow to flow.
    SetNumber {
        /// Which.
        variable: Variable,
        /// To what.
        number: Number,
    },
    /// A transaction starts.
    StartTransaction(String),
    /// A transaction ends, if it has started.
    EndTransaction(String),
    /// Waits until so many bytes have arrived since the last [`Step::Receive`], or in all.
    ReceiveTotal(u64),
    /// Waits until the connection is established.
    Connect,
    /// Sends a datagram, which is made as in [`Step::Send`].
    SendDatagram {
        /// Text at the start.
        text: Vec<u8>,
        /// Total size in bytes.
        size: u32,
        /// What repeats.
        fill: Vec<u8>,
    },
    /// Sends as a datagram what is put together for each flow.
    SendOwnDatagram(Composition),
    /// Waits until so many datagrams have arrived.
    ReceiveDatagrams {
        /// Number of datagrams.
        count: u64,
        /// Whether counting begins anew then.
        clear: bool,
    },
    /// How long a flow of UDP may be without datagrams before it is given up, in whole
    /// milliseconds.
    Idle {
        /// Timeout.
        time: Duration,
        /// Whether only received datagrams reset the timer.
        receive_only: bool,
    },
    /// Which group the next flow is of that this one makes.
    SelectGroup(String),
    /// Makes a flow of that group, from the same address, and waits until it is over.
    RunFlow,
    /// Makes a flow of that group to the same server, at the port that a value says, and goes on
    /// beside it; where that flow fails, this one has failed.
    StartFlow {
        /// The server's port.
        port: Value,
        /// The client's own; `None`: any that its template has.
        client_port: Option<Value>,
    },
    /// Waits until that flow is over.
    WaitFlow,
    /// Listen for a connection of the same client.
    Listen {
        /// Which variable becomes the port.
        variable: Variable,
        /// One of these.
        ports: RangeInclusive<u16>,
    },
    /// Waits for that connection, makes it one of that group, and waits until it is over; where it
    /// fails, this one has failed.
    AcceptFlow,
    /// Waits for a time, in whole microseconds.
    Delay {
        /// Minimum.
        min: Duration,
        /// The greatest; each between them is equally likely.
        max: Duration,
    },
    /// The same, counted from when the last byte arrived of the message that was received last.
    DelaySinceReceived {
        /// Minimum.
        min: Duration,
        /// The greatest; each between them is equally likely.
        max: Duration,
    },
    /// Waits for a time that is drawn, in whole microseconds.
    DelayAbout {
        /// Mean.
        mean: Duration,
        /// The standard deviation of a normal distribution; `None`: an exponential one.
        deviation: Option<Duration>,
    },
    /// Begins TLS, and waits until it is there; without such a step it is there from the beginning.
    StartTls,
    /// Where the other end has closed, goes on over another connection to it.
    Reconnect {
        /// Whether it also does so if the last HTTP/1 message announces the end of its connection
        /// (`Connection: close`).
        follows_http: bool,
    },
    /// Where the other end has closed, the flow has failed.
    NeedOpen,
    /// Waits until the other end closes.
    WaitForClose,
    /// Resets the connection; a last step.
    Reset,
    /// Whether sending waits until everything is acknowledged. It does at first.
    Blocking(bool),
    /// From now on packets have this type of service, or traffic class.
    TrafficClass(u8),
    /// Does steps again and again.
    Repeat {
        /// How often; `None`: for ever.
        times: Option<u64>,
        /// These.
        steps: Vec<Self>,
    },
    /// Label: a jump target.
    Label(Label),
    /// Jump to a label.
    Jump {
        /// Which.
        to: Label,
        /// Under which condition; else with the next step.
        when: When,
    },
    /// Takes 1 off a variable that is greater than 0, and goes on at a label where it still is.
    DecrementAndJump {
        /// Which variable.
        variable: Variable,
        /// Where it goes on.
        to: Label,
    },
    /// Sets a variable; all begin with 0.
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
    /// Remembers the present time.
    Remember(TickVariable),
    /// Moves a remembered time on, by whole milliseconds.
    Postpone {
        /// Which.
        time: TickVariable,
        /// How far.
        by: Duration,
    },
    /// Adds to a counter of the user's.
    Count {
        /// Counter, A to D.
        counter: Statistic,
        /// What.
        what: Counted,
    },
}

/// When a jump is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// If a variable compares so with a value.
    Compares {
        /// Which.
        variable: Variable,
        /// How.
        comparison: Comparison,
        /// With what.
        value: u64,
    },
    /// As long as less than a time, in whole milliseconds, has passed since a remembered one.
    Within {
        /// How long.
        span: Duration,
        /// Since when.
        since: TickVariable,
    },
    /// Check the last message.
    Received(Expected),
}

/// What is added to a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// A number.
    Number(u64),
    /// The whole units of time that have passed since a remembered time.
    Since {
        /// Since when.
        time: TickVariable,
        /// The unit, in milliseconds.
        unit: NonZeroU16,
    },
}

/// A place in a program, by the order in which the names of labels appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// What is expected of what was received last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It is this.
    Is(Composition),
    /// This is somewhere in it.
    Contains(Composition),
    /// It matches somewhere.
    Matches(Pattern),
    /// It is a message of HTTP/1 behind which the connection goes on.
    KeepsConnection,
    /// It is no answer of DNS to the query with this number.
    NoDnsAnswer(u16),
    /// It is an answer of DNS without an error.
    DnsNoError,
}
