//! Distributed solvers to which each process gives its rows, as MPI programs have them.
//!
//! Each process keeps the rows that it gave, and no process has the whole matrix. The matrix is gathered only for
//! another order of the unknowns (which needs all of it), for a process without rows, or for a factorisation. Each
//! process then keeps the part that [`SpreadSolver`] assigns to it, and vectors are redistributed before and after a
//! solve. The solver chooses this by itself only if halos are large and there is enough memory.

use super::consensus::SMALL_HALO;
use super::{Builder, Method, Progress, Reorder, Solvable, SolveReport, SpreadSolver};
use crate::backend::Host;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::ranks::Group;
use crate::scalar::Symmetry;
use crate::spread::halo_beyond;
use std::fmt;
use std::ops::{ControlFlow, Range};

/// A solver for a square matrix of which each process of a group has some rows, on the CPU. All processes create it,
/// with the same settings, and all take part in each solve.
///
/// ```no_run
/// use residua::prelude::*;
/// use residua::ranks::Group;
/// use std::ops::ControlFlow;
/// let group = Group::mpi_world()?;
/// // Row r of the identity of as many rows as there are processes.
/// let own = Csr::from_parts(1, group.ranks(), vec![0, 1], vec![group.rank() as u32], vec![1.0]);
/// let mut solver = Solver::builder().build_rows(&group, own)?;
/// let mut x = vec![0.0];
/// solver.solve_with(&[2.0], &mut x, |_| ControlFlow::Continue(()))?;
/// assert_eq!(x, [2.0]);
/// group.leave(0);
/// # Ok::<(), Error>(())
/// ```
pub struct RowsSolver<T: Solvable> {
    group: Group,
    solver: SpreadSolver<T, Host, Group>,
    /// Rows that each process has given.
    rows: Vec<usize>,
    /// True if each process solves for the rows that it gave.
    in_place: bool,
    nonzeros: usize,
}

/// A report with the residual norms at the start and after each iteration.
pub type Told = (SolveReport, Vec<f64>);

impl Builder {
    /// A solver for the rows that each process has: these follow those of the process before it, and have global column
    /// indices. A process that could not read its rows passes its error, which all processes return.
    ///
    /// # Errors
    /// If a process passed an error, if the rows are not those of one square matrix, and as [`Builder::build_spread`].
    pub fn build_rows<T: Solvable>(&self, group: &Group, own: Result<Csr<T>>) -> Result<RowsSolver<T>> {
        group.agree_on("type of values", T::NAME.as_bytes())?;
        let own = together(group, own)?;
        let all = numbers(group, [own.rows(), own.nonzeros()].into_iter().map(|number| number as u64))?;
        let each = |k: usize| all.iter().map(|words| words[k] as usize).collect::<Vec<_>>();
        let (rows, nonzeros) = (each(0), each(1).into_iter().sum());
        let parts = parts_of(&rows);
        let own = together(group, checked(own, &parts))?;
        let in_place = !self.wants_the_whole(group, &own, &parts, nonzeros)?;
        let solver = if in_place {
            self.build_spread_rows_on(&Host, group.clone(), own, &parts)
        } else {
            let a = whole(group, &own)?;
            drop(own);
            self.build_spread(&Host, group.clone(), &a)
        };
        let solver = together(group, solver)?;
        Ok(RowsSolver { group: group.clone(), solver, rows, in_place, nonzeros })
    }

    /// Returns whether to gather the whole matrix, for another order of its unknowns or for a factorisation, which one
    /// process makes. All processes get the same answer.
    fn wants_the_whole<T: Solvable>(
        &self,
        group: &Group,
        own: &Csr<T>,
        parts: &[Range<usize>],
        nonzeros: usize,
    ) -> Result<bool> {
        let n = own.columns();
        let order = self.order()?;
        let mut methods = self.candidates.iter().map(|(method, _)| *method).chain([self.method]);
        let has_factors = methods.any(|method| method == Method::Direct);
        if parts.iter().any(Range::is_empty) || order == Reorder::Rcm || has_factors {
            return Ok(true);
        }
        if order == Reorder::None {
            return Ok(false);
        }
        let halo = halo_beyond(own, &(0..own.rows()), &parts[group.rank()]).len();
        let free = free_memory().unwrap_or(u64::MAX);
        let all = numbers(group, [halo as u64, free].into_iter())?;
        let halos: u64 = all.iter().map(|words| words[0]).sum();
        let free = all.iter().map(|words| words[1]).min().unwrap_or(0);
        // The whole matrix and a renumbered copy, on each process of this machine.
        let each = nonzeros * (size_of::<T>() + size_of::<u32>()) + n * size_of::<u64>();
        let processes = if group.is_one_machine() { group.ranks() } else { 1 };
        let fits = (2 * each * processes) as u64 <= free / 2;
        Ok(halos as f64 > SMALL_HALO * n as f64 && fits)
    }
}

impl<T: Solvable> fmt::Debug for RowsSolver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowsSolver of {} rows of {}", self.own_rows(), self.rows())
    }
}

impl<T: Solvable> RowsSolver<T> {
    /// Solves for several right-hand sides. `b` has this process's entries of each, one after another; `x` has the
    /// starting vectors, and gets the solutions. Returns a report for each. The observer of any process can stop a
    /// solve on all of them.
    ///
    /// # Errors
    /// If a length is not a multiple of this process's rows, if processes have different numbers of right-hand sides,
    /// and as [`SpreadSolver::solve_with`]. An error on one process is returned by all.
    pub fn solve_with(
        &mut self,
        b: &[T],
        x: &mut [T],
        observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Vec<Told>> {
        let solved = self.solve_each(b, x, observer);
        if let Err(error) = &solved
            && !matches!(error, Error::Rank { .. })
        {
            self.group.fail(error);
        }
        solved
    }

    fn solve_each(
        &mut self,
        b: &[T],
        x: &mut [T],
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Vec<Told>> {
        let own = self.own_rows();
        Error::check_dimension("length of x", b.len(), x.len())?;
        if own == 0 || !b.len().is_multiple_of(own) {
            return Err(Error::InvalidArgument(format!(
                "b has {} entries, but this process has {own} rows of A",
                b.len()
            )));
        }
        self.group.agree_on("number of right-hand sides", &(b.len() / own).to_le_bytes())?;
        let columns = b.chunks_exact(own).zip(x.chunks_exact_mut(own)).enumerate();
        columns
            .map(|(number, (b, x))| {
                self.solve_one(b, x, |now| observer(&Progress { right_hand_side: number, ..*now }))
            })
            .collect()
    }

    fn solve_one(
        &mut self,
        b: &[T],
        x: &mut [T],
        observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Told> {
        if self.in_place {
            let report = self.solver.solve_with(b, x, observer)?;
            return Ok((report, self.solver.history().to_vec()));
        }
        let own_b = self.solver.own_part(&gathered(&self.group, b)?);
        let mut own_x = self.solver.own_part(&gathered(&self.group, x)?);
        let report = self.solver.solve_with(&own_b, &mut own_x, observer)?;
        let mut to_each = vec![Vec::new(); self.group.ranks()];
        if let Some(whole) = self.solver.whole(&own_x)? {
            let mut left = &whole[..];
            for (bytes, &rows) in to_each.iter_mut().zip(&self.rows) {
                let (first, rest) = left.split_at(rows);
                (*bytes, left) = (to_bytes(first), rest);
            }
        }
        let mine = self.group.scatter(&to_each)?;
        x.iter_mut().zip(of_bytes(&mine)).for_each(|(place, value)| *place = value);
        Ok((report, self.solver.history().to_vec()))
    }

    /// Rows that this process gave.
    pub fn own_rows(&self) -> usize {
        self.rows[self.group.rank()]
    }

    /// Rows of the whole matrix.
    pub fn rows(&self) -> usize {
        self.rows.iter().sum()
    }

    /// Stored entries of the whole matrix.
    pub fn nonzeros(&self) -> usize {
        self.nonzeros
    }

    /// [`Symmetry::Symmetric`] if A equals its transpose, or else [`Symmetry::Hermitian`] if it equals its conjugate
    /// transpose.
    pub fn symmetry(&self) -> Symmetry {
        self.solver.symmetry()
    }

    /// The processes.
    pub fn group(&self) -> &Group {
        &self.group
    }
}

/// Waits until all processes have finished a step, and returns this process's result. If one failed, all return an
/// error.
fn together<R>(group: &Group, made: Result<R>) -> Result<R> {
    let own = made.as_ref().err().map_or_else(String::new, Error::to_string);
    let all = group.all_gather(own.as_bytes())?;
    let failed = all.iter().position(|told| !told.is_empty());
    match (made, failed) {
        (Ok(_), Some(rank)) => {
            let cause = String::from_utf8_lossy(&all[rank]).into_owned();
            Err(Error::Rank { rank, ranks: group.ranks(), cause })
        }
        (made, _) => made,
    }
}

fn to_bytes<T: Solvable>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|value| value.bits()).flat_map(u64::to_le_bytes).collect()
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

fn of_bytes<T: Solvable>(bytes: &[u8]) -> impl Iterator<Item = T> + '_ {
    bytes.as_chunks::<16>().0.iter().map(|bytes| {
        let mut bits = words(bytes);
        T::from_bits([bits.next().unwrap_or(0), bits.next().unwrap_or(0)])
    })
}

/// The entries of all processes, in the order of processes.
fn gathered<T: Solvable>(group: &Group, own: &[T]) -> Result<Vec<T>> {
    Ok(group.all_gather(&to_bytes(own))?.iter().flat_map(|bytes| of_bytes(bytes)).collect())
}

/// The numbers of all processes.
fn numbers(group: &Group, own: impl Iterator<Item = u64>) -> Result<Vec<Vec<u64>>> {
    let own: Vec<u8> = own.flat_map(u64::to_le_bytes).collect();
    Ok(group.all_gather(&own)?.iter().map(|bytes| words(bytes).collect()).collect())
}

/// Returns the range of rows of each process, from its number of rows.
fn parts_of(rows: &[usize]) -> Vec<Range<usize>> {
    let next = |end: &mut usize, &count: &usize| {
        *end += count;
        Some(*end - count..*end)
    };
    rows.iter().scan(0, next).collect()
}

/// Refuses rows that are not those of a square matrix.
fn checked<T: Solvable>(own: Csr<T>, parts: &[Range<usize>]) -> Result<Csr<T>> {
    let total = parts.last().map_or(0, |rows| rows.end);
    if own.columns() == total {
        return Ok(own);
    }
    let cause = format!(
        "A has {} columns, and the processes have {total} rows: each gives rows of one square matrix, with the numbers of \
         its columns in the whole",
        own.columns()
    );
    Err(Error::InvalidMatrix(cause))
}

/// Bytes of free memory on this machine, if the system reports them.
fn free_memory() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// The whole matrix, gathered from the rows of all processes.
fn whole<T: Solvable>(group: &Group, own: &Csr<T>) -> Result<Csr<T>> {
    let parts = own.parts();
    let lengths = numbers(group, (0..own.rows()).map(|row| own.row(row).0.len() as u64))?;
    let columns = numbers(group, parts.indices.iter().map(|&column| u64::from(column)))?;
    let values = gathered(group, parts.values)?;
    let mut offsets = vec![0];
    offsets.extend(lengths.iter().flatten().scan(0, |end, &length| {
        *end += length as usize;
        Some(*end)
    }));
    let columns = columns.iter().flatten().map(|&column| column as u32).collect();
    let total = own.columns();
    together(group, Csr::from_parts(total, total, offsets, columns, values))
}
