//! The row norms of a matrix, and the weights of residuals.

use crate::backend::{Backend, Communicator, CsrParts, Space, VectorOps};
use crate::direct::Weights;
use crate::error::Result;
use crate::matrix::Csr;
use crate::multigrid::MultigridBackend;
use crate::scalar::{Max, Min, Real, Scalar};
use crate::spread::Edge;
use std::any::Any;

/// Row norms of a matrix, computed once for its values.
///
/// A solver may store a scaled matrix R A C with powers of two instead of the caller's A. The norms are still those of
/// A, and the weights convert a residual of the stored matrix to one of A.
pub(crate) struct RowNorms<T: Scalar, B: Backend> {
    /// R^-1, if rows are scaled; D R^-1, if rows are weighted; C, if columns are scaled.
    plain: Option<B::Vec<T::Real>>,
    rows: Option<B::Vec<T::Real>>,
    columns: Option<B::Vec<T::Real>>,
    /// True if rows are weighted, each by its own norm.
    by_rows: bool,
    /// The smallest nonzero row norm of A, and the largest.
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// The Frobenius norm of A.
    pub(crate) frobenius: f64,
    /// D is the geometric mean of these two, divided by the norm of each row.
    middle: f64,
    /// The maximum number of entries in a row, and in a column if that is known.
    longest: usize,
    longest_column: Option<usize>,
    size: usize,
    /// Memory for a residual and for two numbers, kept from solve to solve.
    room: Option<Room<T, B>>,
}

/// A residual and two numbers.
type Room<T, B> = (<B as Backend>::Vec<T>, <B as Backend>::Vec<<T as Scalar>::Real>);

/// The smallest and the largest row norm, and the Frobenius norm.
#[derive(Debug, Clone, Copy)]
struct Spread {
    least: f64,
    most: f64,
    frobenius: f64,
    /// True if a device has found it, and no norm is zero.
    on_device: bool,
}

impl Spread {
    /// That of norms in the memory of a backend. A device leaves norms of zero, and those whose squares overflow, to the
    /// host.
    fn on<R: Real, B: MultigridBackend>(backend: &B, norms: &B::Vec<R>) -> Result<Self> {
        if <B as crate::backend::PreconditionSteps>::IS_DEVICE && B::len(norms) > 0 {
            let mut found = backend.zeros::<R>(1)?;
            backend.reduce(Min, norms, &mut found)?;
            let least = Real::to_f64(backend.value(&found)?);
            backend.reduce(Max, norms, &mut found)?;
            let most = Real::to_f64(backend.value(&found)?);
            backend.norm2_squared(norms, &mut found)?;
            let square = Real::to_f64(backend.value(&found)?);
            let squares_hold = square.is_finite() && square > R::min_positive_value().to_f64();
            if least > 0.0 && most.is_finite() && squares_hold {
                return Ok(Self { least, most, frobenius: square.sqrt(), on_device: true });
            }
        }
        let any: &dyn Any = norms;
        match any.downcast_ref::<Vec<R>>() {
            Some(here) => Ok(Self::of(here)),
            None => Ok(Self::of(&backend.download(norms)?)),
        }
    }

    fn of<R: Real>(norms: &[R]) -> Self {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        let sizes = norms.iter().map(|norm| Real::to_f64(*norm));
        for norm in sizes.filter(|norm| *norm != 0.0) {
            (least, most) = (least.min(norm), if norm > most || norm.is_nan() { norm } else { most });
        }
        let least = if most > 0.0 { least } else { 0.0 };
        Self { least, most, frobenius: crate::direct::norm(norms), on_device: false }
    }

    fn middle(self) -> f64 {
        if self.most > 0.0 { self.least.sqrt() * self.most.sqrt() } else { 1.0 }
    }
}

impl<T: Scalar, B: MultigridBackend> RowNorms<T, B> {
    /// Computes the norms of an unscaled matrix. `by_rows` says whether rows are weighted; `alike` whether columns have
    /// as many entries as rows, as in a symmetric matrix.
    pub(crate) fn of(backend: &B, a: &Csr<T, B>, by_rows: bool, alike: bool) -> Result<Self> {
        let mut norms = backend.buffer::<T::Real>(a.rows())?;
        backend.row_norms(a.parts(), &mut norms)?;
        let spread = inverted(backend, &mut norms)?;
        let longest = longest(backend, a.parts())?;
        Ok(Self {
            plain: None,
            rows: Some(norms),
            columns: None,
            by_rows,
            least: spread.least,
            most: spread.most,
            frobenius: spread.frobenius,
            middle: spread.middle(),
            longest,
            longest_column: alike.then_some(longest),
            size: a.rows(),
            room: None,
        })
    }

    /// Computes the norms of a matrix that is distributed over several ranks, each with its block and the entries beside
    /// it.
    ///
    /// # Errors
    /// If memory runs out, and if another rank has failed.
    pub(crate) fn of_part<C: Communicator<B>>(
        space: &Space<B, C>,
        (own, edge): (&Csr<T, B>, &Edge<T>),
        by_rows: bool,
        alike: bool,
    ) -> Result<Self> {
        let (backend, n) = (space.backend(), own.rows());
        let mut norms = backend.buffer::<T::Real>(n)?;
        backend.row_norms(own.parts(), &mut norms)?;
        let at = backend.upload(edge.rows.clone())?;
        let mut here = backend.buffer::<T::Real>(edge.rows.len())?;
        backend.gather::<T::Real, u32>(&norms, &at, &mut here)?;
        let mut here = backend.download(&here)?;
        for (place, norm) in here.iter_mut().enumerate() {
            let beside = crate::direct::norm(edge.a.row(place).1);
            *norm = T::Real::from_f64(norm.to_f64().hypot(beside));
        }
        let here = backend.upload(here)?;
        backend.scatter::<T::Real, u32>(&here, &at, &mut norms)?;
        let mut longest = longest(backend, own.parts())?;
        let mut lengths = backend.buffer::<u32>(n)?;
        backend.row_lengths(own.parts().offsets, 0, u32::MAX as usize, &mut lengths)?;
        let mut here = backend.buffer::<u32>(edge.rows.len())?;
        backend.gather::<u32, u32>(&lengths, &at, &mut here)?;
        for (place, length) in backend.download(&here)?.into_iter().enumerate() {
            longest = longest.max(length as usize + edge.a.row(place).0.len());
        }
        let own = Spread::on(backend, &norms)?;
        let told = [own.least, own.most, own.frobenius, longest as f64, n as f64];
        let all =
            space.communicator().gather(told.iter().flat_map(|number| number.to_le_bytes()).collect())?;
        let numbers = |k: usize| {
            let number =
                move |bytes: &Vec<u8>| bytes.as_chunks().0.get(k).map(|word| f64::from_le_bytes(*word));
            all.iter().filter_map(number).collect::<Vec<f64>>()
        };
        let least = numbers(0).into_iter().filter(|least| *least > 0.0).fold(f64::INFINITY, f64::min);
        let most = numbers(1).into_iter().fold(0.0, f64::max);
        let spread = Spread {
            least: if most > 0.0 { least } else { 0.0 },
            most,
            frobenius: crate::direct::norm(&numbers(2)),
            on_device: false,
        };
        let (middle, longest) = (spread.middle(), numbers(3).into_iter().fold(0.0, f64::max) as usize);
        invert(backend, &mut norms, own, middle)?;
        Ok(Self {
            plain: None,
            rows: Some(norms),
            columns: None,
            by_rows,
            least: spread.least,
            most: spread.most,
            frobenius: spread.frobenius,
            middle,
            longest,
            longest_column: alike.then_some(longest),
            size: numbers(4).into_iter().sum::<f64>() as usize,
            room: None,
        })
    }

    /// Updates the norms to new values of the unscaled matrix on the same pattern.
    pub(crate) fn update(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        let (by_rows, place) = (self.counts_rows(), self.rows.take().or(self.plain.take()));
        let mut norms = match place {
            Some(norms) => norms,
            None => backend.buffer(a.rows())?,
        };
        backend.row_norms(a.parts(), &mut norms)?;
        let spread = inverted(backend, &mut norms)?;
        (self.least, self.most, self.frobenius) = (spread.least, spread.most, spread.frobenius);
        self.middle = spread.middle();
        (self.plain, self.columns) = (None, None);
        // Kept for the next values even if rows are not weighted.
        self.rows = Some(norms);
        self.by_rows = by_rows;
        Ok(())
    }

    /// The binary logarithm of the norm of each row of A.
    pub(super) fn logarithms(&self, backend: &B) -> Result<Vec<f64>> {
        let Some(rows) = &self.rows else { return Ok(Vec::new()) };
        let middle = self.middle.log2();
        Ok(backend.download(rows)?.into_iter().map(|weight| middle - weight.to_f64().log2()).collect())
    }

    /// 1 / norm of each row of A, 0 for a row of zeros.
    pub(super) fn inverses(&self, backend: &B) -> Result<Vec<f64>> {
        let Some(rows) = &self.rows else { return Ok(Vec::new()) };
        Ok(backend.download(rows)?.into_iter().map(|weight| weight.to_f64() / self.middle).collect())
    }

    /// Sets R, and C = R if the matrix is `hermitian`, of the scaled matrix R A C that is stored from now on.
    pub(super) fn scale(&mut self, backend: &B, factors: &[f64], hermitian: bool) -> Result<()> {
        let of_rows = match &self.rows {
            Some(rows) => backend.download(rows)?,
            None => return Ok(()),
        };
        let real = |value: f64| T::Real::from_f64(value);
        let rows = of_rows.iter().zip(factors).map(|(d, r)| real(d.to_f64() / r)).collect();
        self.rows = Some(backend.upload(rows)?);
        self.plain = Some(backend.upload(factors.iter().map(|r| real(r.recip())).collect())?);
        self.columns = match hermitian {
            true => Some(backend.upload(factors.iter().map(|c| real(*c)).collect())?),
            false => None,
        };
        Ok(())
    }
}

/// Replaces norms by the geometric mean of the smallest and the largest, divided by each norm; 0 for a norm of zero.
fn inverted<R: Real, B: MultigridBackend>(backend: &B, norms: &mut B::Vec<R>) -> Result<Spread> {
    let spread = Spread::on(backend, norms)?;
    invert(backend, norms, spread, spread.middle())?;
    Ok(spread)
}

/// Replaces norms by `middle` divided by each of them; 0 for a norm of zero. `spread` is that of these norms.
fn invert<R: Real, B: MultigridBackend>(
    backend: &B,
    norms: &mut B::Vec<R>,
    spread: Spread,
    middle: f64,
) -> Result<()> {
    let n = B::len(norms);
    if <B as crate::backend::PreconditionSteps>::IS_DEVICE && n > 0 && spread.on_device {
        let mut numbers = backend.buffer::<u32>(n)?;
        backend.sequence(&mut numbers)?;
        let mut inverse = backend.buffer::<R>(n)?;
        backend.fill(R::from_f64(middle), &mut inverse)?;
        backend.divide_by_column(&numbers, norms, &mut inverse)?;
        *norms = inverse;
        return Ok(());
    }
    let invert = |norms: &mut [R]| {
        norms.iter_mut().for_each(|norm| {
            let size = Real::to_f64(*norm);
            *norm = R::from_f64(if size > 0.0 { middle / size } else { 0.0 });
        });
    };
    let any: &mut dyn Any = norms;
    if let Some(here) = any.downcast_mut::<Vec<R>>() {
        invert(here);
        return Ok(());
    }
    let mut here = backend.download(norms)?;
    invert(&mut here);
    backend.write(&here, norms)
}

/// The maximum number of entries in a row.
fn longest<T: Scalar, B: MultigridBackend>(backend: &B, a: CsrParts<'_, T, B>) -> Result<usize> {
    let mut lengths = backend.buffer::<u32>(a.rows)?;
    if a.rows == 0 {
        return Ok(0);
    }
    backend.row_lengths(a.offsets, 0, u32::MAX as usize, &mut lengths)?;
    let mut most = backend.zeros(1)?;
    backend.reduce(Max, &lengths, &mut most)?;
    Ok(backend.value::<u32>(&most)? as usize)
}

impl<T: Scalar, B: VectorOps> RowNorms<T, B> {
    /// Returns whether rows are weighted, each by its own norm.
    pub(crate) fn counts_rows(&self) -> bool {
        self.by_rows
    }

    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// The largest row norm divided by the smallest; 1 if all are equal.
    pub(crate) fn spread(&self) -> f64 {
        if self.least > 0.0 { self.most / self.least } else { 1.0 }
    }

    /// An upper bound on || |A| ||: the largest row norm times [`RowNorms::of_pattern`], or ||A||_F if that is smaller.
    pub(crate) fn norm(&self) -> f64 {
        self.frobenius.min(self.most * self.of_pattern())
    }

    /// An upper bound on || D |A| ||. Every row of D |A| has the norm `middle`, or is zero.
    pub(crate) fn norm_of_weighted(&self) -> f64 {
        self.middle * self.of_pattern().min((self.size as f64).sqrt())
    }

    /// An upper bound on || |M| || if each row of M has norm 1: the largest row sum is at most the square root of the
    /// row's length, and the largest column sum is at most the column's length.
    fn of_pattern(&self) -> f64 {
        let columns = self.longest_column.unwrap_or(self.size).min(self.size);
        ((self.longest as f64).sqrt() * columns as f64).sqrt()
    }

    /// The norm of a residual in the caller's units, and that of its weighted rows.
    pub(crate) fn of_residual<C: Communicator<B>>(
        &self,
        space: &Space<B, C>,
        r: &B::Slice<T>,
        squares: &mut B::Slice<T::Real>,
    ) -> Result<(f64, f64)> {
        let backend = space.backend();
        let mut both = |weights: Option<&B::Vec<T::Real>>| -> Result<[f64; 2]> {
            match weights {
                Some(weights) => backend.weighted_norms(weights, r, squares)?,
                None => {
                    backend.norm2_squared(r, B::part_mut(squares, 0..1))?;
                    backend.fill(T::Real::default(), B::part_mut(squares, 1..2))?;
                }
            }
            space.communicator().all_sum(backend, squares)?;
            let mut told = [T::Real::default(); 2];
            backend.read(squares, &mut told)?;
            Ok(told.map(|square| square.to_f64().sqrt()))
        };
        let of_rows = both(self.rows.as_ref().filter(|_| self.by_rows))?;
        let plain = if self.plain.is_some() { both(self.plain.as_ref())?[1] } else { of_rows[0] };
        Ok((plain, if self.by_rows { of_rows[1] } else { plain }))
    }

    /// The norm of x in the caller's units.
    pub(crate) fn of_x<C: Communicator<B>>(
        &self,
        space: &Space<B, C>,
        x: &B::Slice<T>,
        squares: &mut B::Slice<T::Real>,
    ) -> Result<f64> {
        let backend = space.backend();
        let place = usize::from(self.columns.is_some());
        match &self.columns {
            Some(columns) => backend.weighted_norms(columns, x, squares)?,
            None => backend.norm2_squared(x, B::part_mut(squares, 0..1))?,
        }
        let one = B::part_mut(squares, place..place + 1);
        space.communicator().all_sum(backend, one)?;
        Ok(backend.value(one)?.to_f64().sqrt())
    }

    /// Converts a residual of the stored matrix R A C to the vector that its adjoint is applied to for A^H r: R^-2
    /// times the residual.
    pub(super) fn to_gradient(&self, backend: &B, r: &mut B::Vec<T>) -> Result<()> {
        if let Some(plain) = &self.plain {
            let mut once = backend.buffer(B::len(r))?;
            backend.scale(plain, r, &mut once)?;
            backend.scale(plain, &once, r)?;
        }
        Ok(())
    }

    /// The norm of A^H r, from that of the stored matrix: C^-1 = R^-1 if columns are scaled.
    pub(super) fn of_gradient<C: Communicator<B>>(
        &self,
        space: &Space<B, C>,
        gradient: &B::Slice<T>,
        squares: &mut B::Slice<T::Real>,
    ) -> Result<f64> {
        let backend = space.backend();
        let weights = self.plain.as_ref().filter(|_| self.columns.is_some());
        let place = usize::from(weights.is_some());
        match weights {
            Some(weights) => backend.weighted_norms(weights, gradient, squares)?,
            None => backend.norm2_squared(gradient, B::part_mut(squares, 0..1))?,
        }
        let one = B::part_mut(squares, place..place + 1);
        space.communicator().all_sum(backend, one)?;
        Ok(backend.value(one)?.to_f64().sqrt())
    }

    /// Memory for a residual and for two numbers.
    pub(super) fn take_room(&mut self, backend: &B, rows: usize) -> Result<Room<T, B>> {
        match self.room.take() {
            Some(room) => Ok(room),
            None => Ok((backend.zeros(rows)?, backend.zeros(2)?)),
        }
    }

    pub(super) fn give_back(&mut self, r: B::Vec<T>, squares: B::Vec<T::Real>) {
        self.room = Some((r, squares));
    }

    /// The weights on the host, for a factorisation there.
    pub(crate) fn to_host(&self, backend: &B) -> Result<Weights> {
        let doubles = |weights: &Option<B::Vec<T::Real>>| -> Result<Option<Vec<f64>>> {
            let Some(weights) = weights else { return Ok(None) };
            Ok(Some(backend.download(weights)?.into_iter().map(|weight| weight.to_f64()).collect()))
        };
        let rows = if self.by_rows { doubles(&self.rows)? } else { None };
        Ok(Weights { plain: doubles(&self.plain)?, rows, columns: doubles(&self.columns)? })
    }
}
