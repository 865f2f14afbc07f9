//! Parses numbers with the same rounding as `str::parse`, several times as fast.
//!
//! Digits are read eight at a time from one 64-bit word. For a decimal w * 10^q with -54 <= q <= 55, one or two
//! products of 64 x 64 bits with 5^q determine the rounding (Lemire, "Number parsing at a gigabyte per second",
//! Software: Practice and Experience 51, 2021). Other numbers, and those with more than 19 digits, go to `str::parse`.
//! The older method with powers of ten that doubles represent exactly is not used: in files that mix short and long
//! numbers, choosing costs more than it saves.

use super::fault::Cause;
use crate::scalar::{Real, Scalar};

/// Bytes that must follow any text given to this module, so that a word can be read at every position.
pub(super) const PADDING: usize = 64;

const POWERS_OF_TEN: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The value and the number of the decimal digits, at most eight, that start at `at`.
#[inline(always)]
fn digits(text: &[u8], at: usize) -> (u64, usize) {
    let mut word = [0; 8];
    word.copy_from_slice(&text[at..at + 8]);
    // A byte of `d` is the value of a digit if it is at most 9. Carries only affect bytes after the first that is not.
    let d = u64::from_le_bytes(word) ^ 0x3030_3030_3030_3030;
    let others = (d.wrapping_add(0x7676_7676_7676_7676) | d) & 0x8080_8080_8080_8080;
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return (0, 0);
    }
    // Padding with leading zeros gives eight digits.
    (join(d << (64 - 8 * count)), count)
}

/// The number with these eight digits, one in each byte, the first in the lowest byte: they are joined to pairs, fours
/// and eights.
#[inline(always)]
pub(super) fn join(d: u64) -> u64 {
    let pairs = d.wrapping_mul(10).wrapping_add(d >> 8);
    let high = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let low = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    high.wrapping_add(low) >> 32
}

/// 10^n for n up to 8.
#[inline(always)]
pub(super) fn power_of_ten(n: usize) -> u64 {
    POWERS_OF_TEN[n]
}

/// Returns whether `byte` separates numbers within a line.
#[inline(always)]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

#[inline(always)]
pub(super) fn is_end(byte: u8) -> bool {
    is_blank(byte) || byte == b'\n'
}

/// An unsigned integer; `None` if there is none or it needs more than 64 bits.
#[inline(always)]
pub(super) fn unsigned(text: &[u8], at: &mut usize) -> Option<u64> {
    let start = *at;
    let (mut value, mut count) = digits(text, start);
    if count == 8 {
        loop {
            let (more, n) = digits(text, start + count);
            value = value.wrapping_mul(POWERS_OF_TEN[n]).wrapping_add(more);
            count += n;
            if n < 8 {
                break;
            }
        }
        if count > 19 {
            // Leading zeros are not significant.
            value = std::str::from_utf8(&text[start..start + count]).ok()?.parse().ok()?;
        }
    }
    *at = start + count;
    (count > 0).then_some(value)
}

/// A real number in decimal: digits with or without a point, exponent after `e`, `E`, `d` or `D`.
#[inline(always)]
pub(super) fn real<R: Real>(text: &[u8], at: &mut usize) -> Result<R, Cause> {
    let start = *at;
    let mut p = start;
    let negative = text[p] == b'-';
    p += usize::from(negative || text[p] == b'+');
    let mut mantissa = 0u64;
    let whole = run(text, &mut p, &mut mantissa);
    let mut fraction = 0;
    if text[p] == b'.' {
        p += 1;
        fraction = run(text, &mut p, &mut mantissa);
    }
    if whole + fraction == 0 {
        return Err(no_number(text, start));
    }
    let mut exponent = 0i64;
    if matches!(text[p], b'e' | b'E' | b'd' | b'D') {
        exponent = read_exponent(text, &mut p).ok_or(Cause::NotANumber)?;
    }
    if !is_end(text[p]) {
        return Err(Cause::NotANumber);
    }
    let power = exponent - fraction as i64;
    let token = &text[start..p];
    let short = whole + fraction <= 19 || significant(token) <= 19;
    let value = if short { round(mantissa, power, negative, token) } else { None };
    let value: R = value.unwrap_or_else(|| parse(token));
    if !Scalar::is_finite(value) {
        return Err(Cause::Overflow);
    }
    *at = p;
    Ok(value)
}

/// (-)w * 10^q, which is the text `token`, rounded to type `R`; `None` if the fast path cannot decide, or the number is
/// not finite.
#[inline(always)]
pub(super) fn round<R: Real>(w: u64, q: i64, negative: bool, token: &[u8]) -> Option<R> {
    let value = scale(w, q)?;
    let value = narrow(if negative { -value } else { value }, token);
    Scalar::is_finite(value).then_some(value)
}

/// A signed integer.
#[inline(always)]
pub(super) fn integer<R: Real>(text: &[u8], at: &mut usize) -> Result<R, Cause> {
    let start = *at;
    let mut p = start + usize::from(matches!(text[start], b'-' | b'+'));
    let mut value = 0;
    if run(text, &mut p, &mut value) == 0 {
        return Err(match no_number(text, start) {
            Cause::NotANumber => Cause::NotAnInteger,
            other => other,
        });
    }
    if !is_end(text[p]) {
        return Err(Cause::NotAnInteger);
    }
    real(text, at)
}

/// Appends all digits from `p` on to `value` (wrapping), and returns how many there were.
#[inline(always)]
fn run(text: &[u8], p: &mut usize, value: &mut u64) -> usize {
    let start = *p;
    loop {
        let (more, n) = digits(text, *p);
        *value = value.wrapping_mul(POWERS_OF_TEN[n]).wrapping_add(more);
        *p += n;
        if n < 8 {
            return *p - start;
        }
    }
}

#[inline(always)]
pub(super) fn read_exponent(text: &[u8], p: &mut usize) -> Option<i64> {
    *p += 1;
    let negative = text[*p] == b'-';
    *p += usize::from(negative || text[*p] == b'+');
    let mut value = 0;
    let count = run(text, p, &mut value);
    if count == 0 {
        return None;
    }
    // With more than 18 digits the value may have wrapped; an exponent this large always takes the slow path.
    let magnitude = if count > 18 { 1 << 40 } else { value.min(1 << 40) as i64 };
    Some(if negative { -magnitude } else { magnitude })
}

/// Number of significant digits before the exponent.
#[cold]
fn significant(token: &[u8]) -> usize {
    let digits = token.iter().take_while(|b| matches!(b, b'+' | b'-' | b'.' | b'0'..=b'9'));
    digits.filter(|b| b.is_ascii_digit()).skip_while(|&&b| b == b'0').count()
}

#[cold]
fn no_number(text: &[u8], start: usize) -> Cause {
    let end = (start..text.len()).find(|&p| is_end(text[p])).unwrap_or(text.len());
    let word = text[start..end].to_ascii_lowercase();
    let magnitude = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(&word);
    if magnitude.starts_with(b"nan") || magnitude == b"inf" || magnitude == b"infinity" {
        Cause::NotFinite
    } else if word.is_empty() {
        Cause::Missing("value")
    } else {
        Cause::NotANumber
    }
}

/// The correctly rounded slow path. `token` is known to be a decimal number.
#[cold]
fn parse<R: Real>(token: &[u8]) -> R {
    let plain: String =
        token.iter().map(|&b| if matches!(b, b'd' | b'D') { 'e' } else { b as char }).collect();
    if size_of::<R>() == size_of::<f32>() {
        R::from_f64(f64::from(plain.parse::<f32>().unwrap_or(f32::NAN)))
    } else {
        R::from_f64(plain.parse::<f64>().unwrap_or(f64::NAN))
    }
}

/// A double rounded to type `R`. In single precision, rounding twice differs from rounding once only if the double is
/// midway between two singles or below the normal range; the text is then parsed again.
#[inline(always)]
fn narrow<R: Real>(value: f64, token: &[u8]) -> R {
    if size_of::<R>() == size_of::<f32>() {
        let midway = value.to_bits() & 0x1fff_ffff == 0x1000_0000;
        if midway || (value != 0.0 && value.abs() < f64::from(f32::MIN_POSITIVE)) {
            return parse(token);
        }
    }
    R::from_f64(value)
}

const SMALLEST: i64 = -54;
const LARGEST: i64 = 55;

/// 5^q for q from `SMALLEST` to `LARGEST`, scaled by a power of two to 128 bits with the highest bit set. Exact for q
/// >= 0; for negative q the reciprocal, rounded up down to -27, which keeps ties exact, and rounded down below that.
static POWERS_OF_FIVE: [u128; (LARGEST - SMALLEST + 1) as usize] = powers_of_five();

const fn powers_of_five() -> [u128; (LARGEST - SMALLEST + 1) as usize] {
    let mut table = [0; (LARGEST - SMALLEST + 1) as usize];
    let mut power = 1u128;
    let mut q = 0;
    while q <= LARGEST {
        table[(q - SMALLEST) as usize] = power << power.leading_zeros();
        if q > 0 && -q >= SMALLEST {
            // Long division of 2^b by 5^q, with b such that the quotient has 128 bits.
            let mut quotient = 0u128;
            let mut remainder = 1u128 << (127 - power.leading_zeros());
            let mut bit = 0;
            while bit < 128 {
                remainder <<= 1;
                quotient <<= 1;
                if remainder >= power {
                    remainder -= power;
                    quotient |= 1;
                }
                bit += 1;
            }
            table[(-q - SMALLEST) as usize] = if q <= 27 { quotient + 1 } else { quotient };
        }
        if q < LARGEST {
            power *= 5;
        }
        q += 1;
    }
    table
}

/// w * 10^q rounded to the nearest double, ties to even; `None` if the fast path cannot decide.
#[inline(always)]
fn scale(w: u64, q: i64) -> Option<f64> {
    if !(SMALLEST..=LARGEST).contains(&q) {
        return (w == 0).then_some(0.0);
    }
    if w == 0 {
        return Some(0.0);
    }
    let shift = w.leading_zeros();
    let w = w << shift;
    let five = POWERS_OF_FIVE[(q - SMALLEST) as usize];
    // The upper 128 bits of w * 5^q. The lower half of 5^q only matters if all bits below the rounding position are
    // ones.
    let first = u128::from(w) * (five >> 64);
    let (mut high, mut low) = ((first >> 64) as u64, first as u64);
    if high & 0x1ff == 0x1ff {
        let second = ((u128::from(w) * (five & u128::from(u64::MAX))) >> 64) as u64;
        let (sum, carry) = low.overflowing_add(second);
        low = sum;
        high += u64::from(carry);
    }
    if low == u64::MAX && !(-27..=55).contains(&q) {
        return None;
    }
    let upper = high >> 63;
    let mut mantissa = high >> (upper + 9);
    // floor(q log2(10)) + 63, and the bias of doubles.
    let exponent = ((q * 217_706) >> 16) + 63 + upper as i64 - i64::from(shift) + 1023;
    if !(1..2046).contains(&exponent) {
        return None;
    }
    // Halfway between two doubles: round to the even one.
    if low <= 1 && (-4..=23).contains(&q) && mantissa & 3 == 1 && mantissa << (upper + 9) == high {
        mantissa &= !1;
    }
    mantissa += mantissa & 1;
    mantissa >>= 1;
    let carry = (mantissa >> 53) as i64;
    mantissa >>= carry;
    let bits = (mantissa & ((1 << 52) - 1)) | (((exponent + carry) as u64) << 52);
    Some(f64::from_bits(bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<R: Real>(number: &str) -> Result<R, Cause> {
        let mut text = number.as_bytes().to_vec();
        text.extend([b'\n'; PADDING]);
        let mut at = 0;
        let value = real(&text, &mut at)?;
        assert_eq!(at, number.len(), "{number}");
        Ok(value)
    }

    fn check(number: &str) {
        let expected: f64 = number.parse().unwrap();
        match read::<f64>(number) {
            Ok(value) => assert_eq!(value.to_bits(), expected.to_bits(), "{number}"),
            Err(cause) => assert!(!expected.is_finite() && matches!(cause, Cause::Overflow), "{number}"),
        }
        let expected: f32 = number.parse().unwrap();
        match read::<f32>(number) {
            Ok(value) => assert_eq!(value.to_bits(), expected.to_bits(), "{number} as f32"),
            Err(cause) => assert!(!expected.is_finite() && matches!(cause, Cause::Overflow), "{number}"),
        }
    }

    #[test]
    fn hard_numbers_are_rounded_as_the_standard_library_does() {
        for number in [
            "0",
            "-0",
            "+0.0",
            "1",
            "1.",
            ".5",
            "-.5e1",
            "1e22",
            "1e23",
            "123456789012345678",
            "9007199254740993",
            "9007199254740992.5",
            "9007199254740993e-1",
            "0.1",
            "5e-324",
            "2.2250738585072014e-308",
            "1e400",
            "-1e400",
            "1e-400",
            "0.000000000000000000000000000012345678901234567",
            "1.7976931348623157e308",
            "1e99999999999",
            "1.7976931348623159e308",
            "100000000000000000000000000000000",
            "8.589973428413488e9",
            "1.00000005960464477",
            "1.000000059604644775390625",
            "1.0000000596046447753906250000000001",
            "3.4028236e38",
            "1.1754942e-38",
            "1e-45",
            "7e-46",
            "0e99999999999999999999",
            "1e-99999999999999999999",
            "6.02214076E+23",
            "1E05",
        ] {
            check(number);
        }
    }

    #[test]
    fn fortran_exponents_and_what_is_no_number() {
        assert_eq!(read::<f64>("1.5D+03"), Ok(1500.0));
        assert_eq!(read::<f64>("1.5d-300"), Ok(1.5e-300));
        assert_eq!(read::<f64>("12345678901234567890123D0"), Ok(12345678901234567890123.0));
        for word in ["x", "1x", "1e", "1e+", "--1", "0x10", "1.2.3", "1,5", ".", "-", "e5", "1_0", "1e5.5"] {
            assert_eq!(read::<f64>(word), Err(Cause::NotANumber), "{word}");
        }
        for word in ["nan", "-NaN", "inf", "+Infinity", "-INF"] {
            assert_eq!(read::<f64>(word), Err(Cause::NotFinite), "{word}");
        }
    }

    #[test]
    fn integers_of_any_length() {
        for (word, expected) in [
            ("0", Some(0)),
            ("12345678", Some(12_345_678)),
            ("9999999999999999999", Some(9_999_999_999_999_999_999)),
        ] {
            let text = [word.as_bytes(), &[b' '; PADDING]].concat();
            assert_eq!(unsigned(&text, &mut 0), expected);
        }
        assert_eq!(unsigned(b"0000000000000000000012 \n\n\n\n\n\n\n\n", &mut 0), Some(12));
        assert_eq!(unsigned(b"10000000000000000000000 \n\n\n\n\n\n\n\n", &mut 0), None);
        assert_eq!(unsigned(b"-1      \n\n\n\n\n\n\n\n", &mut 0), None);
        assert_eq!(
            integer::<f64>(b"-18446744073709551616\n\n\n\n\n\n\n\n", &mut 0),
            Ok(-18446744073709551616.0)
        );
        assert_eq!(integer::<f64>(b"1.5\n\n\n\n\n\n\n\n", &mut 0), Err(Cause::NotAnInteger));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn any_double_comes_back(bits: u64) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                check(&format!("{value:e}"));
                check(&format!("{value:.17e}"));
                check(&format!("{value:.25e}"));
            }
        }

        #[test]
        fn any_decimal_is_rounded_as_the_standard_library_does(
            w in prop_oneof![any::<u64>(), 0u64..1000, (0u32..60).prop_map(|s| (1 << s) + 1)], point in 0usize..25, e in -80i32..80,
        ) {
            let mut number = format!("{w:025}");
            number.insert(point, '.');
            check(&number);
            check(&format!("{number}e{e}"));
            check(&format!("{w}e{e}"));
        }

        // Halfway between two doubles, just above and just below.
        #[test]
        fn ties_go_to_even(mantissa in 1u64 << 52..1 << 53, e in 0u32..10) {
            let halfway = (u128::from(mantissa) * 2 + 1) << e;
            for number in [halfway - 1, halfway, halfway + 1] {
                check(&number.to_string());
                check(&format!("{number}e-3"));
            }
        }
    }
}
