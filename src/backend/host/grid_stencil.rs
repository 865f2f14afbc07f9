//! Products with stencils on grids, on the CPU. The rows of a line of points are summed together, neighbour by
//! neighbour in the order of columns, so that every row's sum has the same bits as with the stored matrix.

use crate::backend::{CsrParts, Grid, GridStencil, Host, NEIGHBOURS, Neighbours, with_offsets};
use crate::parallel::{prelude::*, task_of, vectorised, worth_a_thread};
use crate::scalar::{Offset, Scalar};
use std::ops::Range;

/// The approximate number of entries in a task: the minimum and the maximum.
const LEAST: usize = 1 << 13;
const TASK: usize = 1 << 16;

/// The number of rows that are summed together. Their sums stay in the first-level cache.
const RUN: usize = 1024;

/// Returns the matrix as a stencil. See [`GridSteps::grid_stencil`](crate::backend::GridSteps::grid_stencil).
pub(super) fn find<T: Scalar>(
    a: CsrParts<'_, T, Host>,
    grid: Grid,
    neighbours: Neighbours,
) -> Option<GridStencil<T>> {
    with_offsets!(a.offsets, offsets => {
        let rows = Rows { offsets, indices: a.indices, values: a.values };
        let stencil = GridStencil::new(grid, neighbours, a.indices.len(), |place| {
            rows.by_neighbours(grid, neighbours, grid.number(place))
        })?;
        rows.are_of(&stencil).then_some(stencil)
    })
}

/// The rows of a matrix.
struct Rows<'a, O, T> {
    offsets: &'a [O],
    indices: &'a [u32],
    values: &'a [T],
}

impl<O: Offset, T: Scalar> Rows<'_, O, T> {
    fn row(&self, row: usize) -> (&[u32], &[T]) {
        let range = self.offsets[row].to_usize()..self.offsets[row + 1].to_usize();
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Returns the values of a point's row for each neighbour, or `None` if it has an entry for another point.
    fn by_neighbours(&self, grid: Grid, neighbours: Neighbours, point: usize) -> Option<[T; NEIGHBOURS]> {
        let mut all = [T::zero(); NEIGHBOURS];
        let (columns, values) = self.row(point);
        for (&column, &value) in columns.iter().zip(values) {
            all[neighbours.number(grid.between(point, column as usize)?)?] = value;
        }
        Some(all)
    }

    /// Returns whether every row equals that of its kind, bit by bit. False if a row stores zeros.
    fn are_of(&self, stencil: &GridStencil<T>) -> bool {
        let grid = stencil.grid();
        let nx = grid.sizes[0];
        let alike = |row: usize, kind: usize| {
            let (expected, (columns, values)) = (stencil.row(kind), self.row(row));
            let beside = |(&column, &distance): (&u32, &u32)| column == (row as u32).wrapping_add(distance);
            columns.len() == expected.distances.len()
                && columns.iter().zip(&expected.distances).all(beside)
                && values.iter().zip(&expected.values).all(|(a, b)| a.bits() == b.bits())
        };
        let lines = (0..grid.points() / nx).into_par_iter();
        lines.with_min_len(TASK.div_ceil(nx)).all(|line| {
            let (first, kind) = (line * nx, grid.kind(grid.place(line * nx)));
            alike(first, kind)
                && (first + 1..first + nx.max(2) - 1).all(|row| alike(row, kind + 1))
                && (nx == 1 || alike(first + nx - 1, kind + 2))
        })
    }
}

/// Computes the sums of all rows, part of a line at a time, and calls `finish(rows, sums, y[rows])` for each part.
pub(super) fn product<T: Scalar>(
    a: &GridStencil<T>,
    x: &[T],
    y: &mut [T],
    finish: impl Fn(Range<usize>, &[T], &mut [T]) + Sync,
) {
    let grid = a.grid();
    let nx = grid.sizes[0];
    let entries = task_of(a.entries(), LEAST, TASK);
    let of_row = (a.entries() / y.len().max(1)).max(1);
    let lines = (entries / (of_row * nx)).max(1);
    let tasks = y.par_chunks_mut(lines * nx).enumerate();
    tasks.with_min_len(worth_a_thread(TASK / entries)).for_each(|(task, y)| {
        vectorised(
            #[inline(always)]
            || {
                for (line, y) in y.chunks_mut(nx).enumerate() {
                    of_line(a, (task * lines + line) * nx, x, y, &finish);
                }
            },
        );
    });
}

/// Computes the product for the line that starts with row `first`.
#[inline(always)]
fn of_line<T: Scalar>(
    a: &GridStencil<T>,
    first: usize,
    x: &[T],
    y: &mut [T],
    finish: &impl Fn(Range<usize>, &[T], &mut [T]),
) {
    let (kind, last) = (a.grid().kind(a.grid().place(first)), y.len() - 1);
    let mut sums = [T::zero(); RUN];
    for (run, y) in y.chunks_mut(RUN).enumerate() {
        let here = run * RUN..run * RUN + y.len();
        let sums = &mut sums[..y.len()];
        let between = here.start.max(1)..here.end.min(last);
        if here.start == 0 {
            sums[0] = of_point(a, kind, first, x);
        }
        if here.end == last + 1 && last > 0 {
            sums[last - here.start] = of_point(a, kind + 2, first + last, x);
        }
        if !between.is_empty() {
            let sums = &mut sums[between.start - here.start..between.end - here.start];
            between_ends(a, kind + 1, first + between.start, x, sums);
        }
        finish(first + here.start..first + here.end, sums, y);
    }
}

/// Returns the sum of a row.
#[inline(always)]
fn of_point<T: Scalar>(a: &GridStencil<T>, kind: usize, row: usize, x: &[T]) -> T {
    let of = a.row(kind);
    let entries = of.distances.iter().zip(&of.values);
    entries.fold(T::zero(), |sum, (&d, &v)| sum + v * x[(row as u32).wrapping_add(d) as usize])
}

/// Computes the sums of consecutive rows of one kind, from row `first` on. It processes four entries at a time, so that
/// a sum is loaded and stored once for four products.
#[inline(always)]
fn between_ends<T: Scalar>(a: &GridStencil<T>, kind: usize, first: usize, x: &[T], sums: &mut [T]) {
    let (of, n) = (a.row(kind), sums.len());
    let x_of = |d: u32| &x[(first as u32).wrapping_add(d) as usize..][..n];
    let (fours, rest) = of.values.as_chunks::<4>();
    let (fours_d, rest_d) = of.distances.as_chunks::<4>();
    sums.fill(T::zero());
    for (v, d) in fours.iter().zip(fours_d) {
        let [a, b, c, e] = d.map(x_of);
        for ((((sum, &a), &b), &c), &e) in sums.iter_mut().zip(a).zip(b).zip(c).zip(e) {
            *sum = *sum + v[0] * a + v[1] * b + v[2] * c + v[3] * e;
        }
    }
    for (&v, &d) in rest.iter().zip(rest_d) {
        sums.iter_mut().zip(x_of(d)).for_each(|(sum, &a)| *sum += v * a);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{ChebyshevStep, GridMatrix, GridSteps, Op, Products, grid_values};
    use crate::matrix::{Csr, Dia};
    use crate::random::Random;
    use num_complex::Complex;
    use num_traits::One;

    /// Returns a matrix with a different row for each kind of points.
    fn matrix<T: Scalar>(grid: Grid, neighbours: Neighbours) -> Csr<T> {
        let mut random = Random::new(5);
        let mut number = || T::from_f64(random.unit() - 0.7);
        let rows: Vec<Vec<T>> = (0..27).map(|_| (0..27).map(|_| number()).collect()).collect();
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..grid.points() {
            let place = grid.place(row);
            for (k, by) in neighbours.iter().enumerate() {
                if let Some(to) = grid.neighbour(place, by) {
                    columns.push(grid.number(to) as u32);
                    values.push(rows[grid.kind(place)][k]);
                }
            }
            offsets.push(columns.len());
        }
        Csr::from_parts(grid.points(), grid.points(), offsets, columns, values).unwrap()
    }

    fn grids() -> [(Grid, Neighbours); 7] {
        let all = Neighbours::ALL;
        let flat = Neighbours(0b111_111_111 << 9);
        let seven = [[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]];
        let seven = seven.into_iter().fold(Neighbours(0), Neighbours::with);
        [
            ([7, 5, 4], all),
            ([33, 3, 3], seven),
            ([40, 41, 1], flat),
            ([2500, 3, 1], flat),
            ([64, 64, 9], seven),
            ([1, 1, 1], seven),
            ([2, 1, 3], all),
        ]
        .map(|(sizes, neighbours)| (Grid { sizes }, neighbours))
    }

    fn as_diagonals<T: Scalar>() {
        for (grid, neighbours) in grids() {
            let (a, n) = (matrix::<T>(grid, neighbours), grid.points());
            let stencil = find(a.parts(), grid, neighbours).expect("rows are alike");
            assert_eq!((stencil.entries(), stencil.grid()), (a.nonzeros(), grid));
            let mut random = Random::new(7);
            let mut vector =
                || (0..n).map(|_| T::from_f64(random.unit()) * T::from_f64(random.unit())).collect();
            let (x, r, mut last): (Vec<T>, Vec<T>, Vec<T>) = (vector(), vector(), vector());
            let mut stored = last.clone();
            // The stencil's entries are on diagonals; on a grid with few points, some of these coincide.
            let diagonals = Dia::whole_from_csr(&Host, &a).unwrap();
            let mut expected = vec![T::zero(); n];
            diagonals.product_op(&Host, Op::None, T::one(), &x[..], T::zero(), &mut expected[..]).unwrap();
            let mut told = vec![T::zero(); n];
            Host.grid_stencil_product(&stencil, &x, &mut told).unwrap();
            assert_eq!(told, expected, "{grid:?}");
            let d: Vec<T::Real> = x.iter().map(|x| x.re()).collect();
            let (keep, momentum, step) = (T::Real::from_f64(1.25), T::Real::from_f64(-0.25), T::Real::one());
            for d in [Some(&d[..]), None] {
                let by = ChebyshevStep { keep, momentum, step, d, r: &r[..], last: &mut last[..] };
                Host.grid_stencil_chebyshev(&stencil, by, &x).unwrap();
                let by = ChebyshevStep { keep, momentum, step, d, r: &r[..], last: &mut stored[..] };
                Host.dia_chebyshev(diagonals.parts(), by, &x[..]).unwrap();
                assert_eq!(last, stored, "{grid:?}");
            }
        }
    }

    #[test]
    fn products_have_the_bits_of_those_with_diagonals() {
        as_diagonals::<f64>();
        as_diagonals::<f32>();
        as_diagonals::<Complex<f32>>();
        as_diagonals::<Complex<f64>>();
    }

    #[test]
    fn coarser_matrices_and_scales_are_those_of_all_rows() {
        for (grid, neighbours) in grids() {
            let a = matrix::<f32>(grid, neighbours);
            let mut stencil = find(a.parts(), grid, neighbours).unwrap();
            let mut here = grid;
            while here.points() > 1 {
                let values = stencil.all_values();
                let on_grid = GridMatrix { grid: here, neighbours, values: &values[..] };
                let mut scales = vec![0.0; here.points()];
                Host.grid_scales(on_grid, &mut scales).unwrap();
                assert_eq!(stencil.scales(), scales, "{here:?}");
                let (coarse, mut unfit) = (here.coarser(), [0]);
                let mut sums = vec![0.0; grid_values(coarse, neighbours)];
                Host.grid_coarser(on_grid, &mut sums, &mut unfit).unwrap();
                stencil = stencil.coarser().expect("sums are finite");
                assert_eq!((unfit, stencil.grid()), ([0], coarse));
                let told = stencil.all_values();
                // Entries for points outside of the grid are NaN in `sums`, and may be zero in the stencil's values.
                let alike = |(a, b): (&f32, &f32)| a == b || (b.is_nan() && (*a == 0.0 || a.is_nan()));
                assert!(told.iter().zip(&sums).all(alike), "{coarse:?}");
                here = coarse;
            }
        }
    }

    #[test]
    fn rows_that_differ_are_no_stencil() {
        let (grid, neighbours) = grids()[1];
        let a = matrix::<f64>(grid, neighbours);
        let found = |values: Vec<f64>| {
            let parts = a.parts();
            find(CsrParts { values: &values[..], ..parts }, grid, neighbours).is_some()
        };
        assert!(found(a.parts().values.to_vec()));
        for (at, value) in [(700, 0.125), (0, f64::NAN), (1, f64::INFINITY), (a.nonzeros() - 1, 0.0)] {
            let mut values = a.parts().values.to_vec();
            values[at] = value;
            assert!(!found(values), "{at} {value}");
        }
        // A negative zero has different bits, so the rows differ.
        let mut values = a.parts().values.to_vec();
        values.iter_mut().for_each(|value| *value = value.abs().max(0.5) - 0.5);
        assert!(!found(values));
        // This entry belongs to a point with the next number that is not a neighbour on the grid.
        let mut columns = a.parts().indices.to_vec();
        let row = 32;
        let at = (0..row).map(|row| a.row(row).0.len()).sum::<usize>() + 1;
        assert_eq!(columns[at], 32);
        columns[at + 1] = 33;
        let parts = a.parts();
        assert!(find(CsrParts { indices: &columns[..], ..parts }, grid, neighbours).is_none());
    }
}
