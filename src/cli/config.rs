//! `--config FILE`: options of a command in a TOML file, by their long names. The command line takes precedence.

use super::Failure;
use crate::Error;
use clap::error::ContextKind;
use clap::{ArgMatches, Command};
use std::ffi::OsString;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The largest file that is read.
const LARGEST: u64 = 1 << 20;

/// An option in the file.
struct Wish {
    line: u64,
    key: String,
    /// The word of the command line that has the same effect.
    word: String,
}

/// The options in a file.
pub(super) struct Config {
    path: std::path::PathBuf,
    wishes: Vec<Wish>,
}

impl Config {
    /// Reads the file for the command that `known` describes. Options that `given` has from the command line are
    /// skipped, and so are those that conflict with them.
    pub(super) fn read(path: &Path, known: &Command, given: &ArgMatches) -> Result<Self, Failure> {
        let text = text(path)?;
        let line_of = |at: usize| text[..at.min(text.len())].matches('\n').count() as u64 + 1;
        let fault = |line, cause| Failure::from(Error::Parse { path: path.to_owned(), line, cause });
        let table = DeTable::parse(&text).map_err(|error| {
            fault(error.span().map_or(1, |span| line_of(span.start)), error.message().to_string())
        })?;
        let options = || {
            let named = known.get_arguments().filter_map(|option| Some((option, option.get_long()?)));
            named.filter(|(_, name)| !matches!(*name, "config" | "help" | "version"))
        };
        let is_given = |id: &str| given.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let mut wishes = Vec::new();
        for (key, value) in table.get_ref() {
            let (line, key) = (line_of(key.span().start), key.get_ref().to_string());
            let Some((option, _)) = options().find(|(_, name)| *name == key) else {
                let nearest = options().map(|(_, name)| name).min_by_key(|name| distance(name, &key));
                let cause = match nearest.filter(|name| distance(name, &key) <= 1 + key.len() / 3) {
                    Some(name) => format!("unknown option `{key}`: did you mean `{name}`?"),
                    None => {
                        let all: Vec<&str> = options().map(|(_, name)| name).collect();
                        format!("unknown option `{key}`; the options are {}", all.join(", "))
                    }
                };
                return Err(fault(line, cause));
            };
            let takes_value = option.get_action().takes_values();
            let word = match value.get_ref() {
                DeValue::Boolean(false) if !takes_value => continue,
                DeValue::Boolean(true) if !takes_value => format!("--{key}"),
                _ if !takes_value => return Err(fault(line, format!("`{key}` must be true or false"))),
                DeValue::String(text) => format!("--{key}={text}"),
                DeValue::Integer(number) if number.radix() == 10 => format!("--{key}={}", number.as_str()),
                DeValue::Float(number) => format!("--{key}={}", number.as_str()),
                _ => return Err(fault(line, format!("`{key}` must be a string or a number"))),
            };
            let conflicts = known.get_arg_conflicts_with(option);
            let against = |other: &clap::Arg| {
                conflicts.iter().any(|one| one.get_id() == other.get_id())
                    || known.get_arg_conflicts_with(other).iter().any(|one| one.get_id() == option.get_id())
            };
            let stands_back = known
                .get_arguments()
                .filter(|other| is_given(other.get_id().as_str()))
                .any(|other| other.get_id() == option.get_id() || against(other));
            if !stands_back {
                wishes.push(Wish { line, key, word });
            }
        }
        Ok(Self { path: path.to_owned(), wishes })
    }

    /// The words of the command line, with those of the file after the name of the command.
    pub(super) fn with(&self, words: impl Iterator<Item = OsString>) -> Vec<OsString> {
        let mut words: Vec<OsString> = words.collect();
        let at = words.len().min(2);
        words.splice(at..at, self.wishes.iter().map(|wish| wish.word.clone().into()));
        words
    }

    /// The error for a value that its option does not accept, if it came from the file.
    pub(super) fn blame(&self, error: &clap::Error) -> Option<Failure> {
        let name = error.get(ContextKind::InvalidArg)?.to_string();
        let is_it = |wish: &&Wish| name.split(' ').next() == Some(&format!("--{}", wish.key));
        let wish = self.wishes.iter().find(is_it)?;
        let text = error.to_string();
        let mut lines = text.lines().map(|line| line.trim().trim_start_matches("error: "));
        let cause = lines.by_ref().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        Some(Error::Parse { path: self.path.clone(), line: wish.line, cause }.into())
    }
}

fn text(path: &Path) -> Result<String, Failure> {
    use std::io::Read;
    let io = |source| Failure::from(Error::Io { path: path.to_owned(), source });
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(io)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::about(path, "the file of options is larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| Failure::about(path, "the file of options is not text in UTF-8"))
}

/// The edit distance of two words: letters to insert, delete or replace.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, &b) in other.iter().enumerate() {
            let changed = corner + usize::from(a != b);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn near_names_are_near() {
        assert_eq!(distance("tolerance", "tolerance"), 0);
        assert_eq!(distance("tolerance", "tolerence"), 1);
        assert_eq!((distance("", "abc"), distance("abc", "")), (3, 3));
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
