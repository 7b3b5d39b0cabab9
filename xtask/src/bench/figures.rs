//! Measured figures with their peers and targets.

use serde_json::{Value, json};

/// Sorted figures of all rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures(Vec<f64>);

impl Figures {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn push(&mut self, figure: f64) {
        self.0.push(figure);
        self.0.sort_by(f64::total_cmp);
    }

    /// Median; the mean of the two middle figures if their number is even, zero without figures.
    pub(super) fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        match (self.0.get(middle.wrapping_sub(1)), self.0.get(middle)) {
            (Some(below), Some(above)) if self.0.len().is_multiple_of(2) => (below + above) / 2.0,
            (_, Some(figure)) => *figure,
            (_, None) => 0.0,
        }
    }

    fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(0.0)
    }

    fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(0.0)
    }

    fn cell(&self) -> String {
        let [median, min, max] = [self.median(), self.min(), self.max()].map(short);
        if self.0.len() == 1 { median } else { format!("{median} ({min}-{max})") }
    }

    fn to_json(&self) -> Value {
        json!({ "median": self.median(), "min": self.min(), "max": self.max(), "all": self.0 })
    }
}

impl FromIterator<f64> for Figures {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        let mut collected = Self::default();
        figures.into_iter().for_each(|figure| collected.push(figure));
        collected
    }
}

/// Formats a figure with three significant digits.
fn short(figure: f64) -> String {
    let decimals = match figure.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{figure:.decimals$}")
}

/// Target for the median.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// At least this many times the peer's median.
    TimesPeer(f64),
    /// At most this many times the peer's median.
    AtMostPeer(f64),
    /// Within this share of the peer's median.
    NearPeer(f64),
    AtLeast(f64),
    AtMost(f64),
    /// No target: for comparison with earlier results.
    Unset,
}

/// One row of the results.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) wirestorm: Figures,
    /// Figures of the program for comparison: tcpreplay, unless the notes name another one.
    pub(super) peer: Option<Figures>,
    pub(super) target: Target,
    pub(super) notes: Vec<String>,
}

impl Row {
    /// Ratio of Wirestorm's median to the peer's median.
    fn ratio(&self) -> Option<f64> {
        let peer = self.peer.as_ref()?.median();
        (peer > 0.0).then(|| self.wirestorm.median() / peer)
    }

    pub(super) fn is_met(&self) -> bool {
        match self.target {
            Target::TimesPeer(times) => self.ratio().is_some_and(|ratio| ratio >= times),
            Target::AtMostPeer(times) => self.ratio().is_some_and(|ratio| ratio <= times),
            Target::NearPeer(share) => {
                self.ratio().is_some_and(|ratio| (ratio - 1.0).abs() <= share)
            }
            Target::AtLeast(figure) => self.wirestorm.median() >= figure,
            Target::AtMost(figure) => self.wirestorm.median() <= figure,
            Target::Unset => true,
        }
    }

    pub(super) fn has_target(&self) -> bool {
        !matches!(self.target, Target::Unset)
    }

    /// Cells of the table row: benchmark, unit, wirestorm, peer, ratio, target, met.
    pub(super) fn cells(&self) -> Vec<String> {
        let target = match self.target {
            Target::TimesPeer(times) => format!("{times}x"),
            Target::AtMostPeer(times) => format!("<={times}x"),
            Target::NearPeer(share) => format!("{}-{}x", 1.0 - share, 1.0 + share),
            Target::AtLeast(figure) => format!(">={figure}"),
            Target::AtMost(figure) => format!("<={figure}"),
            Target::Unset => "none".to_owned(),
        };
        let met = match self.has_target() {
            true if self.is_met() => "yes",
            true => "NO",
            false => "",
        };
        vec![
            self.name.to_owned(),
            self.unit.to_owned(),
            self.wirestorm.cell(),
            self.peer.as_ref().map(Figures::cell).unwrap_or_default(),
            self.ratio().map(|ratio| format!("{ratio:.2}x")).unwrap_or_default(),
            target,
            met.to_owned(),
        ]
    }

    pub(super) fn to_json(&self) -> Value {
        let target = match self.target {
            Target::TimesPeer(times) => json!({ "times_peer": times }),
            Target::AtMostPeer(times) => json!({ "at_most_peer": times }),
            Target::NearPeer(share) => json!({ "near_peer": share }),
            Target::AtLeast(figure) => json!({ "at_least": figure }),
            Target::AtMost(figure) => json!({ "at_most": figure }),
            Target::Unset => Value::Null,
        };
        json!({
            "name": self.name,
            "unit": self.unit,
            "wirestorm": self.wirestorm.to_json(),
            "peer": self.peer.as_ref().map(Figures::to_json),
            "ratio": self.ratio(),
            "target": target,
            "met": self.has_target().then(|| self.is_met()),
            "notes": self.notes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(figures: &[f64]) -> Figures {
        figures.iter().copied().collect()
    }

    fn row(target: Target) -> Row {
        Row {
            name: "small af_packet",
            unit: "Mpps",
            wirestorm: figures(&[3.0, 1.0, 2.0]),
            peer: Some(figures(&[0.5, 0.3])),
            target,
            notes: Vec::new(),
        }
    }

    #[test]
    fn median_of_even_and_odd_counts() {
        assert_eq!(figures(&[]).median(), 0.0);
        assert_eq!(figures(&[7.0]).median(), 7.0);
        assert_eq!(figures(&[9.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(figures(&[4.0, 1.0, 2.0, 9.0]).median(), 3.0);
    }

    #[test]
    fn median_decides_whether_a_target_is_met() {
        assert!(row(Target::TimesPeer(5.0)).is_met());
        assert!(!row(Target::TimesPeer(5.1)).is_met());
        assert!(row(Target::AtMostPeer(5.0)).is_met() && !row(Target::AtMostPeer(4.9)).is_met());
        assert!(row(Target::AtLeast(2.0)).is_met() && !row(Target::AtLeast(2.1)).is_met());
        assert!(row(Target::AtMost(2.0)).is_met() && !row(Target::AtMost(1.9)).is_met());
    }

    #[test]
    fn near_peer_bounds_the_ratio_on_both_sides() {
        let mut row = row(Target::NearPeer(0.1));
        for (figure, is_met) in [(0.35, false), (0.37, true), (0.43, true), (0.45, false)] {
            row.wirestorm = figures(&[figure]);
            assert_eq!(row.is_met(), is_met, "{figure} beside 0.4");
        }
    }

    #[test]
    fn unset_target_is_neither_met_nor_missed() {
        let row = row(Target::Unset);
        assert_eq!(row.cells()[5..], ["none", ""]);
        assert_eq!(row.to_json()["met"], Value::Null);
    }

    #[test]
    fn row_fits_in_80_columns() {
        let mut row = row(Target::TimesPeer(1.5));
        row.wirestorm = figures(&[23.41, 20.12, 24.5]);
        let width: usize = row.cells().iter().map(|cell| cell.len() + 2).sum();
        assert!(width - 2 <= 80, "{width} columns: {:?}", row.cells());
    }
}
