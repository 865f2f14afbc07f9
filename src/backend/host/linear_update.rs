//! Several linear combinations and inner products in one pass over their vectors, on the CPU.
//!
//! A thread processes strips of [`STRIP`] elements, which stay in the first-level cache: it computes the new values of
//! all outputs in a buffer, copies them to the outputs, and then computes the inner products.

use super::Host;
use super::sums::{Several, chunk_size, for_chunks, inner, sum_chunks};
use crate::backend::{Coefficient, LinearUpdate};
use crate::parallel::{Chunks, ChunksMut, Pieces, prelude::*};
use crate::scalar::Scalar;
use std::array::from_fn;
use std::ops::Range;

/// The number of elements in a strip.
const STRIP: usize = 128;

const INPUTS: usize = LinearUpdate::<f64, Host>::INPUTS;
const OUTPUTS: usize = LinearUpdate::<f64, Host>::OUTPUTS;
const PRODUCTS: usize = LinearUpdate::<f64, Host>::PRODUCTS;

/// The vectors of an update, cut into chunks of `size` elements.
struct Vectors<'a, T> {
    inputs: [Chunks<'a, T>; INPUTS],
    outputs: [ChunksMut<'a, T>; OUTPUTS],
    elements: usize,
    size: usize,
}

/// The same range of elements of each vector. Unused vectors are empty.
struct Chunk<'a, T> {
    inputs: [&'a [T]; INPUTS],
    outputs: [&'a mut [T]; OUTPUTS],
    elements: usize,
}

// SAFETY: chunks with different numbers have no element in common.
unsafe impl<'a, T: Scalar> Pieces for Vectors<'a, T> {
    type Item = Chunk<'a, T>;

    fn len(&self) -> usize {
        self.elements.div_ceil(self.size)
    }

    unsafe fn item(&self, number: usize) -> Chunk<'a, T> {
        let (inputs, outputs) = (&self.inputs, &self.outputs);
        Chunk {
            inputs: from_fn(|k| match &inputs[k] {
                // SAFETY: the caller guarantees it, because this vector has the same number of chunks.
                input if number < input.len() => unsafe { input.item(number) },
                _ => &[],
            }),
            outputs: from_fn(|k| match &outputs[k] {
                // SAFETY: as above.
                output if number < output.len() => unsafe { output.item(number) },
                _ => &mut [],
            }),
            elements: self.size.min(self.elements - number * self.size),
        }
    }
}

/// The values of all inner products, in their order.
pub(super) type Sums<T> = Several<T, PRODUCTS>;

/// Does an update whose operands were checked, and returns its inner products, in order.
pub(super) fn run<T: Scalar>(update: LinearUpdate<'_, '_, T, Host>, state: &[T]) -> Sums<T> {
    let n = update.len();
    let LinearUpdate { inputs, outputs, coefficients, products } = update;
    let (operands, count) = (inputs.len() + outputs.len(), outputs.len());
    let mut factors = [None; OUTPUTS * (INPUTS + OUTPUTS)];
    for (factor, coefficient) in factors.iter_mut().zip(coefficients) {
        *factor = match *coefficient {
            Coefficient::Zero => None,
            Coefficient::One => Some(T::one()),
            Coefficient::MinusOne => Some(-T::one()),
            Coefficient::At(slot) => Some(state[slot.place()]),
            Coefficient::Minus(slot) => Some(-state[slot.place()]),
        };
    }
    let factors = &factors[..coefficients.len()];
    let size = chunk_size(n);
    let mut outputs = outputs.iter_mut();
    let all = Vectors {
        inputs: from_fn(|k| inputs.get(k).map_or(&[][..], |x| x).par_chunks(size)),
        outputs: from_fn(|_| outputs.next().map_or(&mut [][..], |y| y).par_chunks_mut(size)),
        elements: n,
        size,
    };
    let of_chunk = |mut chunk: Chunk<'_, T>| {
        let mut sums = Sums::default();
        for start in (0..chunk.elements).step_by(STRIP) {
            let range = start..chunk.elements.min(start + STRIP);
            combine(&mut chunk, inputs.len(), count, factors, operands, range.clone());
            for (sum, product) in sums.0.iter_mut().zip(products) {
                let vector = |k: usize| match k.checked_sub(inputs.len()) {
                    Some(output) => &chunk.outputs[output][range.clone()],
                    None => &chunk.inputs[k][range.clone()],
                };
                *sum += inner(vector(product.left), vector(product.right));
            }
        }
        sums
    };
    if products.is_empty() {
        for_chunks(n, all, |chunk| {
            of_chunk(chunk);
        });
        return Sums::default();
    }
    sum_chunks(n, all, of_chunk)
}

/// Computes the new values of all outputs in a strip.
fn combine<T: Scalar>(
    chunk: &mut Chunk<'_, T>,
    inputs: usize,
    outputs: usize,
    factors: &[Option<T>],
    operands: usize,
    range: Range<usize>,
) {
    let length = range.len();
    let mut new = [[T::zero(); STRIP]; OUTPUTS];
    for (new, row) in new.iter_mut().zip(factors.chunks(operands)) {
        let new = &mut new[..length];
        for (k, factor) in row.iter().enumerate() {
            let Some(factor) = *factor else { continue };
            let old = match k.checked_sub(inputs) {
                Some(output) => &chunk.outputs[output][range.clone()],
                None => &chunk.inputs[k][range.clone()],
            };
            new.iter_mut().zip(old).for_each(|(new, &old)| *new += factor * old);
        }
    }
    for (new, y) in new.iter().zip(&mut chunk.outputs[..outputs]) {
        y[range.clone()].copy_from_slice(&new[..length]);
    }
}
