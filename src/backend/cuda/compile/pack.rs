//! Writes an archive of compiled kernels ([`Archive`](super::Archive)).

use super::archive::MAGIC;
use super::key::Key;
use super::{Compiler, Target, Unit, listed_units, packed_kernels, sources};
use crate::backend::cuda::tuning;
use crate::error::{CudaError, Result};
use crate::lock::lock;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};

/// A frame is closed when it has this many bytes of code. A solve needs about twenty units from as many files, and has
/// to wait for each until its frame is unpacked.
const FRAME: usize = 1 << 21;

/// Returns the bytes of an archive. `code` returns the code of a unit for a target, `sm_90` or `compute_90`, from the
/// compiler of release `compiler`; `compress` returns one zstd frame of its input.
///
/// # Errors
/// Errors of `code`, and [`CudaError::KernelArchive`] if compression fails or a target has another name.
///
/// ```
/// use residua::backend::cuda::compile::{Unit, pack};
/// # fn main() -> residua::Result<()> {
/// let code = |unit: &Unit, target: &str| Ok(format!("{} for {target}", unit.describe()).into_bytes());
/// // A frame with one block, stored as it is.
/// let stored = |bytes: &[u8]| {
///     let length = (bytes.len() as u32).to_le_bytes();
///     let block = ((bytes.len() as u32) << 3 | 1).to_le_bytes();
///     Ok([&[0x28, 0xb5, 0x2f, 0xfd, 0xa0], &length[..], &block[..3], bytes].concat())
/// };
/// let archive = pack("12.9", &["sm_90"], &[Unit::new("memory.cu")], code, stored)?;
/// assert!(archive.starts_with(b"residuak"));
/// # Ok(())
/// # }
/// ```
pub fn pack(
    compiler: &str,
    targets: &[&str],
    units: &[Unit],
    code: impl Fn(&Unit, &str) -> Result<Vec<u8>> + Sync,
    compress: impl Fn(&[u8]) -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let failed = |cause: String| CudaError::KernelArchive { path: "a new archive".into(), cause };
    let mut units = units.to_vec();
    // Similar units are placed next to each other, which helps compression.
    units.sort_by_cached_key(Unit::describe);
    let known = |name: &&str| {
        Target::of_name(name).ok_or_else(|| failed(format!("{name} is neither sm_ nor compute_")))
    };
    let targets = targets.iter().map(known).collect::<Result<Vec<Target>, _>>()?;
    let units_of = |target: &Target| -> Vec<Unit> {
        units.iter().copied().filter(|unit| tuning::suits(unit, target.chip())).collect()
    };
    let work: Vec<(&str, Unit)> = targets
        .iter()
        .flat_map(|target| units_of(target).into_iter().map(|unit| (target.name.as_str(), unit)))
        .collect();
    let codes: Vec<Vec<u8>> = by_all_threads(&work, |(target, unit)| code(unit, target))?;
    let (mut head, mut codes) = (format!("compiler {compiler}\n"), &codes[..]);
    let mut frames = Vec::new();
    for target in &targets {
        let units = units_of(target);
        let (own, others) = codes.split_at(units.len());
        codes = others;
        let mut bytes = Vec::new();
        for (unit, code) in units.iter().zip(own) {
            let key = Key::new(compiler, sources::source(unit.source()), &unit.options(target));
            bytes.extend(key.0.to_le_bytes());
            bytes.extend((code.len() as u32).to_le_bytes());
        }
        let mut line = String::new();
        for alike in together(&units, own) {
            let unpacked = own[alike.clone()].concat();
            let frame = compress(&unpacked).map_err(|error| failed(format!("compressing: {error}")))?;
            line += &format!(" {} {} {}", alike.len(), frame.len(), unpacked.len());
            bytes.extend(frame);
        }
        let name = &target.name;
        head += &format!("{name} {} {} {}{line}\n", bytes.len(), crc32fast::hash(&bytes), units.len());
        frames.extend(bytes);
    }
    let mut archive = MAGIC.to_vec();
    archive.extend((head.len() as u32).to_le_bytes());
    archive.extend(crc32fast::hash(head.as_bytes()).to_le_bytes());
    archive.extend(head.as_bytes());
    archive.extend(frames);
    Ok(archive)
}

/// Returns ranges of units whose codes share a frame: units of the same file, up to about [`FRAME`] bytes.
fn together(units: &[Unit], codes: &[Vec<u8>]) -> Vec<Range<usize>> {
    let mut frames: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (place, (unit, code)) in units.iter().zip(codes).enumerate() {
        match frames.last_mut() {
            Some(last) if units[last.start].source() == unit.source() && bytes < FRAME => last.end += 1,
            _ => {
                frames.push(place..place + 1);
                bytes = 0;
            }
        }
        bytes += code.len();
    }
    frames
}

/// Compiles units for targets and writes an archive of them, compressed by the program `zstd`. Returns the size of the
/// archive in bytes.
///
/// # Errors
/// [`CudaError::NoCompiler`] without NVRTC, [`CudaError::CompilerMismatch`] if it does not know a target,
/// [`CudaError::KernelArchive`] if the file cannot be written or `zstd` does not run.
pub fn write_archive(path: &Path, targets: &[&str], units: &[Unit]) -> Result<u64> {
    let compiler = Compiler::get()?;
    let code = |unit: &Unit, target: &str| compiler.image_for(unit, target).map(|image| image.code);
    let beside = path.with_extension("unpacked");
    let compress = |bytes: &[u8]| {
        fs::write(&beside, bytes)?;
        let output = Command::new("zstd").args(["--ultra", "-22", "-q", "-c"]).arg(&beside).output();
        fs::remove_file(&beside)?;
        let output = output.map_err(|error| io::Error::other(format!("the program zstd: {error}")))?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
        }
    };
    let archive = pack(&compiler.version_text(), targets, units, code, compress)?;
    let unwritten = |error: io::Error| CudaError::KernelArchive {
        path: path.display().to_string(),
        cause: error.to_string(),
    };
    fs::write(path, &archive).map_err(unwritten)?;
    Ok(archive.len() as u64)
}

/// Compiles the listed units for a chip that the package does not have, and caches them. Returns the number of listed
/// units, and how many of these the package has.
///
/// # Errors
/// As [`Compiler::image`], and [`CudaError::NoCompiler`] if a compiler is needed but not found.
pub fn prepare(chip: (u32, u32)) -> Result<(usize, usize)> {
    let mut units = listed_units();
    units.retain(|unit| tuning::suits(unit, chip));
    let listed = units.len();
    let packed = packed_kernels(chip).ok().flatten();
    units.retain(|unit| packed.is_none_or(|kernels| !kernels.has(unit)));
    if !units.is_empty() {
        let compiler = Compiler::get()?;
        by_all_threads(&units, |unit| compiler.image(unit, chip).map(drop))?;
    }
    Ok((listed, listed - units.len()))
}

/// Applies `make` to all items, on all threads. The results are in order. It stops at the first failure.
fn by_all_threads<T: Sync, R: Send>(items: &[T], make: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Ok(Vec::new()));
    let work = || {
        while let Some((place, item)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            items.get(place).map(|item| (place, item))
        } {
            let one = make(item);
            let mut made = lock(&made);
            match (one, made.as_mut()) {
                (Ok(one), Ok(all)) => all.push((place, one)),
                (Err(error), Ok(_)) => *made = Err(error),
                (_, Err(_)) => return,
            }
        }
    };
    thread::scope(|scope| {
        let threads = available_parallelism().map_or(1, usize::from).min(items.len());
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let made: Result<Vec<(usize, R)>> = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut made = made?;
    made.sort_unstable_by_key(|(place, _)| *place);
    Ok(made.into_iter().map(|(_, one)| one).collect())
}
