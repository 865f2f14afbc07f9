//! Several linear combinations and inner products in one pass over their vectors, on the CPU.
//!
//! A thread works on strips of [`STRIP`] elements, which stay in the first-level cache: it computes the new values of
//! all outputs beside the old ones, writes them back, and then multiplies what the inner products ask for.

use super::Host;
use super::sums::{Several, chunk_size, for_chunks, inner, sum_chunks};
use crate::backend::{Coefficient, LinearUpdate};
use crate::parallel::Pieces;
use crate::scalar::Scalar;
use std::ops::Range;

/// Elements of a strip.
const STRIP: usize = 128;

const INPUTS: usize = LinearUpdate::<f64, Host>::INPUTS;
const OUTPUTS: usize = LinearUpdate::<f64, Host>::OUTPUTS;
const PRODUCTS: usize = LinearUpdate::<f64, Host>::PRODUCTS;

/// The vectors of an update, cut into chunks of `size` elements.
struct Chunks<'a, T> {
    inputs: [&'a [T]; INPUTS],
    outputs: [&'a mut [T]; OUTPUTS],
    elements: usize,
    size: usize,
}

/// As an iterator.
struct EachChunk<'a, T>(Chunks<'a, T>);

impl<'a, T: Scalar> Chunks<'a, T> {
    /// The first `middle` elements, and the others. Vectors that the update does not have stay empty.
    fn cut(self, middle: usize) -> (Self, Self) {
        let middle = middle.min(self.elements);
        let cut = |x: &'a [T]| x.split_at(middle.min(x.len()));
        let inputs = self.inputs.map(cut);
        let outputs = self.outputs.map(|y| {
            let middle = middle.min(y.len());
            y.split_at_mut(middle)
        });
        let mut right: [&'a mut [T]; OUTPUTS] = Default::default();
        let mut left: [&'a mut [T]; OUTPUTS] = Default::default();
        for ((l, r), (first, second)) in left.iter_mut().zip(&mut right).zip(outputs) {
            (*l, *r) = (first, second);
        }
        let size = self.size;
        (
            Self { inputs: inputs.map(|x| x.0), outputs: left, elements: middle, size },
            Self { inputs: inputs.map(|x| x.1), outputs: right, elements: self.elements - middle, size },
        )
    }
}

impl<'a, T: Scalar> Pieces for Chunks<'a, T> {
    type Item = Self;
    type Each = EachChunk<'a, T>;

    fn len(&self) -> usize {
        self.elements.div_ceil(self.size)
    }

    fn split_at(self, middle: usize) -> (Self, Self) {
        let elements = middle * self.size;
        self.cut(elements)
    }

    fn each(self) -> EachChunk<'a, T> {
        EachChunk(self)
    }
}

impl<'a, T: Scalar> Iterator for EachChunk<'a, T> {
    type Item = Chunks<'a, T>;

    fn next(&mut self) -> Option<Chunks<'a, T>> {
        if self.0.elements == 0 {
            return None;
        }
        let none =
            Chunks { inputs: [&[]; INPUTS], outputs: Default::default(), elements: 0, size: self.0.size };
        let all = std::mem::replace(&mut self.0, none);
        let (first, rest) = {
            let size = all.size;
            all.cut(size)
        };
        self.0 = rest;
        Some(first)
    }
}

/// The sums of all inner products, in their order.
pub(super) type Sums<T> = Several<T, PRODUCTS>;

/// Carries a checked update out; its inner products, in order.
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
    let mut all =
        Chunks { inputs: [&[]; INPUTS], outputs: Default::default(), elements: n, size: chunk_size(n) };
    all.inputs[..inputs.len()].copy_from_slice(inputs);
    for (own, y) in all.outputs.iter_mut().zip(outputs.iter_mut()) {
        *own = y;
    }
    let of_chunk = |mut chunk: Chunks<'_, T>| {
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

/// The new values of all outputs in a strip.
fn combine<T: Scalar>(
    chunk: &mut Chunks<'_, T>,
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
