//! The tuned constants of the primitives. Each line is for a kernel, a variant (mostly types) and a minimum number of
//! elements. They were measured on an H200, and are used on every chip.
//!
//! Of all lines that apply to a launch, the last one is used. `kernels/README.md` explains the variants and constants.
//! A unit's class contains the number of its line, so that each choice of constants is one module. `units.txt` in the
//! compiler's folder names units by these numbers, so a new line must be added at the end of the table, or that file
//! must be written anew.

/// The constants that are halved if a chip has too little shared memory for a tile.
const TILE_CONSTANTS: [&str; 2] = ["ROWS", "ITEMS"];
/// The position of the number of halvings in the class.
const HALVED_SHIFT: u32 = 24;

/// A line of the table.
#[derive(Debug)]
struct Row {
    kernel: &'static str,
    variant: &'static str,
    from: usize,
    constants: &'static [(&'static str, u32)],
}

macro_rules! rows {
    ($($kernel:literal, $variant:literal, $from:expr => $($name:ident = $value:literal)*;)*) => {
        &[$(Row {
            kernel: $kernel,
            variant: $variant,
            from: $from,
            constants: &[$((stringify!($name), $value)),*],
        }),*]
    };
}

#[rustfmt::skip]
static ROWS: &[Row] = rows! {
    // kernel, variant, from => constants
    "reduce", "*", 0 => THREADS=256 UNROLL=4;
    "scan", "*", 0 => THREADS=256 ROWS=4 MIN_BLOCKS=4;
    "scan", "4", 1 << 22 => THREADS=384 ROWS=6 MIN_BLOCKS=2;
    "scan", "8", 1 << 22 => THREADS=256 ROWS=6 MIN_BLOCKS=3;
    "scan", "16", 1 << 22 => THREADS=256 ROWS=6 MIN_BLOCKS=1;
    "scan_bulk", "*", 1 << 25 => THREADS=256 VECTORS=9 STAGES=6 BEHIND=3 WALK_BEHIND=2 MIN_BLOCKS=1;
    "scan_bulk", "4", 1 << 25 => THREADS=256 VECTORS=9 STAGES=6 BEHIND=3 WALK_BEHIND=2 MIN_BLOCKS=1;
    "scan_any", "*", 0 => THREADS=256 ITEMS=9;
    "compact", "*", 0 => THREADS=256 ROWS=8 MIN_BLOCKS=4;
    "compact", "UNIQUE", 0 => THREADS=256 ROWS=8 MIN_BLOCKS=3;
    "compact", "wide", 0 => THREADS=256 ROWS=8 MIN_BLOCKS=3;
    "reduce_by_key", "*", 0 => THREADS=192 ROWS=5 MIN_BLOCKS=3;
    "reduce_by_key", "16", 0 => THREADS=192 ROWS=5 MIN_BLOCKS=1;
    "sort_small", "*", 0 => THREADS=256 ITEMS=8 MIN_BLOCKS=1 LOOK_AT_ONCE=4;
    "sort_histogram", "*", 0 => HISTOGRAM_THREADS=256 HISTOGRAM_ITEMS=16;
    "sort", "*", 0 => THREADS=256 ITEMS=4 MIN_BLOCKS=1 LOOK_AT_ONCE=4;
    "sort", "*", 1 << 18 => THREADS=256 ITEMS=16 MIN_BLOCKS=1 LOOK_AT_ONCE=4;
    "sort", "keys4", 1 << 23 => THREADS=256 ITEMS=36 MIN_BLOCKS=3 LOOK_AT_ONCE=2;
    "sort", "pairs4", 1 << 23 => THREADS=512 ITEMS=16 MIN_BLOCKS=2 LOOK_AT_ONCE=1;
    "sort", "keys8", 1 << 23 => THREADS=256 ITEMS=22 MIN_BLOCKS=3 LOOK_AT_ONCE=2;
    "sort", "pairs8", 1 << 23 => THREADS=512 ITEMS=12 MIN_BLOCKS=2 LOOK_AT_ONCE=1;
    "histogram", "*", 0 => THREADS=256 ITEMS=8 BINS=12288;
    "histogram_cached", "*", 0 => THREADS=256 ITEMS=8 CACHE=4096;
    "histogram_by_tiles", "*", 1 << 24 => THREADS=512 ITEMS=8 WINDOW=8192;
    "merge", "*", 0 => THREADS=256 ITEMS=16 MIN_BLOCKS=3;
    "merge", "8", 0 => THREADS=256 ITEMS=16 MIN_BLOCKS=2;
    "merge", "16", 0 => THREADS=256 ITEMS=16 MIN_BLOCKS=2;
    "merge_segments", "*", 0 => THREADS=64 ITEMS=8 MIN_BLOCKS=8;
    "merge_segments", "*", 513 => THREADS=256 ITEMS=16 MIN_BLOCKS=2;
    "segmented", "*", 0 => THREADS=192 ITEMS=15;
    "segmented", "16", 0 => THREADS=256 ITEMS=7;
    "segmented_sort", "*", 0 => THREADS=256 ITEMS=8 SHORT=64;
    "gather", "*", 0 => THREADS=256 ITEMS=4;
};

/// A line of the table, and how often its tile was halved.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) struct Choice {
    row: &'static Row,
    number: u32,
    halved: u32,
}

impl Choice {
    /// Returns the constant of this name; zero if the line does not have it.
    pub(in crate::backend::cuda) fn get(self, name: &str) -> u32 {
        let value =
            self.row.constants.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value);
        if self.halved > 0 && TILE_CONSTANTS.contains(&name) { (value >> self.halved).max(1) } else { value }
    }

    /// Halves the tile until it needs no more than `limit` bytes of shared memory according to `bytes`.
    pub(in crate::backend::cuda) fn fit(mut self, limit: usize, bytes: impl Fn(Choice) -> usize) -> Choice {
        while bytes(self) > limit && self.halved < 4 {
            self.halved += 1;
        }
        self
    }

    /// Returns the class of the unit for this choice.
    pub(in crate::backend::cuda) fn class(self) -> u32 {
        self.number | self.halved << HALVED_SHIFT
    }

    pub(in crate::backend::cuda) fn of_class(class: u32) -> Option<Choice> {
        let (number, halved) = (class & ((1 << HALVED_SHIFT) - 1), class >> HALVED_SHIFT);
        Some(Choice { row: row(number)?, number, halved })
    }

    pub(in crate::backend::cuda) fn constants(self) -> impl Iterator<Item = (&'static str, u32)> {
        self.row.constants.iter().map(move |(name, _)| (*name, self.get(name)))
    }
}

/// Returns whether the table has lines for a kernel.
pub(in crate::backend::cuda) fn has(kernel: &str) -> bool {
    ROWS.iter().any(|row| row.kernel == kernel)
}

/// Returns the line with this number. Numbers begin at 1.
fn row(number: u32) -> Option<&'static Row> {
    ROWS.get((number as usize).checked_sub(1)?)
}

/// Returns the line for this number of elements, if there is one.
pub(in crate::backend::cuda) fn pick(kernel: &str, variant: &str, n: usize) -> Option<Choice> {
    let fits =
        |row: &Row| row.kernel == kernel && (row.variant == "*" || row.variant == variant) && row.from <= n;
    let index = ROWS.iter().rposition(fits)?;
    Some(Choice { row: &ROWS[index], number: index as u32 + 1, halved: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_what_launches_ask_for() {
        for row in ROWS {
            let threads = row.constants.iter().find(|(name, _)| name.ends_with("THREADS"));
            assert!(threads.is_some_and(|(_, t)| t.is_multiple_of(32) && (32..=1024).contains(t)), "{row:?}");
            assert!(row.constants.iter().all(|(_, value)| *value > 0), "{row:?}");
            let short = row.constants.iter().find(|(name, _)| *name == "SHORT");
            assert!(short.is_none_or(|(_, short)| short.is_multiple_of(32)), "{row:?}");
        }
    }

    #[test]
    fn the_last_line_that_fits_counts() {
        let small = pick("scan", "8", 1000).unwrap();
        let large = pick("scan", "8", 1 << 28).unwrap();
        assert_ne!(small.class(), large.class());
        assert_eq!(Choice::of_class(large.class()).unwrap().get("ROWS"), large.get("ROWS"));
        assert!(pick("no such kernel", "8", 1).is_none());
    }

    #[test]
    fn a_tile_is_halved_until_it_fits() {
        let choice = pick("sort", "keys8", 1 << 28).unwrap();
        let bytes = |c: Choice| (c.get("THREADS") * c.get("ITEMS") * 8) as usize;
        let fitting = choice.fit(bytes(choice) / 3, bytes);
        assert_eq!(fitting.get("ITEMS"), choice.get("ITEMS") / 4);
        assert_eq!(fitting.get("THREADS"), choice.get("THREADS"));
        let again = Choice::of_class(fitting.class()).unwrap();
        assert_eq!(again.get("ITEMS"), fitting.get("ITEMS"));
    }
}
