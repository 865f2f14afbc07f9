//! Solves with the factors of a band, and products with the band, for several vectors at once.

use super::{BandFactors, Banded};
use crate::backend::Op;
use crate::direct::Factorable;
use crate::direct::lanes::{subtract, subtract_row};
use crate::parallel::both;

impl<T: Factorable> BandFactors<T> {
    /// x by the factors, in place, for `N` vectors.
    #[inline(always)]
    pub(in crate::direct) fn substitute<const N: usize>(&self, op: Op, x: &mut [[T; N]]) {
        let conjugate = |x: &mut [[T; N]]| x.iter_mut().for_each(|x| *x = x.map(T::conj));
        if op.conjugates() {
            // conj(op(A)) conj(x) = conj(b).
            conjugate(x);
        }
        if op.transposes() {
            self.substitute_transposed(x)
        } else {
            self.substitute_plain(x)
        }
        if op.conjugates() {
            conjugate(x);
        }
    }

    #[inline(always)]
    pub(super) fn substitute_plain<const N: usize>(&self, x: &mut [[T; N]]) {
        // For three and five diagonals the compiler knows the lengths of the loops.
        match (self.below, self.above) {
            (1, 1) => self.substitute_fixed::<1, 2, N>(x),
            (2, 2) => self.substitute_fixed::<2, 4, N>(x),
            _ => self.substitute_fixed::<0, 0, N>(x),
        }
    }

    /// `substitute` with `UNDER` multipliers per column and `OVER` entries of U above the diagonal; 0 stands for
    /// numbers that are known only at run time.
    #[inline(always)]
    fn substitute_fixed<const UNDER: usize, const OVER: usize, const N: usize>(&self, x: &mut [[T; N]]) {
        let diagonal = self.below + self.above;
        let tall = diagonal + self.below + 1;
        if self.below > 0 {
            for (j, column) in self.values.chunks_exact(tall).enumerate() {
                x.swap(j, self.pivots[j] as usize);
                let values = x[j];
                if UNDER > 0
                    && let Some(under) = x[j + 1..].first_chunk_mut::<UNDER>()
                {
                    for k in 0..UNDER {
                        subtract_row(&mut under[k], column[diagonal + 1 + k], &values);
                    }
                    continue;
                }
                let under = self.below.min(self.n - 1 - j);
                subtract(&mut x[j + 1..], &column[diagonal + 1..][..under], values);
            }
        }
        for (j, column) in self.values.chunks_exact(tall).enumerate().rev() {
            let mut values = x[j];
            for value in &mut values {
                *value *= column[diagonal];
            }
            x[j] = values;
            if OVER > 0
                && let Some(over) = x[..j].last_chunk_mut::<OVER>()
            {
                for k in 0..OVER {
                    subtract_row(&mut over[k], column[diagonal - OVER + k], &values);
                }
                continue;
            }
            let over = diagonal.min(j);
            subtract(&mut x[j - over..j], &column[diagonal - over..diagonal], values);
        }
    }

    #[inline(always)]
    pub(super) fn substitute_transposed<const N: usize>(&self, x: &mut [[T; N]]) {
        let diagonal = self.below + self.above;
        let tall = diagonal + self.below + 1;
        for (j, column) in self.values.chunks_exact(tall).enumerate() {
            let over = diagonal.min(j);
            let mut row = x[j];
            for (x, &factor) in both(&x[j - over..j], &column[diagonal - over..diagonal]) {
                subtract_row(&mut row, factor, x);
            }
            for value in &mut row {
                *value *= column[diagonal];
            }
            x[j] = row;
        }
        if self.below > 0 {
            for (j, column) in self.values.chunks_exact(tall).enumerate().rev() {
                let under = self.below.min(self.n - 1 - j);
                let mut row = x[j];
                for (x, &multiplier) in both(&x[j + 1..][..under], &column[diagonal + 1..][..under]) {
                    subtract_row(&mut row, multiplier, x);
                }
                x[j] = row;
                x.swap(j, self.pivots[j] as usize);
            }
        }
    }
}

impl<T: Factorable> Banded<T> {
    /// r -= op(A) x, for `N` vectors.
    #[inline(always)]
    pub(super) fn take_product<const N: usize>(&self, op: Op, x: &[[T; N]], r: &mut [[T; N]]) {
        let (n, (below, above)) = (self.rows(), self.widths());
        if op == Op::None && (below, above) == (1, 1) && n > 2 {
            return self.take_product_of_three(x, r);
        }
        for (j, column) in self.a.chunks_exact(below + above + 1).enumerate() {
            let (first, end) = (j.saturating_sub(above), (j + below + 1).min(n));
            let column = &column[above + first - j..][..end - first];
            match op {
                Op::None => subtract(&mut r[first..end], column, x[j]),
                Op::Conjugate => {
                    for (r, value) in r[first..end].iter_mut().zip(column) {
                        subtract_row(r, value.conj(), &x[j]);
                    }
                }
                Op::Transpose => {
                    for (x, &value) in both(&x[first..end], column) {
                        subtract_row(&mut r[j], value, x);
                    }
                }
                Op::ConjugateTranspose => {
                    for (x, value) in both(&x[first..end], column) {
                        subtract_row(&mut r[j], value.conj(), x);
                    }
                }
            }
        }
    }

    /// `take_product` for three diagonals, row by row.
    #[inline(always)]
    fn take_product_of_three<const N: usize>(&self, x: &[[T; N]], r: &mut [[T; N]]) {
        // Columns j - 1, j and j + 1: their entries below, on and above the diagonal are in row j.
        let (columns, _) = self.a.as_chunks::<3>();
        let last = self.rows() - 1;
        for v in 0..N {
            r[0][v] = r[0][v] - columns[0][1] * x[0][v] - columns[1][0] * x[1][v];
        }
        for ((r, columns), x) in r[1..last].iter_mut().zip(columns.windows(3)).zip(x.windows(3)) {
            for v in 0..N {
                r[v] = r[v] - columns[0][2] * x[0][v] - columns[1][1] * x[1][v] - columns[2][0] * x[2][v];
            }
        }
        for v in 0..N {
            r[last][v] = r[last][v] - columns[last - 1][2] * x[last - 1][v] - columns[last][1] * x[last][v];
        }
    }
}
