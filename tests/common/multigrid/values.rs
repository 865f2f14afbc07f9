//! Cases of values: rounded, complex, of a shared matrix, and new ones.

use super::matrices::{shuffled, times, triangles};
use super::{Able, applied, iterations, options, solved};
use num_complex::Complex;
use residua::multigrid::{Multigrid, Smoothing};
use residua::precondition::Preconditioner;
use residua::{Csr, Error, Scalar, generate};
use std::sync::Arc;

pub fn half_the_precision<B: Able>(backend: &B) {
    let a = generate::poisson3d(24, 24, 24).unwrap();
    let full = iterations(backend, &a, &options());
    let narrow = iterations(backend, &a, &options().narrow(true));
    assert!(narrow <= full + 1, "{full} iterations, {narrow} with a hierarchy of half the precision");
}

/// D^H A D with a diagonal D of modulus 1 is Hermitian, and as hard as A.
pub fn complex_values<B: Able>(backend: &B) {
    let a = generate::poisson2d(60, 60).unwrap();
    let a = a.map(|value| Complex::new(value, 0.0));
    let turned = |i: usize| Complex::from_polar(1.0, 0.3 * (i % 60) as f64);
    let turned_back = |i: usize| turned(i).conj();
    let null: Vec<Complex<f64>> = (0..a.rows()).map(turned_back).collect();
    let a = times(&a, turned_back, turned).to_backend(backend).unwrap();
    let m = Multigrid::with_near_null(backend, &a, 1, null, &options()).unwrap();
    let took = solved(backend, &a, &m);
    assert!(took <= 12, "{took} iterations");
}

/// If a cycle is in full precision, A is stored only once; smoothing and transfer between levels are in half.
pub fn a_shared_matrix<B: Able>(backend: &B) {
    let a = triangles(110);
    let on = |a: &Csr<f64>| a.to_backend(backend).unwrap();
    // With a small coarsest level, whose inverse is not tested here.
    let options = || options().boxes(false).coarsest_rows(50);
    let fresh = |a: &Csr<f64>| Multigrid::new(backend, &on(a), &options()).unwrap();
    let mut m = fresh(&a);
    let (before, bytes) = (applied(backend, &m), m.storage_bytes());
    m.share(Arc::new(on(&a))).unwrap();
    assert_eq!(bytes - m.storage_bytes(), a.storage_bytes());
    assert_eq!(before, applied(backend, &m));
    let beside = (m.storage_bytes() + m.work_len() * size_of::<f64>()) as f64 / a.storage_bytes() as f64;
    assert!(beside < 2.5, "{beside} times the memory of the matrix");
    // New values, and a shared matrix again.
    let scaled = a.map(|value| 2.0 * value);
    let expected = applied(backend, &fresh(&scaled));
    for _ in 0..2 {
        m.update(backend, &on(&scaled)).unwrap();
        assert_eq!(applied(backend, &m), expected);
    }
    m.share(Arc::new(on(&scaled))).unwrap();
    assert_eq!(applied(backend, &m), expected);
    m.update(backend, &on(&a)).unwrap();
    assert_eq!(applied(backend, &m), before);
    let other = generate::poisson2d(8, 8).unwrap();
    assert!(matches!(m.share(Arc::new(on(&other))), Err(Error::Dimension { .. })));
    // A rounded matrix is not the matrix itself.
    let plain = generate::poisson2d(60, 50).unwrap();
    let mut m = Multigrid::new(backend, &on(&plain), &options().narrow(true)).unwrap();
    let bytes = m.storage_bytes();
    m.share(Arc::new(on(&plain))).unwrap();
    assert_eq!(bytes, m.storage_bytes());
}

pub fn new_values<B: Able>(backend: &B) {
    let a = generate::poisson2d(80, 80).unwrap();
    let of = |a: &Csr<f64>| Multigrid::new(backend, &a.to_backend(backend).unwrap(), &options()).unwrap();
    let scaled = a.map(|value| 2.0 * value);
    let mut m = of(&a);
    m.update(backend, &scaled.to_backend(backend).unwrap()).unwrap();
    assert_eq!(applied(backend, &m), applied(backend, &of(&scaled)));
    assert!(m.update(backend, &generate::poisson2d(8, 8).unwrap().to_backend(backend).unwrap()).is_err());
}

/// From the second update on, only numbers are computed, with the bits of a new hierarchy.
pub fn new_values_on_kept_patterns<B: Able>(backend: &B) {
    kept_patterns(
        backend,
        &shuffled(&generate::poisson3d(14, 15, 16).unwrap()),
        1,
        "7 points in random order",
    );
    kept_patterns(backend, &generate::anisotropic2d(60, 50, 1e-2).unwrap(), 1, "anisotropic");
    kept_patterns(backend, &triangles(40), 1, "flat triangles");
    let turned = |i: usize| Complex::from_polar(1.0, 0.02 * (i % 50) as f64);
    let complex = generate::poisson2d(50, 40).unwrap().map(|value| Complex::new(value, 0.0));
    let complex = times(&complex, |i| turned(i).conj(), turned);
    kept_patterns(backend, &complex, 1, "complex");
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
    // Scaling the values does not change which connections are strong; powers of two do not even change rounding.
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
                applied(backend, &m) == applied(backend, &expected),
                "{what}, {smoothing:?}, narrow {narrow}, times {factor}"
            );
        }
        // Entirely different values, and back.
        let diagonal = |i: usize, j: usize| if i == j { 1.5 } else { 1.0 };
        let entries = a.iter().map(|(i, j, value)| value * T::from_f64(diagonal(i, j)));
        let mut other = a.map(|value| value);
        other.values_mut().copy_from_slice(&entries.collect::<Vec<_>>());
        m.update(backend, &on(&other)).unwrap();
        let once = applied(backend, &m);
        assert!(once != applied(backend, &fresh(a)), "{what}: new values have no effect");
        m.update(backend, &on(&times(-1.0))).unwrap();
        m.update(backend, &on(&other)).unwrap();
        assert!(once == applied(backend, &m), "{what}, {smoothing:?}: what came between shows");
        // The same number of entries in other positions.
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
        assert!(once == applied(backend, &m), "{what}: a matrix that is refused leaves traces");
    }
}
