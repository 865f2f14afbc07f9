//! Products with matrices whose rows are all parts of one stencil.

use super::Target;
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::launch::{Constants, kernels, passed};
use crate::backend::cuda::shape::Shape;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::tuning::{CompressedGrid, GridEnd, GridStencil};
use crate::backend::cuda::workspace::Reduction;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{ChebyshevStep, STENCIL_PLACES, StencilParts};
use crate::error::Result;
use crate::scalar::{Promote, Scalar};

/// Marks a missing kind.
const NO_KIND: u32 = 256;

/// The number of words of `Expected` in the kernels: four kinds in each; the last one has the number of kinds, or the
/// number of listed rows.
const EXPECTED: usize = (STENCIL_PLACES + 1) / 4;

/// The maximum number of words in the `Grid` of the kernel: four, and a start for each line that a thread reads.
const GRID: usize = 4 + 3 * (tuning::STENCIL_ROWS + 2);

mod kernel {
    use super::*;
    kernels! {
        "compressed_grid.cu", types(T: Scalar as SCALAR);
        fn compressed_grid(a: OnGrid<'_, T>, alpha: T, x: &Slice<T>, y: &mut Slice<T>);
        fn compressed_grid_add(a: OnGrid<'_, T>, alpha: T, x: &Slice<T>, beta: T, y: &mut Slice<T>);
        fn compressed_grid_dot(
            a: OnGrid<'_, T>, x: &Slice<T>, y: &mut Slice<T>, xy: &mut Slice<T>, reduction: Reduction,
        );
        fn compressed_grid_chebyshev(
            a: OnGrid<'_, T>, keep: T::Real, momentum: T::Real, step: T::Real, d: Option<&Slice<T::Real>>,
            r: &Slice<T>, z: &Slice<T>, last: &mut Slice<T>,
        );
    }
    kernels! {
        "compressed_march.cu", types(T: Scalar as SCALAR);
        fn compressed_march(a: OnGrid<'_, T>, alpha: T, x: &Slice<T>, y: &mut Slice<T>);
        fn compressed_march_dot(
            a: OnGrid<'_, T>, x: &Slice<T>, y: &mut Slice<T>, xy: &mut Slice<T>, reduction: Reduction,
        );
    }
    kernels! {
        "compressed_stencil.cu", types(T: Scalar as SCALAR);
        fn compressed_stencil(a: Laid<'_, T>, alpha: T, x: &Slice<T>, beta: T, y: &mut Slice<T>);
        fn compressed_stencil_dot(
            a: Laid<'_, T>, x: &Slice<T>, y: &mut Slice<T>, xy: &mut Slice<T>, reduction: Reduction,
        );
        fn compressed_stencil_chebyshev(
            a: Laid<'_, T>, keep: T::Real, momentum: T::Real, step: T::Real, d: Option<&Slice<T::Real>>,
            r: &Slice<T>, z: &Slice<T>, last: &mut Slice<T>,
        );
    }
}

/// A stencil on the points of a grid, as kernels take it. Kinds are read only if there are holes.
struct OnGrid<'a, T: Scalar> {
    shape: Shape,
    marches: bool,
    grid: Constants<u32, 8>,
    numbers: Constants<T, STENCIL_PLACES>,
    /// The kinds of rows, or their marks followed by the list.
    of: &'a Slice<u8>,
    places_of: &'a Slice<u32>,
    list: Option<&'a Slice<u64>>,
    expected: Constants<u32, EXPECTED>,
}

passed!(['a, T: Scalar] OnGrid<'a, T>: grid as Constants<u32, 8>, numbers as Constants<T, STENCIL_PLACES>,
    of as &'a Slice<u8>, places_of as &'a Slice<u32>, list as Option<&'a Slice<u64>>,
    expected as Constants<u32, EXPECTED>);

impl<'a, T: Scalar> OnGrid<'a, T> {
    /// Returns the arguments for vectors at these addresses; `None` if the rows are not those of a grid, or if products
    /// by kinds of rows are faster.
    fn new<V: Scalar + Promote<T>>(
        chip: Chip,
        (kind_of, a): (&'a Slice<u8>, &StencilParts<'a, V, Cuda>),
        vectors: &[u64],
        (conjugate, end): (bool, GridEnd),
    ) -> Option<Self> {
        let stencil = GridStencil::of(a);
        let CompressedGrid { shape, marches, dealt } =
            tuning::compressed_grid::<T>(chip, stencil, a.grid?, vectors, end)?;
        let mut expected = [0; EXPECTED];
        let marks = a.holes.and_then(|holes| holes.marks).filter(|_| stencil.is_marked());
        if let Some(marks) = marks {
            expected[EXPECTED - 1] = marks.listed.len() as u32;
        } else if let Some(holes) = a.holes {
            let kinds = holes.whole.iter().copied().map(u32::from);
            for (kind, at) in kinds.chain([a.places_of.len() as u32]).zip(0..) {
                expected[at / 4] |= kind << (8 * (at % 4));
            }
        }
        let of = marks.map_or(kind_of, |marks| &marks.of_rows);
        let list = marks.map(|marks| &*marks.listed);
        let (grid, numbers, expected) = (Constants(dealt), numbers(a, conjugate), Constants(expected));
        Some(Self { shape, marches, grid, numbers, of, places_of: a.places_of, list, expected })
    }
}

fn numbers<V: Scalar + Promote<T>, T: Scalar>(
    a: &StencilParts<'_, V, Cuda>,
    conjugate: bool,
) -> Constants<T, STENCIL_PLACES> {
    Constants(a.numbers.map(|number| {
        let number: T = number.widen();
        if conjugate { number.conj() } else { number }
    }))
}

/// A stencil whose product reads the kind of each row, as kernels take it.
struct Laid<'a, T: Scalar> {
    shape: Shape,
    rows: usize,
    columns: usize,
    of: &'a Slice<u8>,
    whole: u32,
    places_of: &'a Slice<u32>,
    grid: Constants<i64, GRID>,
    numbers: Constants<T, STENCIL_PLACES>,
}

passed!(['a, T: Scalar] Laid<'a, T>: rows as usize, columns as usize, of as &'a Slice<u8>, whole as u32,
    places_of as &'a Slice<u32>, grid as Constants<i64, GRID>, numbers as Constants<T, STENCIL_PLACES>);

impl<'a, T: Scalar> Laid<'a, T> {
    fn new<V: Scalar + Promote<T>>(
        (rows, columns): (usize, usize),
        of: &'a Slice<u8>,
        a: StencilParts<'a, V, Cuda>,
        conjugate: bool,
    ) -> Self {
        let StencilParts { line, plane, places, whole, .. } = a;
        let (shape, count) = tuning::compressed_stencil::<T>(rows, (places, line));
        // As `Grid` in the kernel: each thread has `count` rows, one grid line apart.
        let (line, plane, (low, high)) = (i64::from(line), i64::from(plane), a.span());
        let last_row = (count as i64 - 1) * line;
        let threads = rows.div_ceil(count * line as usize) as i64 * line;
        let mut grid = [0; GRID];
        grid[..4].copy_from_slice(&[line, threads, low, high + last_row]);
        for (p, lines) in grid[4..].chunks_mut(count + 2).take(3).enumerate() {
            for (m, start) in lines.iter_mut().enumerate() {
                *start = (p as i64 - 1) * plane + (m as i64 - 1) * line;
            }
        }
        Self {
            shape,
            rows,
            columns,
            of,
            whole: whole.map_or(NO_KIND, u32::from),
            places_of: a.places_of,
            grid: Constants(grid),
            numbers: numbers(&a, conjugate),
        }
    }
}

impl Cuda {
    pub(super) fn compressed_stencil<V: Scalar + Promote<T>, T: Scalar>(
        self,
        (rows, columns): (usize, usize),
        of: &Slice<u8>,
        a: StencilParts<'_, V, Self>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        target: Target<'_, T>,
    ) -> Result<()> {
        let conjugate = matches!(target, Target::Product { conjugate: 1, .. });
        let end = match target {
            Target::Dot(_) => GridEnd::Dot,
            Target::Product { beta, .. } if beta == T::zero() => GridEnd::Product,
            Target::Product { .. } => GridEnd::Sum,
        };
        let (vectors, reduction) = ([x.address(), y.address()], self.0.workspaces.reduction());
        if let Some(a) = OnGrid::new(self.0.chip, (of, &a), &vectors, (conjugate, end)) {
            let (shape, marches) = (a.shape, a.marches);
            return match target {
                Target::Product { alpha, beta, .. } if beta == T::zero() => {
                    let product = if marches { kernel::compressed_march } else { kernel::compressed_grid };
                    product(self, shape, a, alpha, x, y)
                }
                Target::Product { alpha, beta, .. } => {
                    kernel::compressed_grid_add(self, shape, a, alpha, x, beta, y)
                }
                Target::Dot(xy) => {
                    let product =
                        if marches { kernel::compressed_march_dot } else { kernel::compressed_grid_dot };
                    product(self, shape, a, x, y, xy, reduction)
                }
            };
        }
        let a = Laid::new((rows, columns), of, a, conjugate);
        match target {
            Target::Product { .. } if rows == 0 => Ok(()),
            Target::Product { alpha, beta, .. } => {
                kernel::compressed_stencil(self, a.shape, a, alpha, x, beta, y)
            }
            Target::Dot(xy) => kernel::compressed_stencil_dot(self, a.shape, a, x, y, xy, reduction),
        }
    }

    pub(super) fn compressed_stencil_chebyshev<V: Scalar + Promote<T>, T: Scalar>(
        self,
        rows: usize,
        of: &Slice<u8>,
        a: StencilParts<'_, V, Self>,
        by: ChebyshevStep<'_, T, Self>,
        z: &Slice<T>,
    ) -> Result<()> {
        let ChebyshevStep { keep, momentum, step, d, r, last } = by;
        let vectors = [r.address(), z.address(), last.address()];
        if let Some(a) = OnGrid::new(self.0.chip, (of, &a), &vectors, (false, GridEnd::Chebyshev)) {
            return kernel::compressed_grid_chebyshev(self, a.shape, a, keep, momentum, step, d, r, z, last);
        }
        let a = Laid::new((rows, rows), of, a, false);
        kernel::compressed_stencil_chebyshev(self, a.shape, a, keep, momentum, step, d, r, z, last)
    }
}
