//! Lines below points: the lower convex hull.

/// A point: a time and a delay, in ns from an origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The lower convex hull of points, from left to right.
#[derive(Clone, Debug, Default)]
pub(crate) struct LowerHull(Vec<Point>);

impl LowerHull {
    /// Builds the hull of points in the order of their times (Andrew's monotone chain).
    pub(crate) fn new(points: impl Iterator<Item = Point>) -> Self {
        let mut hull = Self::default();
        points.for_each(|point| hull.push(point));
        hull
    }

    /// Adds a point that is not left of the others.
    fn push(&mut self, point: Point) {
        while let [.., before, last] = self.0[..] {
            // The last one stays if it is below the line from the one before to the new one.
            let turn = (last.x - before.x) * (point.y - before.y)
                - (last.y - before.y) * (point.x - before.x);
            if turn > 0.0 {
                break;
            }
            self.0.pop();
        }
        // Of several points at one time only the lowest one counts.
        match self.0.last_mut() {
            Some(last) if last.x == point.x => last.y = last.y.min(point.y),
            _ => self.0.push(point),
        }
    }

    /// Returns the point that a line with this slope touches from below; `None` without points.
    pub(crate) fn touched(&self, slope: f64) -> Option<Point> {
        // Left of it the edges are steeper downwards than the line, right of it upwards.
        let steeper =
            self.0.windows(2).map(|edge| (edge[1].y - edge[0].y) / (edge[1].x - edge[0].x));
        let place = steeper.take_while(|edge| *edge < slope).count();
        self.0.get(place).copied()
    }

    /// Returns the slopes of all edges, in ascending order.
    pub(crate) fn slopes(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.windows(2).map(|edge| (edge[1].y - edge[0].y) / (edge[1].x - edge[0].x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn touching_line_is_below_all_points(
            ys in prop::collection::vec(-1e6..1e6_f64, 1..100),
            gaps in prop::collection::vec(0..3_u32, 100),
            slope in -1e6..1e6_f64,
        ) {
            let mut x = 0.0;
            let points: Vec<Point> = ys.iter().zip(&gaps).map(|(&y, &gap)| {
                x += f64::from(gap);
                Point { x, y }
            }).collect();
            let hull = LowerHull::new(points.iter().copied());
            let touched = hull.touched(slope).unwrap();
            prop_assert!(points.contains(&touched));
            let above = |point: &Point| point.y - touched.y - slope * (point.x - touched.x);
            prop_assert!(points.iter().all(|point| above(point) >= -1e-3));
            let slopes: Vec<f64> = hull.slopes().collect();
            prop_assert!(slopes.is_sorted());
        }
    }
}
