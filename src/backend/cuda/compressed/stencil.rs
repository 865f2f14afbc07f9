//! Products with matrices whose rows are all parts of one stencil.

use super::Target;
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::launch::{Constants, kernels};
use crate::backend::cuda::shape::Shape;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::tuning::{CompressedGrid, GridEnd, GridStencil};
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
        fn compressed_grid(
            grid: Constants<u32, 8>, numbers: Constants<T, STENCIL_PLACES>, kind_of: &Slice<u8>,
            places_of: &Slice<u32>, list: Option<&Slice<u64>>, expected: Constants<u32, EXPECTED>, alpha: T, x: &Slice<T>,
            y: &mut Slice<T>,
        );
        fn compressed_grid_add(
            grid: Constants<u32, 8>, numbers: Constants<T, STENCIL_PLACES>, kind_of: &Slice<u8>,
            places_of: &Slice<u32>, list: Option<&Slice<u64>>, expected: Constants<u32, EXPECTED>, alpha: T, x: &Slice<T>,
            beta: T, y: &mut Slice<T>,
        );
        fn compressed_grid_dot(
            grid: Constants<u32, 8>, numbers: Constants<T, STENCIL_PLACES>, kind_of: &Slice<u8>,
            places_of: &Slice<u32>, list: Option<&Slice<u64>>, expected: Constants<u32, EXPECTED>, x: &Slice<T>, y: &mut Slice<T>,
            xy: &mut Slice<T>, partials: u64, finished: u64,
        );
        fn compressed_grid_chebyshev(
            grid: Constants<u32, 8>, numbers: Constants<T, STENCIL_PLACES>, kind_of: &Slice<u8>,
            places_of: &Slice<u32>, list: Option<&Slice<u64>>, expected: Constants<u32, EXPECTED>, keep: T::Real, momentum: T::Real,
            step: T::Real, d: Option<&Slice<T::Real>>, r: &Slice<T>, z: &Slice<T>, last: &mut Slice<T>,
        );
    }
    kernels! {
        "compressed_march.cu", types(T: Scalar as SCALAR);
        fn compressed_march(
            grid: Constants<u32, 8>, numbers: Constants<T, STENCIL_PLACES>, kind_of: &Slice<u8>,
            places_of: &Slice<u32>, list: Option<&Slice<u64>>, expected: Constants<u32, EXPECTED>, alpha: T, x: &Slice<T>,
            y: &mut Slice<T>,
        );
        fn compressed_march_dot(
            grid: Constants<u32, 8>, numbers: Constants<T, STENCIL_PLACES>, kind_of: &Slice<u8>,
            places_of: &Slice<u32>, list: Option<&Slice<u64>>, expected: Constants<u32, EXPECTED>, x: &Slice<T>, y: &mut Slice<T>,
            xy: &mut Slice<T>, partials: u64, finished: u64,
        );
    }
    kernels! {
        "compressed_stencil.cu", types(T: Scalar as SCALAR);
        fn compressed_stencil(
            rows: usize, columns: usize, kind_of: &Slice<u8>, whole: u32, places_of: &Slice<u32>,
            grid: Constants<i64, GRID>, numbers: Constants<T, STENCIL_PLACES>, alpha: T, x: &Slice<T>, beta: T,
            y: &mut Slice<T>,
        );
        fn compressed_stencil_dot(
            rows: usize, columns: usize, kind_of: &Slice<u8>, whole: u32, places_of: &Slice<u32>,
            grid: Constants<i64, GRID>, numbers: Constants<T, STENCIL_PLACES>, x: &Slice<T>, y: &mut Slice<T>,
            xy: &mut Slice<T>, partials: u64, finished: u64,
        );
        fn compressed_stencil_chebyshev(
            rows: usize, columns: usize, kind_of: &Slice<u8>, whole: u32, places_of: &Slice<u32>,
            grid: Constants<i64, GRID>, numbers: Constants<T, STENCIL_PLACES>, keep: T::Real, momentum: T::Real,
            step: T::Real, d: Option<&Slice<T::Real>>, r: &Slice<T>, z: &Slice<T>, last: &mut Slice<T>,
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
    list: Option<&'a Slice<u64>>,
    expected: Constants<u32, EXPECTED>,
}

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
        let (grid, expected) = (Constants(dealt), Constants(expected));
        Some(Self { shape, marches, grid, numbers: numbers(a, conjugate), of, list, expected })
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
struct Laid<T: Scalar> {
    shape: Shape,
    whole: u32,
    grid: Constants<i64, GRID>,
    numbers: Constants<T, STENCIL_PLACES>,
}

impl<T: Scalar> Laid<T> {
    fn new<V: Scalar + Promote<T>>(rows: usize, a: StencilParts<'_, V, Cuda>, conjugate: bool) -> Self {
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
            whole: whole.map_or(NO_KIND, u32::from),
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
        let places_of = a.places_of;
        let conjugate = matches!(target, Target::Product { conjugate: 1, .. });
        let end = match target {
            Target::Dot(_) => GridEnd::Dot,
            Target::Product { beta, .. } if beta == T::zero() => GridEnd::Product,
            Target::Product { .. } => GridEnd::Sum,
        };
        let vectors = [x.address(), y.address()];
        if let Some(OnGrid { shape, marches, grid, numbers, of, list, expected }) =
            OnGrid::new(self.0.chip, (of, &a), &vectors, (conjugate, end))
        {
            return match target {
                Target::Product { alpha, beta, .. } if beta == T::zero() => {
                    let product = if marches { kernel::compressed_march } else { kernel::compressed_grid };
                    product(self, shape, grid, numbers, of, places_of, list, expected, alpha, x, y)
                }
                Target::Product { alpha, beta, .. } => kernel::compressed_grid_add(
                    self, shape, grid, numbers, of, places_of, list, expected, alpha, x, beta, y,
                ),
                Target::Dot(xy) => {
                    let (partials, finished) = self.0.workspaces.reduction();
                    let product =
                        if marches { kernel::compressed_march_dot } else { kernel::compressed_grid_dot };
                    product(
                        self, shape, grid, numbers, of, places_of, list, expected, x, y, xy, partials,
                        finished,
                    )
                }
            };
        }
        let Laid { shape, whole, grid, numbers } = Laid::new(rows, a, conjugate);
        match target {
            Target::Product { .. } if rows == 0 => Ok(()),
            Target::Product { alpha, beta, .. } => kernel::compressed_stencil(
                self, shape, rows, columns, of, whole, places_of, grid, numbers, alpha, x, beta, y,
            ),
            Target::Dot(xy) => {
                let (partials, finished) = self.0.workspaces.reduction();
                kernel::compressed_stencil_dot(
                    self, shape, rows, columns, of, whole, places_of, grid, numbers, x, y, xy, partials,
                    finished,
                )
            }
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
        let places_of = a.places_of;
        if let Some(OnGrid { shape, grid, numbers, of, list, expected, .. }) =
            OnGrid::new(self.0.chip, (of, &a), &vectors, (false, GridEnd::Chebyshev))
        {
            return kernel::compressed_grid_chebyshev(
                self, shape, grid, numbers, of, places_of, list, expected, keep, momentum, step, d, r, z,
                last,
            );
        }
        let Laid { shape, whole, grid, numbers } = Laid::new(rows, a, false);
        kernel::compressed_stencil_chebyshev(
            self, shape, rows, rows, of, whole, places_of, grid, numbers, keep, momentum, step, d, r, z, last,
        )
    }
}
