//! The entries of M for each front.

use super::super::faer_wrapper::Columns;
use super::tree::Tree;
use crate::direct::Factorable;
use crate::parallel::both;

/// How the entries of M are found.
pub(super) enum Source<'a, T> {
    Sorted(Entries<T>),
    /// For a symmetric M its columns, and the new index of each old one.
    Columns {
        m: Columns<'a>,
        values: &'a [T],
        place: Vec<u32>,
    },
}

impl<'a, T: Factorable> Source<'a, T> {
    pub(super) fn new(m: Columns<'a>, values: &'a [T], tree: &Tree) -> Self {
        if !tree.symmetric {
            return Self::Sorted(Entries::new(m, values, tree));
        }
        let mut place = vec![0_u32; m.columns];
        tree.order.iter().zip(0..).for_each(|(&old, new)| place[old as usize] = new);
        Self::Columns { m, values, place }
    }

    /// Passes the entries of a supernode's front to `each`, with their rows and columns.
    pub(super) fn each(&self, tree: &Tree, s: usize, mut each: impl FnMut(u32, u32, T)) {
        match self {
            Self::Sorted(entries) => {
                let range = entries.starts[s]..entries.starts[s + 1];
                for (&(i, j), &value) in both(&entries.places[range.clone()], &entries.values[range]) {
                    each(i, j, value);
                }
            }
            Self::Columns { m, values, place } => {
                for j in tree.begin[s]..tree.begin[s + 1] {
                    let old = tree.order[j as usize] as usize;
                    let range = m.starts[old] as usize..m.starts[old + 1] as usize;
                    for (&row, &value) in both(&m.indices[range.clone()], &values[range]) {
                        let i = place[row as usize];
                        if i >= j {
                            each(i, j, value);
                        }
                    }
                }
            }
        }
    }
}

/// The entries of M by supernode: those with a row or column in it, unless an earlier supernode has them.
pub(super) struct Entries<T> {
    starts: Vec<usize>,
    places: Vec<(u32, u32)>,
    values: Vec<T>,
}

impl<T: Factorable> Entries<T> {
    fn new(m: Columns<'_>, values: &[T], tree: &Tree) -> Self {
        let n = m.columns;
        let (mut place, mut of) = (vec![0_u32; n], vec![0_u32; n]);
        tree.order.iter().enumerate().for_each(|(new, &old)| place[old as usize] = new as u32);
        for s in 0..tree.len() {
            of[tree.begin[s] as usize..tree.begin[s + 1] as usize].fill(s as u32);
        }
        let owner = |i: u32, j: u32| of[i.min(j) as usize] as usize;
        let rows = |column: usize| m.starts[column] as usize..m.starts[column + 1] as usize;
        let mut starts = vec![0; tree.len() + 2];
        for column in 0..n {
            for &row in &m.indices[rows(column)] {
                let (i, j) = (place[row as usize], place[column]);
                starts[owner(i, j) + 2] += 1;
            }
        }
        for s in 0..tree.len() {
            starts[s + 2] += starts[s + 1];
        }
        let kept = starts[tree.len() + 1];
        let (mut places, mut sorted) = (vec![(0, 0); kept], vec![T::default(); kept]);
        for column in 0..n {
            for k in rows(column) {
                let (i, j) = (place[m.indices[k] as usize], place[column]);
                let at = &mut starts[owner(i, j) + 1];
                (places[*at], sorted[*at]) = ((i, j), values[k]);
                *at += 1;
            }
        }
        Self { starts, places, values: sorted }
    }
}
