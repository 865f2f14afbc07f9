//! The rows of one system as the caller has them, and products with them.

use super::judge::{Matrix, power};
use crate::backend::host::residual::Compensated;
use crate::scalar::{Real, Scalar};

/// Partial sums of an inner product, which fill wide registers.
pub(super) const SUMS: usize = 8;

/// The entries of a row: all, or those of some columns.
#[derive(Clone, Copy)]
pub(super) enum Row<'a, T> {
    Dense(&'a [T]),
    Sparse(&'a [u32], &'a [T]),
}

impl<T: Copy> Row<'_, T> {
    /// Each entry with its column.
    #[inline(always)]
    pub(super) fn for_each(self, mut f: impl FnMut(usize, T)) {
        match self {
            Row::Dense(values) => values.iter().enumerate().for_each(|(column, &value)| f(column, value)),
            Row::Sparse(columns, values) => {
                columns.iter().zip(values).for_each(|(&column, &value)| f(column as usize, value));
            }
        }
    }
}

/// The rows of one system.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a, T> {
    Dense(&'a [T]),
    Compressed { offsets: &'a [u64], columns: &'a [u32], values: &'a [T] },
}

impl<'a, T> Rows<'a, T> {
    #[inline(always)]
    pub(super) fn row(&self, n: usize, i: usize) -> Row<'a, T> {
        match *self {
            Rows::Dense(values) => Row::Dense(&values[i * n..(i + 1) * n]),
            Rows::Compressed { offsets, columns, values } => {
                let range = offsets[i] as usize..offsets[i + 1] as usize;
                Row::Sparse(&columns[range.clone()], &values[range])
            }
        }
    }
}

/// A sum that takes products of entries of a row with those of a vector.
trait Sum<T, D> {
    fn add(&mut self, a: T, y: D);

    /// Adds [`SUMS`] products.
    #[inline(always)]
    fn add_together(&mut self, a: &[T], y: &[D])
    where
        T: Copy,
        D: Copy,
    {
        for lane in 0..SUMS {
            self.add(a[lane], y[lane]);
        }
    }
}

/// Adds the products of the entries of a row with those of y, and returns how many there are.
#[inline(always)]
fn add_products<T: Copy, D: Copy>(row: Row<'_, T>, y: &[D], sum: &mut impl Sum<T, D>) -> usize {
    match row {
        Row::Dense(values) => {
            let y = &y[..values.len()];
            let whole = values.len() / SUMS * SUMS;
            for (a, y) in values[..whole].chunks_exact(SUMS).zip(y[..whole].chunks_exact(SUMS)) {
                sum.add_together(a, y);
            }
            for j in whole..values.len() {
                sum.add(values[j], y[j]);
            }
            values.len()
        }
        Row::Sparse(columns, values) => {
            for (&column, &a) in columns.iter().zip(values) {
                sum.add(a, y[column as usize]);
            }
            values.len()
        }
    }
}

/// In working precision, in as many sums as fill wide registers.
struct Plain<D> {
    scale: D,
    sums: [D; SUMS],
    rest: D,
}

impl<T: Scalar<Double = D>, D: Scalar<Real = f64>> Sum<T, D> for Plain<D> {
    #[inline(always)]
    fn add(&mut self, a: T, y: D) {
        self.rest += a.to_double() * self.scale * y;
    }

    #[inline(always)]
    fn add_together(&mut self, a: &[T], y: &[D]) {
        for lane in 0..SUMS {
            self.sums[lane] += a[lane].to_double() * self.scale * y[lane];
        }
    }
}

/// In twice the precision, and the products are subtracted.
struct Accurate<D: Scalar<Real = f64>> {
    scale: D,
    re: Compensated<f64>,
    im: Compensated<f64>,
}

impl<T: Scalar<Double = D>, D: Scalar<Real = f64>> Sum<T, D> for Accurate<D> {
    #[inline(always)]
    fn add(&mut self, a: T, y: D) {
        let a = a.to_double() * self.scale;
        self.re.add_product(-a.re(), y.re());
        if D::COMPLEX {
            self.re.add_product(a.im(), y.im());
            self.im.add_product(-a.re(), y.im());
            self.im.add_product(-a.im(), y.re());
        }
    }
}

/// A row of F A times y, and the number of products.
#[inline(always)]
fn products<T: Scalar<Double = D>, D: Scalar<Real = f64>>(
    row: Row<'_, T>,
    scale: f64,
    y: &[D],
) -> (D, usize) {
    let mut sum = Plain { scale: D::from_f64(scale), sums: [D::default(); SUMS], rest: D::default() };
    let terms = add_products(row, y, &mut sum);
    let pair = |k: usize| sum.sums[k] + sum.sums[k + SUMS / 2];
    (((pair(0) + pair(1)) + (pair(2) + pair(3))) + sum.rest, terms)
}

impl<T: Scalar<Double = D>, D: Scalar<Real = f64>> Matrix<D, 1> for Rows<'_, T> {
    #[inline(always)]
    fn residual(
        &self,
        i: usize,
        exponents: &[i32; 1],
        y: &[[D; 1]],
        b: &[D; 1],
        accurate: bool,
    ) -> ([D; 1], usize) {
        let (row, scale, y) = (self.row(y.len(), i), power(exponents[0]), y.as_flattened());
        if accurate {
            let (residual, terms) = accurate_residual(row, scale, y, b[0]);
            return ([residual], terms);
        }
        let (product, terms) = products(row, scale, y);
        ([b[0] - product], terms)
    }
}

/// b minus a row of F A times y in twice the precision, and the number of products.
#[inline(always)]
fn accurate_residual<T: Scalar<Double = D>, D: Scalar<Real = f64>>(
    row: Row<'_, T>,
    scale: f64,
    y: &[D],
    b: D,
) -> (D, usize) {
    let (re, im) = (Compensated::new(b.re()), Compensated::new(b.im()));
    let mut sum = Accurate { scale: D::from_f64(scale), re, im };
    let terms = add_products(row, y, &mut sum);
    (D::from_parts(sum.re.value().to_f64(), sum.im.value().to_f64()).unwrap_or_default(), terms)
}
