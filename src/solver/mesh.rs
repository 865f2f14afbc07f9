//! Estimates the iterations of conjugate gradients on a mesh from a sample of the rows of its matrix.

use super::forecast::plain_bytes;
use crate::backend::{Backend, GraphSteps, UNREACHED};
use crate::error::Result;
use crate::graph::Adjacency;
use crate::matrix::{Csr, windows};
use crate::prices::multigrid::{
    DECADE, EDGE, MESH_BANDWIDTH, MESH_DEVICE_MARGIN, MESH_DEVICE_PRODUCTS, MESH_ITERATIONS, MESH_LAUNCHES,
    MESH_MARGIN, MESH_PRODUCTS, MESH_SETUP, SOON_DONE,
};
use crate::scalar::{Real, Scalar};

/// The number of windows of rows in the sample, and the number of rows in each.
const WINDOWS: usize = 16;
const WINDOW: usize = 128;

/// The properties of a sample of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mesh {
    rows: usize,
    nonzeros: usize,
    /// The largest distance of an entry from the diagonal.
    bandwidth: usize,
    /// The mean over rows of the largest distance from the diagonal.
    reach: f64,
    /// Decades between the 10 % and the 90 % quantile of the diagonal's entries.
    decades: f64,
    /// The mean of |row sum| / (sum of magnitudes of the row).
    row_sums: f64,
    /// The 10 % quantile of the same quotient.
    low_row_sums: f64,
    /// The number of edges of the longest shortest path that a search has found; 0 before a search.
    path: usize,
}

impl Mesh {
    /// Samples windows of rows of a square matrix.
    pub(super) fn of<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let rows = a.rows();
        let (mut bandwidth, mut diagonal) = (0, Vec::new());
        let (mut of_sums, mut reaches) = (Vec::new(), 0);
        let windows = windows(rows, WINDOWS, WINDOW);
        for (start, window) in windows.iter().map(|rows| rows.start).zip(a.windows(backend, &windows)?) {
            for i in 0..window.rows() {
                let (columns, values) = window.row(i);
                let (mut sum, mut magnitudes, mut reach) = (V::zero(), 0.0, 0);
                for (&j, &value) in columns.iter().zip(values) {
                    let apart = (start + i).abs_diff(j as usize);
                    reach = reach.max(apart);
                    if apart == 0 {
                        diagonal.push(value.abs().to_f64());
                    }
                    sum += value;
                    magnitudes += value.abs().to_f64();
                }
                of_sums.push(if magnitudes > 0.0 { sum.abs().to_f64() / magnitudes } else { 0.0 });
                bandwidth = bandwidth.max(reach);
                reaches += reach;
            }
        }
        let seen = of_sums.len().max(1) as f64;
        let (decades, row_sums, reach) =
            (decades(diagonal), of_sums.iter().sum::<f64>() / seen, reaches as f64 / seen);
        let tenth = of_sums.len() / 10;
        let low_row_sums = match of_sums.get(tenth) {
            Some(_) => *of_sums.select_nth_unstable_by(tenth, f64::total_cmp).1,
            None => 0.0,
        };
        Ok(Self { rows, nonzeros: a.nonzeros(), bandwidth, reach, decades, row_sums, low_row_sums, path: 0 })
    }

    /// Adds the length of a shortest path through the mesh, which does not depend on the order of rows: from a node to
    /// the farthest one from it, and from there to the farthest again. The search costs as much as a few products, and
    /// is skipped if conjugate gradients may need few iterations.
    pub(super) fn with_path<V: Scalar, B: GraphSteps>(self, backend: &B, a: &Csr<V, B>) -> Result<Self> {
        if self.rows == 0 || self.row_sums.is_nan() || self.row_sums > SOON_DONE {
            return Ok(self);
        }
        let graph = Adjacency::on(backend, a)?;
        let mut levels = backend.buffer(self.rows)?;
        let from = |vertex: u32, levels: &mut B::Vec<u32>| {
            backend.bfs(graph.parts(), &*backend.upload(vec![vertex])?, levels)
        };
        let first = from(0, &mut levels)?;
        // No two nodes are farther apart than twice the distance of the farthest node from this one.
        let most = Self { path: 2 * first, ..self };
        if !most.wants_levels::<V>(None) {
            return Ok(Self { path: first.saturating_sub(1), ..self });
        }
        let levels_of = backend.download(&levels)?;
        let farthest = (0_u32..).zip(&levels_of).filter(|&(_, &level)| level != UNREACHED);
        let (farthest, _) =
            farthest.max_by_key(|&(number, &level)| (level, u32::MAX - number)).unwrap_or((0, &0));
        let second = from(farthest, &mut levels)?;
        Ok(Self { path: second.max(first).saturating_sub(1), ..self })
    }

    /// The expected iterations of conjugate gradients with the diagonal. The path between two nodes has at least as
    /// many edges as the number of rows between them divided by the bandwidth, and information crosses one edge in an
    /// iteration. On a device rows are already in reverse Cuthill-McKee order, if that pays; a row then reaches about
    /// as far as a level of the search is wide.
    fn iterations(&self, on_device: bool) -> f64 {
        let reach = if on_device { self.reach } else { self.bandwidth as f64 };
        let path = f64::max(self.rows as f64 / reach.max(1.0), self.path as f64);
        EDGE * path * (1.0 + DECADE * self.decades)
    }

    /// Whether row sums are so large in nearly all rows that conjugate gradients need few iterations.
    pub(super) fn is_soon_done(&self) -> bool {
        self.low_row_sums > SOON_DONE
    }

    /// Returns whether multigrid, including its setup, is likely to be faster. `setup` is the time of a setup on a
    /// device in seconds; `None` on the host.
    pub(super) fn wants_levels<T: Scalar>(&self, setup: Option<f64>) -> bool {
        if self.is_soon_done() {
            return false;
        }
        let matrix = self.nonzeros * (size_of::<T>() + size_of::<u32>());
        let iteration = plain_bytes::<T>(self.rows, matrix) / MESH_BANDWIDTH;
        let with = match setup {
            None => MESH_MARGIN * (MESH_SETUP + MESH_ITERATIONS * MESH_PRODUCTS),
            Some(seconds) => {
                let setup = (seconds + MESH_ITERATIONS * MESH_LAUNCHES) / iteration;
                MESH_DEVICE_MARGIN * (setup + MESH_ITERATIONS * MESH_DEVICE_PRODUCTS)
            }
        };
        self.iterations(setup.is_some()) > with
    }
}

/// Decades between the 10 % and the 90 % quantile; none if an entry is zero or not finite.
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
    use crate::random::Random;
    use crate::{generate, graph};

    /// Seconds that a device takes for a setup.
    fn device(rows: usize) -> Option<f64> {
        Some(crate::prices::budgets::device_setup(rows))
    }

    #[test]
    fn multigrid_at_once_on_large_meshes_in_the_plane_and_not_on_small_ones_or_in_space() {
        // A triangulation of 10^6 points with coefficients over two decades, after reverse Cuthill-McKee: 1670
        // iterations.
        let known = Mesh {
            rows: 0,
            nonzeros: 0,
            bandwidth: 0,
            reach: 0.0,
            decades: 0.0,
            row_sums: 0.0,
            low_row_sums: 0.0,
            path: 0,
        };
        let mesh = Mesh { rows: 1_000_000, nonzeros: 7_000_000, bandwidth: 1500, decades: 1.6, ..known };
        let mesh = Mesh { reach: 1400.0, ..mesh };
        assert!(mesh.wants_levels::<f64>(device(1_000_000)) && mesh.wants_levels::<f64>(None));
        // A short time step adds so much to the diagonal that conjugate gradients converge soon.
        let step = Mesh { low_row_sums: 0.1, ..mesh };
        assert!(!step.wants_levels::<f64>(device(1_000_000)) && !step.wants_levels::<f64>(None));
        // A random order gives no information.
        let random = Mesh { bandwidth: 999_000, reach: 7e5, ..mesh };
        assert!(!random.wants_levels::<f64>(None) && !random.wants_levels::<f64>(device(1_000_000)));
        // 7 points, 128^3: 316 iterations.
        let grid = |side: usize, bandwidth: usize| Mesh {
            rows: side.pow(3),
            nonzeros: 7 * side.pow(3),
            bandwidth,
            reach: bandwidth as f64,
            ..known
        };
        assert!(!grid(128, 128 * 128).wants_levels::<f64>(device(128 * 128 * 128)));
        // Random points with less contrast: 334 iterations on good triangles, 4400 with some flat ones.
        let points = Mesh { bandwidth: 5400, reach: 3100.0, decades: 0.74, ..mesh };
        assert!(points.wants_levels::<f64>(device(1_000_000)));
        // 256^3 in random order after reverse Cuthill-McKee: bandwidth 49 409.
        assert!(grid(256, 49_000).wants_levels::<f64>(device(256 * 256 * 256)));
    }

    #[test]
    fn a_path_through_a_mesh_in_random_order_is_found() {
        let a = generate::anisotropic2d(90, 2400, 0.5).unwrap();
        let mut random = Random::new(3);
        let mut order: Vec<u32> = (0..a.rows() as u32).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        let order = graph::Permutation::from_new_to_old(order).unwrap();
        let a = graph::permute_symmetric(&a, &order).unwrap();
        let mesh = Mesh::of(&Host, &a).unwrap();
        assert!(!mesh.wants_levels::<f64>(None), "{mesh:?}");
        let mesh = mesh.with_path(&Host, &a).unwrap();
        assert!(mesh.wants_levels::<f64>(None), "{mesh:?}");
        // The path leads from corner to corner.
        assert_eq!(mesh.path, 89 + 2399);
        // Conjugate gradients need few iterations on a mass matrix, so no path is searched.
        let mass = generate::wathen(60, 60, 1).unwrap();
        let mesh = Mesh::of(&Host, &mass).unwrap();
        assert!(mesh.row_sums > 0.1 && mesh.with_path(&Host, &mass).unwrap().path == 0, "{mesh:?}");
        // Paths through a cube are short, which a single search shows.
        let cube = generate::poisson3d(30, 30, 30).unwrap();
        let mesh = Mesh::of(&Host, &cube).unwrap().with_path(&Host, &cube).unwrap();
        assert!(mesh.path <= 87 && !mesh.wants_levels::<f64>(None), "{mesh:?}");
    }

    #[test]
    fn a_grid_with_sides_of_powers_of_two_is_not_taken_for_one_with_large_row_sums() {
        // Evenly spaced windows would have nothing but rows on the boundary, whose sums are positive.
        let a = generate::poisson3d(128, 32, 16).unwrap();
        let mesh = Mesh::of(&Host, &a).unwrap();
        assert!(!mesh.is_soon_done(), "{mesh:?}");
    }

    #[test]
    fn bandwidth_and_contrast_of_a_sample() {
        let a = generate::poisson2d(300, 200).unwrap();
        let mesh = Mesh::of(&Host, &a).unwrap();
        assert_eq!((mesh.rows, mesh.nonzeros, mesh.bandwidth), (60_000, a.nonzeros(), 300));
        assert_eq!((mesh.decades, mesh.path), (0.0, 0));
        assert!(mesh.reach > 295.0 && mesh.reach <= 300.0, "{}", mesh.reach);
        assert!((decades((0..100).map(|i| f64::powi(10.0, i / 10)).collect()) - 8.0).abs() < 1e-9);
        assert_eq!(decades(vec![0.0, 0.0, 1.0]), 0.0);
        assert_eq!(decades(Vec::new()), 0.0);
    }
}
