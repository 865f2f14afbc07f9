//! M^-1 x and M^-T x.

use super::dense::subtract;
use super::numeric::Frontal;
use crate::direct::Factorable;

impl<T: Factorable> Frontal<T> {
    /// x becomes M^-1 x, of M^T where `transposed`; `work` is as long.
    pub(in super::super) fn solve(&self, transposed: bool, x: &mut [T], work: &mut [T]) {
        for (work, &old) in work.iter_mut().zip(&self.tree.order) {
            *work = x[old as usize];
        }
        // What a front has to do with the rows below it stands here in one piece.
        let below = &mut Vec::new();
        if transposed {
            (0..self.tree.len()).for_each(|s| self.upper_transposed(s, work));
            (0..self.tree.len()).rev().for_each(|s| self.lower_transposed(s, work, below));
        } else {
            (0..self.tree.len()).for_each(|s| self.lower(s, work, below));
            (0..self.tree.len()).rev().for_each(|s| self.upper(s, work));
        }
        for (work, &old) in work.iter().zip(&self.tree.order) {
            x[old as usize] = *work;
        }
    }

    /// Width, height, columns of L and U11, rows of U, where the own part of x begins.
    fn part(&self, s: usize) -> (usize, usize, &[T], &[T], usize) {
        let (w, r) = self.tree.shape(s);
        let (panel, upper) = self.values[self.at[s]..self.at[s + 1]].split_at(w * (w + r));
        (w, w + r, panel, upper, self.tree.begin[s] as usize)
    }

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
            let column = &panel[k * m..(k + 1) * m];
            subtract(&mut own[k + 1..], &column[k + 1..w], factor);
            subtract(below, &column[w..], factor);
        }
        for (&row, &value) in self.tree.rows(s).iter().zip(below.iter()) {
            rest[row as usize - begin - w] += value;
        }
    }

    fn upper(&self, s: usize, x: &mut [T]) {
        let (w, m, panel, upper, begin) = self.part(s);
        let (own, below) = x[begin..].split_at_mut(w);
        for (&row, column) in self.tree.rows(s).iter().zip(upper.chunks_exact(w)) {
            subtract(own, column, below[row as usize - begin - w]);
        }
        for k in (0..w).rev() {
            let column = &panel[k * m..k * m + k + 1];
            let factor = own[k] / column[k];
            own[k] = factor;
            subtract(&mut own[..k], &column[..k], factor);
        }
    }

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
fn product<T: Factorable>(a: &[T], b: &[T]) -> T {
    let (fours, rest) = a.as_chunks::<4>();
    let (fours_b, rest_b) = b.as_chunks::<4>();
    let mut sums = [T::default(); 4];
    for (a, b) in fours.iter().zip(fours_b) {
        for k in 0..4 {
            sums[k] += a[k] * b[k];
        }
    }
    let last = rest.iter().zip(rest_b).fold(T::default(), |sum, (&a, &b)| sum + a * b);
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + last
}
