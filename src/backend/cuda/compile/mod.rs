//! Compiles the source of a kernel for one chip, and caches the result. This needs no device: NVRTC alone compiles
//! every kernel for every chip, which continuous integration and packaging use.
//!
//! ```text
//! Unit ("vector.cu", SCALAR = f64) + constants (tuning) + chip (sm_90)
//!     ->  archive of the package, or cache file, or NVRTC and then a cache file
//! ```

mod ahead;
mod archive;
mod asked;
mod cache;
mod catalogue;
mod key;
mod list;
mod nvrtc;
mod pack;
mod place;
mod programs;
mod sources;
mod unit;

pub(super) use ahead::Ahead;
pub use ahead::CompilingAhead;
pub use archive::{Archive, Kernels, installed_archive, packed_kernels};
pub use catalogue::catalogue;
pub use list::{listed_units, packed_units, units_of_a_solve, units_of_an_ordering};
pub use nvrtc::Compiler;
pub use pack::{pack, prepare, write_archive};
pub(super) use programs::number as program_number;
pub use sources::{HEADERS, SOURCES};
pub use unit::Unit;

use crate::error::{CudaError, Result};
use key::Key;
use std::time::{Duration, Instant};

/// A kernel file compiled for one chip.
#[derive(Debug)]
pub struct Image {
    /// Machine code (cubin), or PTX with a terminating zero byte if the compiler does not know the chip yet.
    pub code: Vec<u8>,
    /// True if it came from the cache.
    pub cached: bool,
    /// The time that the compilation or loading took.
    pub time: Duration,
}

impl Compiler {
    /// Returns the unit's code for a chip, `(9, 0)` for sm_90; from the cache if possible.
    ///
    /// # Errors
    /// [`CudaError::CompilerMismatch`](crate::error::CudaError::CompilerMismatch) if the compiler no longer supports
    /// the chip; [`CudaError::Compilation`](crate::error::CudaError::Compilation) for an error in the source. If the
    /// cache can't be read or written, that is no error.
    pub fn image(&self, unit: &Unit, chip: (u32, u32)) -> Result<Image> {
        self.image_with(unit, chip, None)
    }

    /// Compiles with little optimisation if the compiler has that option (NVRTC 13). This checks in less than half the
    /// time of [`image`](Self::image) that the unit compiles for a chip. The code is not meant to be run.
    ///
    /// # Errors
    /// As [`image`](Self::image).
    pub fn draft(&self, unit: &Unit, chip: (u32, u32)) -> Result<Image> {
        self.image_with(unit, chip, self.option_for_drafts())
    }

    /// As [`image`](Self::image), for the name of a target, which need not be a chip of this machine: `sm_90`, or
    /// `compute_90` for PTX.
    ///
    /// # Errors
    /// As [`image`](Self::image).
    pub fn image_for(&self, unit: &Unit, target: &str) -> Result<Image> {
        let known = Target::of_name(target).filter(|target| self.chips().contains(&target.chip()));
        let known = known.ok_or_else(|| CudaError::CompilerMismatch {
            compiler: self.version_text(),
            chip: target.into(),
            cause: "it does not know this target".into(),
        })?;
        self.image_of(unit, &known, None)
    }

    fn image_with(&self, unit: &Unit, chip: (u32, u32), more: Option<&str>) -> Result<Image> {
        self.image_of(unit, &self.target(chip)?, more)
    }

    fn image_of(&self, unit: &Unit, target: &Target, more: Option<&str>) -> Result<Image> {
        let start = Instant::now();
        let source = sources::source(unit.source());
        let mut options = unit.options(target);
        options.extend(more.map(str::to_string));
        let entry = self.entry(source, &options);
        if let Some(code) = entry.load() {
            return Ok(Image { code, cached: true, time: start.elapsed() });
        }
        let code = self.compile(unit.source(), source, &options, target.machine_code)?;
        entry.store(&code);
        Ok(Image { code, cached: false, time: start.elapsed() })
    }

    /// Returns whether the cache has a file for the unit and a chip.
    pub(super) fn has_cached(&self, unit: &Unit, chip: (u32, u32)) -> bool {
        let Ok(target) = self.target(chip) else { return false };
        self.entry(sources::source(unit.source()), &unit.options(&target)).is_there()
    }

    fn entry(&self, source: &str, options: &[String]) -> cache::Entry {
        cache::Entry::of(Key::new(&self.version_text(), source, options))
    }
}

/// The target of a compilation: `sm_90` for machine code, or `compute_90` for PTX that the driver compiles further.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) machine_code: bool,
}

impl Target {
    fn of_name(name: &str) -> Option<Target> {
        let (kind, digits) = name.split_once('_')?;
        let known = matches!(kind, "sm" | "compute") && (2..4).contains(&digits.len());
        let number = digits.bytes().all(|digit| digit.is_ascii_digit());
        (known && number).then(|| Target { name: name.into(), machine_code: kind == "sm" })
    }

    /// Returns the chip of this target, `(9, 0)` for 90.
    fn chip(&self) -> (u32, u32) {
        let digits = self.name.split('_').next_back().and_then(|digits| digits.parse::<u32>().ok());
        digits.map_or((0, 0), |number| (number / 10, number % 10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the compiler if NVRTC is found; otherwise prints a note.
    fn compiler() -> Option<&'static Compiler> {
        match Compiler::get() {
            Ok(compiler) => Some(compiler),
            Err(error) => {
                eprintln!("SKIPPED: {error}");
                None
            }
        }
    }

    #[test]
    fn a_chip_newer_than_the_compiler_gets_ptx_and_a_dropped_one_an_error() {
        let Some(compiler) = compiler() else { return };
        let newest = *compiler.chips().last().unwrap();
        let target = compiler.target((newest.0 + 9, 0)).unwrap();
        assert!(
            !target.machine_code && target.name == format!("compute_{}{}", newest.0, newest.1),
            "{}",
            target.name
        );
        let error = compiler.target((2, 0)).err().unwrap().to_string();
        assert!(error.contains("sm_20"), "{error}");
    }
}
