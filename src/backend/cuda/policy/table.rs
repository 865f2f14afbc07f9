//! The tuned constants of the primitives, as the files of `tuning/` hold them: a file a chip, a line for a kernel, a
//! variant (types, mostly) and the sizes from a number of elements on.
//!
//! ```text
//! chip sm_90
//! # kernel  variant  from  constants
//! scan      *        0     THREADS=256 ROWS=4 MIN_BLOCKS=4
//! scan      8        2^22  THREADS=256 ROWS=6 MIN_BLOCKS=3
//! ```
//!
//! Of a kernel's lines the last one that fits counts. A chip without a file takes that of the newest older chip that
//! has one, else the oldest there is. A unit carries the number of its line, so one choice of constants is one module.

use std::sync::OnceLock;

const FILES: &[&str] = &[include_str!("../../../../tuning/sm_90.txt")];

/// A constant that is halved where a chip has too little shared memory for a tile.
const TILE_CONSTANTS: [&str; 2] = ["ROWS", "ITEMS"];
/// Where the number of halvings lies in a choice's class.
const HALVED_SHIFT: u32 = 24;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::backend::cuda) struct Row {
    pub(in crate::backend::cuda) chip: (u32, u32),
    pub(in crate::backend::cuda) kernel: &'static str,
    pub(in crate::backend::cuda) variant: &'static str,
    pub(in crate::backend::cuda) from: usize,
    pub(in crate::backend::cuda) constants: Vec<(&'static str, u32)>,
}

/// A line chosen, and how often its tile was halved.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) struct Choice {
    row: &'static Row,
    number: u32,
    halved: u32,
}

impl Choice {
    /// The constant of this name; zero where the line has none.
    pub(in crate::backend::cuda) fn get(self, name: &str) -> u32 {
        let value =
            self.row.constants.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value);
        if self.halved > 0 && TILE_CONSTANTS.contains(&name) { (value >> self.halved).max(1) } else { value }
    }

    /// With the tile halved until `bytes` of shared memory are no more than `limit`.
    pub(in crate::backend::cuda) fn fit(mut self, limit: usize, bytes: impl Fn(Choice) -> usize) -> Choice {
        while bytes(self) > limit && self.halved < 4 {
            self.halved += 1;
        }
        self
    }

    /// What a unit carries of it.
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

/// The lines of all files.
pub(in crate::backend::cuda) fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    // The files are part of the program, and a test reads each of them.
    ROWS.get_or_init(|| FILES.iter().flat_map(|text| parse(text).unwrap_or_default()).collect())
}

/// Line numbers count from 1.
fn row(number: u32) -> Option<&'static Row> {
    rows().get((number as usize).checked_sub(1)?)
}

/// The line for so many elements, if there is one.
pub(in crate::backend::cuda) fn pick(
    chip: (u32, u32),
    kernel: &str,
    variant: &str,
    n: usize,
) -> Option<Choice> {
    let chip = nearest(chip);
    let fits = |row: &Row| {
        row.chip == chip
            && row.kernel == kernel
            && (row.variant == "*" || row.variant == variant)
            && row.from <= n
    };
    let index = rows().iter().rposition(fits)?;
    Some(Choice { row: &rows()[index], number: index as u32 + 1, halved: 0 })
}

/// The chip whose lines serve this one.
pub(in crate::backend::cuda) fn nearest(chip: (u32, u32)) -> (u32, u32) {
    let known = || rows().iter().map(|row| row.chip);
    known().filter(|&known| known <= chip).max().or_else(|| known().min()).unwrap_or(chip)
}

/// The lines of a file, or what is wrong with one of them.
fn parse(text: &'static str) -> Result<Vec<Row>, String> {
    let (mut chip, mut rows) = (None, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(kernel) = words.next() else { continue };
        let bad = || format!("line {}: {line}", number + 1);
        if kernel == "chip" {
            chip = Some(words.next().and_then(chip_of).ok_or_else(bad)?);
            continue;
        }
        let (variant, from) =
            (words.next().ok_or_else(bad)?, words.next().and_then(size_of).ok_or_else(bad)?);
        let constants = words
            .map(|word| word.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?))))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(bad)?;
        rows.push(Row { chip: chip.ok_or_else(bad)?, kernel, variant, from, constants });
    }
    Ok(rows)
}

/// (9, 0) from `sm_90`.
fn chip_of(word: &str) -> Option<(u32, u32)> {
    let number: u32 = word.strip_prefix("sm_")?.parse().ok()?;
    Some((number / 10, number % 10))
}

/// 4096 from `2^12`.
fn size_of(word: &str) -> Option<usize> {
    match word.strip_prefix("2^") {
        Some(power) => Some(1 << power.parse::<u32>().ok().filter(|&power| power < usize::BITS)?),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_has_what_launches_ask_for() {
        for text in FILES {
            let rows = parse(text).unwrap();
            assert!(!rows.is_empty());
            for row in rows {
                let threads = row.constants.iter().find(|(name, _)| name.ends_with("THREADS"));
                assert!(
                    threads.is_some_and(|(_, t)| t.is_multiple_of(32) && (32..=1024).contains(t)),
                    "{row:?}"
                );
                assert!(row.constants.iter().all(|(_, value)| *value > 0), "{row:?}");
                let short = row.constants.iter().find(|(name, _)| *name == "SHORT");
                assert!(short.is_none_or(|(_, short)| short.is_multiple_of(32)), "{row:?}");
            }
        }
    }

    #[test]
    fn the_last_line_that_fits_counts_and_chips_without_a_file_take_an_older_ones() {
        let small = pick((9, 0), "scan", "8", 1000).unwrap();
        let large = pick((9, 0), "scan", "8", 1 << 28).unwrap();
        assert_ne!(small.class(), large.class());
        assert_eq!(pick((12, 1), "scan", "8", 1 << 28).unwrap().class(), large.class());
        assert_eq!(pick((7, 5), "scan", "8", 1 << 28).unwrap().class(), large.class());
        assert_eq!(Choice::of_class(large.class()).unwrap().get("ROWS"), large.get("ROWS"));
        assert!(pick((9, 0), "no such kernel", "8", 1).is_none());
    }

    #[test]
    fn a_tile_is_halved_until_it_fits() {
        let choice = pick((9, 0), "sort", "keys8", 1 << 28).unwrap();
        let bytes = |c: Choice| (c.get("THREADS") * c.get("ITEMS") * 8) as usize;
        let fitting = choice.fit(bytes(choice) / 3, bytes);
        assert_eq!(fitting.get("ITEMS"), choice.get("ITEMS") / 4);
        assert_eq!(fitting.get("THREADS"), choice.get("THREADS"));
        let again = Choice::of_class(fitting.class()).unwrap();
        assert_eq!(again.get("ITEMS"), fitting.get("ITEMS"));
    }

    #[test]
    fn what_is_wrong_in_a_file_is_told_by_line() {
        for text in ["scan * 0 THREADS=1", "chip sm_90\nscan * x THREADS=1", "chip sm_90\nscan * 0 THREADS"] {
            assert!(parse(text).unwrap_err().starts_with("line "), "{text}");
        }
    }
}
