//! Programs: what each side of a flow sends, receives and checks.
//!
//! A program is a list of [`Step`]s. `control` compiles it into the instructions of `stack`.

mod composition;
mod number;
mod part;
mod rule;
mod step;
mod variables;

pub use composition::{Composition, Field, Form, Piece, Value};
pub use number::Number;
pub use part::Part;
pub use rule::{Delimiter, Rule};
pub use step::{Counted, Expected, Label, Step, When};
pub use variables::{Comparison, Statistic, TextVariable, TickVariable, Transaction, Variable};
