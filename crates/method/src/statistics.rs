//! Statistics over repeated trials.

/// Returns the arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the median: the mean of the two middle values of an even number; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length.is_multiple_of(2) => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        _ => Some(sorted[middle]),
    }
}

/// Returns the lowest value that the fraction `part` of all values does not exceed; `None` without
/// values.
pub fn percentile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (part * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).checked_sub(1)?).copied()
}

/// Returns the sample standard deviation; `None` with fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Returns the half width of the 95 % confidence interval of the mean, by Student's t
/// distribution; `None` with fewer than two values.
pub fn confidence(values: &[f64]) -> Option<f64> {
    let deviation = standard_deviation(values)?;
    Some(student_t(values.len() - 1) * deviation / (values.len() as f64).sqrt())
}

/// Interval of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
}

impl Interval {
    /// Returns whether the interval contains the value.
    pub fn contains(&self, value: f64) -> bool {
        (self.lower..=self.upper).contains(&value)
    }
}

/// Returns the 95 % confidence interval of the mean of `b` minus the mean of `a`, by Welch's t test
/// (unequal variances; degrees of freedom by Welch and Satterthwaite, rounded down); `None` if
/// either has fewer than two values.
pub fn difference(a: &[f64], b: &[f64]) -> Option<Interval> {
    let center = mean(b)? - mean(a)?;
    let squared_error = |values: &[f64]| {
        standard_deviation(values).map(|deviation| deviation.powi(2) / values.len() as f64)
    };
    let (a_error, b_error) = (squared_error(a)?, squared_error(b)?);
    let sum = a_error + b_error;
    // Equal values in both samples: the difference is exact.
    if sum == 0.0 {
        return Some(Interval { lower: center, upper: center });
    }
    let part = |error: f64, values: &[f64]| error.powi(2) / (values.len() - 1) as f64;
    let degrees = (sum.powi(2) / (part(a_error, a) + part(b_error, b))).floor().max(1.0) as usize;
    let half = student_t(degrees) * sum.sqrt();
    Some(Interval { lower: center - half, upper: center + half })
}

/// Returns the 97.5th percentile of Student's t distribution.
fn student_t(degrees: usize) -> f64 {
    /// Values for 1 to 30 degrees of freedom.
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    // Beyond the table the difference to the normal distribution is below 4 %.
    degrees.checked_sub(1).and_then(|place| TABLE.get(place)).copied().unwrap_or(1.96)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_few_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!((mean(&values), median(&values)), (Some(2.5), Some(2.5)));
        assert_eq!((percentile(&values, 0.01), percentile(&values, 0.99)), (Some(1.0), Some(4.0)));
        assert!((standard_deviation(&values).unwrap() - 1.290_994).abs() < 1e-6);
        assert!((confidence(&values).unwrap() - 2.054).abs() < 1e-3);
        assert_eq!((mean(&[]), median(&[]), percentile(&[], 0.5)), (None, None, None));
        assert_eq!(difference(&[1.0], &values), None);
        assert_eq!((standard_deviation(&[1.0]), confidence(&[1.0])), (None, None));
    }

    /// Means 20.82 and 22.99; t = 2.455 with 24.99 degrees of freedom: 2.167 +- 2.060 x 0.882.
    #[test]
    fn difference_of_samples_with_unequal_variances() {
        let a = [
            27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7,
            21.4,
        ];
        let b = [
            27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5,
            24.4,
        ];
        let interval = difference(&a, &b).unwrap();
        assert!((interval.lower - 0.349).abs() < 0.01, "{interval:?}");
        assert!((interval.upper - 3.984).abs() < 0.01, "{interval:?}");
        assert!(!interval.contains(0.0) && interval.contains(1.0));
        let exact = difference(&[2.0, 2.0], &[3.0, 3.0]).unwrap();
        assert_eq!(exact, Interval { lower: 1.0, upper: 1.0 });
    }
}
