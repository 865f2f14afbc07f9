//! Parses a range of lines of a file whose header is known, so that several processes can read a file together.

use super::entries::Summary;
use super::header::Header;
use super::parallel::{self, Entries};
use super::read::Order;
use super::source::Source;
use crate::error::Result;
use crate::scalar::Scalar;
use std::io::Read;
use std::path::Path;

/// Consecutive entries of a file, as stored.
#[derive(Debug)]
pub(crate) struct Piece<T> {
    pub(crate) rows: Vec<u32>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<T>,
    summary: Summary,
}

/// The combined summary of all pieces of a file.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) entries: u64,
    /// The order of all entries.
    pub(crate) order: Order,
    /// True if there are entries on both sides of the diagonal; only checked if the header has a symmetry.
    pub(crate) both_sides: bool,
}

impl<T: Scalar> Piece<T> {
    /// A piece without lines.
    pub(crate) fn empty() -> Self {
        Self { rows: Vec::new(), columns: Vec::new(), values: Vec::new(), summary: Summary::default() }
    }

    /// Parses whole lines of the coordinate file `path`. `text` delivers their `bytes` bytes, with approximately
    /// `about` entries.
    ///
    /// # Errors
    /// As [`read_triplets`](super::read_triplets), but line numbers are relative.
    pub(crate) fn read(
        path: &Path,
        header: &Header,
        (text, bytes): (impl Read + Send + 'static, u64),
        about: usize,
    ) -> Result<Self> {
        // The number of bytes limits the number of entries, whatever the header says.
        let most = usize::try_from(bytes / header.entry_bytes() + 1).unwrap_or(usize::MAX);
        let source = Source::of(path, Box::new(text), false, Some(bytes));
        let Entries { rows, columns, values, summary, .. } =
            parallel::some_lines::<T>(source, header, about.min(most))?;
        Ok(Self { rows, columns, values, summary })
    }

    /// The data that [`Whole::of`] needs.
    pub(crate) fn told(&self) -> Vec<u8> {
        self.summary.to_words().into_iter().flat_map(u64::to_le_bytes).collect()
    }
}

impl Whole {
    /// Combines the data of all pieces, in the order of the file; none if a piece has none.
    pub(crate) fn of(told: &[Vec<u8>]) -> Option<Self> {
        let mut all = Summary::default();
        for piece in told {
            let words: Vec<u64> = piece.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            all.append(Summary::of_words(words.try_into().ok()?));
        }
        Some(Self { entries: all.entries as u64, order: Order::of(&all), both_sides: all.above && all.below })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::{ReadOptions, read_header, read_triplets};
    use std::io::Cursor;

    /// Pieces cut at any line ends together have the entries and the order of the file.
    #[test]
    fn pieces_are_the_file() {
        let path = std::env::temp_dir().join(format!("residua-pieces-{}.mtx", std::process::id()));
        for (name, entries, order) in [
            ("general", "1 1 4\n1 2 -1\n2 1 -1\n% between\n2 2 4\n", Order::Rows),
            ("general", "1 1 4\n2 1 -1\n1 2 -1\n2 2 4\n", Order::Columns),
            ("general", "1 1 4\n2 1 -1\n2 1 -1\n2 2 4\n", Order::Any),
            ("symmetric", "1 1 4\n2 1 -1\n\n2 2 4\n2 3 1\n", Order::Rows),
        ] {
            let lines: Vec<&str> = entries.split_inclusive('\n').collect();
            let header = format!("%%MatrixMarket matrix coordinate real {name}\n3 3 4\n");
            std::fs::write(&path, format!("{header}{entries}")).unwrap();
            let header = read_header(&path).unwrap();
            let file = read_triplets::<f64>(&path, &ReadOptions::default()).unwrap();
            for first in 0..=lines.len() {
                for second in first..=lines.len() {
                    let cut = [&lines[..first], &lines[first..second], &lines[second..]];
                    let pieces = cut.map(|lines| {
                        let text = lines.concat().into_bytes();
                        let bytes = text.len() as u64;
                        Piece::<f64>::read(&path, &header, (Cursor::new(text), bytes), 1).unwrap()
                    });
                    let whole = Whole::of(&pieces.each_ref().map(Piece::told)).unwrap();
                    assert_eq!((whole.entries, whole.order, file.order()), (4, order, order));
                    assert_eq!(whole.both_sides, name == "symmetric");
                    let rows: Vec<u32> = pieces.iter().flat_map(|piece| piece.rows.clone()).collect();
                    let values: Vec<f64> = pieces.iter().flat_map(|piece| piece.values.clone()).collect();
                    assert_eq!(
                        (&rows[..], &values[..]),
                        (file.triplets().parts().0, file.triplets().parts().2)
                    );
                }
            }
        }
        assert!(Whole::of(&[Piece::<f64>::empty().told(), Vec::new()]).is_none());
        std::fs::remove_file(path).unwrap();
    }
}
