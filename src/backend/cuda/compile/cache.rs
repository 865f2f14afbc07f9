//! A cache of compiled kernels on disk, for later processes.
//!
//! Each image has one file, whose name is a 128-bit hash of everything on which its content depends, in the folder of
//! [`crate::cache`]. The file contains a hash of its content:
//!
//! ```text
//! residua1 | length, 8 bytes | hash of the code, 16 bytes | code
//! ```
//!
//! Any failure (no folder, no permission, no space, a damaged file) only costs a compilation.

use super::key::Key;
use crate::cache::{Hash, folder, write_beside};
use std::path::PathBuf;

/// A file starts with this, then the length of the code and its hash.
const MAGIC: &[u8; 8] = b"residua1";
const HEADER: usize = 32;

/// The cache file of one image.
pub(super) struct Entry(Option<PathBuf>);

impl Entry {
    pub(super) fn of(key: Key) -> Self {
        Entry(folder().map(|folder| folder.join(format!("{:032x}.cubin", key.0))))
    }

    /// Returns whether the cache file exists.
    pub(super) fn is_there(&self) -> bool {
        self.0.as_ref().is_some_and(|path| path.is_file())
    }

    pub(super) fn load(&self) -> Option<Vec<u8>> {
        let mut bytes = std::fs::read(self.0.as_ref()?).ok()?;
        let header = bytes.get(..HEADER)?;
        let length = u64::from_le_bytes(header[8..16].try_into().ok()?);
        let hash = u128::from_le_bytes(header[16..32].try_into().ok()?);
        if &header[..8] != MAGIC
            || length != (bytes.len() - HEADER) as u64
            || Hash::of(&bytes[HEADER..]) != hash
        {
            return None;
        }
        bytes.drain(..HEADER);
        Some(bytes)
    }

    pub(super) fn store(&self, code: &[u8]) {
        if let Some(path) = &self.0 {
            // If the cache can't be written, that is no error: the next process compiles again.
            let _ = write_beside(path, &sealed(code));
        }
    }
}

fn sealed(code: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + code.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(code.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&Hash::of(code).to_le_bytes());
    bytes.extend_from_slice(code);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        let folder = std::env::temp_dir().join(format!("residua-cache-test-{}-{name}", std::process::id()));
        Entry(Some(folder.join("image.cubin")))
    }

    #[test]
    fn an_image_comes_back_and_a_damaged_one_does_not() {
        let entry = entry("damage");
        let path = entry.0.clone().unwrap();
        assert!(entry.load().is_none() && !entry.is_there());
        let code: Vec<u8> = (0..=255).collect();
        entry.store(&code);
        assert!(entry.is_there());
        assert_eq!(entry.load().as_deref(), Some(&code[..]));
        let whole = std::fs::read(&path).unwrap();
        for position in [0, 9, 20, HEADER, HEADER + 100, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[position] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            assert!(entry.load().is_none(), "byte {position}");
        }
        for length in [0, 7, HEADER, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(entry.load().is_none(), "length {length}");
        }
        entry.store(&code);
        assert_eq!(entry.load().as_deref(), Some(&code[..]));
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn an_unwritable_cache_stops_nothing() {
        let file = std::env::temp_dir().join(format!("residua-cache-test-{}-file", std::process::id()));
        std::fs::write(&file, "in the way").unwrap();
        let entry = Entry(Some(file.join("below").join("image.cubin")));
        entry.store(&[1, 2, 3]);
        assert!(entry.load().is_none());
        std::fs::remove_file(file).unwrap();
    }
}
