//! An archive of kernels that were compiled for several chips when a package was made, stored next to the program: with
//! it no compiler is needed.
//!
//! ```text
//! residuak | length of the head, 4 bytes | its CRC-32, 4 bytes | head | frames of zstd, one a chip
//! ```
//!
//! The head is text: the release of the compiler in the first line, then a line for each chip with its name (`sm_90`
//! for machine code, `compute_90` for PTX), the bytes of its frame, their CRC-32, the unpacked size, and the number of
//! units. An unpacked frame has the key of each unit, 16 bytes, with the length of its code, 4 bytes, and then the
//! codes. Keys are those of the cache ([`key`](super::key)), so code of other sources is never found.

use super::key::Key;
use super::{Target, Unit, place, sources};
use crate::error::{CudaError, Result};
use crate::lock::lock;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub(super) const MAGIC: &[u8; 8] = b"residuak";
/// Bytes of a unit's key with the length of its code.
pub(super) const ENTRY: usize = 20;

/// An archive of compiled kernels whose head has been read.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    compiler: String,
    parts: Vec<Part>,
}

/// The part of the archive for one chip.
#[derive(Debug)]
struct Part {
    target: Target,
    offset: u64,
    packed: usize,
    checksum: u32,
    bytes: usize,
    units: usize,
}

/// The kernels for one chip.
#[derive(Debug)]
pub struct Kernels {
    target: Target,
    compiler: String,
    path: PathBuf,
    places: HashMap<Key, Range<usize>>,
    bytes: Vec<u8>,
}

impl Archive {
    /// Reads the head of a file.
    ///
    /// # Errors
    /// [`CudaError::KernelArchive`] if it cannot be read, or is not an archive.
    pub fn open(path: &Path) -> Result<Archive, CudaError> {
        let read = || -> Result<Archive, String> {
            let mut file = File::open(path).map_err(|error| error.to_string())?;
            let mut start = [0; 16];
            file.read_exact(&mut start).map_err(|_| "it is too short")?;
            if &start[..8] != MAGIC {
                return Err("it is no archive of kernels".into());
            }
            let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let (length, checksum) = (number(&start[8..12]), number(&start[12..16]));
            let mut head = Vec::new();
            file.take(length.into()).read_to_end(&mut head).map_err(|error| error.to_string())?;
            if crc32fast::hash(&head) != checksum {
                return Err("its head is damaged".into());
            }
            parsed(&head, 16 + u64::from(length))
                .map(|(compiler, parts)| Archive { path: path.into(), compiler, parts })
                .ok_or_else(|| "its head is of another version".into())
        };
        read().map_err(|cause| unfit(path, cause))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The release of the compiler that made it, `12.9`.
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// Its contents: the names of chips, and the number of units.
    pub fn chips(&self) -> impl Iterator<Item = (&str, usize)> {
        self.parts.iter().map(|part| (part.target.name.as_str(), part.units))
    }

    /// The kernels for a chip, `(9, 0)` for sm_90: machine code of the chip or of an older one of its family, else PTX;
    /// none if it has neither.
    ///
    /// # Errors
    /// [`CudaError::KernelArchive`] if the file is damaged.
    pub fn kernels(&self, chip: (u32, u32)) -> Result<Option<Kernels>, CudaError> {
        let fits = |part: &&Part| {
            let (major, minor) = part.target.chip();
            let family = !part.target.machine_code || major == chip.0;
            family && (major, minor) <= chip
        };
        let best = |part: &&Part| (part.target.machine_code, part.target.chip());
        let Some(part) = self.parts.iter().filter(fits).max_by_key(best) else { return Ok(None) };
        let bytes = self.unpacked(part).map_err(|cause| unfit(&self.path, cause))?;
        let places = places(&bytes, part.units)
            .ok_or_else(|| unfit(&self.path, "its lengths do not fit its codes".into()))?;
        let (target, compiler) = (part.target.clone(), self.compiler.clone());
        Ok(Some(Kernels { target, compiler, path: self.path.clone(), places, bytes }))
    }

    fn unpacked(&self, part: &Part) -> Result<Vec<u8>, String> {
        let mut file = File::open(&self.path).map_err(|error| error.to_string())?;
        file.seek(SeekFrom::Start(part.offset)).map_err(|error| error.to_string())?;
        let mut packed = Vec::new();
        file.take(part.packed as u64).read_to_end(&mut packed).map_err(|error| error.to_string())?;
        let damaged = || format!("its part for {} is damaged", part.target.name);
        if packed.len() != part.packed || crc32fast::hash(&packed) != part.checksum {
            return Err(damaged());
        }
        let mut bytes = vec![0; part.bytes];
        let count = ruzstd::decoding::FrameDecoder::new().decode_all(&packed, &mut bytes);
        if count.ok() != Some(part.bytes) { Err(damaged()) } else { Ok(bytes) }
    }
}

impl Kernels {
    /// The unit's code, if the archive has it for the current source; PTX ends with a zero byte.
    pub fn code(&self, unit: &Unit) -> Option<&[u8]> {
        self.code_of(unit, sources::source(unit.source()))
    }

    fn code_of(&self, unit: &Unit, source: &str) -> Option<&[u8]> {
        let key = Key::new(&self.compiler, source, &unit.options(&self.target));
        self.places.get(&key).map(|place| &self.bytes[place.clone()])
    }

    /// Number of units.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The chip for which they were compiled, `sm_90`, or `compute_90` for PTX.
    pub fn chip(&self) -> &str {
        &self.target.name
    }

    /// The release of the compiler that made them.
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// The file that they were read from.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn unfit(path: &Path, cause: String) -> CudaError {
    CudaError::KernelArchive { path: path.display().to_string(), cause }
}

/// Parses the lines of the head; none if it is invalid.
fn parsed(head: &[u8], mut offset: u64) -> Option<(String, Vec<Part>)> {
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let compiler = lines.next()?.strip_prefix("compiler ")?.to_string();
    let mut parts = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [target, packed, checksum, bytes, units] = words[..] else { return None };
        let part = Part {
            target: Target::of_name(target)?,
            offset,
            packed: packed.parse().ok()?,
            checksum: u32::from_str_radix(checksum, 16).ok()?,
            bytes: bytes.parse().ok()?,
            units: units.parse().ok()?,
        };
        offset += part.packed as u64;
        parts.push(part);
    }
    Some((compiler, parts))
}

/// The range of each unit's code; none if the lengths do not add up.
fn places(bytes: &[u8], units: usize) -> Option<HashMap<Key, Range<usize>>> {
    let mut start = units.checked_mul(ENTRY)?;
    let entries = bytes.get(..start)?.as_chunks::<ENTRY>().0;
    let mut places = HashMap::with_capacity(units);
    for entry in entries {
        let (key, length) = entry.split_at(16);
        let end = start + u32::from_le_bytes(length.try_into().ok()?) as usize;
        places.insert(Key(u128::from_le_bytes(key.try_into().ok()?)), start..end);
        start = end;
    }
    (start == bytes.len()).then_some(places)
}

/// The kernels of the installed program for a chip, unpacked at the first call; none if it has no archive, or none for
/// the chip.
///
/// # Errors
/// [`CudaError::KernelArchive`] if the archive cannot be used; kernels are then compiled.
pub fn packed_kernels(chip: (u32, u32)) -> Result<Option<&'static Kernels>> {
    type Known = BTreeMap<(u32, u32), Result<Option<&'static Kernels>, CudaError>>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let unpacked = || {
        let Some(path) = place::of_archive() else { return Ok(None) };
        let kernels = Archive::open(&path)?.kernels(chip)?;
        // Leaked, because modules loaded from it live as long as the process.
        Ok(kernels.map(|kernels| &*Box::leak(Box::new(kernels))))
    };
    // The lock makes other threads wait while one unpacks the kernels.
    Ok(lock(&KNOWN).entry(chip).or_insert_with(unpacked).clone()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cuda::compile::pack;

    /// Code for another source, other flags or another compiler is not found, because the key is that of the cache.
    #[test]
    fn a_changed_source_is_a_miss() {
        let unit = Unit::new("memory.cu");
        let stored = |bytes: &[u8]| {
            let block = ((bytes.len() as u32) << 3 | 1).to_le_bytes();
            let length = (bytes.len() as u32).to_le_bytes();
            Ok([&[0x28, 0xb5, 0x2f, 0xfd, 0xa0], &length[..], &block[..3], bytes].concat())
        };
        let packed = pack("12.9", &["sm_90"], &[unit], |_, _| Ok(vec![1, 2, 3]), stored).unwrap();
        let path = std::env::temp_dir().join(format!("residua-archive-{}-source", std::process::id()));
        std::fs::write(&path, packed).unwrap();
        let mut kernels = Archive::open(&path).unwrap().kernels((9, 0)).unwrap().unwrap();
        std::fs::remove_file(path).unwrap();
        let source = sources::source("memory.cu");
        assert_eq!(kernels.code_of(&unit, source), Some(&[1, 2, 3][..]));
        assert_eq!(kernels.code_of(&unit, &format!("{source} ")), None);
        assert_eq!(kernels.code_of(&unit.with("SCALAR", "f64"), source), None);
        kernels.compiler = "12.8".into();
        assert_eq!(kernels.code_of(&unit, source), None);
    }

    #[test]
    fn heads_of_other_versions_are_refused() {
        assert!(parsed(b"compiler 12.9\nsm_90 10 00000000 20 0\n", 16).is_some());
        for head in ["", "12.9", "compiler 12.9\nsm_90 10", "compiler 12.9\nsm_x 10 00000000 20 0"] {
            assert!(parsed(head.as_bytes(), 16).is_none(), "{head}");
        }
        let lying = [&[0; 16], &5_u32.to_le_bytes()[..], &[1, 2, 3]].concat();
        assert!(places(&lying, 1).is_none() && places(&lying, usize::MAX).is_none());
    }
}
