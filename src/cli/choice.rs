//! Options that are one of a few words, such as the storage format.

use crate::matrix::FORMAT_NAMES;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::str::FromStr;

/// The name of a format, or `auto`.
pub(crate) fn parse_format(text: &str) -> Result<String, String> {
    if text == "auto" || FORMAT_NAMES.contains(&text) {
        Ok(text.to_string())
    } else if text == "slim" {
        Ok("compressed".to_string()) // the format's name until version 0.1, kept for one version
    } else {
        Err(format!("choose auto, {}", FORMAT_NAMES.join(", ")))
    }
}

/// A parser for values that are named by words.
pub(crate) fn one_of<T>(words: impl Iterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_go_by_their_names_and_a_former_one() {
        assert_eq!(parse_format("sell").unwrap(), "sell");
        assert_eq!(parse_format("slim").unwrap(), "compressed");
        assert!(parse_format("best").unwrap_err().contains("compressed"));
    }
}
