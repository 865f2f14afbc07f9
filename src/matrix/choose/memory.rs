//! Results of earlier trials, kept on disk for other processes: a file with one line for each matrix and device, the
//! newest last.
//!
//! ```text
//! 6c62272e07bb014262b821756295c58d csr:0:5.42e-4 sell:3.1e-3:4.02e-4 #9a3f...
//! key                              format : seconds to convert : seconds / product      hash of the line before it
//! ```
//!
//! A damaged line is ignored; a file that cannot be read or written only costs a new trial.

use super::report::Trial;
use crate::cache::{Hash, folder, write_beside};
use std::path::PathBuf;

/// At most this many lines are kept, of about 100 bytes each.
const MOST: usize = 4096;

/// The file, and the key of one line in it.
pub(super) struct Entry {
    path: Option<PathBuf>,
    key: u128,
}

impl Entry {
    /// An entry in the user's cache folder; not stored if `keep` is false.
    pub(super) fn new(key: u128, keep: bool) -> Self {
        Self { path: folder().filter(|_| keep).map(|folder| folder.join("formats.txt")), key }
    }

    fn text(&self) -> String {
        let text = self.path.as_ref().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    fn lines(&self) -> Vec<String> {
        self.text().lines().filter(|line| intact(line).is_some()).map(str::to_string).collect()
    }

    /// The trials of this key.
    pub(super) fn load(&self) -> Option<Vec<Trial>> {
        let key = format!("{:032x} ", self.key);
        let text = self.text();
        let contents = text.lines().rev().filter(|line| line.starts_with(&key));
        contents.filter_map(intact).next()?[key.len()..].split_whitespace().map(parse).collect()
    }

    /// Appends the trials of this key to the file, and removes older ones.
    pub(super) fn store(&self, trials: &[Trial]) {
        let Some(path) = &self.path else { return };
        let key = format!("{:032x} ", self.key);
        let mut lines = self.lines();
        lines.retain(|line| !line.starts_with(&key));
        lines.drain(..(lines.len() + 1).saturating_sub(MOST));
        let times = trials.iter().filter_map(|t| Some((t.format, t.convert_seconds, t.product_seconds?)));
        let words: Vec<String> = times.map(|(name, a, b)| format!("{name}:{a:e}:{b:e}")).collect();
        lines.push(sealed(&(key + &words.join(" "))));
        let _ = write_beside(path, (lines.join("\n") + "\n").as_bytes());
    }
}

fn sealed(line: &str) -> String {
    format!("{line} #{:032x}", Hash::of(line.as_bytes()))
}

/// The line without its checksum, if that is right.
fn intact(line: &str) -> Option<&str> {
    let (content, hash) = line.rsplit_once(" #")?;
    (format!("{:032x}", Hash::of(content.as_bytes())) == hash).then_some(content)
}

fn parse(word: &str) -> Option<Trial> {
    let mut parts = word.split(':');
    let name = parts.next()?;
    let format = super::super::FORMAT_NAMES.iter().find(|known| **known == name)?;
    let mut number = || parts.next()?.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    Some(Trial::measured(format, number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, key: u128) -> Entry {
        let folder = std::env::temp_dir().join(format!("residua-choice-{}-{name}", std::process::id()));
        Entry { path: Some(folder.join("formats.txt")), key }
    }

    fn trials() -> Vec<Trial> {
        vec![Trial::measured("csr", 0.0, 5.5e-4), Trial::measured("sell", 0.1 + 0.2, 1.0 / 3.0e4)]
    }

    #[test]
    fn trials_come_back_bit_for_bit_and_the_newest_counts() {
        let (a, b) = (entry("round", 1), entry("round", 2));
        assert!(a.load().is_none());
        a.store(&trials()[..1]);
        b.store(&trials());
        a.store(&trials());
        assert_eq!((a.load(), b.load()), (Some(trials()), Some(trials())));
        assert_eq!(a.lines().len(), 2);
        assert!(entry("round", 3).load().is_none());
        std::fs::remove_dir_all(a.path.unwrap().parent().unwrap()).unwrap();
    }

    #[test]
    fn a_damaged_line_is_left_out_and_the_others_stay() {
        let (a, b) = (entry("damage", 1), entry("damage", 2));
        a.store(&trials());
        b.store(&trials());
        let path = a.path.clone().unwrap();
        let whole = std::fs::read(&path).unwrap();
        let middle = whole.iter().position(|&byte| byte == b'\n').unwrap();
        for position in [0, 10, 40, middle - 1] {
            let mut damaged = whole.clone();
            damaged[position] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            assert_eq!((a.load(), b.load()), (None, Some(trials())), "byte {position}");
        }
        for length in [0, 5, middle / 2] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(a.load().is_none() && b.load().is_none());
        }
        std::fs::write(&path, [0xff; 64]).unwrap();
        a.store(&trials());
        assert_eq!(a.load(), Some(trials()));
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn an_unwritable_file_stops_nothing() {
        let file = std::env::temp_dir().join(format!("residua-choice-{}-file", std::process::id()));
        std::fs::write(&file, "in the way").unwrap();
        let entry = Entry { path: Some(file.join("below").join("formats.txt")), key: 7 };
        entry.store(&trials());
        assert!(entry.load().is_none());
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn the_file_does_not_grow_for_ever() {
        let last = entry("many", MOST as u128 + 9);
        let path = last.path.clone().unwrap();
        let line = |key: usize| sealed(&format!("{key:032x} csr:0:1e-3"));
        let lines: Vec<String> = (0..MOST + 5).map(line).collect();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, lines.join("\n")).unwrap();
        last.store(&trials());
        assert_eq!(last.lines().len(), MOST);
        assert_eq!(last.load(), Some(trials()));
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
