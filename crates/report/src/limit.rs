//! Limits: expressions such as `loss>0.001%` that fail a report if they are true.
//!
//! ```text
//! METRIC [ "[" SELECTOR { "," SELECTOR } "]" ] OPERATOR VALUE [ UNIT ]
//! ```

use std::fmt::{self, Display, Formatter};

use crate::figure::{Figure, METRICS, Metric, Quantity};

/// A limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    text: String,
    metric: &'static Metric,
    selectors: Vec<String>,
    operator: Operator,
    value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
    Unequal,
}

/// Operators, the longer ones first.
const OPERATORS: [(&str, Operator); 6] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    (">", Operator::Above),
    ("<", Operator::Below),
];

/// Units of each quantity with their factor to the base unit.
const PERCENT: &[(&str, f64)] = &[("%", 1.0), ("ppm", 1e-4)];
const TIME: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
const FRAME_RATE: &[(&str, f64)] = &[("pps", 1.0), ("kpps", 1e3), ("Mpps", 1e6), ("Gpps", 1e9)];
const BIT_RATE: &[(&str, f64)] =
    &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9), ("Tbps", 1e12)];
const COUNT: &[(&str, f64)] = &[];

/// Wrong limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitError {
    text: String,
    /// Position in characters from 0.
    position: usize,
    message: String,
}

impl std::error::Error for LimitError {}

impl Display for LimitError {
    /// Shows the limit with a mark below the position.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        writeln!(f, "  {}", self.text)?;
        write!(f, "  {:position$}^", "", position = self.position)
    }
}

/// A limit with the figures that it concerns.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The limit.
    pub limit: Limit,
    /// Number of figures that it concerns. A limit without one is wrong.
    pub values: usize,
    /// Figures that fail it.
    pub failing: Vec<Figure>,
}

impl Judged {
    /// Returns whether all figures pass, and there is one.
    pub fn has_passed(&self) -> bool {
        self.values > 0 && self.failing.is_empty()
    }
}

impl Limit {
    /// Reads a limit.
    ///
    /// # Errors
    /// Shows the position and what was expected there.
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        Parser { text, rest: text }.limit()
    }

    /// Returns the limit as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Compares the figures that the limit concerns.
    pub fn judge(&self, figures: &[Figure]) -> Judged {
        let concerned = figures.iter().filter(|figure| self.concerns(figure));
        let failing = concerned.clone().filter(|figure| self.is_true(figure.value));
        Judged {
            limit: self.clone(),
            values: concerned.count(),
            failing: failing.cloned().collect(),
        }
    }

    fn concerns(&self, figure: &Figure) -> bool {
        let has = |selector: &String| figure.labels.contains(selector);
        figure.metric.name == self.metric.name && self.selectors.iter().all(has)
    }

    fn is_true(&self, value: f64) -> bool {
        match self.operator {
            Operator::Above => value > self.value,
            Operator::AtLeast => value >= self.value,
            Operator::Below => value < self.value,
            Operator::AtMost => value <= self.value,
            Operator::Equal => value == self.value,
            Operator::Unequal => value != self.value,
        }
    }
}

/// Returns the metrics as a list, one on a line, with their units.
pub fn metric_list() -> String {
    let line = |metric: &&Metric| {
        let units: Vec<&str> = units(metric.quantity).iter().map(|(name, _)| *name).collect();
        let units =
            if units.is_empty() { String::new() } else { format!(" ({})", units.join(", ")) };
        format!("  {:<19} {}{units}\n", metric.name, metric.text)
    };
    METRICS.iter().map(line).collect()
}

const fn units(quantity: Quantity) -> &'static [(&'static str, f64)] {
    match quantity {
        Quantity::Percent => PERCENT,
        Quantity::Time => TIME,
        Quantity::FrameRate => FRAME_RATE,
        Quantity::BitRate => BIT_RATE,
        Quantity::Count => COUNT,
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn limit(mut self) -> Result<Limit, LimitError> {
        let metric = self.metric()?;
        let selectors = self.selectors()?;
        let operator = self.operator(metric)?;
        let value = self.value(metric)?;
        let text = self.text.trim().to_owned();
        Ok(Limit { text, metric, selectors, operator, value })
    }

    fn metric(&mut self) -> Result<&'static Metric, LimitError> {
        self.skip_space();
        let at = self.rest;
        let name = self.take(|it| it.is_ascii_alphanumeric() || it == '_' || it == '.');
        Metric::find(name).ok_or_else(|| {
            let found = if name.is_empty() { "no metric".to_owned() } else { format!("{name:?}") };
            let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            self.error(at, format!("found {found}; expected one of: {}", names.join(", ")))
        })
    }

    /// Reads the words in brackets. A word in quotes may contain a comma or a bracket.
    fn selectors(&mut self) -> Result<Vec<String>, LimitError> {
        self.skip_space();
        let opening = self.rest;
        if !self.eat("[") {
            return Ok(Vec::new());
        }
        let mut selectors = Vec::new();
        loop {
            self.skip_space();
            let at = self.rest;
            let word = if self.eat("\"") {
                let word = self.take(|it| it != '"');
                if !self.eat("\"") {
                    return Err(self.error(at, "the quote does not end; expected \""));
                }
                word
            } else {
                self.take(|it| !matches!(it, ',' | ']')).trim()
            };
            if word.is_empty() {
                let expected = "expected a frame size, or the name of a flow, port, goal or run";
                return Err(self.error(at, format!("empty selector; {expected}")));
            }
            selectors.push(word.to_owned());
            self.skip_space();
            if self.eat("]") {
                return Ok(selectors);
            }
            if !self.eat(",") {
                let at = if self.rest.is_empty() { opening } else { self.rest };
                return Err(self.error(at, "the bracket does not end; expected , or ]"));
            }
        }
    }

    fn operator(&mut self, metric: &Metric) -> Result<Operator, LimitError> {
        self.skip_space();
        for (name, operator) in OPERATORS {
            if self.eat(name) {
                return Ok(operator);
            }
        }
        let name = metric.name;
        Err(self.error(self.rest, format!("expected >, >=, <, <=, == or != after {name}")))
    }

    fn value(&mut self, metric: &Metric) -> Result<f64, LimitError> {
        self.skip_space();
        let at = self.rest;
        let digits = self.take(|it| it.is_ascii_digit() || matches!(it, '.' | '-' | '+' | '_'));
        let number = digits.replace('_', "").parse::<f64>();
        let number = number.map_err(|_| {
            self.error(at, format!("{digits:?} is no number; expected one, such as 0.001"))
        })?;
        self.skip_space();
        let at = self.rest;
        let unit = self.rest.trim();
        self.rest = "";
        let units = units(metric.quantity);
        if let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) {
            return Ok(number * factor);
        }
        // 0 is the same in each unit.
        if unit.is_empty() && (units.is_empty() || number == 0.0) {
            return Ok(number);
        }
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        let expected = match names.as_slice() {
            [] => "no unit".to_owned(),
            names => format!("a unit: {}", names.join(", ")),
        };
        let found = if unit.is_empty() { "no unit".to_owned() } else { format!("{unit:?}") };
        Err(self.error(
            at,
            format!("found {found} after the value of {}; expected {expected}", metric.name),
        ))
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|it| !is_part(it)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn eat(&mut self, expected: &str) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Creates an error at the start of `rest`, a part of the text.
    fn error(&self, rest: &str, message: impl Into<String>) -> LimitError {
        let before = &self.text[..self.text.len() - rest.len()];
        let text: String =
            self.text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
        LimitError { text, position: before.chars().count(), message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Limit {
        Limit::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn error(text: &str) -> String {
        Limit::parse(text).expect_err("wrong").to_string()
    }

    fn figure(metric: &str, labels: &[&str], value: f64) -> Figure {
        Figure {
            run: 0,
            metric: Metric::find(metric).expect("a metric"),
            place: labels.join(", "),
            labels: labels.iter().map(|it| (*it).to_owned()).collect(),
            value,
            note: None,
        }
    }

    #[test]
    fn values_are_in_the_base_unit_of_the_metric() {
        for (text, value) in [
            ("loss>0.001%", 0.001),
            ("loss > 10 ppm", 0.001),
            ("p99.9>=50us", 50_000.0),
            ("max_delay>1.5ms", 1_500_000.0),
            ("throughput[64]<1Mpps", 1e6),
            ("throughput_l1 <= 9.5 Gbps", 9.5e9),
            ("lost!=0", 0.0),
            ("loss>0", 0.0),
            ("connections<1_000", 1_000.0),
        ] {
            assert!((parse(text).value - value).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn errors_show_the_position_and_what_is_expected() {
        let shown = error("los>0.1%");
        assert!(shown.contains("found \"los\"; expected one of: loss, lost,"), "{shown}");
        assert!(shown.ends_with("\n  los>0.1%\n  ^"), "{shown}");
        let shown = error("p99>10");
        assert!(shown.contains("no unit") && shown.contains("ns, us"), "{shown}");
        assert!(shown.ends_with("\n  p99>10\n        ^"), "{shown}");
        let shown = error("p99=10us");
        assert!(shown.contains("expected >, >=") && shown.ends_with("\n     ^"), "{shown}");
        let shown = error("throughput[64");
        assert!(shown.contains("bracket does not end"), "{shown}");
        for wrong in
            ["", "loss", "loss>", "loss>x%", "loss>1%%", "lost>1%", "loss[]>1%", "loss[\"a>1%"]
        {
            error(wrong);
        }
    }

    #[test]
    fn selectors_choose_figures_by_all_of_their_words() {
        let figures = [
            figure("throughput", &["64", "ipv4"], 900.0),
            figure("throughput", &["64", "a,]b"], 2_000.0),
            figure("throughput", &["1518", "ipv4"], 800.0),
        ];
        let judge = |text: &str| {
            let judged = parse(text).judge(&figures);
            (judged.values, judged.failing.len())
        };
        assert_eq!(judge("throughput<1kpps"), (3, 2));
        assert_eq!(judge("throughput[64]<1kpps"), (2, 1));
        assert_eq!(judge("throughput[ 64 , ipv4 ]<1kpps"), (1, 1));
        assert_eq!(judge("throughput[64,\"a,]b\"]<1kpps"), (1, 0));
    }

    #[test]
    fn limit_without_a_figure_has_not_passed() {
        let judged = parse("throughput[9000]<1Mpps").judge(&[]);
        assert!(!judged.has_passed());
        assert!(parse("loss>1%").judge(&[figure("loss", &[], 0.5)]).has_passed());
    }
}
