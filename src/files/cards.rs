//! Numbers in fixed columns, as Fortran reads and writes them: lines of text, split according to a format such as
//! `(26I3)`, `(5D16.8)` or `(1P,4E20.12)`.

use crate::error::{Error, Result};
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

/// The longest line that is accepted.
const LONGEST_LINE: u64 = 1 << 16;
/// The maximum number of fields in a line.
const MOST_FIELDS: usize = 1 << 12;

/// One field of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Field {
    /// The number of columns; zero if numbers are separated by blanks.
    width: usize,
    /// `X`: ignored.
    skipped: bool,
    /// A number without an exponent is divided by ten to this power.
    scale: i32,
}

/// The fields of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cut {
    fields: Vec<Field>,
}

impl Cut {
    /// Parsed from a format in parentheses; `None` if it is not a format for numbers.
    pub(super) fn of(format: &str) -> Option<Self> {
        let text: Vec<u8> =
            format.bytes().filter(|b| !b.is_ascii_whitespace()).map(|b| b.to_ascii_uppercase()).collect();
        let inside = text.strip_prefix(b"(")?.strip_suffix(b")")?;
        let (mut fields, mut at, mut scale) = (Vec::new(), 0, 0);
        group(inside, &mut at, &mut scale, &mut fields, 0)?;
        let numbers = fields.iter().filter(|field| !field.skipped).count();
        let free = fields.iter().any(|field| field.width == 0);
        (at == inside.len() && numbers > 0 && (!free || numbers == fields.len())).then_some(Self { fields })
    }

    /// Numbers in a line, if fields have fixed columns.
    pub(super) fn numbers(&self) -> Option<usize> {
        (!self.is_free()).then(|| self.fields.iter().filter(|field| !field.skipped).count())
    }

    fn has_skipped(&self) -> bool {
        self.fields.iter().any(|field| field.skipped)
    }

    /// Returns whether numbers are separated by blanks.
    fn is_free(&self) -> bool {
        self.fields[0].width == 0
    }
}

/// Parses items up to a closing parenthesis or the end.
fn group(text: &[u8], at: &mut usize, scale: &mut i32, fields: &mut Vec<Field>, depth: usize) -> Option<()> {
    while let Some(&byte) = text.get(*at).filter(|&&byte| byte != b')') {
        if byte == b',' {
            *at += 1;
            continue;
        }
        let negative = byte == b'-';
        *at += usize::from(negative);
        let count = number(text, at);
        let letter = *text.get(*at)?;
        *at += 1;
        if letter == b'P' {
            *scale = i32::try_from(count?).ok().filter(|&scale| scale < 100)? * if negative { -1 } else { 1 };
            continue;
        }
        let (count, from) = (count.unwrap_or(1), fields.len());
        if negative || count == 0 || count > MOST_FIELDS {
            return None;
        }
        match letter {
            b'X' => fields.push(Field { width: count, skipped: true, scale: 0 }),
            b'(' if depth < 4 => {
                group(text, at, scale, fields, depth + 1)?;
                (text.get(*at) == Some(&b')')).then_some(())?;
                *at += 1;
            }
            b'I' | b'E' | b'D' | b'F' | b'G' => {
                let width = number(text, at).unwrap_or(0);
                // The decimals and the digits of the exponent are ignored: a number written with a point does not need
                // them.
                for mark in [b'.', b'E'] {
                    if text.get(*at) == Some(&mark) {
                        *at += 1;
                        number(text, at)?;
                    }
                }
                let scale = if letter == b'F' { *scale } else { 0 };
                (width < 1 << 10).then_some(())?;
                fields.push(Field { width, skipped: false, scale });
            }
            _ => return None,
        }
        let repeated = fields[from..].to_vec();
        let times = if letter == b'X' { 1 } else { count };
        if repeated.len().saturating_mul(times) > MOST_FIELDS {
            return None;
        }
        (1..times).for_each(|_| fields.extend_from_slice(&repeated));
    }
    Some(())
}

/// Parses a number if there is one.
fn number(text: &[u8], at: &mut usize) -> Option<usize> {
    let start = *at;
    while text.get(*at).is_some_and(u8::is_ascii_digit) {
        *at += 1;
    }
    std::str::from_utf8(&text[start..*at]).ok()?.parse().ok()
}

/// A text that is read line by line, with the line number.
pub(super) struct Cards<R> {
    reader: io::BufReader<R>,
    path: PathBuf,
    text: Vec<u8>,
    line: u64,
}

impl<R: Read> Cards<R> {
    pub(super) fn new(path: &Path, reader: R) -> Self {
        let reader = io::BufReader::with_capacity(1 << 16, reader);
        Self { reader, path: path.to_owned(), text: Vec::new(), line: 0 }
    }

    /// An error at the last line that was read.
    pub(super) fn error(&self, cause: impl Into<String>) -> Error {
        self.error_at(self.line, cause)
    }

    /// An error at a line.
    pub(super) fn error_at(&self, line: u64, cause: impl Into<String>) -> Error {
        Error::Parse { path: self.path.clone(), line, cause: cause.into() }
    }

    /// The number of the next line.
    pub(super) fn next_line(&self) -> u64 {
        self.line + 1
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self, what: &str) -> Result<&[u8]> {
        self.text.clear();
        let read = self.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.text);
        self.line += 1;
        match read {
            Ok(0) => return Err(self.error(format!("the file ends before {what}"))),
            Ok(n) if n as u64 == LONGEST_LINE => {
                return Err(self.error("a line of more than 65536 bytes"));
            }
            Ok(_) => {}
            Err(source) if source.raw_os_error().is_some() => {
                return Err(Error::Io { path: self.path.clone(), source });
            }
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(self.error("the compressed file is cut off here"));
            }
            Err(e) => return Err(self.error(format!("the compressed stream is damaged here ({e})"))),
        }
        Ok(self.text.trim_ascii_end())
    }

    /// Reads `count` numbers that start on a new line. Memory grows with the numbers that arrive.
    pub(super) fn numbers<V>(
        &mut self,
        cut: &Cut,
        count: u64,
        what: &str,
        read: impl Fn(&str, i32) -> Result<V, String>,
    ) -> Result<Vec<V>> {
        let mut numbers = Vec::new();
        while (numbers.len() as u64) < count {
            let found = numbers.len();
            let line = self.next(&format!("the {count} {what}; there are {found}"))?.to_vec();
            let left = usize::try_from(count - found as u64).unwrap_or(usize::MAX);
            let mut pieces = words(&line, cut);
            if !cut.is_free() && (cut.has_skipped() || pieces.len() != left.min(cut.fields.len())) {
                pieces = columns(&line, cut);
            }
            pieces.truncate(left);
            for (word, scale) in pieces {
                if word.is_empty() {
                    let number = numbers.len() + 1;
                    return Err(self.error(format!("the line ends before number {number} of {count} {what}")));
                }
                numbers.push(read(&word, scale).map_err(|cause| self.error(cause))?);
            }
        }
        Ok(numbers)
    }
}

/// The words of a line, separated by blanks. If there are as many words as fields, these are the numbers: normally the
/// result is that of fixed columns, but SciPy's `hb_write` gives a number one column less than its format says.
fn words(line: &[u8], cut: &Cut) -> Vec<(String, i32)> {
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let scales = cut.fields.iter().map(|field| field.scale).chain(std::iter::repeat(0));
    words.zip(scales).map(|(word, scale)| (word.iter().map(|&b| char::from(b)).collect(), scale)).collect()
}

/// The text in the columns of each field, without blanks; empty after the end of the line.
fn columns(line: &[u8], cut: &Cut) -> Vec<(String, i32)> {
    let mut at = 0;
    let mut pieces = Vec::with_capacity(cut.fields.len());
    for field in &cut.fields {
        let rest = line.get(at..).unwrap_or_default();
        at += field.width;
        if !field.skipped {
            let piece = rest[..field.width.min(rest.len())].iter().filter(|b| !b.is_ascii_whitespace());
            pieces.push((piece.map(|&b| char::from(b)).collect(), field.scale));
        }
    }
    pieces
}

/// Parses an integer.
pub(super) fn whole(word: &str) -> Result<i64, String> {
    let digits = word.strip_prefix('+').unwrap_or(word);
    digits.parse().map_err(|_| format!("`{}` is not a whole number", short(word)))
}

/// Parses a real number as Fortran writes it: the exponent may begin with E or D, or with its sign.
pub(super) fn real(word: &str, scale: i32) -> Result<f64, String> {
    let wrong = || format!("`{}` is not a number", short(word));
    if !word.bytes().all(|b| b.is_ascii_digit() || b"+-.eEdD".contains(&b)) {
        return Err(wrong());
    }
    let mut text = word.replace(['d', 'D'], "e");
    let sign = text[1..].rfind(['+', '-']).map(|place| place + 1);
    if let Some(place) = sign.filter(|&place| !matches!(text.as_bytes()[place - 1], b'e' | b'E')) {
        text.insert(place, 'e');
    }
    let value: f64 = text.parse().map_err(|_| wrong())?;
    if value.is_infinite() {
        return Err(format!("value `{}` is too large for the number type", short(word)));
    }
    let plain = !text.contains(['e', 'E']);
    Ok(if scale != 0 && plain { value / 10f64.powi(scale) } else { value })
}

/// Shortened and escaped for a message.
fn short(word: &str) -> String {
    word.chars().take(40).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(format: &str) -> Option<Vec<usize>> {
        Some(Cut::of(format)?.fields.iter().map(|field| field.width).collect())
    }

    #[test]
    fn formats_cut_lines_as_fortran_does() {
        assert_eq!(widths("(26I3)"), Some(vec![3; 26]));
        assert_eq!(widths("( 5D16.8 )"), Some(vec![16; 5]));
        for format in ["(1P,4E20.12)", "(1P4E20.12)", "(4(1PE20.12))", "(1p,2(2e20.12))", "(4E20.12E3)"] {
            assert_eq!(widths(format), Some(vec![20; 4]), "{format}");
        }
        assert_eq!(widths("(2X,I5,3F8.1)"), Some(vec![2, 5, 8, 8, 8]));
        assert_eq!(widths("(8i)"), Some(vec![0; 8]));
        for none in [
            "",
            "()",
            "26I3",
            "(26I3",
            "(A8)",
            "(0I3)",
            "(9999999I3)",
            "(64(64(64I3)))",
            "(3X)",
            "(-2I3)",
            "((((((I3))))))",
            "(P4E20.12)",
            "(2X,8I)",
        ] {
            assert_eq!(widths(none), None, "{none}");
        }
    }

    #[test]
    fn numbers_as_fortran_writes_them() {
        for (word, value) in [
            ("1.5", 1.5),
            ("-.25", -0.25),
            ("3.", 3.0),
            ("1.5D+10", 1.5e10),
            ("-2.5d-3", -2.5e-3),
            ("0.1E05", 1e4),
            ("1.25+100", 1.25e100),
            ("-1.25-100", -1.25e-100),
            ("+7", 7.0),
        ] {
            assert_eq!(real(word, 0), Ok(value), "{word}");
        }
        for word in ["NaN", "Inf", "1.5x", "--1", "1e", "e5", ".", "1.2.3", "1e400", "*****"] {
            assert!(real(word, 0).is_err(), "{word}");
        }
        // Scaled by ten to the first power, unless there is an exponent.
        assert_eq!((real("125.", 1), real("125.E0", 1)), (Ok(12.5), Ok(125.0)));
        assert_eq!((whole("+12"), whole("-3")), (Ok(12), Ok(-3)));
        assert!(whole("1.0").is_err() && whole("").is_err());
    }

    #[test]
    fn fields_of_several_lines() {
        let numbers = |format: &str, text: &str, count| {
            let mut cards = Cards::new(Path::new("a.rua"), text.as_bytes());
            let found = cards.numbers(&Cut::of(format).unwrap(), count, "pointers", |word, _| whole(word));
            found.map_err(|error| error.to_string())
        };
        assert_eq!(numbers("(3I2)", " 1 2 3\r\n 4\n", 4), Ok(vec![1, 2, 3, 4]));
        assert_eq!(numbers("(3I2)", "101112\n 4", 4), Ok(vec![10, 11, 12, 4]));
        assert_eq!(numbers("(2X,I2)", "xx 1\nxx 2\n", 2), Ok(vec![1, 2]));
        assert_eq!(numbers("(8I)", "1 22   333\n4\n", 4), Ok(vec![1, 22, 333, 4]));
        // Values have one column less than the format says, as SciPy writes them.
        assert_eq!(numbers("(3I5)", "  -1  -2  -3\n  -4\n", 4), Ok(vec![-1, -2, -3, -4]));
        assert_eq!(
            numbers("(3I2)", " 1 2\n 3 4\n", 4),
            Err("a.rua:1: the line ends before number 3 of 4 pointers".into())
        );
        assert_eq!(numbers("(3I2)", " 1 x\n", 2), Err("a.rua:1: `x` is not a whole number".into()));
        assert_eq!(
            numbers("(3I2)", " 1 2 3\n", 9),
            Err("a.rua:2: the file ends before the 9 pointers; there are 3".into())
        );
        assert_eq!(numbers("(I2)", "", 0), Ok(vec![]));
    }
}
