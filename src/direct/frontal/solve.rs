//! Solves with the factors: M^-1 x and M^-T x.
//!
//! Subtrees are tasks for all threads. Each has its own part of x, and a few numbers for the rows after its columns,
//! which are those of its root. The same holds for each supernode near the root; those of a level are processed in
//! parallel, and all threads share the rows or columns of a large one.

use super::numeric::{Frontal, Stretch};
use super::symmetric::TWO;
use crate::direct::Factorable;
use crate::direct::lanes::{product, products, subtract, subtract_columns, subtract_four};
use crate::lock::lock;
use crate::parallel::prelude::*;
use crate::parallel::{Inlined, both, vectorised_whole};
use std::ops::Range;
use std::sync::Mutex;

/// With fewer entries in all factors, or in one supernode, more threads save no time.
const WORTH_THREADS: usize = 1 << 17;
/// Rows that a thread takes at a time.
const ROWS: usize = 512;
/// Columns that a thread takes at a time.
const COLUMNS: usize = 32;

/// The part of the vectors that consecutive supernodes use.
struct Part<'a, T, const N: usize> {
    /// The index of its first row.
    from: usize,
    own: &'a mut [[T; N]],
    /// The entries for the rows of the last supernode, which come after its columns.
    beyond: Vec<[T; N]>,
}

/// A supernode's columns of L and U11, and its rows of U.
struct Front<'a, T> {
    width: usize,
    height: usize,
    panel: &'a [T],
    upper: &'a [T],
    /// The rows below its own: those within the current part, and the places of the others among the rows after it.
    inside: &'a [u32],
    outside: &'a [u32],
    /// The index of its own first entry of the vector.
    begin: usize,
    swaps: &'a [u32],
    /// Whether all threads work on its rows or columns.
    is_large: bool,
}

impl<T: Factorable, const N: usize> Part<'_, T, N> {
    /// Adds numbers to the entries of the rows below a front.
    #[inline(always)]
    fn add(&mut self, front: &Front<'_, T>, below: &[[T; N]]) {
        let (inside, outside) = below.split_at(front.inside.len());
        for (&row, values) in both(front.inside, inside) {
            add(&mut self.own[row as usize - self.from], values);
        }
        for (&row, values) in both(front.outside, outside) {
            add(&mut self.beyond[row as usize], values);
        }
    }

    /// Collects the entries of the rows below a front.
    #[inline(always)]
    fn gather(&self, front: &Front<'_, T>, below: &mut Vec<[T; N]>) {
        below.clear();
        below.extend(front.inside.iter().map(|&row| self.own[row as usize - self.from]));
        below.extend(front.outside.iter().map(|&row| self.beyond[row as usize]));
    }

    /// Returns whether a front has nothing to do on the way up, as is the case for most fronts if the vector has few
    /// nonzeros.
    #[inline(always)]
    fn is_zero(&mut self, front: &Front<'_, T>) -> bool {
        self.own(front).as_flattened().iter().all(|x| *x == T::default())
    }

    fn own(&mut self, front: &Front<'_, T>) -> &mut [[T; N]] {
        &mut self.own[front.begin - self.from..][..front.width]
    }
}

#[inline(always)]
fn add<T: Factorable, const N: usize>(to: &mut [T; N], values: &[T; N]) {
    for v in 0..N {
        to[v] += values[v];
    }
}

/// Memory for the rows below a front, and for its columns.
struct Scratch<T, const N: usize> {
    below: Vec<[T; N]>,
    products: Vec<[T; N]>,
}

/// What is done with a front and a part of the vectors. These are functions, not pointers to them: they have to be
/// inlined to be compiled for wide registers.
trait Step<T, const N: usize>: Fn(&Front<'_, T>, &mut Part<'_, T, N>, &mut Scratch<T, N>) + Copy + Sync {}

impl<T, const N: usize, F> Step<T, N> for F where
    F: Fn(&Front<'_, T>, &mut Part<'_, T, N>, &mut Scratch<T, N>) + Copy + Sync
{
}

/// A step on supernodes of a piece, one after the other.
struct Steps<'a, 'p, T, I, F, const N: usize> {
    frontal: &'a Frontal<T>,
    piece: &'a Stretch,
    supernodes: I,
    part: &'a mut Part<'p, T, N>,
    step: F,
}

impl<T: Factorable, I: Iterator<Item = usize>, F: Step<T, N>, const N: usize> Inlined
    for Steps<'_, '_, T, I, F, N>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { frontal, piece, supernodes, part, step } = self;
        let scratch = &mut Scratch { below: Vec::new(), products: Vec::new() };
        for s in supernodes {
            step(&frontal.front(s, piece), part, scratch);
        }
    }
}

impl<T: Factorable> Frontal<T> {
    /// Replaces x by M^-1 x, or by M^-T x if `transposed`, for `N` vectors; `work` is as long as x.
    pub(in super::super) fn solve<const N: usize>(
        &self,
        transposed: bool,
        x: &mut [[T; N]],
        work: &mut [[T; N]],
    ) {
        let order = &self.tree.order;
        let least = (1 << 13) / N;
        work.par_iter_mut().enumerate().with_min_len(least).for_each(|(new, value)| {
            *value = x[order[new] as usize];
        });
        if self.tree.symmetric {
            self.up(work, lower_symmetric);
            self.down(work, upper_symmetric);
        } else if transposed {
            self.up(work, upper_transposed);
            self.down(work, lower_transposed);
        } else {
            self.up(work, lower);
            self.down(work, upper);
        }
        x.par_iter_mut().enumerate().with_min_len(least).for_each(|(old, value)| {
            *value = work[self.place[old] as usize];
        });
    }

    /// Applies `step` to all supernodes, from the leaves to the root.
    fn up<const N: usize>(&self, x: &mut [[T; N]], step: impl Step<T, N>) {
        let parts = self.parts(x);
        for level in &self.levels {
            self.on_threads(level, |number, piece| {
                let own = &mut *lock(&parts[number]);
                let width = self.width(piece);
                for &child in &piece.children {
                    for (&at, values) in both(&self.pieces[child].place, &lock(&parts[child]).beyond) {
                        match (at as usize).checked_sub(width) {
                            None => add(&mut own.own[at as usize], values),
                            Some(at) => add(&mut own.beyond[at], values),
                        }
                    }
                }
                let (frontal, supernodes) = (self, piece.supernodes.clone());
                vectorised_whole(Steps { frontal, piece, supernodes, part: own, step });
            });
        }
    }

    /// Applies `step` to all supernodes, from the root to the leaves.
    fn down<const N: usize>(&self, x: &mut [[T; N]], step: impl Step<T, N>) {
        let parts = self.parts(x);
        for level in self.levels.iter().rev() {
            self.on_threads(level, |number, piece| {
                let own = &mut *lock(&parts[number]);
                if let Some(parent) = piece.parent {
                    let (width, above) = (self.width(&self.pieces[parent]), lock(&parts[parent]));
                    for (values, &at) in own.beyond.iter_mut().zip(&piece.place) {
                        *values = match (at as usize).checked_sub(width) {
                            None => above.own[at as usize],
                            Some(at) => above.beyond[at],
                        };
                    }
                }
                let (frontal, supernodes) = (self, piece.supernodes.clone().rev());
                vectorised_whole(Steps { frontal, piece, supernodes, part: own, step });
            });
        }
    }

    /// The number of columns of a piece's root.
    fn width(&self, piece: &Stretch) -> usize {
        self.tree.shape(piece.supernodes.end - 1).0
    }

    /// Divides the vectors among the pieces.
    fn parts<'a, const N: usize>(&self, mut x: &'a mut [[T; N]]) -> Vec<Mutex<Part<'a, T, N>>> {
        let part = |piece: &Stretch| {
            let Range { start, end } = piece.supernodes.clone();
            let (from, rows) = (self.tree.begin[start] as usize, self.tree.shape(end - 1).1);
            let (own, behind) = std::mem::take(&mut x).split_at_mut(self.tree.begin[end] as usize - from);
            x = behind;
            Mutex::new(Part { from, own, beyond: vec![[T::default(); N]; rows] })
        };
        self.pieces.iter().map(part).collect()
    }

    /// Calls a function for pieces that are independent of each other.
    fn on_threads(&self, pieces: &[u32], each: impl Fn(usize, &Stretch) + Sync) {
        let at_once = if self.tree.all_entries() < WORTH_THREADS { pieces.len() } else { 1 };
        pieces.par_iter().with_min_len(at_once).for_each(|&number| {
            each(number as usize, &self.pieces[number as usize]);
        });
    }

    #[inline(always)]
    fn front(&self, s: usize, piece: &Stretch) -> Front<'_, T> {
        let (w, r) = self.tree.shape(s);
        let (number, first) = self.at[s];
        let entries = self.tree.entries(s);
        let (panel, upper) = self.values[number as usize][first..][..entries].split_at(w * (w + r));
        let (rows, begin) = (self.tree.rows(s), self.tree.begin[s] as usize);
        let outside = &self.beyond[self.beyond_at[s]..self.beyond_at[s + 1]];
        let inside = &rows[..r - outside.len()];
        let swaps = &self.swaps[begin..begin + w];
        let is_large = !piece.is_subtree && entries > WORTH_THREADS;
        Front { width: w, height: w + r, panel, upper, inside, outside, begin, swaps, is_large }
    }
}

/// [`subtract_columns`] of a large front's rows.
struct Columns<'a, T, const N: usize> {
    y: &'a mut [[T; N]],
    columns: (&'a [T], usize, usize),
    factors: &'a [[T; N]],
}

impl<T: Factorable, const N: usize> Inlined for Columns<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        subtract_columns(self.y, self.columns, self.factors);
    }
}

/// [`products`] of a large front's columns.
struct Products<'a, T, const N: usize> {
    columns: (&'a [T], usize, usize),
    below: &'a [[T; N]],
    found: &'a mut [[T; N]],
}

impl<T: Factorable, const N: usize> Inlined for Products<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        products(self.columns, self.below, self.found);
    }
}

/// Computes minus the sum of a front's columns below its own rows, times factors.
#[inline(always)]
fn columns_below<T: Factorable, const N: usize>(
    front: &Front<'_, T>,
    factors: &[[T; N]],
    below: &mut Vec<[T; N]>,
) {
    let (w, m) = (front.width, front.height);
    below.clear();
    below.resize(m - w, [T::default(); N]);
    if !front.is_large {
        return subtract_columns(below, (front.panel, m, w), factors);
    }
    below.par_chunks_mut(ROWS).enumerate().for_each(|(chunk, y)| {
        vectorised_whole(Columns { y, columns: (front.panel, m, w + chunk * ROWS), factors });
    });
}

/// Computes the products of a front's columns, below its own rows, with the vectors.
#[inline(always)]
fn products_below<'a, T: Factorable, const N: usize>(
    front: &Front<'_, T>,
    scratch: &'a mut Scratch<T, N>,
) -> &'a [[T; N]] {
    let (w, m) = (front.width, front.height);
    let Scratch { below, products: found } = scratch;
    found.clear();
    found.resize(w, [T::default(); N]);
    if front.is_large {
        found.par_chunks_mut(COLUMNS).enumerate().for_each(|(chunk, found)| {
            vectorised_whole(Products { columns: (&front.panel[chunk * COLUMNS * m..], m, w), below, found });
        });
    } else {
        products((front.panel, m, w), below, found);
    }
    found
}

/// Solves with L and then with D, which is stored on the diagonal.
#[inline(always)]
fn lower_symmetric<T: Factorable, const N: usize>(
    front: &Front<'_, T>,
    x: &mut Part<'_, T, N>,
    scratch: &mut Scratch<T, N>,
) {
    let (w, m, panel, swaps) = (front.width, front.height, front.panel, front.swaps);
    if x.is_zero(front) {
        return;
    }
    let own = x.own(front);
    for (k, &with) in swaps.iter().enumerate() {
        own.swap(k, (with & !TWO) as usize);
    }
    for k in 0..w {
        let factors = own[k];
        let column = &panel[k * m..(k + 1) * m];
        let next = k + 1 + usize::from(swaps[k] & TWO != 0);
        subtract(&mut own[next..], &column[next..w], factors);
    }
    columns_below(front, own, &mut scratch.below);
    x.add(front, &scratch.below);
    let own = x.own(front);
    let mut k = 0;
    while k < w {
        let pivot = panel[k * m + k];
        if swaps[k] & TWO == 0 {
            own[k].iter_mut().for_each(|value| *value /= pivot);
            k += 1;
            continue;
        }
        let off = panel[k * m + k + 1];
        let (one, two) = (pivot / off, panel[(k + 1) * m + k + 1] / off);
        let inverse = T::from_f64(1.0) / (off * (one * two - T::from_f64(1.0)));
        let (first, second) = (own[k], own[k + 1]);
        own[k] = std::array::from_fn(|v| (first[v] * two - second[v]) * inverse);
        own[k + 1] = std::array::from_fn(|v| (second[v] * one - first[v]) * inverse);
        k += 2;
    }
}

/// Solves with L^T.
#[inline(always)]
fn upper_symmetric<T: Factorable, const N: usize>(
    front: &Front<'_, T>,
    x: &mut Part<'_, T, N>,
    scratch: &mut Scratch<T, N>,
) {
    let (w, m, panel, swaps) = (front.width, front.height, front.panel, front.swaps);
    x.gather(front, &mut scratch.below);
    let products = products_below(front, scratch);
    let own = x.own(front);
    for k in (0..w).rev() {
        let next = k + 1 + usize::from(swaps[k] & TWO != 0);
        take_products(own, k, (&panel[k * m + next..k * m + w], next), &products[k]);
    }
    for (k, &with) in swaps.iter().enumerate().rev() {
        own.swap(k, (with & !TWO) as usize);
    }
}

#[inline(always)]
fn lower<T: Factorable, const N: usize>(
    front: &Front<'_, T>,
    x: &mut Part<'_, T, N>,
    scratch: &mut Scratch<T, N>,
) {
    let (w, m, panel) = (front.width, front.height, front.panel);
    if x.is_zero(front) {
        return;
    }
    let own = x.own(front);
    for (k, &with) in front.swaps.iter().enumerate() {
        own.swap(k, with as usize);
    }
    let fours = w - w % 4;
    for from in (0..fours).step_by(4) {
        let (four, rest) = own[from..].split_at_mut(4);
        for k in 0..3 {
            let (factors, column) = (four[k], &panel[(from + k) * m + from..][..4]);
            subtract(&mut four[k + 1..], &column[k + 1..], factors);
        }
        let column = |k: usize| &panel[(from + k) * m + from + 4..(from + k) * m + w];
        subtract_four(rest, std::array::from_fn(column), std::array::from_fn(|k| four[k]));
    }
    for k in fours..w {
        let factors = own[k];
        subtract(&mut own[k + 1..], &panel[k * m + k + 1..k * m + w], factors);
    }
    columns_below(front, own, &mut scratch.below);
    x.add(front, &scratch.below);
}

#[inline(always)]
fn upper<T: Factorable, const N: usize>(
    front: &Front<'_, T>,
    x: &mut Part<'_, T, N>,
    scratch: &mut Scratch<T, N>,
) {
    let (w, m, panel) = (front.width, front.height, front.panel);
    x.gather(front, &mut scratch.below);
    let own = x.own(front);
    subtract_columns(own, (front.upper, w, 0), &scratch.below);
    let first = w % 4;
    for from in (first..w).step_by(4).rev() {
        let (rest, four) = own[..from + 4].split_at_mut(from);
        for k in (0..4).rev() {
            let column = &panel[(from + k) * m + from..][..k + 1];
            four[k].iter_mut().for_each(|value| *value /= column[k]);
            let factors = four[k];
            subtract(&mut four[..k], column, factors);
        }
        // The last column comes first, as if they were taken one by one.
        let column = |k: usize| &panel[(from + 3 - k) * m..][..from];
        subtract_four(rest, std::array::from_fn(column), std::array::from_fn(|k| four[3 - k]));
    }
    for k in (0..first).rev() {
        let column = &panel[k * m..k * m + k + 1];
        own[k].iter_mut().for_each(|value| *value /= column[k]);
        let factors = own[k];
        subtract(&mut own[..k], column, factors);
    }
}

#[inline(always)]
fn upper_transposed<T: Factorable, const N: usize>(
    front: &Front<'_, T>,
    x: &mut Part<'_, T, N>,
    scratch: &mut Scratch<T, N>,
) {
    let (w, m, panel) = (front.width, front.height, front.panel);
    if x.is_zero(front) {
        return;
    }
    let own = x.own(front);
    for k in 0..w {
        let column = &panel[k * m..k * m + k + 1];
        take_products(own, k, (&column[..k], 0), &[T::default(); N]);
        own[k].iter_mut().for_each(|value| *value /= column[k]);
    }
    let below = &mut scratch.below;
    below.clear();
    below.extend(front.upper.chunks_exact(w).map(|column| product(column, own).map(|value| -value)));
    x.add(front, below);
}

#[inline(always)]
fn lower_transposed<T: Factorable, const N: usize>(
    front: &Front<'_, T>,
    x: &mut Part<'_, T, N>,
    scratch: &mut Scratch<T, N>,
) {
    let (w, m, panel) = (front.width, front.height, front.panel);
    x.gather(front, &mut scratch.below);
    let products = products_below(front, scratch);
    let own = x.own(front);
    for k in (0..w).rev() {
        take_products(own, k, (&panel[k * m + k + 1..k * m + w], k + 1), &products[k]);
    }
    for (k, &with) in front.swaps.iter().enumerate().rev() {
        own.swap(k, with as usize);
    }
}

/// Subtracts from row k the product of a column with the rows from `first` on, and what else is known.
#[inline(always)]
fn take_products<T: Factorable, const N: usize>(
    own: &mut [[T; N]],
    k: usize,
    (column, first): (&[T], usize),
    more: &[T; N],
) {
    let found = product(column, &own[first..][..column.len()]);
    for v in 0..N {
        own[k][v] -= found[v] + more[v];
    }
}
