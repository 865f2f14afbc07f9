//! Ranges of rows as a sample of a matrix.

use crate::mixing::mixed;
use std::ops::Range;

/// Samples the rows: divides them into at most `count` equal intervals (the last may be shorter), and takes `length`
/// consecutive rows, or fewer at the end, at a pseudo-random place in each. The places are the same in every call. With
/// evenly spaced places, the sample of a grid in space whose sides are powers of two could consist of boundary points
/// alone.
pub(crate) fn windows(rows: usize, count: usize, length: usize) -> Vec<Range<usize>> {
    let stretch = rows.div_ceil(count.max(1)).max(length).max(1);
    (0..rows.div_ceil(stretch))
        .map(|k| {
            let (start, end) = (k * stretch, rows.min((k + 1) * stretch));
            let free = (end - start).saturating_sub(length) as u64;
            let start = start + (mixed(k as u64 + 1) % (free + 1)) as usize;
            start..end.min(start + length)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::windows;

    #[test]
    fn windows_are_apart_and_within_the_rows() {
        for rows in [0, 1, 5, 127, 128, 129, 2048, 2049, 100_000] {
            let windows = windows(rows, 16, 128);
            assert!(windows.len() <= 16 && windows.iter().all(|window| (1..=128).contains(&window.len())));
            assert!(windows.windows(2).all(|two| two[0].end <= two[1].start));
            assert_eq!(windows.is_empty(), rows == 0);
            assert!(windows.last().is_none_or(|last| last.end <= rows));
        }
    }

    #[test]
    fn a_grid_with_sides_of_powers_of_two_is_sampled_inside() {
        let inside = |row: usize| !(row / 128).is_multiple_of(128);
        let sample: Vec<usize> = windows(1 << 21, 16, 128).into_iter().flatten().collect();
        assert!(sample.iter().filter(|&&row| inside(row)).count() > sample.len() * 9 / 10);
    }
}
