//! The two-step Arnoldi process (s-step with s = 2): the basis is read twice for two steps.
//!
//! The basis V has the vectors v_0 to v_j, v is the last of them, w_1 = A v and w_2 = A w_1:
//!
//! ```text
//! [t_1 t_2 g_1 g_2] = V^H [w_1 w_2 v_(j-1) v_j]                 the basis once: products, and new columns of G = V^H V
//! h = G^-1 t,  s_1^2 = ||w_1||^2 - h_1^H t_1,  ...              small dense steps
//! v_(j+1) = (w_1 - V h_1) / s_1                                 the basis once more
//! v_(j+2) = (w_2 - V h_2 - r v_(j+1)) / s_2
//! ```
//!
//! V (V^H V)^-1 V^H is the projection on the span of V even if rounding has made its vectors not quite orthogonal, so
//! one projection suffices instead of the usual two, and the vectors may be stored in half the precision of the inner
//! products. Sources: K. Swirydowicz, J. Langou, S. Ananthan, U. Yang and S. Thomas, Low synchronization Gram-Schmidt
//! and generalized minimal residual algorithms, Numer. Linear Algebra Appl. 28 (2021), for the correction by V^H V; J.
//! I. Aliaga, H. Anzt, T. Gruetzmacher, E. S. Quintana-Orti and A. E. Tomas, Compressed basis GMRES on high-performance
//! GPUs, Int. J. High Perform. Comput. Appl. 37 (2023), for the basis in lower precision; A. T. Chronopoulos, s-step
//! iterative methods, SIAM J. Numer. Anal. 28 (1991), for several products between two orthogonalisations.

use super::{Backend, Slot};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// The maximum number of vectors in a basis: the small dense steps use a lane of a warp for each.
pub(crate) const MOST_VECTORS: usize = 32;

/// The largest allowed cosine of the angle between two stored vectors. Beyond it, the correction by V^H V loses digits.
pub(crate) const MOST_COSINE: f64 = 1.0 / 64.0;

/// The number of scalars after the two columns of factors: r, s_1, s_2, ||w_1||^2, ||w_2||^2.
pub(crate) const BEHIND: usize = 5;

/// The layout of the dense buffer of [`PairScalars`] for a maximum number of columns.
#[derive(Debug, Clone, Copy)]
pub struct PairLayout {
    /// The maximum number of columns, m.
    pub columns: usize,
}

impl PairLayout {
    /// m + 1: the maximum number of vectors, and the distance between columns.
    pub fn width(self) -> usize {
        self.columns + 1
    }

    /// The length of the products, 4 (m + 1) + 3. V^H w_1, V^H w_2, V^H v_(j-1) and V^H v_j have an element for each
    /// vector; then come w_1^H w_1, w_1^H w_2 and w_2^H w_2.
    pub fn products(self) -> usize {
        4 * self.width() + 3
    }

    /// The range of h_1, h_2, r, s_1, s_2, ||w_1||^2 and ||w_2||^2, which follow G.
    pub fn factors(self) -> std::ops::Range<usize> {
        let start = self.width() * self.width();
        start..start + 2 * self.width() + BEHIND
    }

    /// The range of the combination: for each vector that A was multiplied with, its coefficients in the basis.
    pub fn combination(self) -> std::ops::Range<usize> {
        let start = self.factors().end;
        start..start + self.columns * self.width()
    }

    /// The range of the triangular factor R of the Hessenberg matrix, column by column.
    pub fn triangle(self) -> std::ops::Range<usize> {
        let start = self.combination().end;
        start..start + self.columns * self.width()
    }

    /// The range of the rotations, a cosine and a sine each.
    pub fn rotations(self) -> std::ops::Range<usize> {
        let start = self.triangle().end;
        start..start + 2 * self.columns
    }

    /// The range of the rotated right-hand side.
    pub fn right(self) -> std::ops::Range<usize> {
        let start = self.rotations().end;
        start..start + self.width()
    }

    /// The length of the buffer.
    pub fn len(self) -> usize {
        self.right().end
    }

    /// Returns whether there are no columns.
    pub fn is_empty(self) -> bool {
        self.columns == 0
    }
}

/// The operands of the small dense steps of a two-step Arnoldi process.
pub struct PairScalars<'a, T: Scalar, B: Backend> {
    /// The layout of `dense`.
    pub layout: PairLayout,
    /// The results of [`VectorOps::pair_products`](super::VectorOps::pair_products).
    pub products: &'a B::Slice<T>,
    /// ||v_(j+1)||^2 and ||v_(j+2)||^2, from [`VectorOps::pair_update`](super::VectorOps::pair_update).
    pub squares: &'a B::Slice<T>,
    /// G, the factors, the combination, R, the rotations and the right-hand side.
    pub dense: &'a mut B::Slice<T>,
    /// The state.
    pub state: &'a mut B::Slice<T>,
    /// The position in the state of the number of columns that R has.
    pub taken: Slot,
    /// True for a single step: w_2 is the same vector as w_1, and one column is added unless R has it already.
    pub lone: bool,
}

impl<T: Scalar, B: Backend> PairScalars<'_, T, B> {
    /// Returns an error for buffers that are too short for the column or columns of this step.
    pub(crate) fn check(&self, column: usize) -> Result<()> {
        let (layout, last) = (self.layout, column + usize::from(!self.lone));
        if last >= layout.columns || layout.width() > MOST_VECTORS {
            return Err(Error::InvalidArgument(format!(
                "column {last} of a basis of {}, {MOST_VECTORS} vectors at most",
                layout.columns
            )));
        }
        Error::check_dimension("length of the products", layout.products(), B::len(self.products))?;
        Error::check_dimension("length of the squared norms", 2, B::len(self.squares))?;
        Error::check_dimension("length of the dense parts", layout.len(), B::len(self.dense))?;
        if self.taken.place() >= B::len(self.state) {
            return Err(Error::InvalidArgument("a number of columns outside of the state".into()));
        }
        Ok(())
    }
}

impl<T: Scalar, B: Backend> std::fmt::Debug for PairScalars<'_, T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PairScalars of {} columns", self.layout.columns)
    }
}

/// Returns an error if the basis is too short for `count` vectors and `fresh` more, or if a vector does not have length
/// `n`.
pub(crate) fn check_vectors(
    basis: usize,
    count: usize,
    fresh: usize,
    n: usize,
    others: &[usize],
) -> Result<()> {
    if count > MOST_VECTORS || basis < (count + fresh).saturating_mul(n) {
        return Err(Error::InvalidArgument(format!(
            "a basis of {basis} entries for {count} vectors of {n} and {fresh} more: at most {MOST_VECTORS}"
        )));
    }
    others.iter().try_for_each(|&other| Error::check_dimension("length of a vector", n, other))
}
