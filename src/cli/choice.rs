//! Which format a matrix is stored in, and other choices among a few words.

use crate::matrix::FORMAT_NAMES;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::str::FromStr;

/// The name of a format, or `auto`.
pub(crate) fn parse_format(text: &str) -> Result<String, String> {
    if text == "auto" || FORMAT_NAMES.contains(&text) {
        Ok(text.to_string())
    } else {
        Err(format!("choose auto, {}", FORMAT_NAMES.join(", ")))
    }
}

/// One of some values by its word.
pub(crate) fn one_of<T>(words: impl Iterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse())
}
