//! Products of the compressed format. Runs of rows of one kind are summed together, entry by entry, and so are the rows
//! of a slice. In both cases every row's sum is added from left to right.

use super::{Scale, transposed};
use crate::backend::host::compressed::{Reader, at};
use crate::backend::{
    BASES, COMPRESSED_WINDOW, CompressedBody, CompressedColumns, CompressedParts, CompressedValues, Host,
    KindParts, LongParts, MOST_KEYS, SECTION, SectionParts, base_of, with_offsets,
};
use crate::parallel::both;
use crate::parallel::{prelude::*, task_of, worth_a_thread};
use crate::scalar::{Offset, Promote, Scalar};

/// The number of positions in a task: the minimum and the maximum.
const LEAST: usize = 1 << 10;
const TASK: usize = 1 << 13;

/// Returns the number of positions in a task for this number of rows, a multiple of a window.
fn task_size(rows: usize) -> usize {
    task_of(rows, LEAST, TASK).next_multiple_of(COMPRESSED_WINDOW)
}

/// The number of rows of a run that are summed together. Their sums stay in the first-level cache.
const RUN: usize = 512;

/// y\[row\] = finish(state, row, sum of the row, y\[row\]). Returns the state of each task, in order. Skips long rows.
pub(super) fn product<V: Promote<T> + Scalar, T: Scalar, S: Default + Send>(
    a: CompressedParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    x: &[T],
    y: &mut [T],
    finish: impl Fn(&mut S, usize, T, T) -> T + Sync + Send + Copy,
) -> Vec<S> {
    match a.body {
        CompressedBody::Lines(kinds, values, _) => {
            let table: Vec<T> = values.iter().map(|&v| value(v)).collect();
            let size = task_size(y.len());
            let task = |(t, y): (usize, &mut [T])| {
                let mut state = S::default();
                lines(kinds, &table, t * size, x, y, |row, sum, y| finish(&mut state, row, sum, y));
                state
            };
            y.par_chunks_mut(size).enumerate().with_min_len(worth_a_thread(TASK / size)).map(task).collect()
        }
        CompressedBody::Sections(s) => sections(s, value, x, y, finish),
        CompressedBody::Balanced(none, _) => match *none {},
    }
}

/// Computes the rows of a task, run by run.
fn lines<T: Scalar>(
    kinds: KindParts<'_, Host>,
    table: &[T],
    first: usize,
    x: &[T],
    y: &mut [T],
    mut finish: impl FnMut(usize, T, T) -> T,
) {
    let of_row = &kinds.of_row[first..first + y.len()];
    let mut sums = [T::zero(); RUN];
    let mut start = 0;
    while start < y.len() {
        let limit = (start + RUN).min(y.len());
        let kind = of_row[start];
        let end = start + of_row[start..limit].iter().take_while(|&&k| k == kind).count();
        let entries = kinds.range(first + start);
        let sums = &mut sums[..end - start];
        sums.fill(T::zero());
        let base = (first + start) as u32;
        run(&table[entries.clone()], &kinds.distances[entries], base, x, sums);
        for (i, y) in y[start..end].iter_mut().enumerate() {
            *y = finish(first + start + i, sums[i], *y);
        }
        start = end;
    }
}

/// Adds the products of a run's rows to their sums, with the widest vector instructions of this machine.
fn run<T: Scalar>(values: &[T], distances: &[u32], base: u32, x: &[T], sums: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the test above has shown that the processor has AVX2.
        return unsafe { run_avx2(values, distances, base, x, sums) };
    }
    run_any(values, distances, base, x, sums);
}

/// [`run_any`] with AVX2. Multiplications and additions are not fused, so the bits are the same.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<T: Scalar>(values: &[T], distances: &[u32], base: u32, x: &[T], sums: &mut [T]) {
    run_any(values, distances, base, x, sums);
}

/// Processes four entries at a time, so that a sum is loaded and stored once for four products.
#[inline(always)]
fn run_any<T: Scalar>(values: &[T], distances: &[u32], base: u32, x: &[T], sums: &mut [T]) {
    let n = sums.len();
    let of = |d: u32| {
        let start = base.wrapping_add(d) as usize;
        &x[start..start + n]
    };
    let (fours, rest) = values.as_chunks::<4>();
    let (fours_d, rest_d) = distances.as_chunks::<4>();
    for (v, d) in both(fours, fours_d) {
        let (a, b, c, e) = (of(d[0]), of(d[1]), of(d[2]), of(d[3]));
        for i in 0..n {
            sums[i] = sums[i] + v[0] * a[i] + v[1] * b[i] + v[2] * c[i] + v[3] * e[i];
        }
    }
    for (&v, &d) in both(rest, rest_d) {
        let a = of(d);
        for i in 0..n {
            sums[i] += v * a[i];
        }
    }
}

/// A slice: its words, the number of words for a quad, how many of these are for columns, its first place, and its
/// width.
struct Section<'a> {
    words: &'a [u32],
    per_quad: usize,
    of_columns: usize,
    first: usize,
    width: usize,
    bases: [u32; BASES],
}

fn sections<V: Promote<T> + Scalar, T: Scalar, S: Default + Send>(
    a: SectionParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    x: &[T],
    y: &mut [T],
    finish: impl Fn(&mut S, usize, T, T) -> T + Sync + Send + Copy,
) -> Vec<S> {
    let coded: Option<Vec<T>> = match a.values {
        CompressedValues::Codes(values) => {
            let mut table: Vec<T> = values.iter().map(|&v| value(v)).collect();
            table.resize(256, T::zero());
            Some(table)
        }
        _ => None,
    };
    let coded = coded.as_deref();
    let section = |s: usize| {
        let first = at(a.entries, s);
        let width = (at(a.entries, s + 1) - first) / SECTION;
        let words = &a.words[at(a.word_offsets, s)..at(a.word_offsets, s + 1)];
        let per_quad = words.len() / (width.div_ceil(4) * SECTION).max(1);
        let of_columns = per_quad - usize::from(per_quad > 0 && coded.is_some());
        let bases =
            if let CompressedColumns::Wide(bases) = a.columns { bases.as_chunks().0[s] } else { [0; BASES] };
        Section { words, per_quad, of_columns, first, width, bases }
    };
    let sums = |s: usize, rows: &[u32], sums: &mut [T; SECTION]| {
        let s = section(s);
        *sums = [T::zero(); SECTION];
        match (a.values, coded) {
            (_, Some(table)) => {
                let number = |k: usize, lane: usize| {
                    let word = s.words[(k / 4 * s.per_quad + s.of_columns) * SECTION + lane];
                    table[(word >> (8 * (k % 4)) & 255) as usize]
                };
                columns(a.columns, &s, rows, x, sums, number);
            }
            (CompressedValues::Lower(values), _) => {
                let values = &values[s.first..s.first + s.width * SECTION];
                columns(a.columns, &s, rows, x, sums, |k, lane| value(values[k * SECTION + lane].widen()));
            }
            (CompressedValues::Full(values), _) | (CompressedValues::Codes(values), None) => {
                let values = &values[s.first..s.first + s.width * SECTION];
                columns(a.columns, &s, rows, x, sums, |k, lane| value(values[k * SECTION + lane]));
            }
        }
    };
    let size = task_size(y.len());
    let task = |(t, y): (usize, &mut [T])| {
        let (mut state, mut out, mut here) = (S::default(), [T::zero(); SECTION], [0; SECTION]);
        let (start, end) = (t * size, t * size + y.len());
        for first in (start..end).step_by(SECTION) {
            let positions = first..(first + SECTION).min(end);
            let here = &mut here[..positions.len()];
            for (row, position) in here.iter_mut().zip(positions) {
                *row = a.order.map_or(position, |order| order.row(position)) as u32;
            }
            sums(first / SECTION, here, &mut out);
            // Tasks are multiples of windows, so the positions of a task contain exactly the rows with these numbers.
            for (&row, &sum) in both(here, &out) {
                let y = &mut y[row as usize - start];
                *y = finish(&mut state, row as usize, sum, *y);
            }
        }
        state
    };
    y.par_chunks_mut(size).enumerate().with_min_len(worth_a_thread(TASK / size)).map(task).collect()
}

/// Adds a slice's products to its rows' sums. `number(k, lane)` returns the value of entry k.
#[inline(always)]
fn columns<T: Scalar>(
    columns: CompressedColumns<'_, Host>,
    s: &Section<'_>,
    rows: &[u32],
    x: &[T],
    sums: &mut [T; SECTION],
    number: impl Fn(usize, usize) -> T,
) {
    let rows = &rows[..rows.len().min(SECTION)];
    let word = |k: usize, j: usize, lane: usize| s.words[(k / 4 * s.per_quad + j) * SECTION + lane];
    match columns {
        CompressedColumns::Kinds(kinds) => {
            for (lane, &row) in rows.iter().enumerate() {
                for (k, d) in kinds.distances[kinds.range(row as usize)].iter().enumerate() {
                    sums[lane] += number(k, lane) * x[row.wrapping_add(*d) as usize];
                }
            }
        }
        CompressedColumns::Codes(distances) => {
            let table: &[u32; MOST_KEYS] = distances.try_into().expect("a place for each code");
            for k in 0..s.width {
                for (lane, &row) in rows.iter().enumerate() {
                    let code = word(k, 0, lane) >> (8 * (k % 4)) & 255;
                    if code != 255 {
                        sums[lane] += number(k, lane) * x[row.wrapping_add(table[code as usize]) as usize];
                    }
                }
            }
        }
        CompressedColumns::Wide(_) if s.of_columns == 2 => {
            for k in 0..s.width {
                for (lane, &row) in rows.iter().enumerate() {
                    let code = word(k, k % 4 / 2, lane) >> (16 * (k % 2)) & 65535;
                    if code != 65535 {
                        let column = row.wrapping_add(base_of(&s.bases, code)).wrapping_add(code);
                        sums[lane] += number(k, lane) * x[column as usize];
                    }
                }
            }
        }
        CompressedColumns::Wide(_) => {
            for k in 0..s.width {
                for (lane, sum) in sums.iter_mut().enumerate().take(rows.len()) {
                    let column = word(k, k % 4, lane);
                    if column != u32::MAX {
                        *sum += number(k, lane) * x[column as usize];
                    }
                }
            }
        }
    }
}

/// Adds alpha times the sums of long rows to y, one row after another.
pub(super) fn add_long<V: Promote<T> + Scalar, T: Scalar>(
    long: LongParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    alpha: T,
    x: &[T],
    y: &mut [T],
) {
    with_offsets!(long.offsets, offsets => {
        for (&row, range) in long.rows.iter().zip(offsets.windows(2)) {
            let range = range[0].to_usize()..range[1].to_usize();
            y[row as usize] += alpha * super::csr::row_total(&long.indices[range.clone()], &long.values[range], value, x);
        }
    });
}

/// y = alpha A^T x + beta y.
pub(super) fn transposed<V: Promote<T> + Scalar, T: Scalar>(
    a: CompressedParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let reader = Reader::new(a);
    let entries = match a.body {
        CompressedBody::Lines(..) => 8 * a.rows,
        CompressedBody::Sections(s) => at(s.entries, s.entries.len() - 1),
        CompressedBody::Balanced(none, _) => match *none {},
    };
    let blocks = transposed::blocks(entries, a.columns);
    let range = |b| {
        let mut hull = transposed::Hull::new();
        for position in transposed::block(a.rows, blocks, b) {
            reader.each(position, |column, _| hull.add(column));
        }
        hull.range()
    };
    let scatter = |b, sums: &mut [T], base| {
        for position in transposed::block(a.rows, blocks, b) {
            let factor = x[reader.row(position)];
            reader.each(position, |column, v| sums[column - base] += value(v) * factor);
        }
    };
    transposed::collect(blocks, &range, &scatter, scale, y);
    if let Some(long) = a.long {
        with_offsets!(long.offsets, offsets => {
            for (&row, range) in long.rows.iter().zip(offsets.windows(2)) {
                let range = range[0].to_usize()..range[1].to_usize();
                let factor = scale.alpha * x[row as usize];
                for (&j, &v) in both(&long.indices[range.clone()], &long.values[range]) {
                    y[j as usize] += value(v) * factor;
                }
            }
        });
    }
}
