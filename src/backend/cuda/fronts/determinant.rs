//! Determinant and inertia from the blocks of pivots of a factorisation.

use super::{Fronts, kernels};
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::tuning;
use crate::backend::{Backend, Determinant};
use crate::error::Result;
use crate::scalar::{Real, Scalar};

impl<T: Scalar> Fronts<T> {
    /// Returns the determinant of A for these factors. M = P R A C with permutations and diagonals.
    pub(super) fn determinant_of(&self, factors: &Slice<T>) -> Result<Determinant<T>> {
        let (cuda, layout) = (self.layout.cuda, &*self.layout);
        let fronts = layout.schedule.fronts();
        let (mut signs, mut logarithms) = (cuda.uninitialised(fronts)?, cuda.uninitialised(fronts)?);
        let mut negatives = cuda.uninitialised(fronts)?;
        let shape = tuning::fronts_large(fronts);
        let (of, steps, hermitian) = (&*layout.fronts, &*layout.steps, u32::from(self.is_hermitian));
        kernels::front_determinants(
            cuda,
            shape,
            of,
            steps,
            factors,
            hermitian,
            &mut signs,
            &mut logarithms,
            &mut negatives,
        )?;
        // Blocks are stored as inverses, whose determinant has the conjugate sign.
        let mut sign = T::Double::from_f64(1.0);
        cuda.download(&signs)?.into_iter().for_each(|part| sign *= part.to_double().conj());
        sign *= T::Double::from_f64(1.0 / sign.abs().to_f64());
        if is_odd(&cuda.download(&self.from)?) != is_odd(&cuda.download(&self.to)?) {
            sign = -sign;
        }
        let mut logarithm: f64 = cuda.download(&logarithms)?.into_iter().map(|part| -part).sum();
        if let Some((rows, columns)) = &self.scaling {
            for scales in [rows, columns] {
                logarithm -= cuda.download(scales)?.into_iter().map(f64::ln).sum::<f64>();
            }
        }
        let negative = self.is_hermitian.then_some(cuda.download(&negatives)?);
        let negative = negative.map(|of| of.into_iter().map(|count| count as usize).sum());
        Ok(Determinant { sign: T::from_double(sign), logarithm, negative })
    }
}

/// Returns whether a permutation is a product of an odd number of exchanges.
fn is_odd(permutation: &[u32]) -> bool {
    let mut met = vec![false; permutation.len()];
    let mut odd = false;
    for start in 0..permutation.len() {
        let mut at = start;
        let mut length = 0;
        while !met[at] {
            met[at] = true;
            at = permutation[at] as usize;
            length += 1;
        }
        odd ^= length > 0 && length % 2 == 0;
    }
    odd
}

#[cfg(test)]
mod tests {
    use super::is_odd;

    #[test]
    fn an_exchange_makes_a_permutation_odd_and_another_one_even() {
        assert!(!is_odd(&[]) && !is_odd(&[0, 1, 2]) && !is_odd(&[1, 2, 0]) && !is_odd(&[1, 0, 3, 2]));
        assert!(is_odd(&[1, 0]) && is_odd(&[0, 3, 2, 1]) && is_odd(&[1, 2, 3, 0]));
    }
}
