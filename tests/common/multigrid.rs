//! Algebraic multigrid on any backend: iterations of conjugate gradients to a residual of 1e-8, with a random x.

#[path = "classical.rs"]
mod classical;
#[allow(unused_imports)] // not every program of tests lists the cases
pub use classical::{classical_coarsening, classical_convection, classical_edges};
#[path = "hierarchy.rs"]
mod hierarchy;
pub use hierarchy::the_hierarchy_of_the_host;
#[path = "scattered.rs"]
mod scattered;
pub use scattered::inverses_of_blocks;

use crate::collection;
use crate::random::Random;
use num_complex::Complex;
use residua::backend::{KrylovSteps, RowFacts};
use residua::generate;
use residua::graph::{self, Permutation};
use residua::krylov::{Cg, Gmres, Outcome, SolveOptions};
use residua::market::read_csr;
use residua::multigrid::MultigridBackend;
use residua::multigrid::{Multigrid, MultigridOptions, Prolongation, Smoothing};
use residua::precondition::Preconditioner;
use residua::{Csr, Error, Host, Scalar};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The one list of cases: hands their names to a macro, behind the words that are for it.
#[allow(unused_macros)] // not every program of tests lists the cases
macro_rules! each_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            grids,
            what_is_on_no_grid,
            strong_directions_of_points,
            iterations_do_not_grow,
            entries_of_all_levels,
            graphs_with_hubs,
            rough_coefficients,
            flat_elements,
            what_has_no_prolongation_of_least_energy,
            classical_coarsening,
            classical_convection,
            classical_edges,
            elasticity,
            real_matrices,
            half_the_precision,
            a_shared_matrix,
            complex_values,
            new_values,
            new_values_on_kept_patterns,
            small_and_strange,
            hermitian,
            convection,
            the_hierarchy_of_the_host,
            inverses_of_blocks
        }
    };
}
#[allow(unused_imports)] // as above
pub(crate) use each_case;

/// What a preconditioner needs.
pub trait Able: KrylovSteps + RowFacts + MultigridBackend {}
impl<B: KrylovSteps + RowFacts + MultigridBackend> Able for B {}

fn options() -> MultigridOptions {
    MultigridOptions::default()
}

/// Iterations to 1e-8; the right-hand side belongs to a random x.
fn solved<T: Scalar, B: Able>(backend: &B, a: &Csr<T, B>, m: &Multigrid<T, B>) -> usize {
    let n = a.rows();
    let x = backend.upload(Random(7).vector::<T>(n)).unwrap();
    let mut b = backend.zeros::<T>(n).unwrap();
    a.product(backend, T::one(), &x, T::zero(), &mut b).unwrap();
    let mut cg = Cg::new(backend, n, SolveOptions::default().max_iterations(400)).unwrap();
    let mut x = backend.zeros::<T>(n).unwrap();
    let report = cg.solve(a, m, &b, &mut x, |_, _| ControlFlow::Continue(())).unwrap();
    assert!(matches!(report.outcome, Outcome::Converged), "{}: {}", report.outcome, m.facts());
    report.iterations
}

/// The same from the matrix.
fn iterations<B: Able>(backend: &B, a: &Csr<f64>, options: &MultigridOptions) -> usize {
    let a = a.to_backend(backend).unwrap();
    let m = Multigrid::new(backend, &a, options).unwrap();
    solved(backend, &a, &m)
}

fn at_most<B: Able>(backend: &B, most: usize, a: &Csr<f64>, options: &MultigridOptions, what: &str) {
    let took = iterations(backend, a, options);
    assert!(took <= most, "{what}: {took} iterations, at most {most} are expected");
}

pub fn grids<B: Able>(backend: &B) {
    for options in [options(), options().boxes(false)] {
        at_most(backend, 12, &generate::poisson3d(40, 40, 40).unwrap(), &options, "7 points");
        at_most(backend, 12, &generate::poisson3d(33, 17, 9).unwrap(), &options, "7 points, odd sides");
        at_most(backend, 12, &generate::poisson3d_27(20, 20, 20).unwrap(), &options, "27 points");
        at_most(backend, 14, &generate::poisson2d(250, 250).unwrap(), &options, "5 points");
        at_most(backend, 14, &generate::poisson2d_9(150, 151).unwrap(), &options, "9 points");
    }
}

/// Which matrices get boxes of points, and which do not.
pub fn what_is_on_no_grid<B: Able>(backend: &B) {
    let on_grid = |a: &Csr<f64>| {
        Multigrid::new(backend, &a.to_backend(backend).unwrap(), &options()).unwrap().facts().grid
    };
    let grid = generate::poisson2d(30, 50).unwrap();
    assert!(on_grid(&grid) && on_grid(&generate::poisson3d_27(9, 10, 11).unwrap()));
    assert!(!on_grid(&generate::anisotropic2d(50, 50, 1e-2).unwrap()), "couplings of one axis are weak");
    assert!(!on_grid(&generate::tridiagonal(1000).unwrap()), "one dimension");
    // A ring: the last point of a line is coupled to the first of the next.
    let ring: Vec<f64> = (0..1500).map(|i| if i % 30 == 29 { 1.0 } else { 0.0 }).collect();
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..1500 {
        let (of_row, entries) = grid.row(i);
        let mut row: Vec<(u32, f64)> = of_row.iter().copied().zip(entries.iter().copied()).collect();
        for (beside, coupled) in [(i + 1, ring[i]), (i.wrapping_sub(1), ring[i.saturating_sub(1)])] {
            if coupled != 0.0 && beside < 1500 {
                row.push((beside as u32, -1.0));
            }
        }
        row.sort_by_key(|entry| entry.0);
        columns.extend(row.iter().map(|entry| entry.0));
        values.extend(row.iter().map(|entry| entry.1));
        offsets.push(columns.len());
    }
    assert!(!on_grid(&Csr::from_parts(1500, 1500, offsets, columns, values).unwrap()), "lines that go on");
}

/// A graph of which a few vertices have a large part of all as neighbours: levels do not fill up, and iterations are a
/// small part of those with the diagonal.
pub fn graphs_with_hubs<B: Able>(backend: &B) {
    with_hubs(backend, 6000, &options());
    // Of the largest hub's 12 000 entries single precision knows no sum.
    with_hubs(backend, 60_000, &options().narrow(true));
}

fn with_hubs<B: Able>(backend: &B, n: usize, options: &MultigridOptions) {
    let mut random = Random(5);
    let mut unit = || random.signed().abs().min(0.999_999);
    let (mut entries, mut sums) = (std::collections::BTreeMap::new(), vec![1e-3; n]);
    for _ in 0..4 * n {
        let [i, j] = [unit(), unit()].map(|at| (at.powi(4) * n as f64) as usize);
        let weight = 10_f64.powf(6.0 * unit() - 3.0);
        if i != j {
            for (row, column) in [(i, j), (j, i)] {
                *entries.entry((row, column)).or_insert(0.0) -= weight;
                sums[row] += weight;
            }
        }
    }
    entries.extend(sums.iter().enumerate().map(|(i, &sum)| ((i, i), sum)));
    let mut offsets = vec![0];
    for row in 0..n {
        offsets.push(offsets[row] + entries.range((row, 0)..(row + 1, 0)).count());
    }
    let (columns, values) = entries.iter().map(|(&(_, column), &value)| (column as u32, value)).unzip();
    let a = Csr::from_parts(n, n, offsets, columns, values).unwrap();
    assert!((0..n).any(|row| a.row(row).0.len() > n / 6));
    let on_backend = a.to_backend(backend).unwrap();
    let m = Multigrid::new(backend, &on_backend, options).unwrap();
    assert!(m.facts().operator_complexity() <= 3.0, "{}", m.facts());
    let took = solved(backend, &on_backend, &m);
    assert!(took <= 60, "{took} iterations, {}", m.facts());
}

/// Couplings that are as strong along all axes in the whole, and not at any point: boxes do not suit.
pub fn strong_directions_of_points<B: Able>(backend: &B) {
    let (n, layer) = (60, 3600);
    // A strong direction along a diagonal (bilinear elements), 45 degrees.
    let mut turned = Vec::new();
    // Two layers, one strong along x and one along y, and what connects them.
    let mut layers = Vec::new();
    for i in 0..layer {
        let (x, y) = ((i % n) as i64, (i / n) as i64);
        let inside =
            |dx: i64, dy: i64| (0..n as i64).contains(&(x + dx)) && (0..n as i64).contains(&(y + dy));
        let beside = |dx: i64, dy: i64| (i as i64 + dx + dy * n as i64) as usize;
        for (dx, dy) in (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (dx, dy))).filter(|&by| by != (0, 0)) {
            let value = if dx == 0 || dy == 0 {
                -0.1667
            } else if dx == dy {
                -0.4162
            } else {
                0.0828
            };
            turned.push((i, i, -value));
            if inside(dx, dy) {
                turned.push((i, beside(dx, dy), value));
            }
            if (dx == 0) != (dy == 0) && inside(dx, dy) {
                for (first, value) in
                    [(0, if dx == 0 { 1.0 } else { 50.0 }), (layer, if dx == 0 { 50.0 } else { 1.0 })]
                {
                    layers.push((first + i, first + beside(dx, dy), -value));
                    layers.push((first + i, first + i, value * 1.0001));
                }
            }
        }
        for (from, to) in [(i, i + layer), (i + layer, i)] {
            layers.extend([(from, to, -5.0), (from, from, 5.0)]);
        }
    }
    for (size, entries, most, what) in [(layer, turned, 30, "turned"), (2 * layer, layers, 25, "layers")] {
        let mut sums = std::collections::BTreeMap::new();
        entries.into_iter().for_each(|(i, j, value)| *sums.entry((i, j)).or_insert(0.0) += value);
        let a = sorted(size, sums.into_iter().map(|((i, j), value)| (i, j, value)).collect())
            .to_backend(backend)
            .unwrap();
        let m = Multigrid::new(backend, &a, &options()).unwrap();
        assert!(!m.facts().grid, "{what}: {}", m.facts());
        let took = solved(backend, &a, &m);
        assert!(took <= most, "{what}: {took} iterations");
    }
}

pub fn iterations_do_not_grow<B: Able>(backend: &B) {
    let of = |k| iterations(backend, &generate::poisson3d(k, k, k).unwrap(), &options());
    let (small, large) = (of(16), of(48));
    assert!(large <= small + 3, "{small} iterations for 16^3, {large} for 48^3");
}

/// Grids in space that are not taken as such have few entries on the levels below.
pub fn entries_of_all_levels<B: Able>(backend: &B) {
    for (a, most, what) in [
        (generate::poisson3d(24, 24, 24).unwrap(), 1.5, "7 points"),
        (generate::poisson3d_27(20, 20, 20).unwrap(), 1.1, "27 points"),
    ] {
        let a = shuffled(&a).to_backend(backend).unwrap();
        let m = Multigrid::new(backend, &a, &options()).unwrap();
        assert!(m.facts().operator_complexity() < most, "{what}: {}", m.facts());
        let took = solved(backend, &a, &m);
        assert!(took <= 11, "{what}: {took} iterations");
    }
}

pub fn rough_coefficients<B: Able>(backend: &B) {
    let jumping = generate::jumping([32, 32, 32], 1e6, 8, 1).unwrap();
    at_most(backend, 18, &jumping, &options(), "jumps of 10^6");
    let along_axes = generate::anisotropic2d(200, 200, 1e-3).unwrap();
    at_most(backend, 16, &along_axes, &options(), "anisotropic 1e-3 in the plane");
    let in_space = generate::anisotropic3d(32, 32, 32, 1e-3).unwrap();
    at_most(backend, 16, &in_space, &options(), "anisotropic 1e-3 in space");
}

/// Rigid body modes of [`generate::elasticity3d`]: translations and rotations about the middle.
fn rigid_body_modes(elements: usize) -> Vec<f64> {
    let side = elements + 1;
    let middle = elements as f64 / 2.0;
    let mut modes = Vec::with_capacity(elements * side * side * 18);
    for node in 0..elements * side * side {
        let at = [node % elements + 1, node / elements % side, node / elements / side];
        let [x, y, z] = at.map(|place| place as f64 - middle);
        modes.extend([1.0, 0.0, 0.0, y, 0.0, z]);
        modes.extend([0.0, 1.0, 0.0, -x, z, 0.0]);
        modes.extend([0.0, 0.0, 1.0, 0.0, -y, -x]);
    }
    modes
}

pub fn elasticity<B: Able>(backend: &B) {
    let elements = 12;
    let a = generate::elasticity3d(elements, elements, elements, 0.3).unwrap();
    let options = options().unknowns_a_node(3);
    at_most(backend, 28, &a, &options, "elasticity, translations alone");
    let a = a.to_backend(backend).unwrap();
    let m = Multigrid::with_near_null(backend, &a, 6, rigid_body_modes(elements), &options).unwrap();
    let took = solved(backend, &a, &m);
    assert!(took <= 16, "elasticity with rigid body modes: {took} iterations");
}

/// Skipped, and said so, where the collection is not there.
pub fn real_matrices<B: Able>(backend: &B) {
    let Some(folder) = collection::folder() else { return };
    for (file, most) in [
        ("fem_flatplate_poisson.mtx.gz", 14),
        ("fem_rae2822_poisson.mtx.gz", 12),
        ("bcsstk16.mtx.gz", 50),
        ("pdn_map21.mtx.gz", 16),
        ("fem_bunny_poisson_r1.mtx.gz", 65),
    ] {
        let path = folder.join(file);
        if !path.is_file() {
            println!("skipped: no {}", path.display());
            continue;
        }
        at_most(backend, most, &read_csr(path).unwrap(), &options(), file);
    }
    let elastic = folder.join("fem_bunny_elast.mtx.gz");
    if elastic.is_file() {
        let nodes = options().unknowns_a_node(3);
        at_most(backend, 80, &read_csr(elastic).unwrap(), &nodes, "tetrahedra, elastic");
    }
}

pub fn half_the_precision<B: Able>(backend: &B) {
    let a = generate::poisson3d(24, 24, 24).unwrap();
    let full = iterations(backend, &a, &options());
    let narrow = iterations(backend, &a, &options().narrow(true));
    assert!(narrow <= full + 1, "{full} iterations, {narrow} with a hierarchy of half the precision");
}

/// Where a cycle is in full precision, A need not be there twice; smoothing and the way between levels are in half.
pub fn a_shared_matrix<B: Able>(backend: &B) {
    let a = triangles(110);
    let n = a.rows();
    let on = |a: &Csr<f64>| a.to_backend(backend).unwrap();
    let applied = |m: &Multigrid<f64, B>| {
        let r = backend.upload(Random(9).vector::<f64>(n)).unwrap();
        let mut z = backend.zeros::<f64>(n).unwrap();
        m.apply(backend, &r, &mut z).unwrap();
        backend.download(&z).unwrap()
    };
    // With a small coarsest level, whose inverse is not what is looked at.
    let options = || options().boxes(false).coarsest_rows(50);
    let fresh = |a: &Csr<f64>| Multigrid::new(backend, &on(a), &options()).unwrap();
    let mut m = fresh(&a);
    let (before, bytes) = (applied(&m), m.storage_bytes());
    m.share(Arc::new(on(&a))).unwrap();
    assert_eq!(bytes - m.storage_bytes(), a.storage_bytes());
    assert_eq!(before, applied(&m));
    let beside = (m.storage_bytes() + m.work_len() * size_of::<f64>()) as f64 / a.storage_bytes() as f64;
    assert!(beside < 2.5, "{beside} times the memory of the matrix");
    // New values, and a matrix that is shared again.
    let scaled = a.map(|value| 2.0 * value);
    let expected = applied(&fresh(&scaled));
    for _ in 0..2 {
        m.update(backend, &on(&scaled)).unwrap();
        assert_eq!(applied(&m), expected);
    }
    m.share(Arc::new(on(&scaled))).unwrap();
    assert_eq!(applied(&m), expected);
    m.update(backend, &on(&a)).unwrap();
    assert_eq!(applied(&m), before);
    let other = generate::poisson2d(8, 8).unwrap();
    assert!(matches!(m.share(Arc::new(on(&other))), Err(Error::Dimension { .. })));
    // What is rounded is not the matrix.
    let plain = generate::poisson2d(60, 50).unwrap();
    let mut m = Multigrid::new(backend, &on(&plain), &options().narrow(true)).unwrap();
    let bytes = m.storage_bytes();
    m.share(Arc::new(on(&plain))).unwrap();
    assert_eq!(bytes, m.storage_bytes());
}

/// Linear elements on triangles, some of them flat: the corners of a grid's cells, each moved by up to 0.49 of their
/// distance, each cell cut along either diagonal, with coefficients over two decades, fixed along one side.
fn triangles(n: usize) -> Csr<f64> {
    let mut random = Random(11);
    let points: Vec<[f64; 2]> = (0..n * n)
        .map(|i| [(i % n) as f64, (i / n) as f64].map(|place| place + 0.49 * random.signed()))
        .collect();
    let mut sums = std::collections::BTreeMap::new();
    for cell in (0..(n - 1) * (n - 1)).map(|cell| cell % (n - 1) + cell / (n - 1) * n) {
        let [a, b, c, d] = [cell, cell + 1, cell + n + 1, cell + n];
        let cut = if random.below(2) == 0 { [[a, b, c], [a, c, d]] } else { [[a, b, d], [b, c, d]] };
        for corners in cut {
            let k = 10.0_f64.powf(random.signed());
            let edge = |from: usize, to: usize| {
                let (from, to) = (points[corners[from % 3]], points[corners[to % 3]]);
                [to[0] - from[0], to[1] - from[1]]
            };
            let (u, v) = (edge(0, 1), edge(0, 2));
            let twice_the_area = (u[0] * v[1] - u[1] * v[0]).abs().max(1e-3);
            for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
                // Of each corner, the edge that is opposite.
                let (of_i, of_j) = (edge(i + 1, i + 2), edge(j + 1, j + 2));
                let value = k * (of_i[0] * of_j[0] + of_i[1] * of_j[1]) / (2.0 * twice_the_area);
                *sums.entry((corners[i], corners[j])).or_insert(0.0) += value;
            }
        }
    }
    (0..n).for_each(|i| *sums.entry((i, i)).or_insert(0.0) += 1.0);
    sorted(n * n, sums.into_iter().map(|((i, j), value)| (i, j, value)).collect())
}

pub fn flat_elements<B: Able>(backend: &B) {
    let a = triangles(110).to_backend(backend).unwrap();
    let least = options().prolongation(Prolongation::LeastEnergy);
    let of = |options: &MultigridOptions| {
        let m = Multigrid::new(backend, &a, options).unwrap();
        (solved(backend, &a, &m), m)
    };
    let ((smoothed, _), (energy, m)) = (of(&options()), of(&least));
    assert!(smoothed <= 60 && energy <= 40, "{smoothed} and {energy} iterations");
    let entries = m.facts().operator_complexity();
    assert!(entries < 2.0, "{}", m.facts());
    let (narrow, in_half) = of(&least.clone().narrow(true));
    assert!(narrow <= energy + 2, "{energy} iterations, {narrow} where half the precision is allowed");
    // Flat elements keep full precision; where there are none, it is not needed.
    assert_eq!(in_half.narrow_work_len(), 0);
    let plain = generate::poisson2d(40, 50).unwrap().to_backend(backend).unwrap();
    let plain = Multigrid::new(backend, &plain, &options().boxes(false).narrow(true)).unwrap();
    assert!(plain.narrow_work_len() > 0);
    // New values: as a hierarchy of their own.
    let n = a.rows();
    let applied = |m: &Multigrid<f64, B>| {
        let r = backend.upload(Random(9).vector::<f64>(n)).unwrap();
        let mut z = backend.zeros::<f64>(n).unwrap();
        m.apply(backend, &r, &mut z).unwrap();
        backend.download(&z).unwrap()
    };
    let (before, mut m) = (applied(&m), m);
    m.update(backend, &a).unwrap();
    assert_eq!(before, applied(&m));
}

pub fn what_has_no_prolongation_of_least_energy<B: Able>(backend: &B) {
    let a = generate::tridiagonal(1000).unwrap().to_backend(backend).unwrap();
    let least = options().prolongation(Prolongation::LeastEnergy);
    for refused in [least.clone().unknowns_a_node(2), least.clone().real_eigenvalues(false)] {
        assert!(matches!(Multigrid::new(backend, &a, &refused), Err(Error::Unsupported(_))));
    }
    let given = Multigrid::with_near_null(backend, &a, 1, vec![1.0; 1000], &least);
    assert!(matches!(given, Err(Error::Unsupported(_))));
}

/// D^H A D with a diagonal D of modulus 1 is Hermitian, and as hard as A.
pub fn complex_values<B: Able>(backend: &B) {
    let a = generate::poisson2d(60, 60).unwrap();
    let turned = |i: usize| Complex::from_polar(1.0, 0.3 * (i % 60) as f64);
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..a.rows() {
        let (columns, entries) = a.row(i);
        indices.extend_from_slice(columns);
        values.extend(columns.iter().zip(entries).map(|(&j, &v)| turned(i).conj() * v * turned(j as usize)));
        offsets.push(indices.len());
    }
    let null: Vec<Complex<f64>> = (0..a.rows()).map(|i| turned(i).conj()).collect();
    let a = Csr::from_parts(3600, 3600, offsets, indices, values).unwrap().to_backend(backend).unwrap();
    let m = Multigrid::with_near_null(backend, &a, 1, null, &options()).unwrap();
    let took = solved(backend, &a, &m);
    assert!(took <= 12, "{took} iterations");
}

pub fn new_values<B: Able>(backend: &B) {
    let a = generate::poisson2d(80, 80).unwrap();
    let of = |a: &Csr<f64>| Multigrid::new(backend, &a.to_backend(backend).unwrap(), &options()).unwrap();
    let applied = |m: &Multigrid<f64, B>| {
        let r = backend.upload(Random(9).vector::<f64>(6400)).unwrap();
        let mut z = backend.zeros::<f64>(6400).unwrap();
        m.apply(backend, &r, &mut z).unwrap();
        backend.download(&z).unwrap()
    };
    let scaled = a.map(|value| 2.0 * value);
    let mut m = of(&a);
    m.update(backend, &scaled.to_backend(backend).unwrap()).unwrap();
    assert_eq!(applied(&m), applied(&of(&scaled)));
    assert!(m.update(backend, &generate::poisson2d(8, 8).unwrap().to_backend(backend).unwrap()).is_err());
}

/// From the second new values on, numbers alone are computed: with the bits of a hierarchy that is made anew.
pub fn new_values_on_kept_patterns<B: Able>(backend: &B) {
    kept_patterns(
        backend,
        &shuffled(&generate::poisson3d(14, 15, 16).unwrap()),
        1,
        "7 points in random order",
    );
    kept_patterns(backend, &generate::anisotropic2d(60, 50, 1e-2).unwrap(), 1, "anisotropic");
    kept_patterns(backend, &triangles(40), 1, "flat triangles");
    kept_patterns(backend, &generate::helmholtz_absorbing([10, 10, 10], 20.0).unwrap(), 1, "complex");
    kept_patterns(backend, &generate::elasticity3d(6, 6, 6, 0.3).unwrap(), 3, "nodes of three unknowns");
    let mut m =
        Multigrid::new(backend, &generate::poisson2d(9, 9).unwrap().to_backend(backend).unwrap(), &options())
            .unwrap();
    let other = generate::poisson2d_9(9, 9).unwrap().to_backend(backend).unwrap();
    assert!(m.update(backend, &other).is_err(), "another pattern");
}

fn kept_patterns<T: Scalar, B: Able>(backend: &B, a: &Csr<T>, unknowns: usize, what: &str) {
    let n = a.rows();
    let on = |a: &Csr<T>| a.to_backend(backend).unwrap();
    let applied = |m: &Multigrid<T, B>| {
        let r = backend.upload(Random(9).vector::<T>(n)).unwrap();
        let mut z = backend.zeros::<T>(n).unwrap();
        m.apply(backend, &r, &mut z).unwrap();
        backend.download(&z).unwrap()
    };
    // Strong couplings stay strong: as strong as before, for powers of two.
    let times = |factor: f64| a.map(|value| value * T::from_f64(factor));
    for (smoothing, narrow) in [
        (Smoothing::Diagonal, true),
        (Smoothing::Blocks, false),
        (Smoothing::Blocks, true),
        (Smoothing::Diagonal, false),
    ] {
        let options = options().boxes(false).narrow(narrow).coarsest_rows(50).smoothing(smoothing);
        let options = options.unknowns_a_node(unknowns);
        let fresh = |a: &Csr<T>| Multigrid::new(backend, &on(a), &options).unwrap();
        let mut m = fresh(a);
        assert!(m.facts().levels.len() > 1, "{what}: {}", m.facts());
        for factor in [2.0, 0.5, 8.0, 1.0] {
            let new = times(factor);
            m.update(backend, &on(&new)).unwrap();
            let expected = fresh(&new);
            assert_eq!(m.facts(), expected.facts(), "{what}");
            assert!(
                applied(&m) == applied(&expected),
                "{what}, {smoothing:?}, narrow {narrow}, times {factor}"
            );
        }
        // Other values altogether, and back.
        let diagonal = |i: usize, j: usize| if i == j { 1.5 } else { 1.0 };
        let entries = a.iter().map(|(i, j, value)| value * T::from_f64(diagonal(i, j)));
        let mut other = a.map(|value| value);
        other.values_mut().copy_from_slice(&entries.collect::<Vec<_>>());
        m.update(backend, &on(&other)).unwrap();
        let once = applied(&m);
        assert!(once != applied(&fresh(a)), "{what}: new values have no effect");
        m.update(backend, &on(&times(-1.0))).unwrap();
        m.update(backend, &on(&other)).unwrap();
        assert!(once == applied(&m), "{what}, {smoothing:?}: what came between shows");
        // As many entries in other places.
        let mut columns: Vec<u32> = a.iter().map(|(_, j, _)| j as u32).collect();
        let offsets: Vec<usize> = (0..=n)
            .scan(0, |end, i| {
                let start = *end;
                *end += if i < n { a.row(i).0.len() } else { 0 };
                Some(start)
            })
            .collect();
        let last = offsets[1] - 1;
        assert!((columns[last] as usize) < n - 1);
        columns[last] = n as u32 - 1;
        let values = a.iter().map(|(.., value)| value).collect();
        let moved = Csr::from_parts(n, n, offsets, columns, values).unwrap();
        assert!(m.update(backend, &on(&moved)).is_err(), "{what}: another pattern is taken");
        assert!(once == applied(&m), "{what}: a matrix that is refused leaves traces");
    }
}

pub fn small_and_strange<B: Able>(backend: &B) {
    let of = |a: &Csr<f64>| {
        let a = a.to_backend(backend).unwrap();
        Multigrid::new(backend, &a, &options().coarsest_rows(10)).map(|m| solved(backend, &a, &m))
    };
    assert_eq!(of(&Csr::identity(0).unwrap()).unwrap(), 0);
    assert!(of(&Csr::identity(1).unwrap()).unwrap() <= 1);
    // No couplings at all, and one unknown without any among others.
    assert!(of(&Csr::from_diagonal((1..2000).map(f64::from).collect()).unwrap()).unwrap() < 150);
    assert!(of(&generate::arrow(500).unwrap()).unwrap() < 60);
    assert!(of(&generate::tridiagonal(3001).unwrap()).unwrap() < 25);
    let infinite = Csr::from_diagonal(vec![1.0, f64::INFINITY]).unwrap();
    assert!(matches!(of(&infinite), Err(Error::InvalidMatrix(_))));
    // Entries whose squares overflow are finite all the same.
    let large = generate::poisson2d(40, 40).unwrap().map(|value: f64| value * 1e160);
    let large = large.to_backend(backend).unwrap();
    Multigrid::new(backend, &large, &options().boxes(false).narrow(false)).unwrap();
    let wide = Csr::from_parts(1, 2, vec![0, 1], vec![1], vec![1.0]).unwrap();
    assert!(matches!(of(&wide), Err(Error::Dimension { .. })));
    let a = generate::poisson2d(4, 4).unwrap().to_backend(backend).unwrap();
    for bad in [options().steps(0), options().strength(2.0), options().most_entries(f64::NAN)] {
        assert!(matches!(Multigrid::new(backend, &a, &bad), Err(Error::InvalidArgument(_))));
    }
}

/// M^-1 is Hermitian to rounding: u.M^-1 v = v.M^-1 u.
pub fn hermitian<B: Able>(backend: &B) {
    let a = generate::jumping([20, 20, 20], 1e3, 4, 5).unwrap();
    let m = Multigrid::new(backend, &a.to_backend(backend).unwrap(), &options()).unwrap();
    let mut random = Random(11);
    let (u, v) = (random.vector::<f64>(8000), random.vector::<f64>(8000));
    let applied = |r: &[f64]| {
        let r = backend.upload(r.to_vec()).unwrap();
        let mut z = backend.zeros::<f64>(8000).unwrap();
        m.apply(backend, &r, &mut z).unwrap();
        backend.download(&z).unwrap()
    };
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (one, other, size) = (dot(&u, &applied(&v)), dot(&v, &applied(&u)), dot(&u, &applied(&u)));
    assert!((one - other).abs() < 1e-12 * size && size > 0.0, "{one} {other} {size}");
}

/// Upwind differences at cell Peclet numbers of 1 and 20: eigenvalues that are not real.
pub fn convection<B: Able>(backend: &B) {
    let n = 32 * 32 * 32;
    for (diffusion, most) in [(1.0 / 32.0, 24), (1.0 / 640.0, 45)] {
        let host = generate::convection_diffusion([32, 32, 32], diffusion).unwrap();
        let a = host.to_backend(backend).unwrap();
        let options = options().narrow(true).real_eigenvalues(false);
        let m = Multigrid::new(backend, &a, &options).unwrap();
        assert!(m.facts().grid);
        let x = backend.upload(Random(7).vector::<f64>(n)).unwrap();
        let mut b = backend.zeros::<f64>(n).unwrap();
        a.product(backend, 1.0, &x, 0.0, &mut b).unwrap();
        let mut gmres = Gmres::new(backend, n, 30, SolveOptions::default().max_iterations(200)).unwrap();
        let mut x = backend.zeros::<f64>(n).unwrap();
        let report = gmres.solve(&a, &m, &b, &mut x, |_, _| ControlFlow::Continue(())).unwrap();
        assert!(matches!(report.outcome, Outcome::Converged), "{}", report.outcome);
        assert!(report.iterations <= most, "{} iterations, at most {most} are expected", report.iterations);
    }
}

/// The host's hierarchy: the same whatever the number of threads.
#[allow(dead_code)] // on the host only
pub fn the_same_bits(_: &Host) {
    let a = generate::jumping([24, 24, 24], 1e6, 6, 2).unwrap();
    let applied = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let m = Multigrid::new(&Host, &a, &options()).unwrap();
            let r = Random(13).vector::<f64>(a.rows());
            let mut z = vec![0.0; a.rows()];
            m.apply(&Host, &r, &mut z).unwrap();
            z
        })
    };
    let one = applied(1);
    for threads in [1, 2, 3, 8] {
        assert!(one == applied(threads), "{threads} threads");
    }
}

/// The same matrix with its rows and columns in random order.
fn shuffled(a: &Csr<f64>) -> Csr<f64> {
    graph::permute_symmetric(a, &Permutation::random(a.rows(), 5).unwrap()).unwrap()
}

fn sorted(n: usize, mut triplets: Vec<(usize, usize, f64)>) -> Csr<f64> {
    triplets.sort_by_key(|&(i, j, _)| (i, j));
    let offsets = (0..=n).map(|row| triplets.partition_point(|&(i, _, _)| i < row)).collect();
    let columns = triplets.iter().map(|&(_, j, _)| j as u32).collect();
    Csr::from_parts(n, n, offsets, columns, triplets.into_iter().map(|(_, _, value)| value).collect())
        .unwrap()
}
