//! A matrix file that all ranks read together.
//!
//! ```text
//! bytes of the file, cut at line ends     rank 0 | rank 1 | ...      parsed, mirrored where one triangle is stored
//! entries of groups of rows, counted      the same on all            rows of each rank, about as many entries each
//! entries                                 to the rank that owns their row, in the order of the file
//! ```
//!
//! No rank holds more than its piece of the file and its rows. What can't be read so is left to the reader of whole
//! files, which also says what is wrong with a file and where: compressed files and those of other kinds, files with
//! comments among their entries or with errors.

use super::group::Group;
use crate::assemble;
use crate::backend::NEIGHBOURS;
use crate::error::Result;
use crate::market::{self, Format, Header, ReadOptions, Source, Symmetry};
use crate::matrix::{Csr, Triplets};
use crate::mixing::mixed;
use crate::multigrid::{planes, seeming_grid};
use crate::parallel::of_stretches;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use crate::spread::balanced;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// Groups of rows whose entries are counted, at most.
const GROUPS: usize = 1 << 16;

/// Entries of a piece that are looked at for a grid, in two places.
const LOOKED_AT: usize = 4096;

/// The rows of a rank.
pub(crate) struct OwnRows<T: Scalar> {
    pub(crate) header: Header,
    /// Of the size of the whole matrix; the rows of others are empty.
    pub(crate) a: Csr<T>,
    /// The rows of each rank.
    pub(crate) parts: Vec<Range<usize>>,
    /// Stored entries of the whole matrix.
    pub(crate) nonzeros: usize,
    /// Seconds of reading, and of bringing entries where they belong and assembling them.
    pub(crate) seconds: [f64; 2],
}

/// Reads a square matrix together; none where the file has to be read in whole by each.
///
/// # Errors
/// Where a rank has another file, or has failed.
pub(crate) fn read_rows<T: Scalar>(group: &Group, path: &Path) -> Result<Option<OwnRows<T>>> {
    let start = Instant::now();
    let seen = market::read_header(path).ok().filter(|_| path.is_file());
    let print = sample(path).unwrap_or_default();
    group.agree_on(&path.display().to_string(), &print)?;
    let piece = seen.and_then(|header| piece::<T>(path, header, [group.rank(), group.ranks()]));
    let counts = group.all_gather(
        &piece.as_ref().map_or(Vec::new(), |piece| (piece.values.len() as u64).to_le_bytes().to_vec()),
    )?;
    let total = counts.iter().map(|bytes| bytes[..].try_into().map_or(0, u64::from_le_bytes)).sum::<u64>();
    let Some(piece) =
        piece.filter(|piece| counts.iter().all(|count| !count.is_empty()) && total == piece.header.entries())
    else {
        return Ok(None);
    };
    let read = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let parts = match whole_planes(group, &piece)? {
        Some(parts) => parts,
        None => owners(group, &piece)?,
    };
    let own = sent(group, &parts, &piece)?;
    let header = piece.header;
    drop((piece.rows, piece.columns, piece.values));
    let received = own.2.len();
    let triplets = Triplets::from_parts(header.rows(), header.columns(), own.0, own.1, own.2)?;
    let a = assemble::to_csr(&crate::Host, triplets)?;
    // Of a stored triangle an entry that comes twice is an error, which the reader of whole files tells.
    let twice = header.symmetry() != Symmetry::General && a.nonzeros() < received;
    let told =
        group.all_gather(&[[u8::from(twice)].to_vec(), a.nonzeros().to_le_bytes().to_vec()].concat())?;
    if told.iter().any(|bytes| bytes[0] != 0) {
        return Ok(None);
    }
    let nonzeros = told.iter().map(|bytes| bytes[1..].try_into().map_or(0, usize::from_le_bytes)).sum();
    let seconds = [read, start.elapsed().as_secs_f64()];
    Ok(Some(OwnRows { header, a, parts, nonzeros, seconds }))
}

/// Bytes that differ where files do, as far as some places of them tell.
fn sample(path: &Path) -> io::Result<Vec<u8>> {
    const PLACES: u64 = 64;
    const LENGTH: u64 = 4096;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut print = length;
    let mut bytes = Vec::new();
    for place in 0..PLACES {
        bytes.clear();
        file.seek(SeekFrom::Start(place * length.saturating_sub(LENGTH) / (PLACES - 1)))?;
        (&mut file).take(LENGTH).read_to_end(&mut bytes)?;
        print = bytes.iter().fold(print, |print, &byte| mixed(print.rotate_left(5) ^ u64::from(byte)));
    }
    Ok([length.to_le_bytes(), print.to_le_bytes()].concat())
}

/// Entries of a part of a file.
struct Piece<T> {
    header: Header,
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
}

/// The entries of this rank's share of a file's bytes; none where it can't be read in pieces.
fn piece<T: Scalar>(path: &Path, header: Header, [rank, ranks]: [usize; 2]) -> Option<Piece<T>> {
    if header.format() != Format::Coordinate || header.rows() != header.columns() {
        return None;
    }
    let mut file = BufReader::new(File::open(path).ok()?);
    let length = file.get_ref().metadata().ok()?.len();
    let (mut line, mut first) = (Vec::new(), 0);
    loop {
        line.clear();
        first += file.read_until(b'\n', &mut line).ok()? as u64;
        if first == length && line.is_empty() {
            return None;
        }
        // Compressed files and others begin otherwise.
        if first == line.len() as u64 && !line.to_ascii_lowercase().starts_with(b"%%matrixmarket") {
            return None;
        }
        if !line.starts_with(b"%") && !line.trim_ascii().is_empty() {
            break;
        }
    }
    let mut bound = |rank: usize| {
        let place = first + (length - first) / ranks as u64 * rank as u64;
        if rank == 0 || rank == ranks {
            return Some(if rank == 0 { first } else { length });
        }
        file.seek(SeekFrom::Start(place - 1)).ok()?;
        line.clear();
        Some(place - 1 + file.read_until(b'\n', &mut line).ok()? as u64)
    };
    let (begin, end) = (bound(rank)?, bound(rank + 1)?);
    file.seek(SeekFrom::Start(begin)).ok()?;
    let (mut lines, mut last) = (0, b'\n');
    let mut rest = (&mut file).take(end - begin);
    loop {
        let bytes = rest.fill_buf().ok()?;
        let Some(&byte) = bytes.last() else { break };
        last = byte;
        lines += bytes.iter().filter(|&&byte| byte == b'\n').count();
        if bytes.contains(&b'%') {
            return None;
        }
        let count = bytes.len();
        rest.consume(count);
    }
    lines += usize::from(last != b'\n');
    if lines == 0 {
        return Some(Piece { header, rows: Vec::new(), columns: Vec::new(), values: Vec::new() });
    }
    let (field, symmetry) = (header.field().name(), header.symmetry().name());
    let (rows, columns) = (header.rows(), header.columns());
    let banner = format!("%%MatrixMarket matrix coordinate {field} {symmetry}\n{rows} {columns} {lines}\n")
        .into_bytes();
    let bound = banner.len() as u64 + end - begin;
    file.seek(SeekFrom::Start(begin)).ok()?;
    let reader = Cursor::new(banner).chain(file.take(end - begin));
    let source = Source::of(path, Box::new(reader), false, Some(bound));
    let (_, triplets, _) = market::triplets_of::<T>(source, &ReadOptions::default()).ok()?.into_parts();
    let (rows, columns, values) = triplets.into_parts();
    Some(Piece { header, rows, columns, values })
}

impl<T: Scalar> Piece<T> {
    /// The entries from some place on, each that is not stored behind its mirror image.
    fn each(&self, entries: Range<usize>, mut f: impl FnMut(u32, u32, T)) {
        let symmetry = self.header.symmetry();
        for place in entries {
            let (i, j, value) = (self.rows[place], self.columns[place], self.values[place]);
            f(i, j, value);
            if i == j {
                continue;
            }
            match symmetry {
                Symmetry::General => {}
                Symmetry::Symmetric => f(j, i, value),
                Symmetry::Hermitian => f(j, i, value.conj()),
                Symmetry::SkewSymmetric => f(j, i, -value),
            }
        }
    }
}

/// Entries that a task takes.
const TASK: usize = 1 << 16;

/// The rows of each rank where the matrix seems to be on a grid by some entries of each: whole planes, which
/// multigrid's boxes ask for.
fn whole_planes<T: Scalar>(group: &Group, piece: &Piece<T>) -> Result<Option<Vec<Range<usize>>>> {
    let (count, mut own) = (piece.rows.len(), Vec::new());
    for start in (0..count).step_by(count.div_ceil(2).max(1)) {
        let some = start..(start + LOOKED_AT).min(count);
        piece.each(some, |i, j, _| own.push(i64::from(j) - i64::from(i)));
    }
    own.sort_unstable();
    own.dedup();
    own.truncate(NEIGHBOURS + 1);
    let all =
        group.all_gather(&own.iter().flat_map(|distance| distance.to_le_bytes()).collect::<Vec<u8>>())?;
    let distances = all.iter().flat_map(|bytes| bytes.as_chunks().0).map(|word| i64::from_le_bytes(*word));
    Ok(seeming_grid(piece.header.rows(), distances).and_then(|grid| planes(grid, group.ranks())))
}

/// The rows of each rank, about as many entries each.
fn owners<T: Scalar>(group: &Group, piece: &Piece<T>) -> Result<Vec<Range<usize>>> {
    let n = piece.header.rows();
    let width = n.div_ceil(GROUPS).max(1);
    let mut counts = vec![0_u64; n.div_ceil(width)];
    let of_tasks = of_stretches(&(0..piece.rows.len()), TASK, |entries| {
        let mut groups = Vec::with_capacity(2 * entries.len());
        piece.each(entries, |i, _, _| groups.push(i / width as u32));
        groups.sort_unstable();
        groups.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect::<Vec<_>>()
    });
    for (group, count) in of_tasks.into_iter().flatten() {
        counts[group as usize] += count;
    }
    let all = group.all_gather(&counts.iter().flat_map(|count| count.to_le_bytes()).collect::<Vec<u8>>())?;
    let total = |place: usize| {
        all.iter()
            .map(|bytes| bytes.as_chunks().0.get(place).map_or(0, |word| u64::from_le_bytes(*word)))
            .sum::<u64>()
    };
    let groups = balanced((0..counts.len()).map(|place| total(place) as usize), group.ranks());
    Ok(groups.into_iter().map(|range| (range.start * width).min(n)..(range.end * width).min(n)).collect())
}

/// Rows, columns and values.
type Entries<T> = (Vec<u32>, Vec<u32>, Vec<T>);

/// Brings every entry to the rank that owns its row; they stay in the order of the file.
fn sent<T: Scalar>(group: &Group, parts: &[Range<usize>], piece: &Piece<T>) -> Result<Entries<T>> {
    let words = if T::COMPLEX { 2 } else { 1 };
    let here = &parts[group.rank()];
    // In a file by rows nearly all of them stay: these are counted, and put where they belong when it is known how many
    // come from others.
    let divided = of_stretches(&(0..piece.rows.len()), TASK, |entries| {
        let (mut stay, mut to_each) = (0, vec![Vec::new(); parts.len()]);
        piece.each(entries, |i, j, value| {
            if here.contains(&(i as usize)) {
                stay += 1;
                return;
            }
            let owner = &mut to_each[parts.partition_point(|rows| rows.end <= i as usize)];
            owner.extend_from_slice(&i.to_le_bytes());
            owner.extend_from_slice(&j.to_le_bytes());
            value.bits()[..words].iter().for_each(|word| owner.extend_from_slice(&word.to_le_bytes()));
        });
        (stay, to_each)
    });
    let (mut stay, mut to_each) = (Vec::with_capacity(divided.len()), vec![Vec::new(); parts.len()]);
    for (count, theirs) in divided {
        stay.push(count);
        to_each.iter_mut().zip(theirs).for_each(|(all, more)| all.extend(more));
    }
    let from_each = group.deliver(&to_each)?;
    drop(to_each);
    let size = 8 + 8 * words;
    let count = stay.iter().sum::<usize>() + from_each.iter().map(|bytes| bytes.len() / size).sum::<usize>();
    let mut all = (vec![0; count], vec![0; count], vec![T::zero(); count]);
    let mut rest = (&mut all.0[..], &mut all.1[..], &mut all.2[..]);
    for (rank, bytes) in from_each.into_iter().enumerate() {
        if rank == group.rank() {
            let mut tasks = Vec::with_capacity(stay.len());
            for (task, &count) in stay.iter().enumerate() {
                let first;
                (first, rest) = cut(rest, count);
                tasks.push((task * TASK..((task + 1) * TASK).min(piece.rows.len()), first));
            }
            tasks.into_par_iter().for_each(|(entries, (rows, columns, values))| {
                let mut places = rows.iter_mut().zip(columns).zip(values);
                piece.each(entries, |i, j, value| {
                    if here.contains(&(i as usize))
                        && let Some(((row, column), number)) = places.next()
                    {
                        (*row, *column, *number) = (i, j, value);
                    }
                });
            });
        }
        let first;
        (first, rest) = cut(rest, bytes.len() / size);
        let places = first.0.iter_mut().zip(first.1).zip(first.2);
        for (((row, column), value), entry) in places.zip(bytes.chunks_exact(size)) {
            let number = |at: usize| entry[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
            let word = |at: usize| {
                entry.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
            };
            (*row, *column, *value) = (number(0), number(4), T::from_bits([word(8), word(16)]));
        }
    }
    Ok(all)
}

/// Places of rows, columns and values.
type Places<'a, T> = (&'a mut [u32], &'a mut [u32], &'a mut [T]);

/// The first `count` of them, and the others.
fn cut<T>((rows, columns, values): Places<'_, T>, count: usize) -> (Places<'_, T>, Places<'_, T>) {
    let ((a, b), (c, d), (e, f)) =
        (rows.split_at_mut(count), columns.split_at_mut(count), values.split_at_mut(count));
    ((a, c, e), (b, d, f))
}
