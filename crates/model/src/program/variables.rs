//! Variables and counters of a program.

/// A numeric variable of a flow, 64 bits. Its initial value is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable(u8);

/// A stored time of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeVariable(u8);

/// A text variable of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextVariable(u8);

/// A transaction name. All flows of a template share its histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionId(u8);

/// A user counter, shared by all flows of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCounter(u8);

macro_rules! numbered {
    ($($name:ident: $what:literal, $count:literal;)*) => {$(
        impl $name {
            #[doc = concat!("Number of ", $what, ".")]
            pub const COUNT: usize = $count;

            #[doc = concat!("Returns one of the ", $what, "; `None` from index [`Self::COUNT`].")]
            pub fn new(place: usize) -> Option<Self> {
                (place < Self::COUNT).then_some(Self(place as u8))
            }

            /// Returns the one for the `order`-th name of a program, from 0. Names use the highest
            /// indices first, since loops count in the lowest variables. Orders from
            /// [`Self::COUNT`] on share index 0.
            pub const fn named(order: usize) -> Self {
                Self((Self::COUNT - 1).saturating_sub(order) as u8)
            }

            /// Returns the index, below [`Self::COUNT`].
            pub const fn place(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

numbered! {
    Variable: "variables of a flow", 10;
    TimeVariable: "stored times of a flow", 10;
    TextVariable: "text variables of a flow", 10;
    TransactionId: "transaction names", 32;
    UserCounter: "user counters", 4;
}

/// Comparison of a variable with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The variable is less than the value.
    Less,
    /// The variable is less than or equal to the value.
    LessOrEqual,
    /// The variable equals the value.
    Equal,
    /// The variable differs from the value.
    NotEqual,
    /// The variable is greater than or equal to the value.
    GreaterOrEqual,
    /// The variable is greater than the value.
    Greater,
}

impl Comparison {
    /// Returns whether the comparison holds.
    pub const fn holds(self, variable: u64, value: u64) -> bool {
        match self {
            Self::Less => variable < value,
            Self::LessOrEqual => variable <= value,
            Self::Equal => variable == value,
            Self::NotEqual => variable != value,
            Self::GreaterOrEqual => variable >= value,
            Self::Greater => variable > value,
        }
    }
}
