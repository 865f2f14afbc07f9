//! Options that are one of a few words, such as the storage format.

use crate::matrix::FORMAT_NAMES;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use std::str::FromStr;

/// The name of a format, `auto` or `measured`.
pub(crate) fn parse_format(text: &str) -> Result<String, String> {
    if AUTOMATIC.contains(&text) || FORMAT_NAMES.contains(&text) {
        Ok(text.to_string())
    } else {
        Err(format!("choose auto, measured, {}", FORMAT_NAMES.join(", ")))
    }
}

/// Words for a format that residua chooses.
const AUTOMATIC: [&str; 2] = ["auto", "measured"];

/// The names of the formats, with `auto` and `measured`.
pub(crate) fn formats() -> impl Iterator<Item = &'static str> {
    AUTOMATIC.into_iter().chain(FORMAT_NAMES.iter().copied())
}

/// A parser for values that are named by words.
pub(crate) fn one_of<T>(words: impl Iterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse())
}

/// A parser for values of which some are words: `parse` reads all of them, and shells complete the words.
pub(crate) fn completed<T: Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = &'static str>,
    parse: fn(&str) -> Result<T, String>,
) -> impl TypedValueParser<Value = T> {
    Completed { words: words.into_iter().collect(), parse }
}

/// The parser that [`completed`] returns.
#[derive(Clone)]
struct Completed<T> {
    words: Vec<&'static str>,
    parse: fn(&str) -> Result<T, String>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Completed<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<T, clap::Error> {
        let parse = self.parse;
        StringValueParser::new().try_map(move |text| parse(&text)).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.words.iter().map(|word| PossibleValue::new(*word))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_go_by_their_names_and_a_former_one() {
        assert_eq!(parse_format("sell").unwrap(), "sell");
        assert_eq!(parse_format("measured").unwrap(), "measured");
        assert!(parse_format("best").unwrap_err().contains("compressed"));
    }
}
