//! An archive of kernels that were compiled for several chips when a package was built. It is stored next to the
//! program, which then needs no compiler.
//!
//! ```text
//! residuak | length of the head, 4 bytes | its CRC-32, 4 bytes | head | for each chip: entries | frames of zstd
//! ```
//!
//! The head is text. The first line has the release of the compiler. Then there is a line for each chip with its name
//! (`sm_90` for machine code, `compute_90` for PTX), the number of bytes of its section after the head, their CRC-32,
//! the number of units, and for each frame the number of its units, its bytes, and its bytes after unpacking. An entry
//! is the key of a unit, 16 bytes, and the length of its code, 4 bytes. A frame contains the codes of similar units,
//! and is unpacked when one of them is needed. Keys are those of the cache ([`key`](super::key)), so code from other
//! sources is never found.

use super::key::Key;
use super::{Target, Unit, place, sources};
use crate::error::{CudaError, Result};
use crate::lock::lock;
use ruzstd::decoding::FrameDecoder;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

pub(super) const MAGIC: &[u8; 8] = b"residuak";
/// The number of bytes of a unit's key and the length of its code.
pub(super) const ENTRY: usize = 20;

/// An archive of compiled kernels whose head has been read.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    compiler: String,
    parts: Vec<Part>,
}

/// The section of the archive for one chip.
#[derive(Debug)]
struct Part {
    target: Target,
    offset: u64,
    bytes: usize,
    checksum: u32,
    units: usize,
    frames: Vec<Frame>,
}

/// The codes of some units: how many units, and the number of bytes packed and unpacked.
#[derive(Debug, Clone, Copy)]
struct Frame {
    units: usize,
    packed: usize,
    bytes: usize,
}

/// The kernels for one chip.
#[derive(Debug)]
pub struct Kernels {
    target: Target,
    compiler: String,
    path: PathBuf,
    /// The frame of each unit, and the range of its code in the frame.
    places: Places,
    frames: Frames,
    packed: Vec<u8>,
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

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the release of the compiler that produced the code, such as `12.9`.
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// Returns the names of the chips, each with its number of units.
    pub fn chips(&self) -> impl Iterator<Item = (&str, usize)> {
        self.parts.iter().map(|part| (part.target.name.as_str(), part.units))
    }

    /// Returns the kernels for a chip, `(9, 0)` for sm_90: machine code for the chip or for an older one of its family,
    /// else PTX; `None` if the archive has neither.
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
        self.kernels_of(part).map(Some)
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// [`CudaError::KernelArchive`] if the file is damaged.
    pub fn check(&self) -> Result<(), CudaError> {
        self.parts.iter().try_for_each(|part| self.kernels_of(part).map(drop))
    }

    fn kernels_of(&self, part: &Part) -> Result<Kernels, CudaError> {
        let packed = self.read(part).map_err(|cause| unfit(&self.path, cause))?;
        let (places, frames) = places(&packed, part)
            .ok_or_else(|| unfit(&self.path, "its lengths do not fit its codes".into()))?;
        let (target, compiler) = (part.target.clone(), self.compiler.clone());
        Ok(Kernels { target, compiler, path: self.path.clone(), places, frames, packed })
    }

    fn read(&self, part: &Part) -> Result<Vec<u8>, String> {
        let mut file = File::open(&self.path).map_err(|error| error.to_string())?;
        file.seek(SeekFrom::Start(part.offset)).map_err(|error| error.to_string())?;
        let mut packed = Vec::new();
        file.take(part.bytes as u64).read_to_end(&mut packed).map_err(|error| error.to_string())?;
        if packed.len() != part.bytes || crc32fast::hash(&packed) != part.checksum {
            return Err(format!("its part for {} is damaged", part.target.name));
        }
        Ok(packed)
    }
}

impl Kernels {
    /// Returns the unit's code if the archive has it for the current source. PTX ends with a zero byte.
    pub fn code(&self, unit: &Unit) -> Option<&[u8]> {
        self.code_of(unit, sources::source(unit.source()))
    }

    fn code_of(&self, unit: &Unit, source: &str) -> Option<&[u8]> {
        let (frame, place) = self.place_of(unit, source)?;
        let (packed, bytes, unpacked) = &self.frames[*frame];
        let unpack = || {
            let mut codes = vec![0; *bytes];
            let count = FrameDecoder::new().decode_all(&self.packed[packed.clone()], &mut codes);
            (count.ok() == Some(*bytes)).then_some(codes)
        };
        unpacked.get_or_init(unpack).as_ref()?.get(place.clone())
    }

    /// Returns whether the archive has the unit's code for the current source.
    pub fn has(&self, unit: &Unit) -> bool {
        self.place_of(unit, sources::source(unit.source())).is_some()
    }

    fn place_of(&self, unit: &Unit, source: &str) -> Option<&(usize, Range<usize>)> {
        self.places.get(&Key::new(&self.compiler, source, &unit.options(&self.target)))
    }

    /// Returns the number of units.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Returns the chip for which the kernels were compiled, such as `sm_90`, or `compute_90` for PTX.
    pub fn chip(&self) -> &str {
        &self.target.name
    }

    /// Returns the release of the compiler that produced the code.
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// Returns the path of the archive.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn unfit(path: &Path, cause: String) -> CudaError {
    CudaError::KernelArchive { path: path.display().to_string(), cause }
}

/// Parses the lines of the head. `None` if it is invalid.
fn parsed(head: &[u8], mut offset: u64) -> Option<(String, Vec<Part>)> {
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let compiler = lines.next()?.strip_prefix("compiler ")?.to_string();
    let mut parts = Vec::new();
    for line in lines {
        let (target, numbers) = line.split_once(' ')?;
        let numbers: Vec<usize> = numbers.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [bytes, checksum, units, frames @ ..] = &numbers[..] else { return None };
        let (frames, []) = frames.as_chunks::<3>() else { return None };
        let frame = |&[units, packed, bytes]: &[usize; 3]| Frame { units, packed, bytes };
        parts.push(Part {
            target: Target::of_name(target)?,
            offset,
            bytes: *bytes,
            checksum: u32::try_from(*checksum).ok()?,
            units: *units,
            frames: frames.iter().map(frame).collect(),
        });
        offset += *bytes as u64;
    }
    Some((compiler, parts))
}

type Places = HashMap<Key, (usize, Range<usize>)>;
/// For each frame, its range among the packed bytes, the number of bytes unpacked, and the unpacked bytes; `None` if
/// they can't be unpacked.
type Frames = Vec<(Range<usize>, usize, OnceLock<Option<Vec<u8>>>)>;

/// Returns the position of each unit's code, and the frames. `None` if the lengths do not add up.
fn places(packed: &[u8], part: &Part) -> Option<(Places, Frames)> {
    let mut begin = part.units.checked_mul(ENTRY)?;
    let mut entries = packed.get(..begin)?.as_chunks::<ENTRY>().0.iter();
    let (mut places, mut frames) = (HashMap::with_capacity(part.units), Vec::new());
    for (number, frame) in part.frames.iter().enumerate() {
        let mut start = 0_usize;
        for entry in entries.by_ref().take(frame.units) {
            let (key, length) = entry.split_at(16);
            let end = start + u32::from_le_bytes(length.try_into().ok()?) as usize;
            let key = Key(u128::from_le_bytes(key.try_into().ok()?));
            places.insert(key, (number, start..end));
            start = end;
        }
        let end = begin.checked_add(frame.packed)?;
        (start == frame.bytes && end <= packed.len()).then_some(())?;
        frames.push((begin..end, frame.bytes, OnceLock::new()));
        begin = end;
    }
    (begin == packed.len() && entries.next().is_none()).then_some((places, frames))
}

/// The archive of the installed program, for all of its chips; none if it has none.
///
/// # Errors
/// [`CudaError::KernelArchive`] if the file is no archive.
pub fn installed_archive() -> Result<Option<Archive>> {
    Ok(place::of_archive().map(|path| Archive::open(&path)).transpose()?)
}

/// Returns the kernels for a chip from the archive of the installed program, which is read at the first call. `None` if
/// there is no archive, or if it has nothing for the chip.
///
/// # Errors
/// [`CudaError::KernelArchive`] if the archive can't be used. Kernels are then compiled.
pub fn packed_kernels(chip: (u32, u32)) -> Result<Option<&'static Kernels>> {
    type Known = BTreeMap<(u32, u32), Result<Option<&'static Kernels>, CudaError>>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let read = || {
        let Some(path) = place::of_archive() else { return Ok(None) };
        let kernels = Archive::open(&path)?.kernels(chip)?;
        // Leaked, because modules loaded from it live as long as the process.
        Ok(kernels.map(|kernels| &*Box::leak(Box::new(kernels))))
    };
    // A thread that calls this while another reads the archive waits for it.
    Ok(lock(&KNOWN).entry(chip).or_insert_with(read).clone()?)
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
        let (_, parts) = parsed(b"compiler 12.9\nsm_90 23 0 1 1 3 5\n", 16).unwrap();
        for head in [
            "",
            "12.9",
            "compiler 12.9\nsm_90 10",
            "compiler 12.9\nsm_x 23 0 1",
            "compiler 12.9\nsm_90 23 0 1 1",
        ] {
            assert!(parsed(head.as_bytes(), 16).is_none(), "{head}");
        }
        let entry = |length: u32| [&[0; 16], &length.to_le_bytes()[..], &[1, 2, 3]].concat();
        assert!(places(&entry(5), &parts[0]).is_some());
        assert!(places(&entry(6), &parts[0]).is_none() && places(&entry(5)[..22], &parts[0]).is_none());
    }
}
