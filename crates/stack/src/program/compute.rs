//! Instructions that take no time, for TCP and UDP.

use wirestorm_base::time::Duration;

use super::Instruction;
use super::context::ProgramContext;
use super::variables::Variables;
use wirestorm_base::random::Random;

/// Returns the delay of an instruction in microseconds, or `None` if it is not a delay.
#[inline]
pub(super) fn delay(instruction: Instruction, random: &mut Random) -> Option<u32> {
    match instruction {
        Instruction::Delay { micros } => Some(micros),
        Instruction::DelayUniform { min, max } | Instruction::DelaySinceRead { min, max } => {
            Some(min + random.below(max.saturating_sub(min).saturating_add(1)))
        }
        Instruction::DelayExponential { mean } => {
            Some((random.exponential() * f64::from(mean)) as u32)
        }
        // The cast turns values below 0 into 0.
        Instruction::DelayNormal { mean, deviation } => {
            Some((f64::from(mean) + random.normal() * f64::from(deviation)) as u32)
        }
        _ => None,
    }
}

/// Executes the instruction at `place`, and returns the index of the next instruction.
pub(super) fn compute(
    instruction: Instruction,
    place: u16,
    variables: &mut Variables,
    outside: &mut ProgramContext<'_>,
) -> u16 {
    let millis = outside.now.millis;
    let next = place + 1;
    match instruction {
        Instruction::Set { variable, value } => {
            *variables.get_mut(variable) = value;
            next
        }
        Instruction::Add { variable, value } => {
            let sum = variables.get(variable).wrapping_add(value);
            *variables.get_mut(variable) = sum;
            next
        }
        Instruction::DecrementAndJump { variable, to } => {
            let left = variables.get(variable).saturating_sub(1);
            *variables.get_mut(variable) = left;
            if left > 0 { to } else { next }
        }
        Instruction::JumpIf { variable, comparison, value, to } => {
            if comparison.holds(variables.get(variable), value) { to } else { next }
        }
        Instruction::SetTick { tick } => {
            *variables.tick_mut(tick) = millis;
            next
        }
        Instruction::AddTick { tick, millis } => {
            let moved = variables.tick_mut(tick);
            *moved = moved.wrapping_add(millis);
            next
        }
        Instruction::JumpWithin { tick, millis: span, to } => {
            if variables.since(tick, millis) < span { to } else { next }
        }
        Instruction::SetTemplate { group } => {
            variables.group = Some(group);
            next
        }
        Instruction::Count { statistic, value } => {
            outside.statistics.add(statistic, value);
            next
        }
        Instruction::CountSince { statistic, tick, unit } => {
            let units = variables.since(tick, millis) / u32::from(unit.get());
            outside.statistics.add(statistic, units.into());
            next
        }
        Instruction::BeginTransaction { transaction } => {
            variables.begin(transaction, outside.now.micros);
            outside.findings.begin(transaction);
            next
        }
        Instruction::EndTransaction { transaction } => {
            if let Some(begun_at) = variables.end(transaction) {
                let took = outside.now.micros.saturating_sub(begun_at);
                outside.findings.end(transaction, Duration::from_micros(took));
            }
            next
        }
        // Instructions that wait, and those of the other transport, have no effect here.
        _ => next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mean, the standard deviation and the share of zeros.
    fn statistics(instruction: Instruction) -> [f64; 3] {
        const COUNT: u32 = 100_000;
        let mut random = Random::new(7);
        let (mut sum, mut squares, mut zeros) = (0.0, 0.0, 0.0);
        for _ in 0..COUNT {
            let micros = delay(instruction, &mut random).map(f64::from).unwrap();
            sum += micros;
            squares += micros * micros;
            zeros += f64::from(u8::from(micros == 0.0));
        }
        let mean = sum / f64::from(COUNT);
        [mean, libm::sqrt(squares / f64::from(COUNT) - mean * mean), zeros / f64::from(COUNT)]
    }

    #[track_caller]
    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 0.02 * expected, "{found} instead of {expected}");
    }

    #[test]
    fn delays_follow_their_distributions() {
        let [mean, deviation, _] = statistics(Instruction::DelayExponential { mean: 50_000 });
        assert_near(mean, 50_000.0);
        assert_near(deviation, 50_000.0);
        let [mean, deviation, zeros] =
            statistics(Instruction::DelayNormal { mean: 50_000, deviation: 5_000 });
        assert_near(mean, 50_000.0);
        assert_near(deviation, 5_000.0);
        assert!(zeros < 1e-3);
        let [mean, deviation, _] =
            statistics(Instruction::DelayUniform { min: 10_000, max: 40_000 });
        assert_near(mean, 25_000.0);
        assert_near(deviation, 30_000.0 / libm::sqrt(12.0));
        // Half of the values would be below 0.
        let [mean, _, zeros] = statistics(Instruction::DelayNormal { mean: 0, deviation: 10_000 });
        assert_near(mean, 10_000.0 / libm::sqrt(2.0 * core::f64::consts::PI));
        assert_near(zeros, 0.5);
    }
}
