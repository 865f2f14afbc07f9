//! Scalar programs as source text for the compiler. An interpreter on the device waits for memory at every instruction,
//! and straight-line code does not.

use super::Unit;
use crate::backend::scalars::WORDS;
use crate::cache::Hash;
use crate::lock::lock;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

/// The texts of all programs used so far, by number. A process has the programs of its methods, a few dozen.
static TEXTS: Mutex<BTreeMap<u32, &'static str>> = Mutex::new(BTreeMap::new());

/// Returns the number of a program, at least 1: it is the class of the units into which the program is compiled. It is
/// derived from the text, so it does not depend on the programs that were used before.
pub(in crate::backend::cuda) fn number(code: &[u32]) -> u32 {
    let mut text = String::new();
    for [code, to, a, b] in code.as_chunks::<WORDS>().0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "STEP({code},{to},{a},{b})");
    }
    number_of(text)
}

/// Returns the number of a program from its text.
pub(super) fn number_of(text: String) -> u32 {
    let mut number = (Hash::of(text.as_bytes()) as u32).max(1);
    let mut texts = lock(&TEXTS);
    // If another program has the same hash, the later one gets the next number. That number may differ between
    // processes; caches do not depend on it, because they use the text.
    while texts.get(&number).is_some_and(|known| **known != *text) {
        number = number.wrapping_add(1).max(1);
    }
    texts.entry(number).or_insert_with(|| text.leak());
    number
}

/// Returns the text of the program that is compiled into a unit, if there is one.
pub(super) fn of(unit: &Unit) -> Option<&'static str> {
    if !matches!(unit.source(), "linear_update.cu" | "scalars.cu") {
        return None;
    }
    lock(&TEXTS).get(&unit.size_class()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_one_number_and_its_text() {
        let (first, second) = (number(&[3, 7, 5, 6]), number(&[3, 7, 5, 6, 0, 8, 7, 7]));
        assert_eq!((number(&[3, 7, 5, 6]), first == second), (first, false));
        assert_eq!(number_of("STEP(3,7,5,6)".into()), first);
        let text = |number| of(&Unit::new("scalars.cu").class(number));
        assert_eq!(text(second), Some("STEP(3,7,5,6)STEP(0,8,7,7)"));
        assert_eq!(text(0), None);
        assert_eq!(of(&Unit::new("memory.cu").class(first)), None);
    }

    #[test]
    fn two_programs_with_one_hash_have_two_numbers() {
        let number = number_of("STEP(1,2,3,4)".into());
        // Simulates another program with the same hash.
        let taken = lock(&TEXTS).insert(number, "STEP(9,9,9,9)");
        let next = number_of("STEP(1,2,3,4)".into());
        lock(&TEXTS).insert(number, taken.unwrap());
        assert_eq!((next, of(&Unit::new("scalars.cu").class(next))), (number + 1, Some("STEP(1,2,3,4)")));
    }
}
