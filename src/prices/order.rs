//! Fill-reducing orderings on a CPU: the expected cost of an ordering and of its factorisation, before either is
//! computed.

use super::machine;

/// Minimum seconds to compute an ordering, per row and per entry; measured on a mesh in the plane with 10^4 points
/// (`benches/choice/cpu.csv`: the column `analysis`, two cores of a Xeon, 2026-11-28).
const ORDER: [f64; 2] = [1.5e-7, 6e-8];

/// Estimated multiplications of a factorisation: FACTOR * width^OF_WIDTH * rows^OF_ROWS, for the mean width of
/// breadth-first levels. It was fitted to half of the systems of the same file. On the other half the median error is a
/// factor of 2, and 90 % of the errors are within 4. A few edges between distant parts of the graph make levels wider
/// than separators: for banded KKT systems with such edges the estimate is 40 times too high.
const FACTOR: f64 = 11.0;
const OF_WIDTH: f64 = 1.75;
const OF_ROWS: f64 = 0.8;

/// The time to compute an ordering, relative to its minimum: USUAL times the POWER of thousands of multiplications per
/// row, and at most MOST, which random graphs reach (the same file).
const USUAL: f64 = 1.6;
const POWER: f64 = 0.385;
const MOST: f64 = 40.0;

/// A factorisation of a grid that is dissected by its coordinates takes this many multiplications for each row and each
/// point of the shortest line across a plane, or of the smallest plane across space, whose points count to the power of
/// 1.5. The last number is the time of this order, relative to the minimum time of a search for one. For Helmholtz
/// 300^2 and 700^2, 0.12 and 0.18 s are expected, and 0.10 and 0.19 were measured (H200, 2026-11-29).
const OF_PLANE: f64 = 5.0;
const OF_SPACE: f64 = 1.0;
const BY_COORDINATES: f64 = 0.25;

/// First cuts are made for an estimate from this number of rows on, and if levels promise no fewer multiplications than
/// this, which take a few hundredths of a second.
const CUT_FROM: usize = 10_000;
const CHEAP: f64 = 2e8;

/// Multiplications of a factorisation in a second on the host (two cores, 2026-11-27).
const BLOCKS: f64 = 5e9;

/// Multiplications of a factorisation in a second on the CPU of this process.
pub(super) fn blocks() -> f64 {
    BLOCKS / machine::cpu().multiplication
}

/// Minimum seconds to compute an ordering for this number of rows and entries.
pub(crate) fn least_order_seconds([rows, nonzeros]: [usize; 2]) -> f64 {
    machine::cpu().multiplication * (ORDER[0] * rows as f64 + ORDER[1] * nonzeros as f64)
}

/// The expected cost of an ordering and of its factorisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OrderGuess {
    /// Seconds to compute the ordering.
    pub(crate) seconds: f64,
    /// Multiplications of the factorisation.
    pub(crate) multiplications: f64,
}

impl OrderGuess {
    /// The guess for a matrix with this number of rows and entries, whose graph has levels of this mean width
    /// ([`level_width`](crate::graph::level_width)). `by_cuts` returns the multiplications that first cuts promise
    /// ([`expected_multiplications`](crate::prepare::expected_multiplications)). It is called only if levels promise
    /// many, and the lesser number counts: levels are wider than separators in trees, closed surfaces and networks.
    pub(crate) fn new(size: [usize; 2], width: f64, by_cuts: impl FnOnce() -> f64) -> Self {
        let rows = size[0].max(1) as f64;
        let by_width = FACTOR * width.powf(OF_WIDTH) * rows.powf(OF_ROWS);
        let is_cheap = size[0] < CUT_FROM || by_width < CHEAP;
        let multiplications = if is_cheap { by_width } else { by_width.min(by_cuts()) };
        let longer = USUAL * (multiplications / (1e3 * rows)).powf(POWER);
        Self { seconds: least_order_seconds(size) * longer.clamp(1.0, MOST), multiplications }
    }

    /// The guess for a grid of these sizes, the largest first, that is dissected by its coordinates.
    pub(crate) fn of_grid(size: [usize; 2], [_, second, third]: [usize; 3]) -> Self {
        let (rows, separator) = (size[0] as f64, (second * third) as f64);
        let (times, power) = if third > 1 { (OF_SPACE, 1.5) } else { (OF_PLANE, 1.0) };
        let multiplications = times * rows * separator.powf(power);
        Self { seconds: BY_COORDINATES * least_order_seconds(size), multiplications }
    }

    /// Seconds of the factorisation.
    pub(crate) fn factorisation(&self) -> f64 {
        self.multiplications / blocks()
    }

    /// Returns whether the ordering and the factorisation are expected to take longer than a factorisation with this
    /// number of multiplications.
    pub(crate) fn exceeds(&self, multiplications: f64) -> bool {
        blocks() * self.seconds + self.multiplications > multiplications
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_of_a_space_takes_several_times_as_long_as_one_of_a_plane() {
        // 150 x 150 points, and 28^3: measured 17 ms and 167 ms, 2.5e7 and 8.5e8 multiplications.
        let plane = OrderGuess::new([22_500, 111_900], 22_500.0 / 299.0, || f64::INFINITY);
        let space = OrderGuess::new([21_952, 148_960], 21_952.0 / 82.0, || f64::INFINITY);
        assert!(plane.seconds > 8e-3 && plane.seconds < 3.5e-2, "{plane:?}");
        assert!(space.seconds > 5e-2 && space.seconds < 3.3e-1, "{space:?}");
        assert!(plane.multiplications > 6e6 && plane.multiplications < 1e8, "{plane:?}");
        assert!(space.multiplications > 2e8 && space.multiplications < 1.8e9, "{space:?}");
        assert!(space.exceeds(5e8) && !plane.exceeds(5e8));
        // First cuts count if they promise less, and only if it may matter.
        let cut = OrderGuess::new([21_952, 148_960], 21_952.0 / 82.0, || 1e7);
        assert!(cut.multiplications == 1e7 && cut.seconds < space.seconds, "{cut:?}");
        let same = OrderGuess::new([22_500, 111_900], 22_500.0 / 299.0, || panic!("levels promise few"));
        assert_eq!(same, plane);
    }
}
