//! The key of compiled code, in the cache and in archives.

use super::sources::HEADERS;
use crate::cache::Hash;
use std::sync::OnceLock;

/// A hash of everything on which the code of a unit depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(pub(super) u128);

impl Key {
    pub(super) fn new(compiler: &str, source: &str, options: &[String]) -> Key {
        // Computed once, because it takes a third of a millisecond.
        static OF_HEADERS: OnceLock<u128> = OnceLock::new();
        let of_headers = OF_HEADERS.get_or_init(|| {
            let mut hash = Hash::new();
            HEADERS.iter().for_each(|(name, text)| {
                hash.add(name.as_bytes());
                hash.add(text.as_bytes());
            });
            hash.0
        });
        let mut hash = Hash::new();
        hash.add(compiler.as_bytes());
        hash.add(&of_headers.to_le_bytes());
        hash.add(source.as_bytes());
        options.iter().for_each(|option| hash.add(option.as_bytes()));
        Key(hash.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let key = |source: &str, options: &[&str], compiler: &str| {
            let options: Vec<String> = options.iter().map(|o| (*o).to_string()).collect();
            Key::new(compiler, source, &options)
        };
        let base = key("a", &["b", "c"], "13.0");
        assert_eq!(base, key("a", &["b", "c"], "13.0"));
        for other in [
            key("x", &["b", "c"], "13.0"),
            key("a", &["bc"], "13.0"),
            key("a", &["b", "x"], "13.0"),
            key("a", &["b", "c"], "12.8"),
        ] {
            assert_ne!(base, other);
        }
    }
}
