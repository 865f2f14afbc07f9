//! The levels of algebraic multigrid equal the host's on every backend.

use super::matrices::{shuffled, sorted, triangles};
use super::scaled::in_units;
use super::{Able, options};
use crate::random::Random;
use residua::generate;
use residua::multigrid::{Coarsening, Multigrid, MultigridOptions, Smoothing};
use residua::precondition::Preconditioner;
use residua::scalar::Real;
use residua::{Csr, Host, Scalar};

/// Levels, their entries, and the result of a cycle equal those of the host.
pub fn the_hierarchy_of_the_host<B: Able>(backend: &B) {
    same_hierarchy(backend, &generate::anisotropic2d(90, 70, 1e-2).unwrap(), "anisotropic");
    same_hierarchy(backend, &shuffled(&generate::poisson3d(14, 15, 16).unwrap()), "7 points in random order");
    same_hierarchy(backend, &generate::wathen(18, 22, 3).unwrap(), "Wathen's matrix");
    same_hierarchy(backend, &star_of_lines(40, 60), "lines that meet in one node");
    same_hierarchy(backend, &star_of_lines(400, 7), "so many lines that a row of A is long");
    same_hierarchy(backend, &star_of_lines(2500, 3), "so many that a block reads the row piece by piece");
    same_hierarchy(backend, &wide_band(900, 61), "many neighbours");
    same_hierarchy(
        backend,
        &wide_band(1300, 560),
        "so many neighbours that a block reads each row in pieces",
    );
    let shifted = generate::helmholtz_absorbing([12, 12, 12], 20.0).unwrap();
    same_hierarchy(backend, &shifted, "complex");
    same_hierarchy(backend, &triangles(40), "flat triangles");
    same_hierarchy(backend, &in_units(&triangles(40)), "flat triangles, unknowns in other units");
    same_classical_hierarchies(backend);
    same_hierarchies_of_nodes(backend);
    exponents_and_flags(backend);
    // Two vectors with one unknown per node: the prolongation is smoothed by a product of matrices.
    let a = generate::poisson2d(40, 30).unwrap();
    let vectors: Vec<f64> = (0..a.rows()).flat_map(|i| [1.0, (i % 40) as f64 / 40.0]).collect();
    let options = options().coarsest_rows(50);
    let there = a.to_backend(backend).unwrap();
    let here = Multigrid::with_near_null(&Host, &a, 2, vectors.clone(), &options).unwrap();
    let there = Multigrid::with_near_null(backend, &there, 2, vectors, &options).unwrap();
    same_cycle(backend, (&here, &there), "two vectors");
}

/// Nodes of several unknowns: of a good mesh, of flat tetrahedra, whose stiff nodes stay, and of flat triangles with
/// complex values, where the last node has fewer unknowns.
fn same_hierarchies_of_nodes<B: Able>(backend: &B) {
    let of_three = options().narrow(false).coarsest_rows(50).unknowns_a_node(3);
    same_hierarchy_with(backend, &generate::elasticity3d(7, 6, 8, 0.3).unwrap(), &of_three, "elasticity");
    let tetrahedra = generate::elasticity_mesh([9, 10, 11], 0.3, 5).unwrap();
    for smoothing in [Smoothing::Diagonal, Smoothing::Blocks] {
        same_hierarchy_with(backend, &tetrahedra, &of_three.clone().smoothing(smoothing), "tetrahedra");
    }
    let triangles = triangles(40);
    let complex = |value: f64| num_complex::Complex::new(value, 0.0);
    let odd = of_three.clone().unknowns_a_node(3).real_eigenvalues(true);
    assert!(!triangles.rows().is_multiple_of(3));
    same_hierarchy_with(backend, &triangles.map(complex), &odd, "triangles, three to a node");
    let elements = [6, 7, 5];
    let a = generate::elasticity3d(elements[0], elements[1], elements[2], 0.3).unwrap();
    let n = a.rows();
    // The last two vectors are the first and the second on all nodes, so that bases have fewer vectors.
    let vectors: Vec<f64> = (0..n)
        .flat_map(|i| {
            let one = |axis: usize| f64::from(u8::from(i % 3 == axis));
            [one(0), one(1), one(2), 2.0 * one(0), (i / 3 % 6) as f64 * one(1), one(1)]
        })
        .collect();
    let there = a.to_backend(backend).unwrap();
    let here = Multigrid::with_near_null(&Host, &a, 6, vectors.clone(), &of_three).unwrap();
    let mut there = Multigrid::with_near_null(backend, &there, 6, vectors, &of_three).unwrap();
    same_cycle(backend, (&here, &there), "dependent vectors");
    // New values on kept patterns are those of a new hierarchy.
    for times in [2.0, 4.0, 1.0] {
        there.update(backend, &a.map(|value| times * value).to_backend(backend).unwrap()).unwrap();
    }
    same_cycle(backend, (&here, &there), "dependent vectors, new values");
}

/// Classical levels: with few and with many weights, and with more coarse unknowns around a row than the tables of a
/// device can hold at first.
fn same_classical_hierarchies<B: Able>(backend: &B) {
    let shifted = generate::helmholtz_absorbing([12, 12, 12], 20.0).unwrap();
    let one = options().boxes(false).narrow(false).coarsest_rows(50).coarsening(Coarsening::Classical);
    let few = [one.clone(), one.clone().weights(12).strength(0.01), one.clone().most_entries(1.2)];
    for (a, what) in [
        (generate::jumping([14, 15, 16], 1e6, 3, 1).unwrap(), "jumps"),
        (shuffled(&generate::poisson3d_27(12, 13, 14).unwrap()), "27 points in random order"),
        (generate::wathen(18, 22, 3).unwrap(), "Wathen's matrix"),
        (star_of_lines(400, 7), "a hub"),
        (wide_band(900, 61), "long rows"),
    ] {
        few.iter().for_each(|options| same_hierarchy_with(backend, &a, options, what));
    }
    same_hierarchy_with(backend, &shifted, &one, "complex");
    let wind = generate::convection_diffusion([12, 13, 14], 1e-2).unwrap();
    same_hierarchy_with(backend, &wind, &one.clone().real_eigenvalues(false), "convection");
    same_hierarchy_with(backend, &wind, &one.weights(40), "more weights than lanes");
}

/// Rows of up to 2 `reach` + 1 entries, with couplings of different sizes.
fn wide_band(n: usize, reach: usize) -> Csr<f64> {
    let mut random = Random(8);
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for j in i.saturating_sub(reach)..(i + reach + 1).min(n) {
            columns.push(j as u32);
            values.push(if i == j { 2.0 * reach as f64 } else { -1.0 + 0.5 * random.signed() });
        }
        offsets.push(columns.len());
    }
    Csr::from_parts(n, n, offsets, columns, values).unwrap()
}

/// Exponents of numbers, and which of them are large, compared with a loop over powers of two.
fn exponents_and_flags<B: Able>(backend: &B) {
    let mut random = Random(4);
    let mut x: Vec<f64> = (0..1000).map(|_| 2.0_f64.powf(900.0 * random.signed())).collect();
    x.extend([0.0, 1.0, 2.0, 1.999_999, 0.5, f64::MIN_POSITIVE, f64::MAX]);
    let exponent =
        |x: f64| (0..2047).rev().find(|&e| e > 0 && x >= 2.0_f64.powi(e - 1023)).unwrap_or(0) as u32;
    let expected: Vec<u32> = x.iter().map(|&x| exponent(x)).collect();
    let mut exponents = backend.zeros::<u32>(x.len()).unwrap();
    backend.exponents::<f64>(&backend.upload(x).unwrap(), &mut exponents).unwrap();
    assert_eq!(backend.download(&exponents).unwrap(), expected);
    let mut flags = backend.zeros::<u8>(expected.len()).unwrap();
    backend.flags_from(&exponents, 1023, &mut flags).unwrap();
    let expected: Vec<u8> = expected.iter().map(|&exponent| u8::from(exponent >= 1023)).collect();
    assert_eq!(backend.download(&flags).unwrap(), expected);
}

fn same_hierarchy<T: Scalar, B: Able>(backend: &B, a: &Csr<T>, what: &str) {
    for smoothing in [Smoothing::Diagonal, Smoothing::Blocks] {
        let options = options().boxes(false).narrow(false).coarsest_rows(50).smoothing(smoothing);
        same_hierarchy_with(backend, a, &options, &format!("{what}, {smoothing:?}"));
    }
}

fn same_hierarchy_with<T: Scalar, B: Able>(backend: &B, a: &Csr<T>, options: &MultigridOptions, what: &str) {
    let here = Multigrid::new(&Host, a, options).unwrap();
    let there = Multigrid::new(backend, &a.to_backend(backend).unwrap(), options).unwrap();
    same_cycle(backend, (&here, &there), what);
}

fn same_cycle<T: Scalar, B: Able>(
    backend: &B,
    (here, there): (&Multigrid<T, Host>, &Multigrid<T, B>),
    what: &str,
) {
    assert_eq!(here.facts(), there.facts(), "{what}");
    assert!(here.facts().levels.len() > 1, "{what}: {}", here.facts());
    let n = here.facts().levels[0].rows;
    let r = Random(3).vector::<T>(n);
    let mut expected = vec![T::zero(); n];
    here.apply(&Host, &r, &mut expected).unwrap();
    let mut z = backend.zeros(n).unwrap();
    there.apply(backend, &backend.upload(r).unwrap(), &mut z).unwrap();
    let z = backend.download(&z).unwrap();
    let norm = |v: &mut dyn Iterator<Item = T>| v.map(|v| v.abs().to_f64().powi(2)).sum::<f64>().sqrt();
    let off = norm(&mut z.iter().zip(&expected).map(|(&z, &e)| z - e));
    // A value of half the precision may be rounded in the other direction.
    assert!(off <= 1e-8 * norm(&mut expected.iter().copied()), "{what}: off by {off:e}");
}

/// Lines of `length` nodes that all begin at one node, and one node without couplings.
fn star_of_lines(lines: usize, length: usize) -> Csr<f64> {
    let n = lines * length + 2;
    let mut triplets: Vec<_> = (0..n).map(|i| (i, i, 2.1)).collect();
    triplets[0].2 = lines as f64 + 0.1;
    for line in 0..lines {
        for k in 0..length {
            let i = 1 + line * length + k;
            let before = if k == 0 { 0 } else { i - 1 };
            triplets.extend([(i, before, -1.0), (before, i, -1.0)]);
        }
    }
    sorted(n, triplets)
}
