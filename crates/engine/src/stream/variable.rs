//! Variables, stepped along instead of computed anew for every frame.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wirestorm_wire::stream::{Advance, Values, Variable};

/// The variables of a stream, at one frame of it.
#[derive(Clone, Debug)]
pub(super) struct Variables {
    /// As they were planned: what the cursors are set from.
    plan: Vec<Variable>,
    /// In the plan's order.
    cursors: Vec<Cursor>,
    /// The order in which they are stepped: each behind the one it follows.
    order: Box<[usize]>,
    /// The frame whose values the cursors hold.
    number: u64,
    /// From one frame of this worker to its next one.
    stride: u64,
    /// The first frame in which a sequence begins again: there all are set anew.
    restart_at: u64,
}

/// Where one variable is.
#[derive(Clone, Debug)]
struct Cursor {
    value: u128,
    /// Its place among the values of its cycle.
    place: u64,
    /// Times through all values that the last step made.
    wraps: u64,
    rule: Rule,
}

/// How a cursor goes on.
#[derive(Clone, Debug)]
enum Rule {
    /// The value is `base + place * step`, modulo 2^128.
    Counter { base: u128, step: u128, cycle: u64, follows: Follows },
    /// The value is `values[place]`.
    List { values: Box<[u128]>, follows: Follows },
    /// Computed from the frame's number by definition.
    Defined,
}

/// What moves a cursor.
#[derive(Clone, Copy, Debug)]
enum Follows {
    /// Every frame: so many places, and so many times through all values beside.
    Frames { places: u64, wraps: u64 },
    /// The wraps of another cursor.
    Wraps(usize),
}

impl Variables {
    /// The variables at frame `number`, for a worker that sends every `stride`-th frame.
    pub(super) fn new(plan: &[Variable], number: u64, stride: u64) -> Self {
        let rules: Vec<Rule> = (0..plan.len()).map(|index| rule(plan, index, stride)).collect();
        let cursors = rules.into_iter().map(|rule| Cursor { value: 0, place: 0, wraps: 0, rule });
        let mut order: Box<[usize]> = (0..plan.len()).collect();
        order.sort_by_key(|&index| depth(plan, index));
        let mut variables = Self {
            plan: plan.to_vec(),
            cursors: cursors.collect(),
            order,
            number,
            stride,
            restart_at: 0,
        };
        variables.set();
        variables
    }

    /// The value of variable `index` in the current frame.
    #[inline]
    pub(super) fn value(&self, index: usize) -> u128 {
        self.cursors[index].value
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.cursors.is_empty()
    }

    /// Goes on to this worker's next frame.
    #[inline]
    pub(super) fn step(&mut self) {
        self.number += self.stride;
        if self.number >= self.restart_at {
            self.set();
            return;
        }
        if let [cursor] = &mut self.cursors[..]
            && let Rule::Counter { base, step, cycle, follows: Follows::Frames { places, .. } } =
                cursor.rule
        {
            // One counter, as most streams have: nobody asks how often it wrapped.
            cursor.place += places;
            if cursor.place >= cycle {
                cursor.place -= cycle;
            }
            cursor.value = base.wrapping_add(step.wrapping_mul(u128::from(cursor.place)));
            return;
        }
        for &index in &self.order {
            let (by, more) = match self.cursors[index].rule {
                Rule::Counter { follows: Follows::Frames { places, wraps }, .. }
                | Rule::List { follows: Follows::Frames { places, wraps }, .. } => (places, wraps),
                Rule::Counter { follows: Follows::Wraps(other), .. }
                | Rule::List { follows: Follows::Wraps(other), .. } => {
                    (self.cursors[other].wraps, 0)
                }
                Rule::Defined => {
                    self.cursors[index].value = self.plan[index].value(self.number, &self.plan);
                    continue;
                }
            };
            self.cursors[index].advance(by, more);
        }
    }

    /// Sets all cursors for the current number by definition.
    #[cold]
    fn set(&mut self) {
        for (variable, cursor) in self.plan.iter().zip(&mut self.cursors) {
            cursor.wraps = 0;
            cursor.value = variable.value(self.number, &self.plan);
            if let Some(cycle) = variable.values.cycle() {
                let past = variable.position(self.number, &self.plan);
                let begin = u128::from(variable.values.lead_in());
                cursor.place = ((u128::from(past) + begin) % u128::from(cycle)) as u64;
            }
        }
        let restarts = self.plan.iter().filter_map(|variable| variable.restart_after);
        let next = restarts.map(|after| (self.number / after + 1).saturating_mul(after.get()));
        self.restart_at = next.min().unwrap_or(u64::MAX);
    }
}

impl Cursor {
    #[inline]
    fn advance(&mut self, by: u64, more_wraps: u64) {
        let cycle = match &self.rule {
            Rule::Counter { cycle, .. } => *cycle,
            Rule::List { values, .. } => values.len() as u64,
            Rule::Defined => return,
        };
        self.wraps = more_wraps;
        if by == 0 {
            return;
        }
        self.place += by;
        if self.place >= cycle {
            self.wraps += self.place / cycle;
            self.place %= cycle;
        }
        self.value = match &self.rule {
            Rule::Counter { base, step, .. } => {
                base.wrapping_add(step.wrapping_mul(u128::from(self.place)))
            }
            Rule::List { values, .. } => values[self.place as usize],
            Rule::Defined => self.value,
        };
    }
}

fn rule(plan: &[Variable], index: usize, stride: u64) -> Rule {
    /// Places are added without a check for overflow.
    const CYCLE_MAX: u64 = 1 << 62;
    let variable = &plan[index];
    let follows = match variable.advance {
        Advance::EveryFrame => match variable.values.cycle() {
            Some(cycle) => Follows::Frames { places: stride % cycle, wraps: stride / cycle },
            None => return Rule::Defined,
        },
        // A sequence of its own length within another one's is rare and computed.
        Advance::WhenWraps(_) if variable.restart_after.is_some() => return Rule::Defined,
        Advance::WhenWraps(other) => match plan.get(other).map(|_| rule(plan, other, stride)) {
            Some(Rule::Counter { .. } | Rule::List { .. }) => Follows::Wraps(other),
            Some(Rule::Defined) | None => return Rule::Defined,
        },
    };
    match &variable.values {
        Values::Counter { start, min, max, step, downwards } => {
            let Some(cycle) = variable.values.cycle().filter(|cycle| *cycle <= CYCLE_MAX) else {
                return Rule::Defined;
            };
            let (base, step) = if *downwards {
                (max - (max - start) % step, step.wrapping_neg())
            } else {
                (min + (start - min) % step, *step)
            };
            Rule::Counter { base, step, cycle, follows }
        }
        Values::List(values) if !values.is_empty() => {
            Rule::List { values: values.as_slice().into(), follows }
        }
        _ => Rule::Defined,
    }
}

/// How many variables stand before this one in its chain; a circle is as deep as it gets.
fn depth(plan: &[Variable], index: usize) -> usize {
    let mut depth = 0;
    let mut at = index;
    while let Some(Variable { advance: Advance::WhenWraps(other), .. }) = plan.get(at) {
        depth += 1;
        at = *other;
        if depth > plan.len() {
            break;
        }
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use core::num::NonZeroU64;
    use proptest::prelude::*;

    fn counter() -> impl Strategy<Value = Values> {
        (0..50_u128, 1..30_u128, 1..4_u128, any::<u8>(), any::<bool>()).prop_map(
            |(min, count, step, start, downwards)| {
                let max = min + count * step - 1;
                let start = min + u128::from(start) % (max - min + 1);
                Values::Counter { start, min, max, step, downwards }
            },
        )
    }

    fn values() -> impl Strategy<Value = Values> {
        prop_oneof![
            4 => counter(),
            1 => Just(Values::Counter {
                start: u128::MAX - 3, min: 0, max: u128::MAX, step: 1, downwards: false,
            }),
            2 => prop::collection::vec(0..9_u128, 1..6).prop_map(Values::List),
            1 => (0..5_u128, 5..99_u128, any::<u64>())
                .prop_map(|(min, max, seed)| Values::Random { min, max, seed }),
            1 => any::<u64>().prop_map(|seed| Values::Weighted {
                choices: vec![(1, 3), (2, 0), (7, 5)], seed,
            }),
        ]
    }

    fn plan() -> impl Strategy<Value = Vec<Variable>> {
        let restart = prop::option::of(
            (1..40_u64).prop_map(|after| NonZeroU64::new(after).expect("at least one")),
        );
        let one = (values(), restart, any::<bool>());
        prop::collection::vec(one, 1..5).prop_map(|list| {
            let count = list.len();
            list.into_iter()
                .enumerate()
                .map(|(index, (values, restart_after, nested))| Variable {
                    values,
                    // Each may follow the one behind it, so that there is no circle.
                    advance: match nested && index + 1 < count {
                        true => Advance::WhenWraps(index + 1),
                        false => Advance::EveryFrame,
                    },
                    restart_after,
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn stepping_gives_the_values_of_the_definition(
            plan in plan(), first in 0..100_u64, stride in 1..20_u64,
        ) {
            let mut variables = Variables::new(&plan, first, stride);
            let mut number = first;
            for _ in 0..200 {
                for (index, variable) in plan.iter().enumerate() {
                    prop_assert_eq!(
                        variables.value(index), variable.value(number, &plan), "{}", number
                    );
                }
                variables.step();
                number += stride;
            }
        }
    }
}
