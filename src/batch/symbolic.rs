//! The elimination of a sparse pattern, worked out once for all systems that have it: the order, the pattern of the
//! factors, and the place of each entry of A in them.
//!
//! Pivots stay on the diagonal, in the order of minimum degree of A + A^H, so that the pattern of the factors does not
//! depend on values:
//!
//! ```text
//! A  | 4 1   . |     order 1 2 0        rows of L \ U    | 5 2   |    columns  0 1 | 0 1 2 | 1 2
//!    | . 5 2   |     (new to old)                        | . 3 . |    diagonals  0     3     6
//!    |   . 3   |
//! ```

use crate::backend::{Backend, BatchElimination};
use crate::error::Result;
use crate::matrix::Csr;
use crate::prepare::minimum_degree;

/// The pattern of the factors, on the host.
pub(super) struct Symbolic {
    order: Vec<u32>,
    offsets: Vec<u32>,
    columns: Vec<u32>,
    diagonals: Vec<u32>,
    places: Vec<u32>,
    longest: usize,
    /// Multiplications of an elimination.
    pub(super) multiplications: f64,
}

/// The same in the memory of a backend.
#[derive(Debug)]
pub(super) struct Eliminated<B: Backend> {
    order: B::Vec<u32>,
    offsets: B::Vec<u32>,
    columns: B::Vec<u32>,
    diagonals: B::Vec<u32>,
    places: B::Vec<u32>,
    longest: usize,
}

impl Symbolic {
    /// None if a diagonal entry is not stored, or if the entries of the factors cannot be counted in 32 bits.
    pub(super) fn new(n: usize, offsets: &[u64], columns: &[u32]) -> Result<Option<Self>> {
        let rows = |i: usize| &columns[offsets[i] as usize..offsets[i + 1] as usize];
        if n == 0 || (0..n).any(|i| rows(i).binary_search(&(i as u32)).is_err()) {
            return Ok(None);
        }
        let starts = offsets.iter().map(|&offset| offset as usize).collect();
        let a = Csr::<f64>::from_parts(n, n, starts, columns.to_vec(), vec![1.0; columns.len()])?;
        let order = minimum_degree(&a)?.new_to_old().to_vec();
        let mut new = vec![0_u32; n];
        order.iter().enumerate().for_each(|(k, &old)| new[old as usize] = k as u32);

        // Row k of U has the later neighbours of k, and those of all rows of which k is the first later neighbour.
        let mut upper: Vec<Vec<u32>> = vec![Vec::new(); n];
        for i in 0..n {
            for &j in rows(i) {
                let (a, b) = (new[i].min(new[j as usize]), new[i].max(new[j as usize]));
                if a < b {
                    upper[a as usize].push(b);
                }
            }
        }
        let (mut lower, mut entries, mut multiplications) = (vec![Vec::new(); n], n, 0.0);
        for k in 0..n {
            let mut own = std::mem::take(&mut upper[k]);
            own.sort_unstable();
            own.dedup();
            if let Some((&parent, rest)) = own.split_first() {
                upper[parent as usize].extend_from_slice(rest);
            }
            own.iter().for_each(|&i| lower[i as usize].push(k as u32));
            entries += 2 * own.len();
            multiplications += (own.len() * (own.len() + 1)) as f64;
            upper[k] = own;
        }
        if entries > i32::MAX as usize {
            return Ok(None);
        }
        let (mut all, mut starts, mut diagonals) = (Vec::with_capacity(entries), vec![0_u32], Vec::new());
        for k in 0..n {
            all.extend_from_slice(&lower[k]);
            diagonals.push(all.len() as u32);
            all.push(k as u32);
            all.extend_from_slice(&upper[k]);
            starts.push(all.len() as u32);
        }
        let place = |i: usize, j: u32| {
            let (row, column) = (new[i] as usize, new[j as usize]);
            let own = &all[starts[row] as usize..starts[row + 1] as usize];
            starts[row] + own.partition_point(|&other| other < column) as u32
        };
        let places =
            (0..n).flat_map(|i| rows(i).iter().map(move |&j| (i, j))).map(|(i, j)| place(i, j)).collect();
        let longest = starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0);
        Ok(Some(Self { order, places, longest, offsets: starts, columns: all, diagonals, multiplications }))
    }

    /// Entries of the factors.
    pub(super) fn entries(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn into_memory<B: Backend>(self, backend: &B) -> Result<Eliminated<B>> {
        Ok(Eliminated {
            order: backend.upload(self.order)?,
            offsets: backend.upload(self.offsets)?,
            columns: backend.upload(self.columns)?,
            diagonals: backend.upload(self.diagonals)?,
            places: backend.upload(self.places)?,
            longest: self.longest,
        })
    }
}

impl<B: Backend> Eliminated<B> {
    pub(super) fn parts(&self) -> BatchElimination<'_, B> {
        BatchElimination {
            order: &self.order,
            offsets: &self.offsets,
            columns: &self.columns,
            diagonals: &self.diagonals,
            places: &self.places,
            longest: self.longest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Symbolic;

    #[test]
    fn factors_have_every_entry_that_elimination_makes() {
        // A ring: eliminating the first of it joins its neighbours.
        let n = 7_usize;
        let mut columns = Vec::new();
        let mut offsets = vec![0_u64];
        for i in 0..n {
            let mut own = [(i + n - 1) % n, i, (i + 1) % n].map(|j| j as u32);
            own.sort_unstable();
            columns.extend(own);
            offsets.push(columns.len() as u64);
        }
        let found = Symbolic::new(n, &offsets, &columns).unwrap().unwrap();
        let rows: Vec<&[u32]> = (0..n)
            .map(|k| &found.columns[found.offsets[k] as usize..found.offsets[k + 1] as usize])
            .collect();
        for k in 0..n {
            assert_eq!(found.columns[found.diagonals[k] as usize], k as u32);
            let after: Vec<u32> = rows[k].iter().copied().filter(|&j| j as usize > k).collect();
            for &i in &after {
                assert!(after.iter().all(|j| rows[i as usize].contains(j)), "row {i} lacks what {k} brings");
                assert!(rows[i as usize].contains(&(k as u32)), "the pattern is symmetric");
            }
        }
        assert_eq!(found.places.len(), columns.len());
        // Without a diagonal entry there is no pivot.
        assert!(Symbolic::new(2, &[0, 1, 2], &[1, 0]).unwrap().is_none());
    }
}
