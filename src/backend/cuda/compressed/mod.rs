//! The compressed format on the device: products are in this file, compressing and decompressing in others.

mod balanced;
mod compress;
mod kinds;
mod restore;
mod stencil;
mod told;

pub use balanced::Balanced;

use super::launch::{Told, kernels, passed};
use super::shape::Shape;
use super::slice::Slice;
use super::workspace::Reduction;
use super::{Cuda, tuning};
use crate::backend::{
    ChebyshevStep, CompressedBody, CompressedColumns, CompressedParts, Gemv, KindParts, LongParts,
    OffsetsRef, Products, SectionParts,
};
use crate::backend::{CompressedValues, VectorOps};
use crate::error::{Error, Result};
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "compressed_kinds.cu", types(T: Scalar as SCALAR, V: Element as VALUE);
        fn compressed_kinds(
            rows: usize, kind_of: &Slice<u8>, kinds: u32, table: u32, starts: &Slice<u32>, distances: &Slice<u32>,
            numbers: &Slice<V>, conjugate: u32, alpha: T, x: &Slice<T>, beta: T, y: &mut Slice<T>,
        );
        fn compressed_kinds_dot(
            rows: usize, kind_of: &Slice<u8>, kinds: u32, table: u32, starts: &Slice<u32>, distances: &Slice<u32>,
            numbers: &Slice<V>, x: &Slice<T>, y: &mut Slice<T>, xy: &mut Slice<T>, reduction: Reduction,
        );
    }
    kernels! {
        "compressed.cu", types(T: Scalar as SCALAR, V: Scalar as VALUE, S: Element as STORED; a as OFFSET);
        fn compressed(
            rows: usize, a: Flat<'_, V>, values: Option<&Slice<S>>, conjugate: u32, alpha: T, x: &Slice<T>, beta: T,
            y: &mut Slice<T>,
        );
        fn compressed_dot(
            rows: usize, a: Flat<'_, V>, values: Option<&Slice<S>>, x: &Slice<T>, y: &mut Slice<T>, xy: &mut Slice<T>,
            reduction: Reduction,
        );
    }
    kernels! {
        "compressed_long.cu", types(T: Scalar as SCALAR, V: Element as VALUE; offsets as OFFSET);
        fn add_long(
            long_rows: &Slice<u32>, offsets: OffsetsRef<'_, Cuda>, columns: &Slice<u32>, values: &Slice<V>,
            conjugate: u32, alpha: T, x: &Slice<T>, y: &mut Slice<T>,
        );
    }
}

/// The columns and values of slices as kernels take them; stored values follow. Arrays that a storage variant does not
/// have are null.
struct Flat<'a, V: Scalar> {
    order: Option<&'a Slice<u8>>,
    kind_of: Option<&'a Slice<u8>>,
    starts: Option<&'a Slice<u32>>,
    distances: Option<&'a Slice<u32>>,
    offsets: Option<OffsetsRef<'a, Cuda>>,
    bases: Option<&'a Slice<u32>>,
    words: Option<&'a Slice<u32>>,
    numbers: Option<&'a Slice<V>>,
    entries: Option<OffsetsRef<'a, Cuda>>,
    columns: &'static str,
    values: &'static str,
}

passed!(['a, V: Scalar] Flat<'a, V>: order as Option<&'a Slice<u8>>, kind_of as Option<&'a Slice<u8>>,
    starts as Option<&'a Slice<u32>>, distances as Option<&'a Slice<u32>>, offsets as Option<OffsetsRef<'a, Cuda>>,
    bases as Option<&'a Slice<u32>>, words as Option<&'a Slice<u32>>, numbers as Option<&'a Slice<V>>,
    entries as Option<OffsetsRef<'a, Cuda>>);

impl<V: Scalar> Told for Flat<'_, V> {
    fn name(&self) -> &'static str {
        self.offsets.name()
    }
}

impl<'a, V: Scalar> Flat<'a, V> {
    /// The arguments for kinds of rows that include values.
    fn lines(kinds: KindParts<'a, Cuda>, numbers: &'a Slice<V>) -> Self {
        let mut flat = Self { numbers: Some(numbers), ..Self::empty() };
        flat.kinds(kinds);
        flat
    }

    fn empty() -> Self {
        Self {
            order: None,
            kind_of: None,
            starts: None,
            distances: None,
            offsets: None,
            bases: None,
            words: None,
            numbers: None,
            entries: None,
            columns: "COMPRESSED_WIDE",
            values: "COMPRESSED_STORED",
        }
    }

    /// The arguments for sections of rows.
    fn new(cuda: Cuda, a: SectionParts<'a, V, Cuda>) -> Result<Self> {
        check_widths(cuda, a)?;
        let mut flat = Self {
            order: a.order.map(|order| order.as_slice()),
            offsets: Some(a.word_offsets),
            words: Some(a.words),
            entries: Some(a.entries),
            ..Self::empty()
        };
        match a.columns {
            CompressedColumns::Kinds(kinds) => flat.kinds(kinds),
            CompressedColumns::Codes(distances) => {
                flat.distances = Some(distances);
                flat.columns = "COMPRESSED_CODES";
            }
            CompressedColumns::Wide(bases) => flat.bases = Some(bases),
        }
        if let CompressedValues::Codes(numbers) = a.values {
            flat.numbers = Some(numbers);
            flat.values = "COMPRESSED_CODES";
        }
        Ok(flat)
    }

    fn kinds(&mut self, kinds: KindParts<'a, Cuda>) {
        self.kind_of = Some(kinds.of_row);
        self.starts = Some(kinds.starts);
        self.distances = Some(kinds.distances);
        self.columns = "COMPRESSED_KINDS";
    }

    fn variant(&self, shape: Shape) -> Shape {
        shape.variant("COLUMNS", self.columns).variant("VALUES", self.values)
    }

    /// The arguments for a product. If there is a single value, it need not read codes.
    fn product(self) -> Self {
        match self.numbers {
            Some(numbers) if numbers.len() == 1 => Self { values: "COMPRESSED_ONE", ..self },
            _ => self,
        }
    }

    /// The number of words for a quad (four entries) of a row, with 16-bit columns.
    fn quad_words(&self) -> usize {
        let of_columns = match self.columns {
            "COMPRESSED_KINDS" => 0,
            "COMPRESSED_CODES" => 1,
            _ => 2,
        };
        of_columns + usize::from(self.numbers.is_some())
    }
}

/// Checks that the offsets of entries and of words have the same width.
fn check_widths<V: Scalar>(cuda: Cuda, a: SectionParts<'_, V, Cuda>) -> Result<()> {
    match a.entries.type_name() == a.word_offsets.type_name() {
        true => Ok(()),
        false => cuda.no_kernel("sections with offsets of two widths"),
    }
}

/// Compiles the body with the stored values, if there are any, as `Option<&Slice<S>>`.
macro_rules! with_stored {
    ($values:expr, $stored:ident => $body:expr) => {
        match $values {
            CompressedValues::Codes(_) => {
                let $stored: Option<&Slice<V>> = None;
                $body
            }
            CompressedValues::Lower(values) => {
                let $stored = Some(values);
                $body
            }
            CompressedValues::Full(values) => {
                let $stored = Some(values);
                $body
            }
        }
    };
}
use with_stored;

/// What a product computes: y = alpha A x + beta y, with A conjugated on request, or y = A x and its inner product with
/// x, written to the slice.
enum Target<'a, T: Scalar> {
    Product { conjugate: u32, alpha: T, beta: T },
    Dot(&'a mut Slice<T>),
}

impl Cuda {
    pub(super) fn compressed_product<V: Scalar + Promote<T>, T: Scalar>(
        self,
        a: CompressedParts<'_, V, Self>,
        Gemv { op, alpha, x, beta, y }: Gemv<'_, T, Self>,
    ) -> Result<()> {
        if op.transposes() {
            return self.no_kernel("the transposed product of compressed without a transposed copy");
        }
        let conjugate = u32::from(T::COMPLEX && op.conjugates());
        self.compressed_body(a, x, y, Target::Product { conjugate, alpha, beta })?;
        a.long.map_or(Ok(()), |long| self.compressed_add_long(long, conjugate, alpha, x, y))
    }

    pub(super) fn compressed_product_dot<V: Scalar + Promote<T>, T: Scalar>(
        self,
        a: CompressedParts<'_, V, Self>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        xy: &mut Slice<T>,
    ) -> Result<()> {
        Error::check_dimension("length of the result", 1, xy.len())?;
        // In the balanced form, blocks wait for each other's partial sums and can't compute the inner product too.
        if a.long.is_none() && !matches!(a.body, CompressedBody::Balanced(..)) {
            return self.compressed_body(a, x, y, Target::Dot(xy));
        }
        self.compressed_body(a, x, y, Target::Product { conjugate: 0, alpha: T::one(), beta: T::zero() })?;
        if let Some(long) = a.long {
            self.compressed_add_long(long, 0, T::one(), x, y)?;
        }
        self.dot(x, y, xy)
    }

    /// A step of Chebyshev's iteration, if all rows are parts of one stencil.
    pub(super) fn compressed_product_chebyshev<V: Scalar + Promote<T>, T: Scalar>(
        self,
        a: CompressedParts<'_, V, Self>,
        step: ChebyshevStep<'_, T, Self>,
        z: &Slice<T>,
    ) -> Result<bool> {
        let CompressedBody::Lines(kinds, _, Some(stencil)) = a.body else { return Ok(false) };
        if a.rows > 0 {
            self.compressed_stencil_chebyshev(a.rows, kinds.of_row, stencil, step, z)?;
        }
        Ok(true)
    }

    fn compressed_body<V: Scalar + Promote<T>, T: Scalar>(
        self,
        a: CompressedParts<'_, V, Self>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        target: Target<'_, T>,
    ) -> Result<()> {
        let rows = a.rows;
        let reduction = self.0.workspaces.reduction();
        match a.body {
            CompressedBody::Lines(k, _, Some(stencil)) => {
                self.compressed_stencil((a.rows, a.columns), k.of_row, stencil, x, y, target)
            }
            CompressedBody::Lines(k, numbers, None) => {
                let (kinds, table) = (k.starts.len() as u32 - 1, k.distances.len() as u32);
                let dot = matches!(target, Target::Dot(_));
                // For the choice of a launch shape, the mean length of a kind approximates that of a row.
                let nonzeros = a.rows * (table as usize).div_ceil(kinds.max(1) as usize);
                let shape = tuning::compressed_lines(a.rows, nonzeros, dot);
                let shape = shape.shared(table as usize * (4 + size_of::<T>()) + 4 * (kinds as usize + 1));
                let (of, starts, distances) = (k.of_row, k.starts, k.distances);
                match target {
                    Target::Product { .. } if a.rows == 0 => Ok(()),
                    Target::Product { conjugate, alpha, beta } => kernel::compressed_kinds(
                        self, shape, rows, of, kinds, table, starts, distances, numbers, conjugate, alpha, x,
                        beta, y,
                    ),
                    Target::Dot(xy) => kernel::compressed_kinds_dot(
                        self, shape, rows, of, kinds, table, starts, distances, numbers, x, y, xy, reduction,
                    ),
                }
            }
            CompressedBody::Balanced(balanced, values) => match target {
                Target::Product { conjugate, alpha, beta } => {
                    self.balanced_product(a.rows, balanced, values, conjugate, alpha, x, beta, y)
                }
                Target::Dot(_) => self.no_kernel("x.y beside entries dealt out evenly"),
            },
            CompressedBody::Sections(_) if rows == 0 && matches!(target, Target::Product { .. }) => Ok(()),
            CompressedBody::Sections(
                s @ SectionParts {
                    columns: CompressedColumns::Kinds(kinds),
                    values: CompressedValues::Lower(_) | CompressedValues::Full(_),
                    ..
                },
            ) => self.compressed_kinds_stored(a.rows, (s, kinds), x, y, target),
            CompressedBody::Sections(s) => {
                let f = Flat::new(self, s)?.product();
                let (quads, dot) = (s.words.len() / f.quad_words(), matches!(target, Target::Dot(_)));
                let shape = tuning::compressed_sections::<T>(a.rows, quads, f.numbers.is_none(), dot);
                let shape = f.variant(shape);
                with_stored!(s.values, values => match target {
                    Target::Product { conjugate, alpha, beta } => {
                        kernel::compressed(self, shape, rows, f, values, conjugate, alpha, x, beta, y)
                    }
                    Target::Dot(xy) => kernel::compressed_dot(self, shape, rows, f, values, x, y, xy, reduction),
                })
            }
        }
    }

    fn compressed_add_long<V: Scalar + Promote<T>, T: Scalar>(
        self,
        long: LongParts<'_, V, Self>,
        conjugate: u32,
        alpha: T,
        x: &Slice<T>,
        y: &mut Slice<T>,
    ) -> Result<()> {
        let shape = tuning::compressed_blocks(long.rows.len(), false).class(0);
        kernel::add_long(
            self,
            shape,
            long.rows,
            long.offsets,
            long.indices,
            long.values,
            conjugate,
            alpha,
            x,
            y,
        )
    }
}
