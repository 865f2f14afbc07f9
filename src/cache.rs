//! Files that a process writes for later ones: compiled kernels, choices of formats. Any failure here (no folder, no
//! permission, no space, a damaged file) only means that the work is done again.
//!
//! The folder is `$RESIDUA_CACHE`, else `$XDG_CACHE_HOME/residua`, else `~/.cache/residua`; `RESIDUA_CACHE=off`
//! disables it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder of the files; `None` if they are disabled.
pub(crate) fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match set("RESIDUA_CACHE") {
        Some(off) if off == "off" => None,
        Some(folder) => Some(folder.into()),
        None => set("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))
            .map(|cache| cache.join("residua")),
    }
}

/// Writes a temporary file in the same folder and renames it, so that no reader sees a partial file. Creates the folder
/// if it is missing.
pub(crate) fn write_beside(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let folder = path.parent().ok_or(std::io::ErrorKind::NotFound)?;
    std::fs::create_dir_all(folder)?;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
    let result = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    result
}

/// FNV-1a with 128 bits. The length of each part is added too, so that `ab, c` and `a, bc` differ.
#[derive(Clone, Copy)]
pub(crate) struct Hash(pub(crate) u128);

impl Hash {
    pub(crate) fn new() -> Self {
        Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    /// Adds numbers, two at a time: an eighth of the multiplications that their bytes would take.
    pub(crate) fn add_numbers(&mut self, numbers: &[u32]) {
        let (pairs, rest) = numbers.as_chunks::<2>();
        let words = pairs.iter().map(|&[low, high]| u64::from(low) | u64::from(high) << 32);
        for word in words.chain(rest.iter().map(|&last| u64::from(last))).chain([numbers.len() as u64]) {
            self.0 = (self.0 ^ u128::from(word)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    pub(crate) fn of(bytes: &[u8]) -> u128 {
        let mut hash = Hash::new();
        hash.add(bytes);
        hash.0
    }
}
