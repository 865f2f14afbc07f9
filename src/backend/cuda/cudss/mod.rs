//! Factorisations on the device by cuDSS, if it is installed (`pip install nvidia-cudss-cu13`).
//!
//! cuDSS is searched for when a factorisation is first requested: in the places where NVRTC is searched for, and in the
//! file or folder that `RESIDUA_CUDSS` names. Nothing is linked with it. Releases since 0.5 are supported. They differ
//! in the codes of settings and phases, so the release is queried first.
//!
//! | file | what it holds |
//! |---|---|
//! | `library` | finding and loading it, and its functions |
//! | `version` | releases, and the codes of settings in each |
//! | `factors` | a matrix, its analysis and its factors |
//!
//! A status of success is not relied on. A matrix with a row of zeros is factorised with success into NaN or, as a
//! symmetric one, into numbers that solve another system (seen in 1.0.0), so `direct::OnDevice` checks residuals.

mod factors;
mod library;
mod version;

use super::Cuda;
use super::fronts::Fronts;
use crate::backend::{CsrArrays, FactorOptions, FactorSteps, Factors, FrontPlan};
use crate::error::Result;
use crate::scalar::Scalar;
use factors::Factorisation;
use library::Library;

/// Returns the release and the path of the library.
///
/// # Errors
/// The reason why there is none, and how to install it.
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

    fn has_fronts(&self) -> bool {
        true
    }

    fn fronts<T: Scalar>(&self, plan: &FrontPlan) -> Result<Box<dyn Factors<T, Self>>> {
        Ok(Box::new(Fronts::new(*self, plan)?))
    }
}
