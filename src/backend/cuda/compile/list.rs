//! The units that solves need. `units.txt` lists those of a first solve, which are compiled in advance, and those with
//! programs. Packages contain these, compiled, and all others that solves can need ([`asked`](super::asked)).

use super::asked::{asked_units, is_packed};
use super::{SOURCES, Unit, programs};
use std::collections::HashSet;

/// The units, one in each line, in the form that `RESIDUA_UNITS` writes. `[name]` begins a section.
const UNITS: &str = include_str!("units.txt");

/// Returns the units that a solve of a real system in double precision is likely to need on the GPUs for which residua
/// is tuned. A wrong guess only costs time.
pub fn units_of_a_solve() -> Vec<Unit> {
    part("solve").filter_map(parsed).collect()
}

/// Returns the units that reverse Cuthill-McKee and P A P^T are likely to need.
pub fn units_of_an_ordering() -> Vec<Unit> {
    part("ordering").filter_map(parsed).collect()
}

/// The units that packages contain compiled.
pub fn packed_units() -> Vec<Unit> {
    listed_units().into_iter().filter(is_packed).collect()
}

/// All units that solves can ask for.
pub fn listed_units() -> Vec<Unit> {
    let lines = ["solve", "ordering", "programs"].into_iter().flat_map(part).filter_map(parsed);
    let mut known = HashSet::new();
    lines.chain(asked_units().iter().copied()).filter(|unit| known.insert(*unit)).collect()
}

/// Returns all units of `units.txt`, and those that solves were seen to load.
#[cfg(test)]
pub(super) fn recorded_units() -> Vec<Unit> {
    recorded_lines().filter_map(parsed).collect()
}

#[cfg(test)]
fn recorded_lines() -> impl Iterator<Item = &'static str> {
    let seen = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/units-seen.txt"));
    lines(UNITS).filter(|line| !line.starts_with('[')).chain(lines(seen))
}

/// Returns the lines that are not comments.
fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn part(name: &str) -> impl Iterator<Item = &'static str> {
    let begins =
        move |line: &&str| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) != Some(name);
    lines(UNITS).skip_while(begins).skip(1).take_while(|line| !line.starts_with('['))
}

/// The inverse of [`Unit::describe`]. `None` if the kernel file is unknown.
fn parsed(line: &'static str) -> Option<Unit> {
    let (types, class) = line.split_once(" class ").unwrap_or((line, "0"));
    let mut words = types.split(' ');
    let source = words.next().filter(|source| SOURCES.iter().any(|(name, _)| name == source))?;
    let unit = Unit::new(source).class(class.parse().ok()?);
    words.try_fold(unit, |unit, word| match word.split_once('=')? {
        ("PROGRAM", text) => Some(unit.class(programs::number_of(text.into()))),
        (name, element) => Some(unit.with(name, element)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cuda::compile::catalogue;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_line_is_a_unit_and_stands_once() {
        let described: Vec<String> = recorded_units().iter().map(Unit::describe).collect();
        let expected: Vec<&str> = recorded_lines().collect();
        assert_eq!(described, expected);
        assert_eq!(described.iter().collect::<BTreeSet<_>>().len(), described.len());
        assert!(parsed("gone.cu SCALAR=f64").is_none() && parsed("krylov.cu SCALAR").is_none());
        let program = parsed("scalars.cu SCALAR=f64 PROGRAM=STEP(3,7,5,6)").unwrap();
        assert_eq!(program.size_class(), programs::number(&[3, 7, 5, 6]));
    }

    /// All units of a file list its types in the same order, because otherwise the file would be compiled twice.
    #[test]
    fn types_of_a_file_stand_in_one_order() {
        let mut orders = BTreeMap::new();
        for unit in listed_units() {
            let names: Vec<&str> = unit.types().map(|(name, _)| name).collect();
            let known = orders.entry((unit.source(), names.iter().copied().collect::<BTreeSet<_>>()));
            assert_eq!(*known.or_insert(names.clone()), names, "{}", unit.describe());
        }
    }

    #[test]
    fn parts_are_some_of_all() {
        let all: HashSet<Unit> = listed_units().into_iter().collect();
        let (solve, ordering) = (units_of_a_solve(), units_of_an_ordering());
        assert!(!solve.is_empty() && !ordering.is_empty() && solve.len() + ordering.len() < all.len());
        assert!(solve.iter().chain(&ordering).all(|unit| all.contains(unit)));
        let packed = packed_units();
        assert!(solve.len() < packed.len() && packed.len() < all.len());
        assert!(solve.iter().chain(&ordering).all(|unit| packed.contains(unit)));
    }

    /// Every line names macros that kernels have. A line with outdated macros would never be used, and the unit that
    /// replaced it would be compiled late.
    #[test]
    fn every_line_is_asked_for_as_kernels_are() {
        let names =
            |unit: &Unit| (unit.source(), unit.types().map(|(name, _)| name).collect::<BTreeSet<_>>());
        let known: HashSet<_> = catalogue().iter().map(names).collect();
        for unit in listed_units() {
            assert!(known.contains(&names(&unit)), "{}", unit.describe());
        }
    }
}
