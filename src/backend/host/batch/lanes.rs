//! Matrices of one shape side by side: corresponding entries of [`LANES`] systems are neighbours in memory, so that
//! vector registers process several systems together. The systems do not affect each other's bits.

use super::judge::{Matrix, Vectors, exponent, power};
use crate::scalar::Scalar;

/// Systems side by side.
pub(super) const LANES: usize = 8;

/// A number of each system.
pub(super) type Lanes<D> = [D; LANES];

/// Which entries of the systems are stored: all, or those of one pattern.
#[derive(Clone, Copy)]
pub(super) enum Shape<'a> {
    Dense(usize),
    Compressed(&'a [u64], &'a [u32]),
}

impl Shape<'_> {
    /// The number of rows.
    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        match self {
            Shape::Dense(n) => *n,
            Shape::Compressed(offsets, _) => offsets.len() - 1,
        }
    }

    /// Where row `i` begins; of the row behind the last, where that ends.
    #[inline(always)]
    pub(super) fn start(&self, i: usize) -> usize {
        match self {
            Shape::Dense(n) => i * n,
            Shape::Compressed(offsets, _) => offsets[i] as usize,
        }
    }
}

/// The entries of F A.
#[derive(Debug, Default)]
pub(super) struct Entries<D> {
    pub(super) all: Vec<Lanes<D>>,
}

impl<D: Scalar<Real = f64>> Entries<D> {
    /// Takes `systems` matrices, one behind the other in `values`, and scales their rows, of which `vectors` gets the
    /// exponents and norms. Returns of which systems all entries are finite and every row has a nonzero one.
    #[inline(always)]
    pub(super) fn load<T: Scalar<Double = D>>(
        &mut self,
        shape: Shape<'_>,
        (systems, values): (usize, &[T]),
        vectors: &mut Vectors<D, LANES>,
    ) -> [bool; LANES] {
        let n = shape.size();
        let each = shape.start(n);
        vectors.resize(n);
        self.all.resize(each, [D::default(); LANES]);
        if systems == LANES {
            let of: [&[T]; LANES] = std::array::from_fn(|lane| &values[lane * each..(lane + 1) * each]);
            for (e, all) in self.all.iter_mut().enumerate() {
                for lane in 0..LANES {
                    all[lane] = of[lane][e].to_double();
                }
            }
        } else {
            // What a system of a group before has left would do no harm, but could be slow to compute with.
            self.all.fill([D::default(); LANES]);
            for (lane, values) in values.chunks_exact(each.max(1)).take(systems).enumerate() {
                self.all.iter_mut().zip(values).for_each(|(all, value)| all[lane] = value.to_double());
            }
        }
        let mut sound = [true; LANES];
        for i in 0..n {
            let own = &mut self.all[shape.start(i)..shape.start(i + 1)];
            let (mut most, mut nothing) = ([0.0_f64; LANES], [D::default(); LANES]);
            for values in own.iter() {
                for lane in 0..LANES {
                    let size = super::judge::size(values[lane]);
                    most[lane] = if size > most[lane] { size } else { most[lane] };
                    // Neither infinities nor NaN times zero are zero.
                    nothing[lane] += values[lane] * D::default();
                }
            }
            let mut scales = [D::one(); LANES];
            for lane in 0..LANES {
                let found = exponent(most[lane]).filter(|_| nothing[lane] == D::default());
                sound[lane] &= found.is_some();
                let raised = -found.unwrap_or(0);
                vectors.exponents[i][lane] = raised;
                scales[lane] = D::from_f64(power(raised));
            }
            let mut squares = [0.0; LANES];
            for values in own {
                for lane in 0..LANES {
                    values[lane] *= scales[lane];
                    squares[lane] += values[lane].abs2();
                }
            }
            vectors.norms[i] = squares.map(f64::sqrt);
        }
        sound
    }
}

/// F A of the systems side by side.
pub(super) struct Laid<'a, D> {
    pub(super) shape: Shape<'a>,
    pub(super) entries: &'a Entries<D>,
}

impl<D: Scalar<Real = f64>> Matrix<D, LANES> for Laid<'_, D> {
    #[inline(always)]
    fn residual(
        &self,
        i: usize,
        _: &Lanes<i32>,
        y: &[Lanes<D>],
        b: &Lanes<D>,
        accurate: bool,
    ) -> (Lanes<D>, usize) {
        let range = self.shape.start(i)..self.shape.start(i + 1);
        let own = &self.entries.all[range.clone()];
        let residual = match (self.shape, accurate) {
            (Shape::Dense(_), false) => plain(own.iter().zip(y), b),
            (Shape::Dense(_), true) => compensated(own.iter().zip(y), b),
            (Shape::Compressed(_, columns), false) => {
                plain(own.iter().zip(columns[range].iter().map(|&column| &y[column as usize])), b)
            }
            (Shape::Compressed(_, columns), true) => {
                compensated(own.iter().zip(columns[range].iter().map(|&column| &y[column as usize])), b)
            }
        };
        (residual, own.len())
    }
}

/// b minus the sum of products, in working precision.
#[inline(always)]
fn plain<'a, D: Scalar<Real = f64>>(
    products: impl Iterator<Item = (&'a Lanes<D>, &'a Lanes<D>)>,
    b: &Lanes<D>,
) -> Lanes<D> {
    let mut sums = [D::default(); LANES];
    for (a, y) in products {
        for lane in 0..LANES {
            sums[lane] += a[lane] * y[lane];
        }
    }
    std::array::from_fn(|lane| b[lane] - sums[lane])
}

/// The same in twice the precision (as `Compensated` has it).
#[inline(always)]
fn compensated<'a, D: Scalar<Real = f64>>(
    products: impl Iterator<Item = (&'a Lanes<D>, &'a Lanes<D>)>,
    b: &Lanes<D>,
) -> Lanes<D> {
    let (mut re, mut im) = (Sums::new(b.map(Scalar::re)), Sums::new(b.map(Scalar::im)));
    for (a, y) in products {
        re.subtract(&a.map(Scalar::re), &y.map(Scalar::re));
        if D::COMPLEX {
            re.subtract(&a.map(|a| -a.im()), &y.map(Scalar::im));
            im.subtract(&a.map(Scalar::re), &y.map(Scalar::im));
            im.subtract(&a.map(Scalar::im), &y.map(Scalar::re));
        }
    }
    let value = |lane: usize| D::from_parts(re.sums[lane] + re.errors[lane], im.sums[lane] + im.errors[lane]);
    std::array::from_fn(|lane| value(lane).unwrap_or_default())
}

/// Sums and their accumulated rounding errors.
struct Sums {
    sums: Lanes<f64>,
    errors: Lanes<f64>,
}

impl Sums {
    #[inline(always)]
    fn new(sums: Lanes<f64>) -> Self {
        Self { sums, errors: [0.0; LANES] }
    }

    /// Subtracts a b.
    #[inline(always)]
    fn subtract(&mut self, a: &Lanes<f64>, b: &Lanes<f64>) {
        for lane in 0..LANES {
            let a = -a[lane];
            let product = a * b[lane];
            let product_error = a.mul_add(b[lane], -product);
            let sum = self.sums[lane] + product;
            let moved = sum - self.sums[lane];
            let sum_error = (self.sums[lane] - (sum - moved)) + (product - moved);
            self.sums[lane] = sum;
            self.errors[lane] += product_error + sum_error;
        }
    }
}
