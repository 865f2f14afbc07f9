//! Reads a matrix file with all ranks together.
//!
//! ```text
//! bytes of the file, cut at line ends     rank 0 | rank 1 | ...      parsed, as stored
//! entries of groups of rows, counted      the same on all            rows of each rank, about as many entries each
//! entries                                 to the other ranks that own their row or their mirror image's
//! rows                                    assembled from what others sent and the own piece, in the order of the file
//! ```
//!
//! Each rank holds only its piece of the file and its rows. A piece stays as it was parsed: assembling ignores the
//! entries in rows of others, so only the entries that other ranks need are copied. Files that can't be read this way
//! are left to the reader of whole files, which also reports errors: compressed files, other formats, and files with
//! errors.

use super::group::Group;
use crate::assemble::{Arrangement, Stretch, some_rows};
use crate::backend::{Backend, ExchangePlan, Host, NEIGHBOURS};
use crate::error::Result;
use crate::market::{self, Format, Header, Order, Piece, ReadOptions, Symmetry, Whole};
use crate::matrix::Csr;
use crate::mixing::mixed;
use crate::multigrid::{planes, seeming_grid};
use crate::parallel::of_stretches;
use crate::scalar::{Element, Scalar};
use crate::spread::balanced;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// The maximum number of groups of rows whose entries are counted.
const GROUPS: usize = 1 << 16;

/// Entries of a piece that are examined for a grid, in each of two places.
const LOOKED_AT: usize = 4096;

/// The rows of a rank.
pub(crate) struct OwnRows<T: Scalar> {
    pub(crate) header: Header,
    /// A matrix of the full size; the rows of others are empty.
    pub(crate) a: Csr<T>,
    /// The rows of each rank.
    pub(crate) parts: Vec<Range<usize>>,
    /// Stored entries of the whole matrix.
    pub(crate) nonzeros: usize,
    /// Seconds of reading, and of distributing and assembling entries.
    pub(crate) seconds: [f64; 2],
}

/// Reads a square matrix with all ranks; `None` if each rank has to read the whole file.
///
/// # Errors
/// If a rank has another file, or has failed.
pub(crate) fn read_rows<T: Scalar>(group: &Group, path: &Path) -> Result<Option<OwnRows<T>>> {
    let start = Instant::now();
    let seen = market::read_header(path).ok().filter(|_| path.is_file());
    let print = sample(path).unwrap_or_default();
    group.agree_on(&path.display().to_string(), &print)?;
    let refuse = |header: &Header| ReadOptions::default().refuse(header).is_some();
    let header = seen.filter(|header| !refuse(header));
    let piece = header.as_ref().and_then(|header| piece::<T>(path, header, [group.rank(), group.ranks()]));
    let told = group.all_gather(&piece.as_ref().map_or(Vec::new(), Piece::told))?;
    let (Some(header), Some(piece), Some(whole)) = (header, piece, Whole::of(&told)) else {
        return Ok(None);
    };
    if whole.entries != header.entries() {
        return Ok(None);
    }
    let read = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let symmetry = header.symmetry();
    let parts = match whole_planes(group, &header, &piece)? {
        Some(parts) => parts,
        None => owners(group, &header, &piece)?,
    };
    let here = &parts[group.rank()];
    let stretches = brought(group, &parts, symmetry, piece)?;
    let stored =
        if symmetry == Symmetry::General || !whole.both_sides { 0 } else { stored(&stretches, here) };
    let size = [header.rows(), header.columns()];
    let a = some_rows(size, here.clone(), (stretches, symmetry), arrangement(symmetry, &whole))?;
    // An entry given in both triangles is an error, or counts once; the reader of whole files handles it.
    let twice = a.nonzeros() < stored;
    let told =
        group.all_gather(&[[u8::from(twice)].to_vec(), a.nonzeros().to_le_bytes().to_vec()].concat())?;
    if told.iter().any(|bytes| bytes[0] != 0) {
        return Ok(None);
    }
    let nonzeros = told.iter().map(|bytes| bytes[1..].try_into().map_or(0, usize::from_le_bytes)).sum();
    let seconds = [read, start.elapsed().as_secs_f64()];
    Ok(Some(OwnRows { header, a, parts, nonzeros, seconds }))
}

/// The arrangement of the entries of the whole file; those that a rank receives have the same order.
fn arrangement(symmetry: Symmetry, whole: &Whole) -> Arrangement {
    match (symmetry, whole.order) {
        (Symmetry::General, Order::Rows) => Arrangement::Sorted { duplicates: false },
        (Symmetry::General, Order::Columns) => Arrangement::RowsInOrder,
        (_, Order::Rows | Order::Columns) if !whole.both_sides => Arrangement::RowsInOrder,
        _ => Arrangement::Any,
    }
}

/// The number of entries in these rows, including mirror images.
fn stored<T>(stretches: &[Stretch<T>], here: &Range<usize>) -> usize {
    let ours = |row: u32| usize::from(here.contains(&(row as usize)));
    let entries = stretches.iter().flat_map(|stretch| stretch.is.iter().zip(&stretch.js));
    entries.map(|(&i, &j)| ours(i) + if i == j { 0 } else { ours(j) }).sum()
}

/// Bytes from some places of a file, which differ if files differ there.
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

/// The entries in this rank's range of the file's bytes; none if the file can't be read in pieces.
fn piece<T: Scalar>(path: &Path, header: &Header, [rank, ranks]: [usize; 2]) -> Option<Piece<T>> {
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
        // Compressed and other files begin differently.
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
    if begin == end {
        return Some(Piece::empty());
    }
    let mut file = file.into_inner();
    file.seek(SeekFrom::Start(begin)).ok()?;
    // Lines differ in length, so memory is requested for an eighth more entries. Memory that is not needed is never
    // touched.
    let share = (end - begin) as f64 / (length - first) as f64;
    let about = (1.125 * share * header.entries() as f64) as usize + LOOKED_AT;
    Piece::read(path, header, (file.take(end - begin), end - begin), about).ok()
}

/// Entries of one task, which two bytes can index.
const TASK: usize = 1 << 16;

/// The maximum number of tables of counts.
const TABLES: usize = 16;

/// The rows of each rank if the matrix seems to be on a grid, from some entries of each rank: whole planes, which
/// multigrid with boxes needs.
fn whole_planes<T: Scalar>(
    group: &Group,
    header: &Header,
    piece: &Piece<T>,
) -> Result<Option<Vec<Range<usize>>>> {
    let (count, mut own) = (piece.rows.len(), Vec::new());
    for start in (0..count).step_by(count.div_ceil(2).max(1)) {
        for place in start..(start + LOOKED_AT).min(count) {
            let distance = i64::from(piece.columns[place]) - i64::from(piece.rows[place]);
            own.push(distance);
            own.extend((header.symmetry() != Symmetry::General).then_some(-distance));
        }
    }
    own.sort_unstable();
    own.dedup();
    own.truncate(NEIGHBOURS + 1);
    let all =
        group.all_gather(&own.iter().flat_map(|distance| distance.to_le_bytes()).collect::<Vec<u8>>())?;
    let distances = all.iter().flat_map(|bytes| bytes.as_chunks().0).map(|word| i64::from_le_bytes(*word));
    Ok(seeming_grid(header.rows(), distances).and_then(|grid| planes(grid, group.ranks())))
}

/// The rows of each rank, with about equally many entries.
fn owners<T: Scalar>(group: &Group, header: &Header, piece: &Piece<T>) -> Result<Vec<Range<usize>>> {
    let n = header.rows();
    let shift = n.div_ceil(GROUPS).next_power_of_two().trailing_zeros();
    let groups = (n >> shift) + 1;
    let half = header.symmetry() != Symmetry::General;
    // A table of counts for each of several tasks.
    let task = piece.rows.len().div_ceil(TABLES).max(TASK);
    let of_tasks = of_stretches(&(0..piece.rows.len()), task, |entries| {
        let mut counts = vec![0_u64; groups];
        for (&i, &j) in piece.rows[entries.clone()].iter().zip(&piece.columns[entries]) {
            counts[i as usize >> shift] += 1;
            if half && i != j {
                counts[j as usize >> shift] += 1;
            }
        }
        counts
    });
    let mut counts = vec![0_u64; groups];
    for table in of_tasks {
        counts.iter_mut().zip(table).for_each(|(count, more)| *count += more);
    }
    let all = group.all_gather(&counts.iter().flat_map(|count| count.to_le_bytes()).collect::<Vec<u8>>())?;
    let total = |place: usize| {
        all.iter()
            .map(|bytes| bytes.as_chunks().0.get(place).map_or(0, |word| u64::from_le_bytes(*word)))
            .sum::<u64>()
    };
    let of_ranks = balanced((0..groups).map(|place| total(place) as usize), group.ranks());
    Ok(of_ranks.into_iter().map(|range| (range.start << shift).min(n)..(range.end << shift).min(n)).collect())
}

/// All entries that this rank needs, in the order of the file: those received from other ranks, and its own piece
/// unchanged.
fn brought<T: Scalar>(
    group: &Group,
    parts: &[Range<usize>],
    symmetry: Symmetry,
    piece: Piece<T>,
) -> Result<Vec<Stretch<T>>> {
    let (me, here, half) = (group.rank(), &parts[group.rank()], symmetry != Symmetry::General);
    let owner = |row: u32| parts.partition_point(|rows| rows.end <= row as usize);
    // The entries that each other rank needs, by their index within a task.
    let divided = of_stretches(&(0..piece.rows.len()), TASK, |entries| {
        let mut to_each: Vec<Vec<u16>> = vec![Vec::new(); parts.len()];
        for (number, place) in (0..=u16::MAX).zip(entries) {
            let (i, j) = (piece.rows[place], piece.columns[place]);
            let mirrored = half && i != j;
            // In a file sorted by rows or columns of a matrix with entries near the diagonal, nearly all entries stay
            // here.
            if here.contains(&(i as usize)) && (!mirrored || here.contains(&(j as usize))) {
                continue;
            }
            let (first, second) = (owner(i), if mirrored { owner(j) } else { me });
            if first != me {
                to_each[first].push(number);
            }
            if second != me && second != first {
                to_each[second].push(number);
            }
        }
        to_each
    });
    let count = |rank: usize| divided.iter().map(|to_each| to_each[rank].len()).sum::<usize>();
    let send: Vec<usize> = (0..parts.len()).map(count).collect();
    let bytes: Vec<u8> = send.iter().flat_map(|&count| (count as u64).to_le_bytes()).collect();
    let own = 8 * me..8 * me + 8;
    let receive = group.all_gather(&bytes)?.into_iter().map(|bytes| {
        bytes
            .get(own.clone())
            .and_then(<[u8]>::first_chunk)
            .map_or(0, |word| u64::from_le_bytes(*word) as usize)
    });
    let plan = ExchangePlan { send, receive: receive.collect() };
    let divided = &divided[..];
    let of_task = move |rank: usize, task: usize| {
        divided[task][rank].iter().map(move |&number| task * TASK + usize::from(number))
    };
    let of_rank = move |rank: usize| (0..divided.len()).flat_map(move |task| of_task(rank, task));
    let places = || (0..parts.len()).flat_map(of_rank);
    let before = plan.receive[..me].iter().sum();
    let (is_before, is_after) = sent(group, &plan, places().map(|place| piece.rows[place]), before)?;
    let (js_before, js_after) = sent(group, &plan, places().map(|place| piece.columns[place]), before)?;
    let (values_before, values_after) =
        sent(group, &plan, places().map(|place| piece.values[place]), before)?;
    let Piece { rows: is, columns: js, values, .. } = piece;
    Ok(vec![
        Stretch { is: is_before, js: js_before, values: values_before },
        Stretch { is, js, values },
        Stretch { is: is_after, js: js_after, values: values_after },
    ])
}

/// The elements that all ranks have sent to this one, without the first `before`.
fn sent<E: Element>(
    group: &Group,
    plan: &ExchangePlan,
    send: impl Iterator<Item = E>,
    before: usize,
) -> Result<(Vec<E>, Vec<E>)> {
    let mut all = Host.zeros(plan.receive.iter().sum())?;
    let mut own = Vec::with_capacity(plan.send.iter().sum());
    own.extend(send);
    group.exchange_elements(plan, &own, &mut all)?;
    let after = all.split_off(before);
    Ok((all, after))
}
