//! Iteration on one small system: BiCGSTAB (van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992) with the diagonal as
//! preconditioner. `kernels/batch_krylov.cu` has the same steps.

use super::judge::{Solve, Vectors, exponent, power};
use super::rows::{Rows, products, residual};
use crate::backend::batch::ITERATIONS;
use crate::scalar::Scalar;

/// What is needed of one system, and its vectors.
#[derive(Debug, Default)]
pub(super) struct Iterated<D> {
    scales: Vec<f64>,
    /// The inverses of diagonal entries.
    inverses: Vec<D>,
    r: Vec<D>,
    shadow: Vec<D>,
    p: Vec<D>,
    v: Vec<D>,
    t: Vec<D>,
    /// What the preconditioner makes of p, and of r.
    direction: Vec<D>,
}

impl<D: Scalar<Real = f64>> Iterated<D> {
    /// Takes a system; returns false unless all entries are finite and every row has a nonzero one, within the range of
    /// powers of two.
    #[inline(always)]
    pub(super) fn load<T: Scalar<Double = D>>(
        &mut self,
        n: usize,
        rows: &Rows<'_, T>,
        vectors: &mut Vectors<D, 1>,
    ) -> bool {
        vectors.resize(n);
        self.scales.resize(n, 0.0);
        for vector in [
            &mut self.inverses,
            &mut self.r,
            &mut self.shadow,
            &mut self.p,
            &mut self.v,
            &mut self.t,
            &mut self.direction,
        ] {
            vector.resize(n, D::default());
        }
        let mut sound = true;
        for i in 0..n {
            let (mut most, mut finite) = (0.0_f64, true);
            rows.row(n, i).for_each(|_, value| {
                finite &= value.is_finite();
                most = most.max(super::judge::size(value.to_double()));
            });
            let found = exponent(most).filter(|_| finite);
            sound &= found.is_some();
            let raised = -found.unwrap_or(0);
            let (scale, mut square, mut diagonal) = (D::from_f64(power(raised)), 0.0, D::default());
            rows.row(n, i).for_each(|column, value| {
                let value = value.to_double() * scale;
                square += value.abs2();
                if column == i {
                    diagonal = value;
                }
            });
            self.scales[i] = power(raised);
            // A row without a diagonal entry is not preconditioned.
            self.inverses[i] = if diagonal == D::default() { D::one() } else { D::one() / diagonal };
            vectors.exponents[i] = [raised];
            vectors.norms[i] = [square.sqrt()];
        }
        sound
    }

    /// The system for [`Vectors::solve`].
    pub(super) fn of<'a, T: Scalar<Double = D>>(
        &'a mut self,
        rows: &'a Rows<'a, T>,
        relative: f64,
    ) -> System<'a, T, D> {
        System { iterated: self, rows, reduction: (0.1 * relative).max(1e-15), iterations: 0 }
    }
}

/// A system, and the number of its iterations so far.
pub(super) struct System<'a, T, D> {
    iterated: &'a mut Iterated<D>,
    rows: &'a Rows<'a, T>,
    /// How small r is to become relative to the right-hand side.
    reduction: f64,
    pub(super) iterations: u32,
}

fn dot<D: Scalar<Real = f64>>(a: &[D], b: &[D]) -> D {
    let mut sum = D::default();
    for i in 0..a.len() {
        sum += a[i].conj() * b[i];
    }
    sum
}

/// y = F A x.
#[inline(always)]
fn multiply<T: Scalar<Double = D>, D: Scalar<Real = f64>>(
    rows: &Rows<'_, T>,
    scales: &[f64],
    x: &[D],
    y: &mut [D],
) {
    for i in 0..y.len() {
        y[i] = products(rows.row(y.len(), i), scales[i], x).0;
    }
}

impl<T: Scalar<Double = D>, D: Scalar<Real = f64>> Solve<D, 1> for System<'_, T, D> {
    #[inline(always)]
    fn size(&self) -> usize {
        self.iterated.scales.len()
    }

    /// An x for which b - A x is as small as was asked for, unless the iterations are used up.
    #[inline(always)]
    fn solve(&mut self, b: &[[D; 1]], x: &mut [[D; 1]]) {
        let (n, b, x) = (self.size(), b.as_flattened(), x.as_flattened_mut());
        let Iterated { scales, inverses, r, shadow, p, v, t, direction } = &mut *self.iterated;
        x.fill(D::default());
        for own in [&mut *r, &mut *shadow, &mut *p] {
            own.copy_from_slice(b);
        }
        let mut rho = dot(r, r);
        let enough = self.reduction * self.reduction * rho.re();
        while self.iterations < ITERATIONS {
            self.iterations += 1;
            for i in 0..n {
                direction[i] = inverses[i] * p[i];
            }
            multiply(self.rows, scales, direction, v);
            let alpha = rho / dot(shadow, v);
            for i in 0..n {
                x[i] += alpha * direction[i];
                r[i] -= alpha * v[i];
                direction[i] = inverses[i] * r[i];
            }
            multiply(self.rows, scales, direction, t);
            let square = dot(t, t).re();
            let omega = if square > 0.0 { dot(t, r) * D::from_f64(1.0 / square) } else { D::default() };
            let mut left = 0.0;
            for i in 0..n {
                x[i] += omega * direction[i];
                r[i] -= omega * t[i];
                left += r[i].abs2();
            }
            // NaN ends it too.
            let goes_on = left > enough;
            if !goes_on {
                break;
            }
            let next = dot(shadow, r);
            let beta = next / rho * (alpha / omega);
            rho = next;
            for i in 0..n {
                p[i] = r[i] + beta * (p[i] - omega * v[i]);
            }
        }
    }

    #[inline(always)]
    fn residual(
        &self,
        i: usize,
        exponent: &[i32; 1],
        y: &[[D; 1]],
        b: &[D; 1],
        accurate: bool,
    ) -> ([D; 1], usize) {
        let (r, terms) = residual(self.rows, i, exponent[0], y.as_flattened(), b[0], accurate);
        ([r], terms)
    }
}
