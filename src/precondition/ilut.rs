//! Incomplete LU factorisation with fill, dropping small entries (ILUT).

use super::triangular::Factors;
use super::{Preconditioner, Workspace};
use crate::backend::host::by_column;
use crate::backend::{Backend, Host, TriangularSteps};
use crate::error::{Error, Result};
use crate::graph::Permutation;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::prepare::{Scaling, permute, product_matching_within_reason};
use crate::scalar::{Real, Scalar};
use crate::work::{self, Stage};
use num_traits::{Float, One, Zero};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Pivots are replaced if they are smaller than this times the largest entry of their row, which is 1 after scaling.
const SMALLEST: f64 = 1e-6;

/// The number of rows after which it is checked whether the caller wants to stop.
const ROWS: usize = 256;

/// The limits of ILUT.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct IlutOptions {
    /// Entries smaller than this times the norm of their row are dropped.
    pub drop: f64,
    /// The maximum number of entries in a row of either factor, as a multiple of the mean row length of A.
    pub fill: f64,
    /// The maximum number of multiplications for each entry of A; a factorisation that takes more is refused.
    pub work: f64,
}

impl Default for IlutOptions {
    fn default() -> Self {
        Self { drop: 1e-3, fill: 5.0, work: f64::INFINITY }
    }
}

impl IlutOptions {
    /// Drops entries smaller than this times the norm of their row; 0 drops none that `fill` allows.
    #[must_use]
    pub fn drop(self, drop: f64) -> Self {
        Self { drop, ..self }
    }

    /// Sets the maximum number of entries in a row of either factor, as a multiple of the mean row length of A.
    #[must_use]
    pub fn fill(self, fill: f64) -> Self {
        Self { fill, ..self }
    }

    /// Sets the maximum number of multiplications for each entry of A; a factorisation that takes more is refused.
    #[must_use]
    pub fn work(self, work: f64) -> Self {
        Self { work, ..self }
    }
}

/// M = D^-1 P^T L U E^-1 near A: ILUT, Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 10.6,
/// after the rows are permuted and rows and columns are scaled such that the entries with the largest product of
/// magnitudes are on the diagonal and are 1 (Duff and Koster), all others no larger. Zeros on the diagonal therefore do
/// no harm.
///
/// Factors are computed on one thread of the CPU, since the entries that are kept of a row depend on the rows before
/// it. Both scalings are folded into the factors, and an application is two triangular solves on any backend, as with
/// [`Ilu`](super::Ilu).
#[derive(Debug)]
pub struct Ilut<T: Scalar, B: TriangularSteps> {
    factors: Factors<T, B>,
    failed: usize,
}

impl<T: Scalar, B: TriangularSteps> Ilut<T, B> {
    /// ILUT of a square matrix.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if entries are not finite; [`Error::Unsupported`] if A is structurally singular or the
    /// factors take more work than allowed; also if A is not square, if memory runs out, or if the device fails.
    pub fn new(backend: &B, a: &Csr<T, B>, options: &IlutOptions) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        let a = a.to_host(backend)?;
        let (matching, scaling) = product_matching_within_reason(&a)?.into_parts();
        if !matching.is_perfect() {
            return Err(Error::Unsupported(format!(
                "an incomplete factorisation of a structurally singular matrix: {} of its {} rows can't be matched \
                 with a column",
                matching.unmatched_rows().len(),
                a.rows()
            )));
        }
        let permutation = matching.row_permutation()?;
        let scaled = permute(&scaling.apply(&a)?, &permutation, &Permutation::identity(a.columns())?)?;
        let mut made = factorise(&scaled, options)?;
        drop(scaled);
        made.unscale(&permutation, &scaling);
        let Rows { n, lower, upper, inverses, failed } = made;
        let (lower, upper) =
            (lower.into_csr(n)?.into_backend(backend)?, upper.into_csr(n)?.into_backend(backend)?);
        let (inverses, permuted) =
            (backend.upload(inverses)?, backend.upload(permutation.new_to_old().to_vec())?);
        let (below, above) = (lower.parts(), upper.parts());
        let mut factors = Factors::new(backend, below.pattern(), above.pattern(), Some(&permuted))?;
        factors.refill(backend, below, above, &inverses)?;
        Ok(Self { factors, failed })
    }

    /// The numbers of level sets of L and of U.
    pub fn depth(&self) -> (usize, usize) {
        self.factors.depth()
    }

    /// The number of entries of both factors, diagonals included.
    pub fn entries(&self) -> usize {
        self.factors.entries() + self.factors.rows()
    }

    /// The number of pivots that were too small and were replaced.
    pub fn replaced(&self) -> usize {
        self.failed
    }
}

/// The rows of a factor so far.
#[derive(Default)]
struct Growing<T> {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Growing<T> {
    fn row(&self, i: usize) -> impl Iterator<Item = (usize, T)> + '_ {
        let range = self.offsets[i]..self.offsets[i + 1];
        both(&self.columns[range.clone()], &self.values[range])
            .map(|(&column, &value)| (column as usize, value))
    }

    /// Adds a row with the `most` largest of these entries, sorted by column.
    fn push(&mut self, entries: &mut Vec<(u32, T)>, most: usize) -> Result<()> {
        if entries.len() > most {
            let size = |entry: &(u32, T)| entry.1.abs2().to_f64();
            entries.select_nth_unstable_by(most, |a, b| size(b).total_cmp(&size(a)).then(a.0.cmp(&b.0)));
            entries.truncate(most);
        }
        by_column(entries);
        let more = entries.len();
        let out = |bytes: usize| Error::OutOfMemory { device: "the host".into(), bytes: bytes as u64 };
        self.columns.try_reserve(more).map_err(|_| out(2 * size_of_val(&*self.columns)))?;
        self.values.try_reserve(more).map_err(|_| out(2 * size_of_val(&*self.values)))?;
        self.columns.extend(entries.iter().map(|entry| entry.0));
        self.values.extend(entries.iter().map(|entry| entry.1));
        self.offsets.push(self.columns.len());
        entries.clear();
        Ok(())
    }

    fn into_csr(self, n: usize) -> Result<Csr<T>> {
        Csr::from_parts(n, n, self.offsets, self.columns, self.values)
    }
}

/// Factors by rows, on the host.
struct Rows<T> {
    n: usize,
    lower: Growing<T>,
    upper: Growing<T>,
    /// The inverses of the diagonal of U.
    inverses: Vec<T>,
    failed: usize,
}

impl<T: Scalar> Rows<T> {
    /// Turns factors of D P A E into factors of P A: with y = D^-1 y' and z = E z', L' becomes D^-1 L D and U' becomes
    /// D^-1 U E^-1, the diagonal of L being 1 as before.
    fn unscale(&mut self, permutation: &Permutation, scaling: &Scaling) {
        let rows: Vec<f64> =
            permutation.new_to_old().iter().map(|&old| scaling.rows()[old as usize]).collect();
        let columns = scaling.columns();
        let times = |value: T, factor: f64| value * T::from_f64(factor);
        for i in 0..self.n {
            for at in self.lower.offsets[i]..self.lower.offsets[i + 1] {
                let factor = rows[self.lower.columns[at] as usize] / rows[i];
                self.lower.values[at] = times(self.lower.values[at], factor);
            }
            for at in self.upper.offsets[i]..self.upper.offsets[i + 1] {
                let factor = 1.0 / (rows[i] * columns[self.upper.columns[at] as usize]);
                self.upper.values[at] = times(self.upper.values[at], factor);
            }
            self.inverses[i] = times(self.inverses[i], rows[i] * columns[i]);
        }
    }
}

/// Computes the factors row by row.
fn factorise<T: Scalar>(a: &Csr<T>, options: &IlutOptions) -> Result<Rows<T>> {
    let (n, parts) = (a.rows(), a.parts());
    let starts = parts.offsets.download(&Host)?;
    let mean = a.nonzeros() as f64 / n.max(1) as f64;
    let most = ((options.fill * mean).ceil() as usize).max(1);
    let mut lower = Growing { offsets: vec![0], ..Default::default() };
    let mut upper = Growing { offsets: vec![0], ..Default::default() };
    let mut inverses = Host.zeros::<T>(n)?;
    let (mut row, mut met) = (Host.zeros::<T>(n)?, vec![false; n]);
    let (mut below, mut left, mut right) = (BinaryHeap::new(), Vec::new(), Vec::new());
    let mut above: Vec<u32> = Vec::new();
    let (mut failed, mut eliminated) = (0, 0_usize);
    let (mut done, most_work) = (0_usize, options.work * a.nonzeros() as f64);
    let meter = work::begin(Stage::Factorising, n as u64, None);
    for i in 0..n {
        if i % ROWS == 0 {
            meter.advance(ROWS as u64);
            if done as f64 > most_work {
                let share = i as f64 / n as f64;
                return Err(Error::Unsupported(format!(
                    "so expensive an incomplete factorisation: {:.2e} multiplications for {:.0} % of the rows",
                    done as f64,
                    100.0 * share
                )));
            }
        }
        let mut square = 0.0;
        for at in starts[i]..starts[i + 1] {
            let (column, value) = (parts.indices[at], parts.values[at]);
            (row[column as usize], met[column as usize]) = (value, true);
            square += value.abs2().to_f64();
            if (column as usize) < i {
                below.push(Reverse(column));
            } else {
                above.push(column);
            }
        }
        let smallest = (options.drop * square.sqrt()).powi(2);
        while let Some(Reverse(k)) = below.pop() {
            // A row with much fill takes as long as thousands of others.
            eliminated += 1;
            if eliminated % ROWS == 0 {
                meter.advance(0);
            }
            let factor = row[k as usize] * inverses[k as usize];
            (row[k as usize], met[k as usize]) = (T::zero(), false);
            if factor.abs2().to_f64() < smallest || factor == T::zero() {
                continue;
            }
            done += upper.offsets[k as usize + 1] - upper.offsets[k as usize];
            for (column, value) in upper.row(k as usize) {
                if !met[column] {
                    met[column] = true;
                    if column < i {
                        below.push(Reverse(column as u32));
                    } else {
                        above.push(column as u32);
                    }
                }
                row[column] -= factor * value;
            }
            left.push((k, factor));
        }
        let mut pivot = T::zero();
        for column in above.drain(..) {
            let value = std::mem::replace(&mut row[column as usize], T::zero());
            met[column as usize] = false;
            if column as usize == i {
                pivot = value;
            } else if value.abs2().to_f64() >= smallest && value != T::zero() {
                right.push((column, value));
            }
        }
        // A comparison with NaN is false.
        let kept = pivot.abs() > T::Real::from_f64(SMALLEST) && Float::is_finite(pivot.abs());
        if !kept {
            failed += 1;
            let negative = pivot.re() < T::Real::zero();
            pivot = T::from_real(if negative { -T::Real::one() } else { T::Real::one() });
        }
        inverses[i] = T::one() / pivot;
        lower.push(&mut left, most)?;
        upper.push(&mut right, most)?;
    }
    Ok(Rows { n, lower, upper, inverses, failed })
}

impl<T: Scalar, B: TriangularSteps> Preconditioner<T, B> for Ilut<T, B> {
    fn rows(&self) -> Option<usize> {
        Some(self.factors.rows())
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        let mut work = backend.buffer(self.factors.work_len())?;
        self.factors.solve(backend, &mut work, r, z)
    }

    fn work_len(&self) -> usize {
        self.factors.work_len()
    }

    fn apply_in(
        &self,
        backend: &B,
        work: Workspace<'_, T, B>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        self.factors.solve(backend, work.full, r, z)
    }

    fn steps(&self) -> usize {
        5
    }

    fn bytes(&self) -> usize {
        self.factors.bytes()
    }
}
