//! The fused steps of conjugate gradients on one of several ranks, with sums over all ranks between them.

use super::{Backend, Inverse, VectorOps};
use crate::scalar::Scalar;

/// The first step ([`KrylovSteps::cg_part_residual`](super::KrylovSteps::cg_part_residual)).
#[derive(Debug)]
pub struct PartResidual<'a, T: Scalar, B: VectorOps> {
    /// The preconditioner.
    pub inverse: Inverse<'a, T, B>,
    /// p.q over all ranks; `None` if the communicator is sending it.
    pub pq: Option<&'a B::Slice<T>>,
    /// A p.
    pub q: &'a B::Slice<T>,
    /// The residual.
    pub r: &'a mut B::Slice<T>,
    /// Where this rank's r.r and r.z are written.
    pub sums: &'a mut B::Slice<T>,
    /// The scalars ([`CgSlot`](super::CgSlot)).
    pub state: &'a mut B::Slice<T::Real>,
}

/// The second step ([`KrylovSteps::cg_part_direction`](super::KrylovSteps::cg_part_direction)).
#[derive(Debug)]
pub struct PartDirection<'a, T: Scalar, B: VectorOps> {
    /// The preconditioner.
    pub inverse: Inverse<'a, T, B>,
    /// The residual.
    pub r: &'a B::Slice<T>,
    /// r.r and r.z over all ranks; `None` if the communicator is sending them.
    pub sums: Option<&'a B::Slice<T>>,
    /// The direction.
    pub p: &'a mut B::Slice<T>,
    /// The solution, to which the step is added.
    pub x: &'a mut B::Slice<T>,
    /// The scalars.
    pub state: &'a mut B::Slice<T::Real>,
}

/// The entries of a vector that are sent to other ranks, grouped by the pieces in which a backend computes the vector:
/// the entries from `marks[k]` to `marks[k + 1]` are in piece k.
pub struct Sends<B: Backend> {
    /// The start of each piece's entries, and the end.
    pub marks: B::Vec<u32>,
    /// Their indices in the vector, ascending.
    pub numbers: B::Vec<u32>,
    /// Their positions among all entries that the exchange plan sends.
    pub places: B::Vec<u32>,
    /// The piece that should be computed first, so that its entries are sent early.
    pub first: usize,
}

impl<B: Backend> std::fmt::Debug for Sends<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sends of {} entries", B::len(&*self.numbers))
    }
}
