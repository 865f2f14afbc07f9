//! Steps of multigrid on grids, compared with products of matrices, for any backend.

use crate::random::Random;
use num_complex::Complex;
use num_traits::Float;
use residua::backend::{
    Grid, GridMatrix, GridSteps, Neighbours, RowsOnGrid, grid_values, grid_weights, is_no_entry, no_entry,
};
use residua::scalar::Real;
use residua::{Csr, Host, Scalar};
use std::collections::BTreeMap;

/// x, y and z of a point.
fn place([nx, ny, _]: [usize; 3], point: usize) -> [usize; 3] {
    [point % nx, point / nx % ny, point / nx / ny]
}

/// The index of a row's entry for neighbour k among the values of a matrix on a grid, which has slices of 32 rows.
fn at(neighbours: Neighbours, row: usize, k: usize) -> usize {
    row / 32 * (32 * neighbours.count()) + k * 32 + row % 32
}

/// The neighbours along the axes, and the point itself.
fn seven() -> Neighbours {
    let beside = [[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]];
    beside.into_iter().fold(Neighbours(0), Neighbours::with)
}

/// A random matrix on a grid, with this diagonal if given, and its values in the layout of the grid.
fn random_on_grid<T: Scalar>(grid: Grid, neighbours: Neighbours, diagonal: Option<f64>) -> (Csr<T>, Vec<T>) {
    let (sizes, n) = (grid.sizes, grid.points());
    let mut random = Random(n as u64);
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut stored = vec![no_entry::<T>(); grid_values(grid, neighbours)];
    for row in 0..n {
        for (k, by) in neighbours.iter().enumerate() {
            let from = place(sizes, row);
            let to = [0, 1, 2].map(|axis| from[axis] as i64 + by[axis]);
            if (0..3).all(|axis| (0..sizes[axis] as i64).contains(&to[axis])) {
                let drawn = random.vector::<T>(1)[0];
                let value = diagonal.filter(|_| by == [0; 3]).map_or(drawn, T::from_f64);
                columns
                    .push((to[0] as usize + sizes[0] * (to[1] as usize + sizes[1] * to[2] as usize)) as u32);
                values.push(value);
                stored[at(neighbours, row, k)] = value;
            }
        }
        offsets.push(columns.len());
    }
    (Csr::from_parts(n, n, offsets, columns, values).unwrap(), stored)
}

/// A row of a matrix on a grid, by columns.
fn row_on_grid<T: Scalar>(grid: Grid, neighbours: Neighbours, values: &[T], row: usize) -> Vec<T> {
    let mut dense = vec![T::zero(); grid.points()];
    for (k, by) in neighbours.iter().enumerate() {
        let value = values[at(neighbours, row, k)];
        let [nx, ny, _] = grid.sizes.map(|size| size as i64);
        let column = row as i64 + by[0] + nx * (by[1] + ny * by[2]);
        if !is_no_entry(value) {
            dense[column as usize] += value;
        }
    }
    dense
}

/// The values of a matrix with an infinite entry, and with one that leads out of the grid to another line.
fn unfit<T: Scalar>(grid: Grid, neighbours: Neighbours, stored: &[T]) -> [Vec<T>; 2] {
    let own = neighbours.count() / 2;
    let bad = [(0, own, T::from_f64(f64::INFINITY)), (grid.sizes[0] - 1, own + 1, T::one())];
    bad.map(|(row, k, value)| {
        let mut stored = stored.to_vec();
        stored[at(neighbours, row, k)] = value;
        stored
    })
}

/// The prolongation that is constant on boxes.
fn constant_on_boxes<T: Scalar>(grid: Grid) -> Csr<T> {
    let coarse = grid.coarser();
    let box_of = |point: usize| {
        let at = place(grid.sizes, point).map(|at| at / 2);
        (at[0] + coarse.sizes[0] * (at[1] + coarse.sizes[1] * at[2])) as u32
    };
    let n = grid.points();
    Csr::from_parts(n, coarse.points(), (0..=n).collect(), (0..n).map(box_of).collect(), vec![T::one(); n])
        .unwrap()
}

/// Steps on grids, compared with products of matrices.
pub fn boxes_of_points<B: GridSteps>(backend: &B) {
    boxes::<f64, B>(backend);
    boxes::<f32, B>(backend);
    boxes::<Complex<f32>, B>(backend);
    boxes::<Complex<f64>, B>(backend);
}

fn boxes<T: Scalar, B: GridSteps>(backend: &B) {
    let near = |a: T, b: T| (a - b).abs().to_f64() <= 64.0 * <T::Real as Float>::epsilon().to_f64();
    let (all, flat, seven) = (Neighbours::ALL, Neighbours::IN_PLANE, seven());
    for (sizes, neighbours) in [
        ([7, 5, 4], all),
        ([33, 3, 3], seven),
        ([40, 41, 1], flat),
        ([4, 4, 4], seven),
        ([1, 1, 1], seven),
        ([2, 1, 3], all),
    ] {
        let grid = Grid { sizes };
        let (n, coarse) = (grid.points(), grid.coarser());
        let (a, stored) = random_on_grid::<T>(grid, neighbours, None);
        let p = constant_on_boxes(grid);
        let r = p.transpose(&Host).unwrap();
        let half = residua::matrix::multiply(&Host, &a, &p).unwrap();
        let expected = residua::matrix::multiply(&Host, &r, &half).unwrap();
        let here = backend.upload(stored.clone()).unwrap();
        let matrix = GridMatrix { grid, neighbours, values: &*here };
        let mut product = backend.zeros::<T>(grid_values(coarse, neighbours)).unwrap();
        let mut told_unfit = backend.zeros::<u32>(1).unwrap();
        backend.grid_coarser(matrix, &mut product, &mut told_unfit).unwrap();
        assert_eq!(backend.download(&told_unfit).unwrap(), [0]);
        let product = backend.download(&product).unwrap();
        for row in 0..coarse.points() {
            let mut dense = row_on_grid(coarse, neighbours, &product, row);
            let (columns, values) = expected.row(row);
            for (&j, &value) in columns.iter().zip(values) {
                dense[j as usize] -= value;
            }
            assert!(
                dense.iter().all(|&difference| near(difference, T::zero())),
                "{sizes:?}, row {row}: {dense:?}"
            );
        }
        let mut scales = backend.zeros::<T::Real>(n).unwrap();
        backend.grid_scales(matrix, &mut scales).unwrap();
        for (row, scale) in backend.download(&scales).unwrap().into_iter().enumerate() {
            let sum: f64 = a.row(row).1.iter().map(|value| value.abs().to_f64()).sum();
            assert!(near(T::from_f64(scale.to_f64() * sum), T::one()));
        }
        let fine = Random(3).vector::<T>(n);
        let mut sums = vec![T::zero(); coarse.points()];
        r.product(&Host, T::one(), &fine[..], T::zero(), &mut sums[..]).unwrap();
        let mut fine = backend.upload(fine).unwrap();
        let mut here = backend.zeros::<T>(coarse.points()).unwrap();
        backend.grid_restrict(grid, &fine, &mut here).unwrap();
        let told = backend.download(&here).unwrap();
        assert!(told.iter().zip(&sums).all(|(&a, &b)| near(a, b)), "{sizes:?}");
        let mut expected = backend.download(&fine).unwrap();
        p.product(&Host, T::one(), &told[..], T::one(), &mut expected[..]).unwrap();
        backend.grid_prolong(grid, &here, &mut fine).unwrap();
        assert_eq!(backend.download(&fine).unwrap(), expected);
        for stored in unfit(grid, neighbours, &stored) {
            let here = backend.upload(stored).unwrap();
            let mut product = backend.zeros::<T>(grid_values(coarse, neighbours)).unwrap();
            backend
                .grid_coarser(GridMatrix { grid, neighbours, values: &*here }, &mut product, &mut told_unfit)
                .unwrap();
            assert_eq!(backend.download(&told_unfit).unwrap(), [1], "{sizes:?}");
            told_unfit = backend.zeros(1).unwrap();
        }
    }
}

/// Copies planes of a matrix on a grid into a matrix on another grid.
pub fn rows_on_grids<B: GridSteps>(backend: &B) {
    rows::<f64, B>(backend);
    rows::<f32, B>(backend);
    rows::<Complex<f32>, B>(backend);
    rows::<Complex<f64>, B>(backend);
}

fn rows<T: Scalar, B: GridSteps>(backend: &B) {
    let bits = |values: &[T]| values.iter().map(|value| value.bits()).collect::<Vec<_>>();
    for (sizes, neighbours, planes) in [
        ([7, 5, 9], Neighbours::ALL, 2..6),
        ([33, 3, 4], seven(), 1..2),
        ([40, 41, 1], Neighbours::IN_PLANE, 3..20),
        ([5, 4, 3], seven(), 0..3),
        ([1, 1, 6], seven(), 5..6),
    ] {
        let grid = Grid { sizes };
        let (_, stored) = random_on_grid::<T>(grid, neighbours, None);
        let axis = if sizes[2] > 1 { 2 } else { 1 };
        let part = |count: usize| {
            let mut sizes = sizes;
            sizes[axis] = count;
            Grid { sizes }
        };
        let (plane, small) = (part(1).points(), part(planes.len()));
        let (first, count) = (planes.start * plane, small.points());
        let from = backend.upload(stored.clone()).unwrap();
        for (before, cut) in [(0, true), (0, false), (2, false)] {
            let there = part(before + planes.len());
            let mut to = backend.buffer::<T>(grid_values(there, neighbours)).unwrap();
            backend.fill(T::one(), &mut to).unwrap();
            let within = cut.then_some(there);
            let which = RowsOnGrid { neighbours, first, place: before * plane, rows: count, within };
            backend.grid_rows(which, &from, &mut to).unwrap();
            let mut expected = vec![T::one(); grid_values(there, neighbours)];
            for row in 0..count {
                let place = place(sizes, first + row);
                for (k, by) in neighbours.iter().enumerate() {
                    let end = place[axis] as i64 + by[axis];
                    let stays = !cut || (planes.start as i64..planes.end as i64).contains(&end);
                    let value = if stays { stored[at(neighbours, first + row, k)] } else { no_entry() };
                    expected[at(neighbours, before * plane + row, k)] = value;
                }
            }
            assert_eq!(bits(&backend.download(&to).unwrap()), bits(&expected), "{sizes:?}, {before}, {cut}");
        }
        // This asks for more rows than the grid has, which must be refused.
        let which = RowsOnGrid { neighbours, first, place: 0, rows: grid.points() + 32, within: None };
        let mut to = backend.zeros::<T>(grid_values(small, neighbours)).unwrap();
        assert!(backend.grid_rows(which, &from, &mut to).is_err());
    }
}

/// The prolongation that interpolates by the rows of A, computed point by point. The value of a point with odd
/// coordinates makes its row of A times the values zero. For this, a coupling along an axis with an even coordinate
/// counts as if it did not leave the point on this axis.
fn between_points<T: Scalar>(grid: Grid, a: &Csr<T>) -> Csr<T> {
    let (sizes, coarse, n) = (grid.sizes, grid.coarser().sizes, a.rows());
    let place = |point: usize| place(sizes, point);
    let axes = |point: usize| place(point).iter().filter(|&&at| at % 2 == 1).count();
    let mut rows: Vec<BTreeMap<u32, T>> = vec![BTreeMap::new(); n];
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&point| axes(point));
    for point in order {
        let at = place(point);
        if axes(point) == 0 {
            let [x, y, z] = at.map(|at| at / 2);
            rows[point].insert((x + coarse[0] * (y + coarse[1] * z)) as u32, T::one());
            continue;
        }
        let (mut left, mut others) = (0.0, 0.0);
        let mut sums = BTreeMap::new();
        let (columns, values) = a.row(point);
        for (&column, &value) in columns.iter().zip(values) {
            let mut to = place(column as usize);
            for axis in 0..3 {
                // Along an axis on which the point is even, a step counts as none.
                if at[axis] % 2 == 0 {
                    to[axis] = at[axis];
                }
            }
            if to == at {
                left += value.re().to_f64();
                continue;
            }
            others += value.abs().to_f64();
            for (&parent, &weight) in &rows[to[0] + sizes[0] * (to[1] + sizes[1] * to[2])] {
                *sums.entry(parent).or_insert(T::zero()) += value * weight;
            }
        }
        let left = if left > 0.25 * others { left } else { others };
        rows[point] =
            sums.into_iter().map(|(parent, sum)| (parent, T::zero() - sum / T::from_f64(left))).collect();
    }
    let mut offsets = vec![0];
    offsets.extend(rows.iter().scan(0, |sum, row| {
        *sum += row.len();
        Some(*sum)
    }));
    let (columns, values) = rows.into_iter().flatten().unzip();
    Csr::from_parts(n, coarse.iter().product(), offsets, columns, values).unwrap()
}

/// Interpolation between points, compared with products of matrices.
pub fn points_between<B: GridSteps>(backend: &B) {
    between::<f64, B>(backend);
    between::<f32, B>(backend);
    between::<Complex<f32>, B>(backend);
    between::<Complex<f64>, B>(backend);
}

fn between<T: Scalar, B: GridSteps>(backend: &B) {
    let near = |a: T, b: T| {
        let scale = 1.0 + a.abs().to_f64();
        (a - b).abs().to_f64() <= 4096.0 * scale * <T::Real as Float>::epsilon().to_f64()
    };
    let (all, flat, seven) = (Neighbours::ALL, Neighbours::IN_PLANE, seven());
    let five = Neighbours(seven.0 & 0b111_111_111 << 9);
    for (sizes, neighbours, dominant) in [
        ([7, 5, 4], all, false),
        ([33, 3, 3], seven, true),
        ([40, 41, 1], flat, true),
        ([150, 3, 1], five, false),
        ([3, 4, 5], seven, true),
        ([1, 1, 1], seven, true),
        ([2, 1, 3], all, false),
    ] {
        let grid = Grid { sizes };
        let (n, coarse) = (grid.points(), grid.coarser());
        let diagonal = dominant.then(|| neighbours.count() as f64);
        let (a, stored) = random_on_grid::<T>(grid, neighbours, diagonal);
        let p = between_points(grid, &a);
        let mut r = p.transpose(&Host).unwrap();
        r.values_mut().iter_mut().for_each(|value| *value = value.conj());
        let half = residua::matrix::multiply(&Host, &a, &p).unwrap();
        let expected = residua::matrix::multiply(&Host, &r, &half).unwrap();
        let here = backend.upload(stored.clone()).unwrap();
        let matrix = GridMatrix { grid, neighbours, values: &*here };
        let mut weights = backend.zeros::<T>(grid_weights(grid)).unwrap();
        let mut told_unfit = backend.zeros::<u32>(1).unwrap();
        backend.grid_weights(matrix, &mut weights, &mut told_unfit).unwrap();
        assert_eq!(backend.download(&told_unfit).unwrap(), [0]);
        let to = if sizes[2] > 1 { all } else { flat };
        let mut product = backend.zeros::<T>(grid_values(coarse, to)).unwrap();
        backend.grid_interpolated(matrix, &weights, &mut product).unwrap();
        let product = backend.download(&product).unwrap();
        for row in 0..coarse.points() {
            let dense = row_on_grid(coarse, to, &product, row);
            let (columns, values) = expected.row(row);
            let mut wanted = vec![T::zero(); coarse.points()];
            columns.iter().zip(values).for_each(|(&j, &value)| wanted[j as usize] += value);
            assert!(wanted.iter().zip(&dense).all(|(&a, &b)| near(a, b)), "{sizes:?}, row {row}");
        }
        let fine = Random(3).vector::<T>(n);
        let mut sums = vec![T::zero(); coarse.points()];
        r.product(&Host, T::one(), &fine[..], T::zero(), &mut sums[..]).unwrap();
        let mut fine = backend.upload(fine).unwrap();
        let mut here = backend.zeros::<T>(coarse.points()).unwrap();
        backend.grid_restrict_weighted(grid, &weights, &fine, &mut here).unwrap();
        let told = backend.download(&here).unwrap();
        assert!(told.iter().zip(&sums).all(|(&a, &b)| near(a, b)), "{sizes:?}");
        let mut expected = backend.download(&fine).unwrap();
        p.product(&Host, T::one(), &told[..], T::one(), &mut expected[..]).unwrap();
        backend.grid_prolong_weighted(grid, &weights, &here, &mut fine).unwrap();
        let told = backend.download(&fine).unwrap();
        assert!(told.iter().zip(&expected).all(|(&a, &b)| near(a, b)), "{sizes:?}");
        for stored in unfit(grid, neighbours, &stored) {
            let here = backend.upload(stored).unwrap();
            let matrix = GridMatrix { grid, neighbours, values: &*here };
            backend.grid_weights(matrix, &mut weights, &mut told_unfit).unwrap();
            assert_eq!(backend.download(&told_unfit).unwrap(), [1], "{sizes:?}");
            told_unfit = backend.zeros(1).unwrap();
        }
    }
}
