//! Scans in two passes: every chunk is combined, the results are scanned in order, and every chunk is scanned again
//! from the result before it. In a segmented scan, the carried value starts again at each head.

use super::chunks;
use crate::backend::Scan;
use crate::scalar::{Combine, Element, Offset};
use std::hint::select_unpredictable;

/// Scans `x` into `out`, starting again at each i for which `head(i)` is true.
pub(super) fn scan<T: Element, O: Combine<T>>(
    kind: Scan,
    _op: O,
    x: &[T],
    out: &mut [T],
    head: impl Fn(usize) -> bool + Sync,
) {
    let n = x.len();
    // The result of each chunk: the combination of its elements since its last head, and whether it contains a head.
    let totals = if chunks::count(n) < 2 {
        vec![(O::identity(), false)]
    } else {
        chunks::map(n, |range| {
            range.fold((O::identity(), false), |(sum, cut), i| {
                let cut_here = head(i);
                (O::combine(select_unpredictable(cut_here, O::identity(), sum), x[i]), cut | cut_here)
            })
        })
    };
    let mut carry = O::identity();
    let carries: Vec<T> = totals
        .iter()
        .map(|&(total, cut)| {
            let before = carry;
            carry = if cut { total } else { O::combine(carry, total) };
            before
        })
        .collect();
    chunks::fill(out, |range, out| {
        let mut sum = carries[if out.len() == n { 0 } else { range.start / chunks::CHUNK }];
        for (i, out) in range.zip(out) {
            // Branch-free, since random heads can't be predicted.
            sum = select_unpredictable(head(i), O::identity(), sum);
            let next = O::combine(sum, x[i]);
            *out = if kind == Scan::Inclusive { next } else { sum };
            sum = next;
        }
    });
}

/// `out[i]` = the sum of `x[..i]`. `out` may have one more element.
pub(super) fn offsets<I: Offset>(x: &[u32], out: &mut [I]) {
    let n = x.len();
    let mut total = 0;
    let starts: Vec<usize> = chunks::map(n, |range| x[range].iter().map(|&x| x as usize).sum::<usize>())
        .into_iter()
        .map(|sum| {
            total += sum;
            total - sum
        })
        .collect();
    let (body, last) = out.split_at_mut(n);
    chunks::fill(body, |range, out| {
        let mut sum = starts[if out.len() == n { 0 } else { range.start / chunks::CHUNK }];
        for (out, &x) in out.iter_mut().zip(&x[range]) {
            *out = I::from_usize(sum);
            sum += x as usize;
        }
    });
    if let Some(last) = last.first_mut() {
        *last = I::from_usize(total);
    }
}
