//! Elimination within one front of an unsymmetric matrix.

use crate::direct::Factorable;
use crate::parallel::prelude::*;
use crate::parallel::vectorised;
use crate::scalar::Real;
use crate::work::Meter;

/// Fronts with at least this many columns of their own are wide.
pub(super) const WIDE: usize = 160;

/// Up to this number of columns are eliminated one by one.
const NARROW: usize = 16;

/// A block of columns with at most this many multiplications is updated by a plain loop, which is faster than a
/// library's product.
pub(super) const PLAIN: usize = 2000;

/// The number of columns in a task. Results depend on it, so it must not depend on the number of threads.
const AT_ONCE: usize = 96;

/// A front: its own `width` columns, of `height` rows; the upper rows of the other columns; and the contribution.
pub(super) struct Front<'a, T> {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) panel: &'a mut [T],
    pub(super) upper: &'a mut [T],
    pub(super) contribution: &'a mut [T],
    /// The row that is exchanged with each row, numbered within the front.
    pub(super) swaps: &'a mut [u32],
}

/// The rule for pivots of L D L^T that are the diagonal entries in their order: those of magnitude at most `epsilon`
/// are replaced by `delta` with their sign.
#[derive(Clone, Copy)]
pub(in super::super) struct InOrder {
    pub(in super::super) epsilon: f64,
    pub(in super::super) delta: f64,
}

impl InOrder {
    /// Returns the pivot that replaces a diagonal entry, if it is too small. NaN remains, so that the factor is known
    /// not to be finite.
    #[inline(always)]
    pub(super) fn replacement<T: Factorable>(self, diagonal: T) -> Option<T> {
        let is_small = diagonal.abs2().to_f64() <= self.epsilon * self.epsilon;
        is_small.then(|| T::from_f64(if diagonal.re().to_f64() < 0.0 { -self.delta } else { self.delta }))
    }
}

/// The rule for pivots.
#[derive(Clone, Copy)]
pub(super) struct Pivots {
    /// For L D L^T, the rule if diagonal entries are the pivots in any case.
    pub(super) in_order: Option<InOrder>,
    /// A diagonal entry is the pivot if its magnitude is at least this fraction of the largest in its column of the
    /// block.
    pub(super) preference: f64,
    /// A smaller pivot is replaced by this.
    pub(super) least: f64,
}

impl<T: Factorable> Front<'_, T> {
    /// Eliminates the front's own columns, and returns the number of perturbed pivots. `meter` can stop the
    /// elimination; `work` is workspace.
    pub(super) fn eliminate(&mut self, pivots: Pivots, work: &mut Vec<T>, meter: &Meter) -> usize {
        let (w, m) = (self.width, self.height);
        let r = m - w;
        let made_up = if w >= WIDE && r > 0 {
            self.square_first(pivots, work, meter)
        } else {
            panel(self.panel, m, 0, w, (pivots, meter), self.swaps)
        };
        if r == 0 {
            return made_up;
        }
        let (panel, swaps) = (&*self.panel, &*self.swaps);
        self.upper.par_chunks_mut(w * AT_ONCE).zip(self.contribution.par_chunks_mut(r * AT_ONCE)).for_each(
            |(upper, contribution)| {
                meter.advance(0);
                for column in upper.chunks_exact_mut(w) {
                    for (k, &with) in swaps.iter().enumerate() {
                        column.swap(k, with as usize);
                    }
                }
                if upper.len() * r <= PLAIN || w < 3 {
                    vectorised(|| plain(panel, m, w, upper, contribution));
                } else {
                    T::eliminate_apart(panel, m, w, upper, contribution);
                }
            },
        );
        made_up
    }
}

/// Eliminates columns `from..to` of a panel. All columns before them have been eliminated; the first `w` rows may be
/// exchanged.
pub(super) fn panel<T: Factorable>(
    a: &mut [T],
    m: usize,
    from: usize,
    to: usize,
    (pivots, meter): (Pivots, &Meter),
    swaps: &mut [u32],
) -> usize {
    meter.advance(0);
    if to - from <= NARROW {
        return vectorised(|| narrow(a, m, from, to, pivots, swaps));
    }
    // The columns are halved at a multiple of the narrow width.
    let half = (to - from).div_ceil(2).next_multiple_of(NARROW).min(to - from - 1);
    let middle = from + half;
    let made_up = panel(a, m, from, middle, (pivots, meter), swaps);
    {
        let (left, right) = a.split_at_mut(middle * m);
        let left = &left[from * m..];
        right[..(to - middle) * m].par_chunks_mut(m * AT_ONCE).for_each(|right| {
            meter.advance(0);
            T::eliminate_within(left, m, from, half, right);
        });
    }
    made_up + panel(a, m, middle, to, (pivots, meter), swaps)
}

/// `panel` for few columns, which are eliminated one by one. Rows are exchanged in the whole panel.
#[inline(always)]
fn narrow<T: Factorable>(
    a: &mut [T],
    m: usize,
    from: usize,
    to: usize,
    pivots: Pivots,
    swaps: &mut [u32],
) -> usize {
    let w = swaps.len();
    let mut made_up = 0;
    for k in from..to {
        let column = &a[k * m..(k + 1) * m];
        // Squares are compared because magnitudes of complex numbers need a root.
        let (mut at, mut size) = (k, column[k].abs2().to_f64());
        let mut most = size;
        for (i, value) in column.iter().enumerate().take(w).skip(k + 1) {
            let value = value.abs2().to_f64();
            if value > most {
                (at, most) = (i, value);
            }
        }
        if size >= pivots.preference.powi(2) * most {
            at = k;
        } else {
            size = most;
            for j in 0..w {
                a.swap(j * m + k, j * m + at);
            }
        }
        swaps[k] = at as u32;
        // NaN remains, so that the factor is known not to be finite.
        if size < pivots.least.powi(2) {
            a[k * m + k] = T::from_f64(pivots.least);
            made_up += 1;
        }
        let inverse = T::from_f64(1.0) / a[k * m + k];
        let (done, rest) = a.split_at_mut((k + 1) * m);
        let column = &mut done[k * m..];
        column[k + 1..].iter_mut().for_each(|value| *value *= inverse);
        let column = &column[k + 1..];
        for other in rest[..(to - k - 1) * m].chunks_exact_mut(m) {
            let factor = other[k];
            if factor != T::default() {
                subtract(&mut other[k + 1..], column, factor);
            }
        }
    }
    made_up
}

/// Computes U12 = L11^-1 F12 and C - L21 U12, column by column.
#[inline(always)]
fn plain<T: Factorable>(panel: &[T], m: usize, w: usize, upper: &mut [T], contribution: &mut [T]) {
    for (upper, contribution) in upper.chunks_exact_mut(w).zip(contribution.chunks_exact_mut(m - w)) {
        for k in 0..w {
            let factor = upper[k];
            if factor != T::default() {
                subtract(&mut upper[k + 1..], &panel[k * m + k + 1..k * m + w], factor);
            }
        }
        subtract_columns(contribution, (panel, m, w), upper);
    }
}

/// Computes y - factor x in place.
#[inline(always)]
pub(super) fn subtract<T: Factorable>(y: &mut [T], x: &[T], factor: T) {
    let n = y.len().min(x.len());
    let (y, x) = (&mut y[..n], &x[..n]);
    for i in 0..n {
        y[i] -= x[i] * factor;
    }
}

/// Subtracts columns times factors from y, one after the other. The columns are `height` apart, and the product begins
/// at row `from` of each.
#[inline(always)]
pub(super) fn subtract_columns<T: Factorable>(
    y: &mut [T],
    (columns, height, from): (&[T], usize, usize),
    factors: &[T],
) {
    let (fours, rest) = factors.as_chunks::<4>();
    let n = y.len();
    for (k, factors) in fours.iter().enumerate() {
        let [a, b, c, d] = std::array::from_fn(|j| &columns[(4 * k + j) * height + from..][..n]);
        // Four columns at a time need only one pass over y.
        for (i, y) in y.iter_mut().enumerate() {
            *y = *y - a[i] * factors[0] - b[i] * factors[1] - c[i] * factors[2] - d[i] * factors[3];
        }
    }
    for (k, &factor) in rest.iter().enumerate() {
        subtract(y, &columns[(4 * fours.len() + k) * height + from..][..n], factor);
    }
}
