//! Matrices on grids of points: which of them get grids as levels, and their numbers of iterations.

use super::matrices::{shuffled, sorted};
use super::{Able, at_most, iterations, options, solved, solved_by_gmres};
use residua::multigrid::Multigrid;
use residua::{Csr, generate};

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

pub fn iterations_do_not_grow<B: Able>(backend: &B) {
    let of = |k| iterations(backend, &generate::poisson3d(k, k, k).unwrap(), &options());
    let (small, large) = (of(16), of(48));
    assert!(large <= small + 3, "{small} iterations for 16^3, {large} for 48^3");
}

/// Grids in space that are not treated as grids have few entries on coarser levels.
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

/// Couplings that are equally strong along all axes in total, but not at any point: boxes are not suitable.
pub fn strong_directions_of_points<B: Able>(backend: &B) {
    let (n, layer) = (60, 3600);
    // A strong direction along a diagonal (bilinear elements), 45 degrees.
    let mut turned = Vec::new();
    // Two layers, one strong along x and one along y, and the couplings between them.
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

/// Upwind differences at cell Peclet numbers of 1 and 20: eigenvalues that are not real.
pub fn convection<B: Able>(backend: &B) {
    for (diffusion, most) in [(1.0 / 32.0, 24), (1.0 / 640.0, 45)] {
        let host = generate::convection_diffusion([32, 32, 32], diffusion).unwrap();
        let a = host.to_backend(backend).unwrap();
        let options = options().narrow(true).real_eigenvalues(false);
        let m = Multigrid::new(backend, &a, &options).unwrap();
        assert!(m.facts().grid);
        let took = solved_by_gmres(backend, &a, &m);
        assert!(took <= most, "{took} iterations, at most {most} are expected");
    }
}
