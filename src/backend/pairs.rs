//! Two steps of an Arnoldi process at a time, with the basis read twice for both.
//!
//! From a basis V of v_0 to v_j, the last of which is v, and from w_1 = A v and w_2 = A w_1:
//!
//! ```text
//! [t_1 t_2 g_1 g_2] = V^H [w_1 w_2 v_(j-1) v_j]                 the basis once: products, and new columns of G = V^H V
//! h = G^-1 t,  s_1^2 = ||w_1||^2 - h_1^H t_1,  ...              small dense steps
//! v_(j+1) = (w_1 - V h_1) / s_1                                 the basis once more
//! v_(j+2) = (w_2 - V h_2 - r v_(j+1)) / s_2
//! ```
//!
//! V (V^H V)^-1 V^H projects on the span of V whatever rounding has done to its vectors. So one projection is enough
//! where the textbook takes two, and the vectors may be stored in half the precision that sums are made in. Sources:
//! K. Swirydowicz, J. Langou, S. Ananthan, U. Yang and S. Thomas, Low synchronization Gram-Schmidt and generalized
//! minimal residual algorithms, Numer. Linear Algebra Appl. 28 (2021), for the correction by V^H V;
//! J. I. Aliaga, H. Anzt, T. Gruetzmacher, E. S. Quintana-Orti and A. E. Tomas, Compressed basis GMRES on
//! high-performance GPUs, Int. J. High Perform. Comput. Appl. 37 (2023), for the narrow basis; A. T. Chronopoulos,
//! s-step iterative methods, SIAM J. Numer. Anal. 28 (1991), for several products between two orthogonalisations.

use super::{Backend, Slot};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// The most vectors of a basis: a lane of a warp has one each in the small dense steps.
pub(crate) const MOST_VECTORS: usize = 32;

/// A stored vector may be so far from orthogonal to another at most, as the cosine of their angle: beyond it,
/// corrections by V^H V lose digits.
pub(crate) const MOST_COSINE: f64 = 1.0 / 64.0;

/// Scalars behind the two columns of factors: r, s_1, s_2, ||w_1||^2, ||w_2||^2.
pub(crate) const BEHIND: usize = 5;

/// Where the parts of the dense buffer of [`PairScalars`] begin, for at most so many columns.
#[derive(Debug, Clone, Copy)]
pub struct PairLayout {
    /// The most columns, m.
    pub columns: usize,
}

impl PairLayout {
    /// m + 1, the most vectors, and the distance of columns.
    pub fn width(self) -> usize {
        self.columns + 1
    }

    /// Length of the products, (m + 1) 4 + 3: V^H w_1, V^H w_2, V^H v_(j-1), V^H v_j, as long as there are vectors
    /// each, then w_1^H w_1, w_1^H w_2, w_2^H w_2.
    pub fn products(self) -> usize {
        4 * self.width() + 3
    }

    /// Where h_1, h_2, r, s_1, s_2, ||w_1||^2 and ||w_2||^2 are, behind G.
    pub fn factors(self) -> std::ops::Range<usize> {
        let start = self.width() * self.width();
        start..start + 2 * self.width() + BEHIND
    }

    /// Columns that tell how what A was multiplied by is made of the basis.
    pub fn combination(self) -> std::ops::Range<usize> {
        let start = self.factors().end;
        start..start + self.columns * self.width()
    }

    /// The triangular factor R of the Hessenberg matrix, a column behind the other.
    pub fn triangle(self) -> std::ops::Range<usize> {
        let start = self.combination().end;
        start..start + self.columns * self.width()
    }

    /// Cosine and sine of each rotation.
    pub fn rotations(self) -> std::ops::Range<usize> {
        let start = self.triangle().end;
        start..start + 2 * self.columns
    }

    /// The rotated right-hand side.
    pub fn right(self) -> std::ops::Range<usize> {
        let start = self.rotations().end;
        start..start + self.width()
    }

    /// Length of all of it.
    pub fn len(self) -> usize {
        self.right().end
    }

    /// Whether there is nothing.
    pub fn is_empty(self) -> bool {
        self.columns == 0
    }
}

/// What the small dense steps of a pair work on.
pub struct PairScalars<'a, T: Scalar, B: Backend> {
    /// Where the parts of `dense` are.
    pub layout: PairLayout,
    /// What [`VectorOps::pair_products`](super::VectorOps::pair_products) has computed.
    pub products: &'a B::Slice<T>,
    /// ||v_(j+1)||^2 and ||v_(j+2)||^2, as [`VectorOps::pair_update`](super::VectorOps::pair_update) leaves them.
    pub squares: &'a B::Slice<T>,
    /// G, the factors, the combination, R, the rotations and the right-hand side.
    pub dense: &'a mut B::Slice<T>,
    /// The state.
    pub state: &'a mut B::Slice<T>,
    /// Where the number of columns is that R has.
    pub taken: Slot,
    /// Whether only w_1 is there, and w_2 is the same vector: one column is taken, unless R has it already.
    pub lone: bool,
}

impl<T: Scalar, B: Backend> PairScalars<'_, T, B> {
    /// Refuses buffers that are too short for a step of this column and the next.
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

/// Refuses vectors of a pair that do not fit: a basis too short for `count` vectors and `fresh` more, or vectors of
/// other lengths.
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
