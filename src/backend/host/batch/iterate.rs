//! Iteration on one small system: BiCGSTAB (van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992) or conjugate gradients
//! on what is left once some unknowns are eliminated, with its diagonal as preconditioner.
//! `kernels/batch_krylov.cu` has the same steps, and a picture of them.

use super::Way;
use super::judge::{Solve, Vectors, exponent, power};
use super::rows::{Row, Rows};
use crate::backend::batch::{BatchIteration, ITERATIONS, UNSCALED};
use crate::scalar::Scalar;

/// What is needed of one system, and its vectors, which have an entry for each row.
#[derive(Debug, Default)]
pub(super) struct Iterated<D> {
    /// The entries of F A, row by row, and where each row begins.
    entries: Vec<D>,
    starts: Vec<usize>,
    /// The inverses of the diagonals of the eliminated rows, and of what is left of the others.
    inverses: Vec<D>,
    r: Vec<D>,
    shadow: Vec<D>,
    p: Vec<D>,
    v: Vec<D>,
    t: Vec<D>,
    /// The vector that is multiplied.
    direction: Vec<D>,
}

impl<D: Scalar<Real = f64>> Iterated<D> {
    /// Takes a system; returns false unless all entries are finite and every row has a nonzero one, within the range of
    /// powers of two.
    #[inline(always)]
    pub(super) fn load<T: Scalar<Double = D>>(
        &mut self,
        way: Way<'_>,
        rows: &Rows<'_, T>,
        vectors: &mut Vectors<D, 1>,
    ) -> bool {
        let n = way.order.len();
        vectors.resize(n);
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
        let (mut sound, mut most) = (true, -i32::MAX);
        for i in 0..n {
            let (mut largest, mut finite) = (0.0_f64, true);
            rows.row(n, i).for_each(|_, value| {
                finite &= value.is_finite();
                largest = largest.max(super::judge::size(value.to_double()));
            });
            let found = exponent(largest).filter(|_| finite);
            sound &= found.is_some();
            vectors.exponents[i] = [-found.unwrap_or(0)];
            most = most.max(found.unwrap_or(0));
        }
        if way.iteration == BatchIteration::Cg {
            // All rows are scaled alike, so that F A is Hermitian if A is.
            for exponents in &mut vectors.exponents {
                sound &= most + exponents[0] < UNSCALED;
                *exponents = [-most];
            }
        }
        self.take(way, rows, vectors);
        sound
    }

    /// Takes the entries of F A, with the norms of its rows, and the inverses of diagonals.
    #[inline(always)]
    fn take<T: Scalar<Double = D>>(&mut self, way: Way<'_>, rows: &Rows<'_, T>, vectors: &mut Vectors<D, 1>) {
        let n = way.order.len();
        self.entries.clear();
        self.starts.clear();
        for i in 0..n {
            self.starts.push(self.entries.len());
            let (scale, mut square) = (D::from_f64(power(vectors.exponents[i][0])), 0.0);
            let (entries, diagonal) = (&mut self.entries, &mut self.inverses[i]);
            *diagonal = D::default();
            rows.row(n, i).for_each(|column, value| {
                let value = value.to_double() * scale;
                square += value.abs2();
                entries.push(value);
                if column == i {
                    *diagonal = value;
                }
            });
            vectors.norms[i] = [square.sqrt()];
        }
        self.starts.push(self.entries.len());
        let (gone, kept) = way.order.split_at(way.eliminated);
        // The inverses of eliminated rows, and zero elsewhere.
        self.direction.fill(D::default());
        for &i in gone {
            self.inverses[i as usize] = D::one() / self.inverses[i as usize];
            self.direction[i as usize] = self.inverses[i as usize];
        }
        for &i in kept {
            let (row, mut left) = (i as usize, self.inverses[i as usize]);
            for (k, &column) in columns(rows, n, row).iter().enumerate() {
                let by = self.direction[column as usize];
                if by != D::default() {
                    let across = columns(rows, n, column as usize).binary_search(&i);
                    let across =
                        across.map_or(D::default(), |at| self.entries[self.starts[column as usize] + at]);
                    left -= self.entries[self.starts[row] + k] * by * across;
                }
            }
            // A row without a diagonal entry is not preconditioned.
            self.inverses[row] = if left == D::default() { D::one() } else { D::one() / left };
        }
    }

    /// The system for [`Vectors::solve`].
    pub(super) fn of<'a, T: Scalar<Double = D>>(
        &'a mut self,
        way: Way<'a>,
        rows: &'a Rows<'a, T>,
        relative: f64,
    ) -> System<'a, T, D> {
        System { iterated: self, way, rows, reduction: (0.1 * relative).max(1e-15), iterations: 0 }
    }
}

/// A system, and the number of its iterations so far.
pub(super) struct System<'a, T, D> {
    iterated: &'a mut Iterated<D>,
    way: Way<'a>,
    rows: &'a Rows<'a, T>,
    /// How small r is to become relative to the right-hand side.
    reduction: f64,
    pub(super) iterations: u32,
}

/// The columns of a row; those of a dense one are not listed.
fn columns<'a, T>(rows: &Rows<'a, T>, n: usize, i: usize) -> &'a [u32] {
    match rows.row(n, i) {
        Row::Sparse(columns, _) => columns,
        Row::Dense(_) => &[],
    }
}

/// The sum over some rows of the products of entries.
fn dot<D: Scalar<Real = f64>>(of: &[u32], a: &[D], b: &[D]) -> D {
    let mut sum = D::default();
    for &i in of {
        sum += a[i as usize].conj() * b[i as usize];
    }
    sum
}

impl<'a, T: Scalar<Double = D>, D: Scalar<Real = f64>> System<'a, T, D> {
    /// The rows that are eliminated, and those that are kept.
    fn sides(&self) -> (&'a [u32], &'a [u32]) {
        self.way.order.split_at(self.way.eliminated)
    }

    /// A row of F A times the direction.
    #[inline(always)]
    fn product(&self, i: usize) -> D {
        let Iterated { entries, starts, direction, .. } = &*self.iterated;
        let own = &entries[starts[i]..starts[i + 1]];
        let mut sum = D::default();
        for (&column, &entry) in columns(self.rows, direction.len(), i).iter().zip(own) {
            sum += entry * direction[column as usize];
        }
        sum
    }

    /// Multiplies what is left of F A by the direction, which is that of the kept rows: hands each row's product on.
    #[inline(always)]
    fn multiply(&mut self, into: impl Fn(&mut Iterated<D>) -> &mut Vec<D>) {
        let (gone, kept) = self.sides();
        for &i in gone {
            self.iterated.direction[i as usize] = D::default();
        }
        for &i in gone {
            let i = i as usize;
            self.iterated.direction[i] = -(self.iterated.inverses[i] * self.product(i));
        }
        for &i in kept {
            let product = self.product(i as usize);
            into(self.iterated)[i as usize] = product;
        }
    }

    /// BiCGSTAB: adds to x until r is small enough.
    #[inline(always)]
    fn stabilise(&mut self, x: &mut [D], enough: f64) {
        let (_, kept) = self.sides();
        let Iterated { r, shadow, p, .. } = &mut *self.iterated;
        for own in [shadow, p] {
            own.copy_from_slice(r);
        }
        let mut rho = dot(kept, r, r);
        let mut left = rho.re();
        // NaN ends it too.
        while left > enough && self.iterations < ITERATIONS {
            self.iterations += 1;
            for i in kept.iter().map(|&i| i as usize) {
                self.iterated.direction[i] = self.iterated.inverses[i] * self.iterated.p[i];
            }
            self.multiply(|own| &mut own.v);
            let Iterated { inverses, r, shadow, v, direction, .. } = &mut *self.iterated;
            let alpha = rho / dot(kept, shadow, v);
            for i in kept.iter().map(|&i| i as usize) {
                x[i] += alpha * direction[i];
                r[i] -= alpha * v[i];
                direction[i] = inverses[i] * r[i];
            }
            self.multiply(|own| &mut own.t);
            let Iterated { r, shadow, p, v, t, direction, .. } = &mut *self.iterated;
            let square = dot(kept, t, t).re();
            let omega = if square > 0.0 { dot(kept, t, r) * D::from_f64(1.0 / square) } else { D::default() };
            left = 0.0;
            for i in kept.iter().map(|&i| i as usize) {
                x[i] += omega * direction[i];
                r[i] -= omega * t[i];
                left += r[i].abs2();
            }
            let next = dot(kept, shadow, r);
            let beta = next / rho * (alpha / omega);
            rho = next;
            for i in kept.iter().map(|&i| i as usize) {
                p[i] = r[i] + beta * (p[i] - omega * v[i]);
            }
        }
    }

    /// Conjugate gradients: the same.
    #[inline(always)]
    fn descend(&mut self, x: &mut [D], enough: f64) {
        let (_, kept) = self.sides();
        let Iterated { inverses, r, p, t: z, .. } = &mut *self.iterated;
        for i in kept.iter().map(|&i| i as usize) {
            z[i] = inverses[i] * r[i];
            p[i] = z[i];
        }
        let (mut rho, mut left) = (dot(kept, z, r), dot(kept, r, r).re());
        while left > enough && self.iterations < ITERATIONS {
            self.iterations += 1;
            for i in kept.iter().map(|&i| i as usize) {
                self.iterated.direction[i] = self.iterated.p[i];
            }
            self.multiply(|own| &mut own.v);
            let Iterated { inverses, r, p, v, t: z, .. } = &mut *self.iterated;
            let curvature = dot(kept, p, v);
            // If this is not positive (or NaN), A is not positive definite.
            let definite = curvature.re() > 0.0;
            if !definite {
                return;
            }
            let alpha = rho / curvature;
            for i in kept.iter().map(|&i| i as usize) {
                x[i] += alpha * p[i];
                r[i] -= alpha * v[i];
                z[i] = inverses[i] * r[i];
            }
            left = dot(kept, r, r).re();
            let next = dot(kept, z, r);
            let beta = next / rho;
            rho = next;
            for i in kept.iter().map(|&i| i as usize) {
                p[i] = z[i] + beta * p[i];
            }
        }
    }
}

impl<'a, T: Scalar<Double = D>, D: Scalar<Real = f64>> Solve<D, 1> for System<'a, T, D> {
    type Matrix = Rows<'a, T>;

    fn matrix(&self) -> &Rows<'a, T> {
        self.rows
    }

    /// An x for which b - A x is as small as was asked for, unless the iterations are used up.
    #[inline(always)]
    fn solve(&mut self, b: &[[D; 1]], x: &mut [[D; 1]]) {
        let (gone, kept) = self.sides();
        let (b, x) = (b.as_flattened(), x.as_flattened_mut());
        let square: f64 = b.iter().map(|b| b.abs2()).sum();
        let enough = self.reduction * self.reduction * square;
        x.fill(D::default());
        self.iterated.direction.fill(D::default());
        for i in gone.iter().map(|&i| i as usize) {
            self.iterated.direction[i] = self.iterated.inverses[i] * b[i];
        }
        self.iterated.r.fill(D::default());
        for i in kept.iter().map(|&i| i as usize) {
            self.iterated.r[i] = b[i] - self.product(i);
        }
        match self.way.iteration {
            BatchIteration::BiCgStab => self.stabilise(x, enough),
            BatchIteration::Cg => self.descend(x, enough),
        }
        self.iterated.direction.copy_from_slice(x);
        for i in gone.iter().map(|&i| i as usize) {
            x[i] = self.iterated.inverses[i] * (b[i] - self.product(i));
        }
    }
}
