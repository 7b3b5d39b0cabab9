//! Variables of a stream, advanced incrementally from frame to frame.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter;

use wirestorm_base::prefetch::prefetch;
use wirestorm_base::resident::{self, CursorShape, CursorValues};
use wirestorm_model::stream::{Advance, Values, Variable};

/// Values of a stream's variables for the current frame.
///
/// Cursors are ordered such that each follows the one that advances it.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Variables {
    /// Number of the current frame.
    number: u64,
    /// Distance to this worker's next frame.
    stride: u64,
    /// Next frame at which a sequence restarts: all cursors are set anew there.
    restart_at: u64,
    /// First cursor; most streams have no other. It never moves if there are no variables.
    first: Cursor,
    others: Box<[Cursor]>,
    origin: Box<Origin>,
}

/// State of one variable.
#[derive(Clone, Debug)]
#[repr(C)]
struct Cursor {
    /// Index of the value in its cycle.
    place: u64,
    /// Length of the cycle.
    cycle: u64,
    /// Advance per frame of this worker; 0 if another cursor's wraps advance it.
    places: u64,
    rule: Rule,
}

/// Data for several cursors, or for setting them anew.
#[derive(Clone, Debug)]
struct Origin {
    /// Variables of the plan.
    plan: Box<[Variable]>,
    /// Index of each cursor's variable in the plan.
    order: Box<[usize]>,
    /// Nesting of each cursor.
    nestings: Box<[Nesting]>,
}

/// How a cursor is advanced by another cursor, and advances others.
#[derive(Clone, Debug)]
struct Nesting {
    /// Cursor whose wraps advance this one.
    follows: Option<usize>,
    /// Complete cycles per frame of this worker, beside `places`.
    wraps_beside: u64,
    /// Complete cycles in the last step.
    wraps: u64,
}

/// Rule for a cursor's value.
#[derive(Clone, Debug)]
enum Rule {
    /// `base + place * step` in the lower 64 bits, modulo 2^64; the upper bits are constant.
    Counter { base: u64, step: u64, upper: u64 },
    /// `values[place]`.
    List(Box<[u128]>),
    /// Computed from the frame number by definition: the lower and the upper 64 bits.
    Defined([u64; 2]),
}

impl Variables {
    /// Creates the variables at frame `number`, for a worker that sends every `stride`-th frame.
    pub(super) fn new(plan: &[Variable], number: u64, stride: u64) -> Self {
        let mut order: Box<[usize]> = (0..plan.len()).collect();
        order.sort_by_key(|&index| depth(plan, index));
        let mut cursors = order.iter().map(|&index| Cursor::new(plan, index, stride));
        let mut variables = Self {
            number,
            stride,
            restart_at: 0,
            first: cursors.next().unwrap_or(Cursor::STANDING),
            others: cursors.collect(),
            origin: Box::new(Origin {
                plan: plan.into(),
                nestings: order
                    .iter()
                    .map(|&index| Nesting::new(plan, &order, index, stride))
                    .collect(),
                order,
            }),
        };
        variables.set();
        variables
    }

    /// Returns the cursor of a variable of the plan.
    pub(super) fn cursor_of(&self, variable: usize) -> Option<usize> {
        self.origin.order.iter().position(|&index| index == variable)
    }

    #[inline]
    fn cursor(&self, cursor: usize) -> &Cursor {
        match cursor.checked_sub(1) {
            None => &self.first,
            Some(other) => &self.others[other],
        }
    }

    /// Returns the number of the current frame.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the value of a cursor in the current frame.
    #[inline]
    pub(super) fn value(&self, cursor: usize) -> u128 {
        let Cursor { place, rule, .. } = self.cursor(cursor);
        match rule {
            Rule::Counter { base, step, upper } => {
                let lower = base.wrapping_add(step.wrapping_mul(*place));
                u128::from(lower) | u128::from(*upper) << 64
            }
            Rule::List(values) => values[*place as usize],
            Rule::Defined([lower, upper]) => u128::from(*lower) | u128::from(*upper) << 64,
        }
    }

    /// Returns the lower 64 bits of a cursor's value in the current frame.
    #[inline]
    pub(super) fn lower(&self, cursor: usize) -> u64 {
        let Cursor { place, rule, .. } = self.cursor(cursor);
        match rule {
            Rule::Counter { base, step, .. } => base.wrapping_add(step.wrapping_mul(*place)),
            Rule::List(values) => values[*place as usize] as u64,
            Rule::Defined([lower, _]) => *lower,
        }
    }

    /// Returns the value of a cursor in any frame, by definition.
    pub(super) fn value_in(&self, cursor: usize, number: u64) -> u128 {
        let Origin { plan, order, .. } = &*self.origin;
        plan[order[cursor]].value(number, plan)
    }

    /// Advances to this worker's next frame.
    #[inline]
    pub(super) fn step(&mut self) {
        self.number += self.stride;
        if self.number >= self.restart_at {
            self.set();
            return;
        }
        // With a single cursor, nothing depends on its wraps.
        if self.others.is_empty() && !matches!(self.first.rule, Rule::Defined(_)) {
            let cursor = &mut self.first;
            cursor.place += cursor.places;
            if cursor.place >= cursor.cycle {
                cursor.place -= cursor.cycle;
            }
            return;
        }
        self.step_all();
    }

    fn step_all(&mut self) {
        let Origin { plan, order, nestings } = &mut *self.origin;
        let cursors = iter::once(&mut self.first).chain(&mut self.others);
        for (index, cursor) in cursors.enumerate() {
            let by = nestings[index].follows.map_or(cursor.places, |other| nestings[other].wraps);
            if let Rule::Defined(value) = &mut cursor.rule {
                *value = halves(plan[order[index]].value(self.number, plan));
                continue;
            }
            let nesting = &mut nestings[index];
            nesting.wraps = nesting.wraps_beside;
            cursor.place += by;
            if cursor.place >= cursor.cycle {
                nesting.wraps += cursor.place / cursor.cycle;
                cursor.place %= cursor.cycle;
            }
        }
    }

    /// Skips this worker's next `frames` frames.
    pub(super) fn skip(&mut self, frames: u64) {
        self.number = self.number.wrapping_add(self.stride.wrapping_mul(frames));
        self.set();
    }

    /// Returns the state of each variable for a port that advances it by itself.
    ///
    /// # Errors
    /// The reason why a port cannot.
    pub(super) fn resident(&self) -> Result<Vec<(CursorShape, resident::Cursor)>, &'static str> {
        let Origin { plan, order, nestings } = &*self.origin;
        if plan.iter().any(|variable| variable.restart_after.is_some()) {
            return Err("a value restarts after a number of frames");
        }
        let cursors = iter::once(&self.first).chain(&self.others);
        let cursors = order.iter().zip(cursors).zip(nestings);
        cursors
            .map(|((&index, cursor), nesting)| {
                let state = match &cursor.rule {
                    Rule::Counter { base, step, upper } => cursor.resident(
                        nesting,
                        CursorValues::Counter { base: *base, step: *step, upper: *upper },
                    ),
                    Rule::List(values) => {
                        cursor.resident(nesting, CursorValues::List(values.clone()))
                    }
                    Rule::Defined(_) => self.drawn(&plan[index]).ok_or(COMPUTED)?,
                };
                let shape = CursorShape { source: state.values.source(), follows: nesting.follows };
                Ok((shape, state))
            })
            .collect()
    }

    /// Returns the state of a random variable; `None` if a port cannot draw its values.
    fn drawn(&self, variable: &Variable) -> Option<resident::Cursor> {
        let Values::Random { min, max, seed } = variable.values else { return None };
        let count = u64::try_from(max - min).ok()?.checked_add(1)?;
        let is_narrow = min >> 64 == max >> 64 && variable.advance == Advance::EveryFrame;
        let upper = (min >> 64) as u64;
        is_narrow.then_some(resident::Cursor {
            place: self.number,
            cycle: u64::MAX,
            places: self.stride,
            wraps_beside: 0,
            values: CursorValues::Random { seed, min: min as u64, count, upper },
        })
    }

    /// Prefetches the cache line of the first cursor.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.first.cycle);
    }

    /// Sets all cursors for the current frame number by definition.
    #[cold]
    fn set(&mut self) {
        let Origin { plan, order, nestings } = &mut *self.origin;
        let cursors = iter::once(&mut self.first).chain(&mut self.others);
        for ((&index, nesting), cursor) in order.iter().zip(nestings).zip(cursors) {
            let variable = &plan[index];
            nesting.wraps = 0;
            if let Rule::Defined(value) = &mut cursor.rule {
                *value = halves(variable.value(self.number, plan));
            }
            if let Some(cycle) = variable.values.cycle() {
                let past = variable.position(self.number, plan);
                let begin = u128::from(variable.values.start_index());
                cursor.place = ((u128::from(past) + begin) % u128::from(cycle)) as u64;
            }
        }
        let restarts = plan.iter().filter_map(|variable| variable.restart_after);
        let next = restarts.map(|after| (self.number / after + 1).saturating_mul(after.get()));
        self.restart_at = next.min().unwrap_or(u64::MAX);
    }
}

const fn halves(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

/// Reason why a port does not make the values of a variable.
const COMPUTED: &str = "a value is computed anew for each frame";

impl Cursor {
    /// Returns the state for a port.
    fn resident(&self, nesting: &Nesting, values: CursorValues) -> resident::Cursor {
        resident::Cursor {
            place: self.place,
            cycle: self.cycle,
            places: self.places,
            wraps_beside: nesting.wraps_beside,
            values,
        }
    }

    /// Cursor that never moves.
    const STANDING: Self =
        Self { place: 0, cycle: 1, places: 0, rule: Rule::Counter { base: 0, step: 0, upper: 0 } };

    fn new(plan: &[Variable], index: usize, stride: u64) -> Self {
        let variable = &plan[index];
        let cycle = variable.values.cycle().unwrap_or(1);
        let places = match variable.advance {
            Advance::EveryFrame => stride % cycle,
            Advance::WhenWraps(_) => 0,
        };
        Self { place: 0, cycle, places, rule: rule(plan, index) }
    }
}

impl Nesting {
    fn new(plan: &[Variable], order: &[usize], index: usize, stride: u64) -> Self {
        let variable = &plan[index];
        let (follows, wraps_beside) = match variable.advance {
            Advance::EveryFrame => (None, stride / variable.values.cycle().unwrap_or(1)),
            Advance::WhenWraps(other) => (order.iter().position(|&index| index == other), 0),
        };
        Self { follows, wraps_beside, wraps: 0 }
    }
}

fn rule(plan: &[Variable], index: usize) -> Rule {
    /// Places are added without overflow checks.
    const CYCLE_MAX: u64 = 1 << 62;
    let variable = &plan[index];
    let is_stepped = match variable.advance {
        Advance::EveryFrame => true,
        // A restart within another variable's sequence is rare, so it is computed.
        Advance::WhenWraps(_) if variable.restart_after.is_some() => false,
        // A circular chain has no beginning, so it is computed by definition.
        Advance::WhenWraps(other) => {
            depth(plan, index) <= plan.len()
                && plan.get(other).is_some()
                && !matches!(rule(plan, other), Rule::Defined(_))
        }
    };
    match &variable.values {
        Values::Counter { start, min, max, step, downwards }
            if is_stepped
                && variable.values.cycle().is_some_and(|cycle| cycle <= CYCLE_MAX)
                && min >> 64 == max >> 64 =>
        {
            let (base, step) = if *downwards {
                (max - (max - start) % step, step.wrapping_neg())
            } else {
                (min + (start - min) % step, *step)
            };
            Rule::Counter { base: base as u64, step: step as u64, upper: (min >> 64) as u64 }
        }
        Values::List(values) if is_stepped && !values.is_empty() => {
            Rule::List(values.as_slice().into())
        }
        _ => Rule::Defined([0; 2]),
    }
}

/// Returns the number of variables before this one in its chain; more than all in a circular chain.
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
                    // Each may follow the next one, so there is no circular chain.
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
        fn stepping_matches_the_definition(
            plan in plan(), first in 0..100_u64, stride in 1..20_u64,
        ) {
            let mut variables = Variables::new(&plan, first, stride);
            let mut number = first;
            for _ in 0..200 {
                for (index, variable) in plan.iter().enumerate() {
                    prop_assert_eq!(
                        variables.value(variables.cursor_of(index).expect("it is there")), variable.value(number, &plan), "{}", number
                    );
                }
                variables.step();
                number += stride;
            }
        }
    }
}
