//! Factorisations on the device by cuDSS, where it is installed (`pip install nvidia-cudss-cu13`).
//!
//! It is looked for when a factorisation is first asked for, in the places where NVRTC is looked for and in the file or
//! folder that `RESIDUA_CUDSS` names; nothing is linked with it. Releases from 0.5 on serve. They differ in the numbers
//! of settings and phases, so the release is asked for first.
//!
//! | file | what it holds |
//! |---|---|
//! | `library` | finding and loading it, and its functions |
//! | `version` | releases, and the numbers that stand for settings in each |
//! | `factors` | a matrix, its analysis and its factors |
//!
//! What it reports is not relied on. A matrix with a row of zeros is factorised with success into NaN, or, as a
//! symmetric one, into numbers that solve another system (seen in 1.0.0); `direct::OnDevice` tests residuals.

mod factors;
mod library;
mod version;

use super::Cuda;
use crate::backend::{CsrArrays, FactorOptions, FactorSteps, Factors};
use crate::error::Result;
use crate::scalar::Scalar;
use factors::Factorisation;
use library::Library;

/// Release and place of the library.
///
/// # Errors
/// Why there is none, and how to get it.
pub(super) fn found() -> Result<(String, String)> {
    let library = Library::get()?;
    Ok((library.version.to_string(), library.path().display().to_string()))
}

impl FactorSteps for Cuda {
    fn factor_library(&self) -> Result<String> {
        Ok(format!("cuDSS {}", Library::get()?.version))
    }

    fn has_blocks_of_two(&self) -> bool {
        Library::get().is_ok_and(|library| library.numbers.bunch_kaufman.is_some())
    }

    fn factors<T: Scalar>(
        &self,
        n: usize,
        arrays: CsrArrays<T, Self>,
        options: FactorOptions<'_>,
    ) -> Result<Box<dyn Factors<T, Self>>> {
        Ok(Box::new(Factorisation::new(*self, n, arrays, options)?))
    }
}
