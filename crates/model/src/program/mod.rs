//! Programs: what each side of a flow sends, receives and checks.
//!
//! A program is a list of [`Step`]s. `control` compiles it into the instructions of `stack`.

mod composition;
mod framing;
mod number;
mod part;
mod step;
mod variables;

pub use composition::{Composition, Field, Piece, Value, ValueFormat};
pub use framing::{Delimiter, MessageFraming};
pub use number::Number;
pub use part::MessagePart;
pub use step::{Condition, CountAmount, JumpCondition, Label, Step};
pub use variables::{Comparison, TextVariable, TimeVariable, TransactionId, UserCounter, Variable};
