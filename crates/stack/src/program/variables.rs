//! Variables, transactions and statistics of programs.

use alloc::vec::Vec;

use wirestorm_model::program::{TimeVariable, TransactionId, UserCounter, Variable};

/// Values of all statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics([u64; UserCounter::COUNT]);

impl Statistics {
    /// Returns the value of a statistic.
    pub const fn get(&self, statistic: UserCounter) -> u64 {
        self.0[statistic.place()]
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.wrapping_add(theirs);
        }
    }

    pub(super) const fn add(&mut self, statistic: UserCounter, value: u64) {
        let sum = &mut self.0[statistic.place()];
        *sum = sum.wrapping_add(value);
    }
}

/// Variables of one flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Variables {
    variables: [u64; Variable::COUNT],
    /// Saved times in ms, modulo 2^32.
    ticks: [u32; TimeVariable::COUNT],
    /// Selected group of the next template.
    pub(super) group: Option<u16>,
    /// Open transactions and their start times in microseconds.
    begun: Vec<(TransactionId, u64)>,
}

impl Variables {
    pub(super) const fn get(&self, variable: Variable) -> u64 {
        self.variables[variable.place()]
    }

    pub(super) const fn get_mut(&mut self, variable: Variable) -> &mut u64 {
        &mut self.variables[variable.place()]
    }

    pub(super) const fn all(&self) -> &[u64; Variable::COUNT] {
        &self.variables
    }

    /// Starts a transaction; discards an open one of the same name.
    pub(super) fn begin(&mut self, transaction: TransactionId, micros: u64) {
        self.begun.retain(|(other, _)| *other != transaction);
        self.begun.push((transaction, micros));
    }

    /// Ends a transaction; returns its start time in microseconds, if it had started.
    pub(super) fn end(&mut self, transaction: TransactionId) -> Option<u64> {
        let place = self.begun.iter().position(|(other, _)| *other == transaction)?;
        Some(self.begun.swap_remove(place).1)
    }

    pub(super) const fn tick_mut(&mut self, tick: TimeVariable) -> &mut u32 {
        &mut self.ticks[tick.place()]
    }

    /// Returns the milliseconds since a saved time, or 0 if that is in the future.
    pub(super) fn since(&self, tick: TimeVariable, millis: u32) -> u32 {
        millis.wrapping_sub(self.ticks[tick.place()]).cast_signed().max(0).cast_unsigned()
    }
}
