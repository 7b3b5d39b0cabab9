//! What a program remembers and counts.

/// A variable of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable(u8);

/// A time that a flow remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickVariable(u8);

/// A text that a flow remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextVariable(u8);

/// A name of transactions, whose times all flows of a template add to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction(u8);

/// A statistic that all flows of a side add to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistic(u8);

macro_rules! numbered {
    ($($name:ident: $what:literal, $count:literal;)*) => {$(
        impl $name {
            #[doc = concat!("How many ", $what, " there are.")]
            pub const COUNT: usize = $count;

            #[doc = concat!("One of the ", $what, "; `None` beyond the last.")]
            pub fn new(place: usize) -> Option<Self> {
                (place < Self::COUNT).then_some(Self(place as u8))
            }

            /// The one of the `order`-th name of a program, from 0. Names take the last ones first:
            /// loops count in the first variables. Orders from [`Self::COUNT`] on share the first.
            pub const fn named(order: usize) -> Self {
                Self((Self::COUNT - 1).saturating_sub(order) as u8)
            }

            /// Index, below [`Self::COUNT`].
            pub const fn place(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

numbered! {
    Variable: "variables of a flow", 10;
    TickVariable: "times that a flow remembers", 10;
    TextVariable: "texts that a flow remembers", 10;
    Transaction: "names of transactions", 32;
    Statistic: "statistics", 4;
}

/// How a variable is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It is less.
    Less,
    /// It is less, or the same.
    LessOrEqual,
    /// It is the same.
    Equal,
    /// It is another one.
    NotEqual,
    /// It is greater, or the same.
    GreaterOrEqual,
    /// It is greater.
    Greater,
}

impl Comparison {
    /// Whether the comparison of a variable with a value holds.
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
