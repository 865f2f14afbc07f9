//! How many iterations conjugate gradients are likely to take on a mesh, from a sample of the rows of its matrix.

use super::forecast::plain_bytes;
use crate::backend::Backend;
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar};

/// Windows of rows that are looked at, and rows of each.
const WINDOWS: usize = 16;
const WINDOW: usize = 128;

/// Iterations for each edge of the shortest way between the nodes that are farthest from each other, to 1e-8: 1.9 of a
/// grid's side were seen in the plane, 2.0 to 2.5 in space (docs/multigrid.md), where the way is estimated as one side.
const AN_EDGE: f64 = 1.25;

/// More of them for each decade between small and large diagonal entries: two decades of coefficients double them on
/// triangulations, six make them fourfold on grids.
const A_DECADE: f64 = 0.5;

/// Iterations of multigrid, and products that one of them is worth.
const ITERATIONS: f64 = 20.0;
const PRODUCTS: f64 = 14.0;

/// Iterations of conjugate gradients that the setup on the host is worth, about.
const HOST_SETUP: f64 = 250.0;

/// Seconds of launches in an iteration of multigrid, and bytes a second of conjugate gradients on a device.
const LAUNCHES: f64 = 3e-4;
const BANDWIDTH: f64 = 3e12;

/// By how much the one has to be faster by forecast.
const MARGIN: f64 = 1.25;

/// What a sample of rows tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mesh {
    rows: usize,
    nonzeros: usize,
    /// The farthest that an entry lies from the diagonal.
    bandwidth: usize,
    /// Decades between the tenth part of the diagonal's entries that is smallest and that which is largest.
    decades: f64,
}

impl Mesh {
    /// From windows of rows of a square matrix.
    pub(super) fn of<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let rows = a.rows();
        let (mut bandwidth, mut diagonal) = (0, Vec::new());
        let starts = (0..rows).step_by(rows.div_ceil(WINDOWS).max(WINDOW));
        let windows: Vec<_> = starts.map(|start| start..(start + WINDOW).min(rows)).collect();
        for (start, window) in windows.iter().map(|rows| rows.start).zip(a.windows(backend, &windows)?) {
            for (i, j, value) in window.iter() {
                let row = start + i;
                bandwidth = bandwidth.max(row.abs_diff(j));
                if row == j {
                    diagonal.push(value.abs().to_f64());
                }
            }
        }
        Ok(Self { rows, nonzeros: a.nonzeros(), bandwidth, decades: decades(diagonal) })
    }

    /// Iterations of conjugate gradients with the diagonal. No way between two nodes is shorter than the rows between
    /// them over the bandwidth, and what happens at one end of a mesh takes as many iterations to be felt at the other.
    fn iterations(&self) -> f64 {
        let way = self.rows as f64 / self.bandwidth.max(1) as f64;
        AN_EDGE * way * (1.0 + A_DECADE * self.decades)
    }

    /// Whether multigrid is likely to be faster, its setup included; `setup`: its seconds on a device, none on the
    /// host.
    pub(super) fn wants_levels<T: Scalar>(&self, setup: Option<f64>) -> bool {
        let matrix = self.nonzeros * (size_of::<T>() + size_of::<u32>());
        let iteration = plain_bytes::<T>(self.rows, matrix) / BANDWIDTH;
        let with = match setup {
            None => HOST_SETUP + ITERATIONS * PRODUCTS,
            Some(seconds) => (seconds + ITERATIONS * LAUNCHES) / iteration + ITERATIONS * PRODUCTS,
        };
        self.iterations() > MARGIN * with
    }
}

/// Decades between the tenth that is smallest and the tenth that is largest; none where an entry is zero or no number.
fn decades(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = |part: usize| values.get(values.len() * part / 10).copied().unwrap_or(1.0);
    let ratio = (at(9) / at(1)).log10();
    if ratio.is_finite() { ratio.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Host;
    use crate::generate;

    /// Seconds that a device takes for a setup.
    fn device(rows: f64) -> Option<f64> {
        Some(8e-3 + 1.7e-8 * rows)
    }

    #[test]
    fn multigrid_at_once_on_large_meshes_in_the_plane_and_not_on_small_ones_or_in_space() {
        // A triangulation of 10^6 points, coefficients over two decades, behind reverse Cuthill-McKee: 1670 iterations.
        let mesh = Mesh { rows: 1_000_000, nonzeros: 7_000_000, bandwidth: 1500, decades: 1.6 };
        assert!(mesh.wants_levels::<f64>(device(1e6)) && mesh.wants_levels::<f64>(None));
        // In random order nothing is known.
        assert!(!Mesh { bandwidth: 999_000, ..mesh }.wants_levels::<f64>(None));
        // 7 points, 128^3 and 256^3: 316 and 518 iterations.
        for side in [128_usize, 256] {
            let rows = side.pow(3);
            let grid = Mesh { rows, nonzeros: 7 * rows, bandwidth: side * side, decades: 0.0 };
            assert!(!grid.wants_levels::<f64>(device(rows as f64)), "{side}");
        }
    }

    #[test]
    fn bandwidth_and_contrast_of_a_sample() {
        let a = generate::poisson2d(300, 200).unwrap();
        let mesh = Mesh::of(&Host, &a).unwrap();
        assert_eq!(mesh, Mesh { rows: 60_000, nonzeros: a.nonzeros(), bandwidth: 300, decades: 0.0 });
        assert!((decades((0..100).map(|i| f64::powi(10.0, i / 10)).collect()) - 8.0).abs() < 1e-9);
        assert_eq!(decades(vec![0.0, 0.0, 1.0]), 0.0);
        assert_eq!(decades(Vec::new()), 0.0);
    }
}
