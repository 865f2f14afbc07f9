//! M^-1 x and M^-T x.

use super::dense::{subtract, subtract_columns};
use super::numeric::Frontal;
use super::symmetric::TWO;
use crate::direct::Factorable;
use crate::parallel::both;
use crate::parallel::vectorised;

impl<T: Factorable> Frontal<T> {
    /// x becomes M^-1 x, of M^T where `transposed`; `work` is as long.
    pub(in super::super) fn solve(&self, transposed: bool, x: &mut [T], work: &mut [T]) {
        for (work, &old) in work.iter_mut().zip(&self.tree.order) {
            *work = x[old as usize];
        }
        // What a front has to do with the rows below it stands here in one piece.
        let below = &mut Vec::new();
        let count = self.tree.len();
        if self.tree.symmetric {
            vectorised(|| (0..count).for_each(|s| self.lower_symmetric(s, work, below)));
            vectorised(|| (0..count).rev().for_each(|s| self.upper_symmetric(s, work, below)));
        } else if transposed {
            vectorised(|| (0..count).for_each(|s| self.upper_transposed(s, work)));
            vectorised(|| (0..count).rev().for_each(|s| self.lower_transposed(s, work, below)));
        } else {
            vectorised(|| (0..count).for_each(|s| self.lower(s, work, below)));
            vectorised(|| (0..count).rev().for_each(|s| self.upper(s, work, below)));
        }
        for (work, &old) in work.iter().zip(&self.tree.order) {
            x[old as usize] = *work;
        }
    }

    /// L, then D. What stands on the diagonal is D.
    #[inline(always)]
    fn lower_symmetric(&self, s: usize, x: &mut [T], below: &mut Vec<T>) {
        let (w, m, panel, _, begin) = self.part(s);
        let swaps = &self.swaps[begin..begin + w];
        let (own, rest) = x[begin..].split_at_mut(w);
        for (k, &with) in swaps.iter().enumerate() {
            own.swap(k, (with & !TWO) as usize);
        }
        below.clear();
        below.resize(m - w, T::default());
        for k in 0..w {
            let factor = own[k];
            let column = &panel[k * m..(k + 1) * m];
            let next = k + 1 + usize::from(swaps[k] & TWO != 0);
            subtract(&mut own[next..], &column[next..w], factor);
        }
        subtract_columns(below, (panel, m, w), own);
        for (&row, &value) in both(self.tree.rows(s), below) {
            rest[row as usize - begin - w] += value;
        }
        let mut k = 0;
        while k < w {
            let pivot = panel[k * m + k];
            if swaps[k] & TWO == 0 {
                own[k] /= pivot;
                k += 1;
                continue;
            }
            let off = panel[k * m + k + 1];
            let (one, two) = (pivot / off, panel[(k + 1) * m + k + 1] / off);
            let inverse = T::from_f64(1.0) / (off * (one * two - T::from_f64(1.0)));
            let (first, second) = (own[k], own[k + 1]);
            own[k] = (first * two - second) * inverse;
            own[k + 1] = (second * one - first) * inverse;
            k += 2;
        }
    }

    /// L^T.
    #[inline(always)]
    fn upper_symmetric(&self, s: usize, x: &mut [T], below: &mut Vec<T>) {
        let (w, m, panel, _, begin) = self.part(s);
        let swaps = &self.swaps[begin..begin + w];
        let (own, rest) = x[begin..].split_at_mut(w);
        below.clear();
        below.extend(self.tree.rows(s).iter().map(|&row| rest[row as usize - begin - w]));
        for k in (0..w).rev() {
            let column = &panel[k * m..(k + 1) * m];
            let next = k + 1 + usize::from(swaps[k] & TWO != 0);
            own[k] -= product(&column[next..w], &own[next..]) + product(&column[w..], below);
        }
        for (k, &with) in swaps.iter().enumerate().rev() {
            own.swap(k, (with & !TWO) as usize);
        }
    }

    /// Width, height, columns of L and U11, rows of U, where the own part of x begins.
    #[inline(always)]
    fn part(&self, s: usize) -> (usize, usize, &[T], &[T], usize) {
        let (w, r) = self.tree.shape(s);
        let (piece, begin) = self.at[s];
        let (panel, upper) =
            self.values[piece as usize][begin..][..self.tree.entries(s)].split_at(w * (w + r));
        (w, w + r, panel, upper, self.tree.begin[s] as usize)
    }

    #[inline(always)]
    fn lower(&self, s: usize, x: &mut [T], below: &mut Vec<T>) {
        let (w, m, panel, _, begin) = self.part(s);
        let (own, rest) = x[begin..].split_at_mut(w);
        for (k, &with) in self.swaps[begin..begin + w].iter().enumerate() {
            own.swap(k, with as usize);
        }
        below.clear();
        below.resize(m - w, T::default());
        for k in 0..w {
            let factor = own[k];
            subtract(&mut own[k + 1..], &panel[k * m + k + 1..k * m + w], factor);
        }
        subtract_columns(below, (panel, m, w), own);
        for (&row, &value) in both(self.tree.rows(s), below) {
            rest[row as usize - begin - w] += value;
        }
    }

    #[inline(always)]
    fn upper(&self, s: usize, x: &mut [T], gathered: &mut Vec<T>) {
        let (w, m, panel, upper, begin) = self.part(s);
        let (own, below) = x[begin..].split_at_mut(w);
        gathered.clear();
        gathered.extend(self.tree.rows(s).iter().map(|&row| below[row as usize - begin - w]));
        subtract_columns(own, (upper, w, 0), gathered);
        for k in (0..w).rev() {
            let column = &panel[k * m..k * m + k + 1];
            let factor = own[k] / column[k];
            own[k] = factor;
            subtract(&mut own[..k], &column[..k], factor);
        }
    }

    #[inline(always)]
    fn upper_transposed(&self, s: usize, x: &mut [T]) {
        let (w, m, panel, upper, begin) = self.part(s);
        let (own, below) = x[begin..].split_at_mut(w);
        for k in 0..w {
            let column = &panel[k * m..k * m + k + 1];
            own[k] = (own[k] - product(&column[..k], &own[..k])) / column[k];
        }
        for (&row, column) in self.tree.rows(s).iter().zip(upper.chunks_exact(w)) {
            below[row as usize - begin - w] -= product(column, own);
        }
    }

    #[inline(always)]
    fn lower_transposed(&self, s: usize, x: &mut [T], below: &mut Vec<T>) {
        let (w, m, panel, _, begin) = self.part(s);
        let (own, rest) = x[begin..].split_at_mut(w);
        below.clear();
        below.extend(self.tree.rows(s).iter().map(|&row| rest[row as usize - begin - w]));
        for k in (0..w).rev() {
            let column = &panel[k * m..(k + 1) * m];
            own[k] -= product(&column[k + 1..w], &own[k + 1..]) + product(&column[w..], below);
        }
        for (k, &with) in self.swaps[begin..begin + w].iter().enumerate().rev() {
            own.swap(k, with as usize);
        }
    }
}

/// Four sums side by side, none of which waits for another.
#[inline(always)]
fn product<T: Factorable>(a: &[T], b: &[T]) -> T {
    let (fours, rest) = a.as_chunks::<4>();
    let (fours_b, rest_b) = b.as_chunks::<4>();
    let mut sums = [T::default(); 4];
    for (a, b) in both(fours, fours_b) {
        for k in 0..4 {
            sums[k] += a[k] * b[k];
        }
    }
    let last = both(rest, rest_b).fold(T::default(), |sum, (&a, &b)| sum + a * b);
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + last
}
