//! The fused steps of conjugate gradients on one of several ranks. Sums over all ranks come from memory, or through the
//! shared-memory windows of the GPUs.

use super::inverse::with_diagonal;
use super::launch::kernels;
use super::peers::{Way, Windows};
use super::slice::Slice;
use super::workspace::Reduction;
use super::{Cuda, tuning};
use crate::backend::{Backend, CgSlot, Inverse, PartDirection, PartResidual, Sends};
use crate::error::{Error, Result};
use crate::scalar::{Element, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "cg_part.cu", types(T: Scalar as SCALAR, D: Element as DIAGONAL);
        /// `pq` is null if it is received through the windows.
        fn cg_part_residual(
            d: Option<&Slice<D>>,
            pq: Option<&Slice<T>>,
            q: &Slice<T>,
            r: &mut Slice<T>,
            sums: &mut Slice<T>,
            state: &mut Slice<T::Real>,
            n: usize,
            general: u64,
            reduction: Reduction,
            way: Way<'_>,
        );
        /// `sums` is null if they are received through the windows; `marks` is null if nothing is sent.
        fn cg_part_direction(
            d: Option<&Slice<D>>,
            z: &Slice<T>,
            sums: Option<&Slice<T>>,
            p: &mut Slice<T>,
            x: &mut Slice<T>,
            state: &mut Slice<T::Real>,
            n: usize,
            finished: u64,
            way: Way<'_>,
            room: usize,
            starts: Option<&Slice<u64>>,
            marks: Option<&Slice<u32>>,
            numbers: Option<&Slice<u32>>,
            places: Option<&Slice<u32>>,
            first: usize,
        );
    }
}

/// See [`KrylovSteps::cg_part_residual`](crate::backend::KrylovSteps::cg_part_residual).
pub(super) fn residual<T: Scalar>(
    cuda: Cuda,
    step: PartResidual<'_, T, Cuda>,
    way: Option<Way<'_>>,
) -> Result<()> {
    let PartResidual { inverse, pq, q, r, sums, state } = step;
    let n = r.len();
    Error::check_dimension("length of q", n, q.len())?;
    Error::check_dimension("sums of this part", 2, sums.len())?;
    Error::check_dimension("length of the state", CgSlot::COUNT, state.len())?;
    if way.is_none() {
        Error::check_dimension("sums over all parts", 1, pq.map_or(0, Slice::len))?;
    }
    let general = u64::from(matches!(inverse, Inverse::General(_)));
    let reduction = cuda.0.workspaces.reduction();
    let shape = tuning::krylov_sum(cuda.0.chip, n, size_of::<T>());
    let way = way.unwrap_or(Way::none());
    with_diagonal!(inverse, n, d => kernel::cg_part_residual::<T, _>(
        cuda, shape, d, pq, q, r, sums, state, n, general, reduction, way,
    ))
}

/// See [`KrylovSteps::cg_part_direction`](crate::backend::KrylovSteps::cg_part_direction). With `way` come
/// the bytes for the halo from each rank, and where the sent entries for rank p begin, `starts[p]`.
pub(super) fn direction<T: Scalar>(
    cuda: Cuda,
    step: PartDirection<'_, T, Cuda>,
    way: Option<(Way<'_>, usize, &Slice<u64>, &Sends<Cuda>)>,
) -> Result<()> {
    let PartDirection { inverse, r, sums, p, x, state } = step;
    let n = x.len();
    let z = if let Inverse::General(z) = inverse { z } else { r };
    Error::check_dimension("length of p", n, p.len())?;
    Error::check_dimension("length of r", n, z.len())?;
    Error::check_dimension("length of the state", CgSlot::COUNT, state.len())?;
    if way.is_none() || sums.is_some() {
        Error::check_dimension("sums over all parts", 2, sums.map_or(0, Slice::len))?;
    }
    let (_, finished) = cuda.0.workspaces.reduction();
    let shape = match way {
        Some(_) => tuning::krylov_part_map(cuda.0.chip, n, size_of::<T>()),
        None => tuning::krylov_map(n, size_of::<T>()),
    };
    let first = way.as_ref().map_or(0, |(.., sends)| sends.first % shape.blocks as usize);
    let (way, room, tables) = match way {
        Some((way, room, starts, sends)) => (way, room, Some((starts, sends))),
        None => (Way::none(), 0, None),
    };
    let starts = tables.map(|(starts, _)| starts);
    let marks = tables.map(|(_, sends)| &*sends.marks);
    let numbers = tables.map(|(_, sends)| &*sends.numbers);
    let places = tables.map(|(_, sends)| &*sends.places);
    with_diagonal!(inverse, n, d => kernel::cg_part_direction::<T, _>(
        cuda, shape, d, z, sums, p, x, state, n, finished, way, room, starts, marks,
        numbers, places, first,
    ))
}

impl Windows {
    /// Groups the entries that other ranks need by the pieces of a vector of n scalars that the kernel of
    /// [`Windows::direction`] computes. `None` if there are too many ranks for that kernel.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn sends<T: Scalar>(&self, asked: &[u32], n: usize) -> Result<Option<Sends<Cuda>>> {
        if self.ranks() as usize > tuning::PART_RANKS {
            return Ok(None);
        }
        let mut places: Vec<u32> = (0..asked.len() as u32).collect();
        places.sort_by_key(|&place| asked[place as usize]);
        let numbers: Vec<u32> = places.iter().map(|&place| asked[place as usize]).collect();
        let piece = tuning::krylov_piece(size_of::<T>());
        let pieces = n.div_ceil(piece);
        let marks =
            (0..=pieces).map(|k| numbers.partition_point(|&number| (number as usize) < k * piece) as u32);
        // Neighbours usually need entries at both ends of the vector. The pieces at the far end are computed first,
        // then those at the near end.
        let far = numbers.partition_point(|&number| (number as usize) < n / 2);
        let first = numbers.get(far).map_or(0, |&number| number as usize / piece);
        let cuda = self.cuda();
        Ok(Some(Sends {
            marks: cuda.upload(marks.collect::<Vec<u32>>())?,
            numbers: cuda.upload(numbers)?,
            places: cuda.upload(places)?,
            first,
        }))
    }

    /// See [`Communicator::cg_residual`](crate::backend::Communicator::cg_residual).
    ///
    /// # Errors
    /// If the device fails.
    pub fn residual<T: Scalar>(&mut self, step: PartResidual<'_, T, Cuda>) -> Result<()> {
        residual(self.cuda(), step, Some(self.way()))
    }

    /// See [`Communicator::cg_direction`](crate::backend::Communicator::cg_direction). The sent entries for rank p
    /// begin at `starts[p]`.
    ///
    /// # Errors
    /// If the device fails.
    pub fn direction<T: Scalar>(
        &mut self,
        starts: &Slice<u64>,
        sends: &Sends<Cuda>,
        step: PartDirection<'_, T, Cuda>,
    ) -> Result<()> {
        let (cuda, room) = (self.cuda(), self.room());
        direction(cuda, step, Some((self.way(), room, starts, sends)))
    }
}
