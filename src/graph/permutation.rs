//! A permutation, which is checked when it is built.

use crate::backend::{Backend, GraphSteps, Host};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::parallel::rows::PARALLEL_FROM;
use crate::random::Random;
use crate::scalar::Element;

/// A permutation of rows, in both directions: old to new number, and new to old. As a matrix P, (P x)_new = x_old, and
/// P A P^T is the matrix whose rows and columns are both renumbered.
///
/// ```
/// use residua::graph::Permutation;
///
/// let p = Permutation::from_new_to_old(vec![2, 0, 1])?; // what was number 2 comes first
/// assert_eq!(p.old_to_new(), [1, 2, 0]);
/// assert_eq!(p.apply(&[10.0, 11.0, 12.0])?, [12.0, 10.0, 11.0]);
/// assert_eq!(p.apply_inverse(&[12.0, 10.0, 11.0])?, [10.0, 11.0, 12.0]);
/// # Ok::<(), residua::Error>(())
/// ```
#[derive(Debug)]
pub struct Permutation<B: Backend = Host> {
    new_to_old: B::Vec<u32>,
    old_to_new: B::Vec<u32>,
}

impl Clone for Permutation {
    fn clone(&self) -> Self {
        Self { new_to_old: self.new_to_old.clone(), old_to_new: self.old_to_new.clone() }
    }
}

impl PartialEq for Permutation {
    fn eq(&self, other: &Self) -> bool {
        self.new_to_old == other.new_to_old
    }
}

impl Eq for Permutation {}

impl<B: GraphSteps> Permutation<B> {
    /// The permutation that reverses an order; `order` holds the old number at each position, each number once.
    pub(super) fn reversed(backend: &B, order: &B::Slice<u32>) -> Result<Self> {
        let n = B::len(order);
        let (mut new_to_old, mut old_to_new) = (backend.zeros(n)?, backend.zeros(n)?);
        backend.reverse_order(order, &mut new_to_old, &mut old_to_new)?;
        Ok(Self { new_to_old, old_to_new })
    }

    /// The identity.
    pub(super) fn unchanged(backend: &B, len: usize) -> Result<Self> {
        let (mut new_to_old, mut old_to_new) = (backend.zeros(len)?, backend.zeros(len)?);
        backend.sequence::<u32>(&mut new_to_old)?;
        backend.sequence::<u32>(&mut old_to_new)?;
        Ok(Self { new_to_old, old_to_new })
    }

    /// A copy in the memory of a backend.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn from_host(backend: &B, permutation: &Permutation) -> Result<Self> {
        Ok(Self {
            new_to_old: backend.upload(permutation.new_to_old.clone())?,
            old_to_new: backend.upload(permutation.old_to_new.clone())?,
        })
    }

    /// A copy in the host's memory.
    ///
    /// # Errors
    /// As [`Permutation::from_host`].
    pub fn to_host(&self, backend: &B) -> Result<Permutation> {
        Ok(Permutation {
            new_to_old: backend.download(&*self.new_to_old)?,
            old_to_new: backend.download(&*self.old_to_new)?,
        })
    }

    /// `to` = P x, in the backend's memory.
    ///
    /// # Errors
    /// If a vector has the wrong length, or if the device fails.
    pub fn apply_on<T: Element>(&self, backend: &B, x: &B::Slice<T>, to: &mut B::Slice<T>) -> Result<()> {
        Error::check_dimension("length of the vector to permute", self.len(), B::len(x))?;
        backend.gather(x, &self.new_to_old, to)
    }

    /// `to` = P^T x, in the backend's memory.
    ///
    /// # Errors
    /// As [`Permutation::apply_on`].
    pub fn apply_inverse_on<T: Element>(
        &self,
        backend: &B,
        x: &B::Slice<T>,
        to: &mut B::Slice<T>,
    ) -> Result<()> {
        Error::check_dimension("length of the vector to permute", self.len(), B::len(x))?;
        backend.gather(x, &self.old_to_new, to)
    }
}

impl<B: Backend> Permutation<B> {
    /// A permutation from both arrays, each of which is the inverse of the other.
    pub(super) fn of_both(new_to_old: B::Vec<u32>, old_to_new: B::Vec<u32>) -> Self {
        Self { new_to_old, old_to_new }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        B::len(&*self.new_to_old)
    }

    /// Returns whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `new_to_old()[new]` = old.
    pub fn new_to_old(&self) -> &B::Slice<u32> {
        &self.new_to_old
    }

    /// `old_to_new()[old]` = new.
    pub fn old_to_new(&self) -> &B::Slice<u32> {
        &self.old_to_new
    }

    /// Takes both arrays out: new to old, old to new.
    pub fn into_parts(self) -> (B::Vec<u32>, B::Vec<u32>) {
        (self.new_to_old, self.old_to_new)
    }

    /// The inverse permutation.
    #[must_use]
    pub fn into_inverse(self) -> Self {
        Self { new_to_old: self.old_to_new, old_to_new: self.new_to_old }
    }
}

impl Permutation {
    /// A random permutation of `len` numbers, the same for the same seed (Fisher and Yates 1938; Durstenfeld 1964).
    ///
    /// # Errors
    /// If there are 2^32 numbers or more, or if memory runs out.
    pub fn random(len: usize, seed: u64) -> Result<Self> {
        let mut order: Vec<u32> = Self::identity(len)?.new_to_old;
        let mut random = Random::new(seed);
        for k in (1..order.len()).rev() {
            order.swap(k, random.below(k as u64 + 1) as usize);
        }
        Self::from_new_to_old(order)
    }

    /// The identity of `len` numbers.
    ///
    /// # Errors
    /// If `len` is 2^32 or more, or if memory runs out.
    pub fn identity(len: usize) -> Result<Self> {
        check_length(len)?;
        let mut numbers: Vec<u32> = Host.zeros(len)?;
        numbers.iter_mut().zip(0..).for_each(|(number, k)| *number = k);
        Ok(Self { old_to_new: numbers.clone(), new_to_old: numbers })
    }

    /// From the old number of each new one: the new order of the old rows.
    ///
    /// # Errors
    /// If a number below the length does not occur exactly once; the message names the first such number.
    pub fn from_new_to_old(new_to_old: Vec<u32>) -> Result<Self> {
        let old_to_new = inverse(&new_to_old)?;
        Ok(Self { new_to_old, old_to_new })
    }

    /// From the new number of each old one.
    ///
    /// # Errors
    /// As [`Permutation::from_new_to_old`].
    pub fn from_old_to_new(old_to_new: Vec<u32>) -> Result<Self> {
        let new_to_old = inverse(&old_to_new)?;
        Ok(Self { new_to_old, old_to_new })
    }

    /// Returns whether it is the identity.
    pub fn is_identity(&self) -> bool {
        self.new_to_old.iter().zip(0..).all(|(&old, new)| old == new)
    }

    /// This permutation followed by `next`.
    ///
    /// # Errors
    /// If lengths differ.
    pub fn then(&self, next: &Self) -> Result<Self> {
        Error::check_dimension("length of the second permutation", self.len(), next.len())?;
        Ok(Self {
            new_to_old: next.new_to_old.iter().map(|&middle| self.new_to_old[middle as usize]).collect(),
            old_to_new: self.old_to_new.iter().map(|&middle| next.old_to_new[middle as usize]).collect(),
        })
    }

    /// P x: the entry at the old number moves to the new.
    ///
    /// # Errors
    /// If a vector has the wrong length, or if memory runs out.
    pub fn apply<T: Element>(&self, x: &[T]) -> Result<Vec<T>> {
        gather(&self.new_to_old, x)
    }

    /// P^T x: the entry at the new number moves back to the old.
    ///
    /// # Errors
    /// As [`Permutation::apply`].
    pub fn apply_inverse<T: Element>(&self, x: &[T]) -> Result<Vec<T>> {
        gather(&self.old_to_new, x)
    }
}

fn gather<T: Element>(from: &[u32], x: &[T]) -> Result<Vec<T>> {
    Error::check_dimension("length of the vector to permute", from.len(), x.len())?;
    let mut y: Vec<T> = Host.zeros(x.len())?;
    y.par_iter_mut().zip(from).with_min_len(PARALLEL_FROM).for_each(|(y, &k)| *y = x[k as usize]);
    Ok(y)
}

fn check_length(len: usize) -> Result<()> {
    if len <= u32::MAX as usize {
        return Ok(());
    }
    Err(Error::Unsupported(format!("a permutation of {len} numbers: at most 2^32 - 1")))
}

fn inverse(numbers: &[u32]) -> Result<Vec<u32>> {
    const NONE: u32 = u32::MAX;
    let len = numbers.len();
    check_length(len)?;
    let mut places: Vec<u32> = Host.zeros(len)?;
    Host.fill(NONE, &mut places)?;
    for (place, &number) in numbers.iter().enumerate() {
        let Some(entry) = places.get_mut(number as usize) else {
            return Err(Error::InvalidArgument(format!(
                "permutation: entry {place} is {number}, but there are {len} numbers from 0"
            )));
        };
        if *entry != NONE {
            return Err(Error::InvalidArgument(format!(
                "permutation: entries {entry} and {place} are both {number}"
            )));
        }
        *entry = place as u32;
    }
    Ok(places)
}
