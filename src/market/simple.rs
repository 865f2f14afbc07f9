//! A fast parser for the usual line: `row column value` with one separator between them, at most 63 bytes.
//!
//! A parser that goes byte by byte must find the end of each number before it can start the next. Here all separators
//! of a line are found first, as bits of one word. The numbers then have known positions, and the processor can overlap
//! the conversion of several lines. Everything else (several blanks, comments, plus signs, long numbers, errors) is
//! left to the general parser: `None` only means "not here".

use super::masks;
use super::number::{PADDING, power_of_ten, read_exponent, round};
use crate::scalar::Real;

/// The longest line that is parsed this way: one bit of a mask for each byte.
const LINE: usize = 64;
/// The longest number, for the same reason.
const NUMBER: usize = 32;
const _: () = assert!(LINE <= PADDING);

/// Positions within a line: the ends of its first numbers, and of the line.
pub(super) struct Places<const NUMBERS: usize> {
    pub(super) ends: [usize; NUMBERS],
    /// Start of the next line.
    pub(super) next: usize,
}

/// The positions in a line of `NUMBERS` numbers that starts at `at`.
#[inline(always)]
pub(super) fn places<const NUMBERS: usize>(text: &[u8], at: usize) -> Option<Places<NUMBERS>> {
    let mut separators = masks::at_most(text[at..].first_chunk::<LINE>()?, b' ');
    let mut ends = [0; NUMBERS];
    for (k, end) in ends.iter_mut().enumerate() {
        if separators == 0 {
            return None;
        }
        *end = at + separators.trailing_zeros() as usize;
        separators &= separators - 1;
        let byte = text[*end];
        if k + 1 < NUMBERS && byte != b' ' && byte != b'\t' {
            return None;
        }
    }
    let end = ends[NUMBERS - 1];
    match text[end] {
        b'\n' => Some(Places { ends, next: end + 1 }),
        b'\r' if text[end + 1] == b'\n' => Some(Places { ends, next: end + 2 }),
        _ => None,
    }
}

/// `text[start..end]` as an integer, if it has one to eight digits.
#[inline(always)]
pub(super) fn short(text: &[u8], start: usize, end: usize) -> Option<u64> {
    let length = end - start;
    if length.wrapping_sub(1) > 7 {
        return None;
    }
    let (value, others) = eight(text, start, length);
    (others == 0).then_some(value)
}

/// `text[start..end]` as a real number, if it has at most 19 digits.
#[inline(always)]
pub(super) fn real<R: Real>(text: &[u8], start: usize, end: usize) -> Option<R> {
    let negative = text[start] == b'-';
    let first = start + usize::from(negative);
    let length = end - first;
    if length.wrapping_sub(1) >= NUMBER - 1 {
        return None;
    }
    let window = text[first..].first_chunk::<NUMBER>()?;
    let inside = (1u64 << length) - 1;
    let points = masks::equal(window, b'.') & inside;
    let letters = masks::at_least(window, b'@') & inside;
    let stop = if letters == 0 { length } else { letters.trailing_zeros() as usize };
    let whole = if points == 0 { stop } else { points.trailing_zeros() as usize };
    // Without a point there is no fraction, and its start is one too far.
    let fraction_start = (whole + 1).min(stop);
    if whole > stop {
        return None;
    }
    let fraction = stop - fraction_start;
    if (whole + fraction).wrapping_sub(1) > 18 {
        return None;
    }
    let mut others = 0;
    let mut mantissa = 0;
    digits(text, first, whole, &mut mantissa, &mut others);
    digits(text, first + fraction_start, fraction, &mut mantissa, &mut others);
    let mut power = -(fraction as i64);
    if letters != 0 {
        let mut at = first + stop;
        if !matches!(text[at], b'e' | b'E' | b'd' | b'D') {
            return None;
        }
        power += read_exponent(text, &mut at)?;
        if at != end {
            return None;
        }
    }
    if others != 0 {
        return None;
    }
    round(mantissa, power, negative, &text[start..end])
}

/// Appends `count` digits to `value`; sets bits in `others` for characters that are no digits.
#[inline(always)]
fn digits(text: &[u8], mut at: usize, mut count: usize, value: &mut u64, others: &mut u64) {
    while count >= 8 {
        let (more, wrong) = eight(text, at, 8);
        *value = value.wrapping_mul(100_000_000).wrapping_add(more);
        *others |= wrong;
        at += 8;
        count -= 8;
    }
    if count > 0 {
        let (more, wrong) = eight(text, at, count);
        *value = value.wrapping_mul(power_of_ten(count)).wrapping_add(more);
        *others |= wrong;
    }
}

/// The value of `count` digits, one to eight, and bits for characters that are no digits.
#[inline(always)]
fn eight(text: &[u8], at: usize, count: usize) -> (u64, u64) {
    let mut word = [0; 8];
    word.copy_from_slice(&text[at..at + 8]);
    let d = (u64::from_le_bytes(word) ^ 0x3030_3030_3030_3030) << (64 - 8 * count);
    let others = (d.wrapping_add(0x7676_7676_7676_7676) | d) & 0x8080_8080_8080_8080;
    (super::number::join(d), others)
}

#[cfg(test)]
mod tests {
    use super::super::number;
    use super::*;
    use proptest::prelude::*;

    fn padded(text: &str) -> Vec<u8> {
        [text.as_bytes(), &[b'\n'; PADDING]].concat()
    }

    /// Asserts that whatever is parsed here equals the result of the general parser; returns whether it was parsed
    /// here.
    fn agrees(word: &str) -> bool {
        let text = padded(word);
        let Some(value) = real::<f64>(&text, 0, word.len()) else { return false };
        let mut at = 0;
        let expected: f64 = number::real(&text, &mut at).unwrap();
        assert_eq!((value.to_bits(), at), (expected.to_bits(), word.len()), "{word}");
        true
    }

    #[test]
    fn usual_numbers_are_read_here() {
        for word in
            ["1", "-1", "0.5", "-12.25", "1e-7", "1.5E+10", "2.5d3", ".5", "5.", "1234567890.123456789", "-0"]
        {
            assert!(agrees(word), "{word}");
        }
        for word in [
            "",
            "-",
            ".",
            "e5",
            "1e",
            "1.2.3",
            "1e5.5",
            "+1",
            "1x",
            "x",
            "1-2",
            "--1",
            "12345678901234567890",
        ] {
            assert!(!agrees(word), "{word}");
        }
    }

    #[test]
    fn places_of_usual_lines() {
        let text = padded("12 345 -6.5\r\n");
        let found = places::<3>(&text, 0).unwrap();
        assert_eq!((found.ends, found.next), ([2, 6, 11], 13));
        assert_eq!(short(&text, 3, 6), Some(345));
        for unusual in
            ["1 2 3 4\n", "1 2\n\n", " 1 2 3\n", "1  2 3\n", "1 2 3 \n", "1 2 3\r4\n", "1\u{1}2 3\n"]
        {
            let text = padded(unusual);
            let found = places::<3>(&text, 0);
            // Even if positions are found, an empty number or a second line must be detected later.
            let starts =
                found.map(|p| [(0, p.ends[0]), (p.ends[0] + 1, p.ends[1]), (p.ends[1] + 1, p.ends[2])]);
            assert!(starts.is_none_or(|s| s.iter().any(|(start, end)| start == end)), "{unusual:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn agrees_with_the_general_parser(word in "[-+]?[0-9]{0,12}[.0-9]{0,18}([eEdD][-+]?[0-9]{0,4})?", value: f64) {
            agrees(&word);
            if value.is_finite() {
                agrees(&value.to_string());
                agrees(&format!("{value:e}"));
            }
        }
    }
}
