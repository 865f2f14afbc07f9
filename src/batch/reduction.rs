//! Rows that an iteration eliminates beforehand: no two of them have an entry in each other's columns, so that each is
//! solved for its own unknown by a division. On a grid they are every second node.

use super::pattern::Pattern;
use crate::backend::{Backend, BatchReduction};
use crate::error::Result;

/// The rows of all systems, in the memory of a backend.
#[derive(Debug)]
pub(super) struct Reduced<B: Backend> {
    order: B::Vec<u32>,
    eliminated: B::Vec<u32>,
    fewest: usize,
}

/// Appends the rows of one system to the order, those that can be eliminated first, and returns how many these are.
fn append(offsets: &[u64], columns: &[u32], order: &mut Vec<u32>) -> u32 {
    let n = offsets.len() - 1;
    let (mut gone, mut named) = (vec![false; n], vec![false; n]);
    for i in 0..n {
        let own = &columns[offsets[i] as usize..offsets[i + 1] as usize];
        let free = !named[i] && own.iter().all(|&j| !gone[j as usize]);
        if free && own.binary_search(&(i as u32)).is_ok() {
            gone[i] = true;
            own.iter().for_each(|&j| named[j as usize] = true);
        }
    }
    order.extend((0..n as u32).filter(|&i| gone[i as usize]));
    order.extend((0..n as u32).filter(|&i| !gone[i as usize]));
    gone.into_iter().filter(|gone| *gone).count() as u32
}

impl<B: Backend> Reduced<B> {
    /// None if systems are dense.
    pub(super) fn new(backend: &B, pattern: &Pattern<B>) -> Result<Option<Self>> {
        let mut order = Vec::new();
        let found = pattern.each_pattern(|offsets, columns| append(offsets, columns, &mut order));
        let Some(eliminated) = found else { return Ok(None) };
        let fewest = eliminated.iter().min().map_or(0, |&fewest| fewest as usize);
        let (order, eliminated) = (backend.upload(order)?, backend.upload(eliminated)?);
        Ok(Some(Self { order, eliminated, fewest }))
    }

    pub(super) fn parts(&self) -> BatchReduction<'_, B> {
        BatchReduction { order: &self.order, eliminated: &self.eliminated, fewest: self.fewest }
    }
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn eliminated_rows_do_not_depend_on_each_other() {
        // | x x . . |   Row 0 names column 1, and row 2 names column 0, so that neither goes with row 0; row 3 has no
        // | . x . . |   diagonal entry.
        // | x . x . |
        // | . . x . |
        let mut order = vec![9];
        let offsets = [0, 2, 3, 5, 6];
        assert_eq!(append(&offsets, &[0, 1, 1, 0, 2, 2], &mut order), 1);
        assert_eq!(order, [9, 0, 1, 2, 3]);
        // Every second unknown of a chain.
        order.clear();
        assert_eq!(append(&[0, 2, 5, 8, 10], &[0, 1, 0, 1, 2, 1, 2, 3, 2, 3], &mut order), 2);
        assert_eq!(order, [0, 2, 1, 3]);
    }
}
