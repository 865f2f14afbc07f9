//! Errors of one line, small enough to be returned from the innermost loop, and their messages.

use std::borrow::Cow;

/// Why a line is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// A row or column index of zero.
    IndexZero(&'static str),
    /// A row or column index beyond the size in the header.
    IndexOutside(&'static str, u64),
    NotAnIndex(&'static str),
    NotANumber,
    NotAnInteger,
    NotFinite,
    Overflow,
    /// The line ends before this part.
    Missing(&'static str),
    Trailing,
    PatternValue,
    /// More entries than the header promises.
    Surplus(u64),
    SkewDiagonal,
    HermitianDiagonal,
}

/// A [`Cause`] and its position, in bytes from the start of the parsed text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) cause: Cause,
}

impl Cause {
    /// The message; `word` is the text at the position.
    pub(super) fn message(self, word: &str) -> Cow<'static, str> {
        match self {
            Cause::IndexZero(what) => {
                format!("{what} index 0: indices start at 1; add 1 to each if the file counts from 0").into()
            }
            Cause::IndexOutside(what, limit) => {
                format!("{what} index {word} is outside of a matrix with {limit} {what}s").into()
            }
            Cause::NotAnIndex(what) => {
                format!("{what} index `{word}` is not a whole number of at least 1").into()
            }
            Cause::NotANumber => format!("`{word}` is not a number").into(),
            Cause::NotAnInteger => {
                format!("`{word}` is not an integer, and the header says that values are integers").into()
            }
            Cause::NotFinite => format!("value `{word}` is not finite").into(),
            Cause::Overflow => format!("value `{word}` is too large for the number type").into(),
            Cause::Missing(what) => format!("the line ends before the {what}").into(),
            Cause::Trailing => {
                format!("`{word}` comes after a complete entry; one entry per line is expected").into()
            }
            Cause::PatternValue => format!(
                "`{word}` comes after the indices, but the header says `pattern`; if values count, it must say `real`"
            )
            .into(),
            Cause::Surplus(entries) => {
                format!("there are more than the {entries} entries that the header announces").into()
            }
            Cause::SkewDiagonal => "the diagonal of a skew-symmetric matrix must be zero".into(),
            Cause::HermitianDiagonal => "the diagonal of a hermitian matrix must be real".into(),
        }
    }
}

/// The word at the start of `text`, shortened and without control characters.
pub(super) fn word(text: &[u8]) -> String {
    let end = text.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(text.len());
    let mut word: String =
        text[..end.min(40)].iter().flat_map(|&b| std::ascii::escape_default(b)).map(char::from).collect();
    if end > 40 {
        word.push_str("...");
    }
    word
}
