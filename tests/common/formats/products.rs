//! Products of every format, compared with the sequential reference.

use super::cases::{entries, on, ragged, reference, to_complex};
use crate::random::Random;
use num_complex::Complex;
use residua::Csr;
use residua::backend::{Conversions, Op, Products, VectorOps};
use residua::matrix::{self, Sell, SparseMatrix};
use residua::scalar::{Promote, Scalar};

/// A matrix in any format.
pub type Stored<T, B, V> = Box<dyn SparseMatrix<T, B, V>>;

/// The matrix in every format that can store it, and in SELL with other slices.
pub fn stored<V: Scalar + Promote<T>, T: Scalar, B: Products + Conversions>(
    backend: &B,
    a: &Csr<V, B>,
) -> Vec<(String, Stored<T, B, V>)> {
    let mut all: Vec<(String, Stored<T, B, V>)> = Vec::new();
    for format in matrix::formats::<T, B, V>() {
        if let Ok(stored) = format.build(backend, a) {
            all.push((format.name().into(), stored));
        }
    }
    for (height, window) in [(1, 1), (4, 1), (8, 64), (16, 128), (7, 21)] {
        if let Ok(sell) = Sell::with_chunks(backend, a, height, window) {
            all.push((format!("sell-{height}-{window}"), Box::new(sell)));
        }
    }
    all
}

/// Products with op(A), with and without y, compared with a sum entry by entry.
pub fn products<V: Scalar + Promote<T>, T: Scalar, B: Products + Conversions>(backend: &B) {
    products_of::<V, T, B>(
        backend,
        ragged(),
        &[(1.0, 0.0), (1.0, 1.0), (-1.5, 0.25), (0.0, 2.0), (0.0, 0.0)],
    );
}

/// Checks products with these matrices, alphas and betas.
pub fn products_of<V: Scalar + Promote<T>, T: Scalar, B: Products + Conversions>(
    backend: &B,
    matrices: Vec<(&str, Csr<V>)>,
    factors: &[(f64, f64)],
) {
    let mut random = Random(7);
    for (name, host) in matrices {
        let a = on(backend, &host);
        let entries = entries(&host);
        for (format, matrix) in stored::<V, T, B>(backend, &a) {
            for op in [Op::None, Op::Transpose, Op::Conjugate, Op::ConjugateTranspose] {
                let (rows, columns) =
                    if op.transposes() { (a.columns(), a.rows()) } else { (a.rows(), a.columns()) };
                for &(alpha, beta) in factors {
                    let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
                    let x: Vec<T> = random.vector(columns);
                    let old: Vec<T> = if beta == T::zero() {
                        vec![T::from_f64(f64::NAN); rows]
                    } else {
                        random.vector(rows)
                    };
                    let device_x = backend.upload(x.clone()).unwrap();
                    let mut y = backend.upload(old.clone()).unwrap();
                    matrix.product_op(backend, op, alpha, &device_x, beta, &mut y).unwrap();
                    let y = backend.download(&*y).unwrap();
                    let form = (op.transposes(), op.conjugates());
                    let old = (beta != T::zero()).then_some(&old[..]);
                    let expected =
                        reference((a.rows(), a.columns()), &entries, form, (alpha, &x), (beta, old));
                    for (i, (&got, want)) in y.iter().zip(&expected).enumerate() {
                        let off = (to_complex(got) - want.value).norm();
                        assert!(
                            off <= want.bound,
                            "{format} of {name}, {op:?}, alpha {alpha}, beta {beta}: element {i} is {got}, \
                             expected {}, bound {}",
                            want.value,
                            want.bound
                        );
                    }
                }
            }
        }
    }
}

/// An infinite or NaN element of x affects the rows that refer to it, and no other: padding is not multiplied.
pub fn padding_never_meets_x<B: Products + Conversions>(backend: &B) {
    for (name, host) in ragged::<f64>() {
        for poison in [f64::INFINITY, f64::NAN] {
            let mut x = vec![1.0; host.columns()];
            // Padding has column index 0.
            let poisoned: Vec<usize> = [0, host.columns() / 2].into_iter().filter(|&j| j < x.len()).collect();
            poisoned.iter().for_each(|&j| x[j] = poison);
            let mut hit = vec![false; host.rows()];
            entries(&host).iter().filter(|e| poisoned.contains(&e.1)).for_each(|e| hit[e.0] = true);
            let x = backend.upload(x).unwrap();
            for (format, matrix) in stored::<f64, f64, B>(backend, &on(backend, &host)) {
                let mut y = backend.zeros(host.rows()).unwrap();
                matrix.product(backend, 1.0, &x, 0.0, &mut y).unwrap();
                let y = backend.download(&*y).unwrap();
                for (i, (&y, &hit)) in y.iter().zip(&hit).enumerate() {
                    assert_eq!(!y.is_finite(), hit, "{format} of {name}: row {i} is {y}");
                }
            }
        }
    }
}

/// The fused product and dot product give the same y = A x as the plain product, and x.y within rounding.
pub fn fused<T: Scalar, B: Products + Conversions + VectorOps>(backend: &B) {
    fused_of::<T, B>(backend, ragged());
}

/// Checks the fused product and dot product for those matrices that are square.
pub fn fused_of<T: Scalar, B: Products + Conversions + VectorOps>(
    backend: &B,
    matrices: Vec<(&str, Csr<T>)>,
) {
    let mut random = Random(9);
    for (name, host) in matrices.into_iter().filter(|(_, a)| a.rows() == a.columns()) {
        let x: Vec<T> = random.vector(host.columns());
        let device_x = backend.upload(x.clone()).unwrap();
        for (format, matrix) in stored::<T, T, B>(backend, &on(backend, &host)) {
            let (mut y, mut fused) =
                (backend.zeros(host.rows()).unwrap(), backend.zeros(host.rows()).unwrap());
            let mut xy = backend.zeros(1).unwrap();
            matrix.apply(backend, &device_x, &mut y).unwrap();
            matrix.apply_dot(backend, &device_x, &mut fused, &mut xy).unwrap();
            let (y, fused) = (backend.download(&*y).unwrap(), backend.download(&*fused).unwrap());
            assert_eq!(y, fused, "{format} of {name}");
            let terms = x.iter().zip(&y).map(|(&x, &y)| to_complex(x.conj()) * to_complex(y));
            let (sum, size) = terms.fold((Complex::new(0.0, 0.0), 0.0), |(s, n), t| (s + t, n + t.norm()));
            let unit = if size_of::<T::Real>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            let off = (to_complex(backend.download(&*xy).unwrap()[0]) - sum).norm();
            assert!(
                off <= 4.0 * (x.len() as f64 + 2.0) * unit * size,
                "{format} of {name}: x.y off by {off}"
            );
        }
    }
}

/// Products with several vectors equal those with one vector at a time, up to rounding, for ragged matrices and any
/// number of vectors.
pub fn blocks<V: Scalar + Promote<T>, T: Scalar, B: Products + Conversions>(backend: &B) {
    blocks_of::<V, T, B>(backend, ragged());
}

/// Checks products with several vectors for these matrices.
pub fn blocks_of<V: Scalar + Promote<T>, T: Scalar, B: Products + Conversions>(
    backend: &B,
    matrices: Vec<(&str, Csr<V>)>,
) {
    let mut random = Random(31);
    for (name, host) in matrices {
        let (a, entries) = (on(backend, &host), entries(&host));
        for vectors in [1, 2, 3, 8, 17, 32] {
            for (alpha, beta) in [(1.0, 0.0), (-1.5, 0.25)] {
                let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
                let x: Vec<T> = random.vector(a.columns() * vectors);
                let old: Vec<T> = if beta == T::zero() {
                    vec![T::from_f64(f64::NAN); a.rows() * vectors]
                } else {
                    random.vector(a.rows() * vectors)
                };
                let (there, mut y) =
                    (backend.upload(x.clone()).unwrap(), backend.upload(old.clone()).unwrap());
                a.block_product(backend, vectors, alpha, &there, beta, &mut y).unwrap();
                let y = backend.download(&*y).unwrap();
                for vector in 0..vectors {
                    let one =
                        |block: &[T]| block.iter().skip(vector).step_by(vectors).copied().collect::<Vec<T>>();
                    let (x, old) = (one(&x), one(&old));
                    let old = (beta != T::zero()).then_some(&old[..]);
                    let want = reference(
                        (a.rows(), a.columns()),
                        &entries,
                        (false, false),
                        (alpha, &x),
                        (beta, old),
                    );
                    for (i, (&got, want)) in one(&y).iter().zip(&want).enumerate() {
                        let off = (to_complex(got) - want.value).norm();
                        assert!(off <= want.bound, "{name}, vector {vector} of {vectors}: row {i} is {got}");
                    }
                }
            }
        }
        assert!(
            a.block_product(
                backend,
                0,
                T::one(),
                &backend.zeros(0).unwrap(),
                T::zero(),
                &mut backend.zeros(0).unwrap()
            )
            .is_err()
        );
    }
}
