//! The steps of a program.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU16;
use core::ops::RangeInclusive;

use wirestorm_base::time::Duration;
use wirestorm_wire::pattern::Pattern;

use super::composition::{Composition, Value};
use super::framing::MessageFraming;
use super::number::Number;
use super::part::MessagePart;
use super::variables::{Comparison, TextVariable, TimeVariable, UserCounter, Variable};

/// One step of a program. After the last step the flow closes its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends `text`, then repeats `fill` up to `size` bytes. Waits for the acknowledgement unless
    /// [`Step::SetBlocking`] is false.
    Send {
        /// Text at the start.
        text: Vec<u8>,
        /// Total size in bytes; at least the length of `text`.
        size: u32,
        /// Bytes that repeat behind `text`; empty: bytes that count from 0 to 255.
        fill: Vec<u8>,
    },
    /// Sends payload that each flow composes, like [`Step::Send`].
    SendComposed(Composition),
    /// Waits until this many bytes have arrived since the last [`Step::Receive`]. If the peer
    /// closes before, the program ends.
    Receive(u64),
    /// Like [`Step::Receive`], but the flow fails if the peer closes before.
    ReceiveOrFail(u64),
    /// Waits for the data that a rule selects, and consumes it. If the peer closes before, the
    /// program ends; the flow fails if a part of the data had arrived.
    ReceiveMessage(MessageFraming),
    /// Like [`Step::ReceiveMessage`], but the flow fails whenever the peer closes before.
    ReceiveMessageOrFail(MessageFraming),
    /// Checks the last message. If the check fails, the flow fails.
    Expect {
        /// Condition that the message must meet.
        expected: Condition,
        /// Label at which a failed flow continues; `None`: its program ends.
        on_failure: Option<Label>,
    },
    /// Stores a part of the last message. If the message has no such part, the flow fails.
    Extract {
        /// Text variable to set.
        text: TextVariable,
        /// Part to store.
        part: MessagePart,
    },
    /// Sets a text variable.
    SetText {
        /// Text variable to set.
        text: TextVariable,
        /// New text.
        composition: Composition,
    },
    /// Sets a variable to a number that differs from flow to flow.
    SetNumber {
        /// Variable to set.
        variable: Variable,
        /// New number.
        number: Number,
    },
    /// Starts the transaction with this name.
    StartTransaction(String),
    /// Ends the transaction with this name, if it has started.
    EndTransaction(String),
    /// Waits until this many bytes have arrived since the last [`Step::Receive`], or since the
    /// start of the flow. Does not reset the count.
    ReceiveTotal(u64),
    /// Waits until the connection is established.
    Connect,
    /// Sends a datagram, with the payload of [`Step::Send`].
    SendDatagram {
        /// Text at the start.
        text: Vec<u8>,
        /// Total size in bytes; at least the length of `text`.
        size: u32,
        /// Bytes that repeat behind `text`; empty: bytes that count from 0 to 255.
        fill: Vec<u8>,
    },
    /// Sends payload that each flow composes as a datagram.
    SendComposedDatagram(Composition),
    /// Waits until this many datagrams have arrived.
    ReceiveDatagrams {
        /// Number of datagrams.
        count: u64,
        /// Whether to reset the count afterwards.
        clear: bool,
    },
    /// Sets the idle timeout of a UDP flow. The default is 1 second.
    SetIdleTimeout {
        /// Timeout in whole milliseconds; zero: none.
        time: Duration,
        /// Whether only received datagrams reset the timer.
        receive_only: bool,
    },
    /// Selects the group of the next [`Step::RunFlow`], [`Step::StartFlow`] or
    /// [`Step::AcceptFlow`].
    SelectGroup(String),
    /// Opens a flow of the selected group from the same client address, and waits until it is over.
    RunFlow,
    /// Opens a flow of the selected group to the same server, and continues beside it. If that flow
    /// fails, this one fails.
    StartFlow {
        /// Server port, in decimal or as two decimal bytes (`195,80`).
        port: Value,
        /// Client port; `None`: any client port of the template.
        client_port: Option<Value>,
    },
    /// Waits until the flow of [`Step::StartFlow`] is over.
    WaitFlow,
    /// Listens on a free port for one connection of the same client.
    Listen {
        /// Variable that receives the port.
        variable: Variable,
        /// Ports to choose from.
        ports: RangeInclusive<u16>,
    },
    /// Accepts the connection to the port of [`Step::Listen`] as a flow of the selected group, and
    /// waits until it is over. If that flow fails, this one fails.
    AcceptFlow,
    /// Waits for a random time of a uniform distribution, in whole microseconds.
    Delay {
        /// Minimum.
        min: Duration,
        /// Maximum.
        max: Duration,
    },
    /// Like [`Step::Delay`], counted from the arrival of the last byte of the last message.
    DelaySinceReceived {
        /// Minimum.
        min: Duration,
        /// Maximum.
        max: Duration,
    },
    /// Waits for a random time of an exponential or normal distribution, in whole microseconds.
    RandomDelay {
        /// Mean.
        mean: Duration,
        /// Standard deviation of a normal distribution; `None`: exponential distribution.
        stddev: Option<Duration>,
    },
    /// Starts TLS and waits for the handshake. Without this step the handshake comes first on a
    /// connection with TLS.
    StartTls,
    /// If the peer has closed, continues over a new connection to the same server.
    Reconnect {
        /// Whether to reconnect also if the last HTTP/1 message announces the end of its connection
        /// (`Connection: close`).
        follows_http: bool,
    },
    /// Fails the flow if the peer has closed.
    FailIfClosed,
    /// Waits until the peer closes.
    WaitForClose,
    /// Resets the connection. It is the last step.
    Reset,
    /// Sets whether later sends wait for acknowledgements. The default is true.
    SetBlocking(bool),
    /// Sets the type of service (IPv4) or traffic class (IPv6) of later packets.
    SetTrafficClass(u8),
    /// Repeats steps.
    Repeat {
        /// Number of repetitions; `None`: without end.
        times: Option<u64>,
        /// Steps to repeat.
        steps: Vec<Self>,
    },
    /// Marks a jump target.
    Label(Label),
    /// Jumps to a label.
    Jump {
        /// Jump target.
        to: Label,
        /// Condition. If it does not hold, the next step follows.
        when: JumpCondition,
    },
    /// Decrements a variable that is greater than 0, and jumps if it is still greater than 0.
    DecrementAndJump {
        /// Variable to decrement.
        variable: Variable,
        /// Jump target.
        to: Label,
    },
    /// Sets a variable. The initial value is 0.
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
    /// Stores the current time.
    StoreTime(TimeVariable),
    /// Moves a stored time forward.
    AdvanceTime {
        /// Stored time to change.
        time: TimeVariable,
        /// Time to add, in whole milliseconds.
        by: Duration,
    },
    /// Adds to a user counter.
    AddToCounter {
        /// Counter, A to D.
        counter: UserCounter,
        /// Amount to add.
        what: CountAmount,
    },
}

/// Condition of a jump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JumpCondition {
    /// Always.
    Always,
    /// If a comparison holds.
    Compares {
        /// Variable to compare.
        variable: Variable,
        /// Comparison operator.
        comparison: Comparison,
        /// Value to compare with.
        value: u64,
    },
    /// If less than a duration has passed since a stored time.
    Within {
        /// Duration in whole milliseconds.
        span: Duration,
        /// Stored time.
        since: TimeVariable,
    },
    /// If the last message meets a condition.
    Received(Condition),
}

/// Amount to add to a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountAmount {
    /// A number.
    Number(u64),
    /// Number of whole time units since a stored time.
    Since {
        /// Stored time.
        time: TimeVariable,
        /// Time unit in milliseconds.
        unit: NonZeroU16,
    },
}

/// A jump target: index of its name in the order in which the program first names labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// Condition on the last message, which is the data of the last receive step or the last datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The message equals these bytes.
    Equals(Composition),
    /// The message contains these bytes.
    Contains(Composition),
    /// The message contains a match of this pattern.
    Matches(Pattern),
    /// The message is an HTTP/1 message that keeps the connection open.
    KeepsConnection,
    /// The message is not a DNS answer to the query with this ID.
    NotDnsAnswer(u16),
    /// The message is a DNS answer with response code 0 (NOERROR).
    DnsNoError,
}
