//! Programs on the scalars of a recurrence as text for the compiler: what interprets them on the device waits for
//! memory at every instruction, and straight-line code does not.

use super::Unit;
use crate::backend::scalars::WORDS;
use crate::lock::lock;
use std::fmt::Write;
use std::sync::Mutex;

/// The texts of all programs that were asked for, each once. A process has those of its methods, a few dozen.
static TEXTS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// The number of a program: the class of units that have it compiled in, from 1 on.
pub(in crate::backend::cuda) fn number(code: &[u32]) -> u32 {
    let mut text = String::new();
    for [code, to, a, b] in code.as_chunks::<WORDS>().0 {
        // A text in memory takes every word.
        let _ = write!(text, "STEP({code},{to},{a},{b})");
    }
    let mut texts = lock(&TEXTS);
    let place = texts.iter().position(|known| **known == *text).unwrap_or_else(|| {
        texts.push(text.leak());
        texts.len() - 1
    });
    place as u32 + 1
}

/// The text of the program that a unit has compiled in, if it has one.
pub(super) fn of(unit: &Unit) -> Option<&'static str> {
    if !matches!(unit.source(), "linear_update.cu" | "scalars.cu") {
        return None;
    }
    let place = unit.size_class().checked_sub(1)?;
    lock(&TEXTS).get(place as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_one_number_and_its_text() {
        let (first, second) = (number(&[3, 7, 5, 6]), number(&[3, 7, 5, 6, 0, 8, 7, 7]));
        assert_eq!((number(&[3, 7, 5, 6]), first == second), (first, false));
        let text = |number| of(&Unit::new("scalars.cu").class(number));
        assert_eq!(text(second), Some("STEP(3,7,5,6)STEP(0,8,7,7)"));
        assert_eq!(text(0), None);
        assert_eq!(of(&Unit::new("memory.cu").class(first)), None);
    }
}
