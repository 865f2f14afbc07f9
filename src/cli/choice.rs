//! Which format a matrix is stored in.

use residua::backend::Products;
use residua::matrix::{self, Advice, FORMAT_NAMES, RowLengths};
use residua::{Csr, Host, Result, Scalar};

/// The format that `backend` advises for `a`, which is still on the host.
pub(crate) fn choose<T: Scalar, B: Products>(backend: &B, a: &Csr<T>) -> Result<Advice> {
    Ok(matrix::advise::<T, B>(backend, &RowLengths::of(&Host, a)?))
}

/// The name of a format, or `auto`.
pub(crate) fn parse_format(text: &str) -> Result<String, String> {
    if text == "auto" || FORMAT_NAMES.contains(&text) {
        Ok(text.to_string())
    } else {
        Err(format!("choose auto, {}", FORMAT_NAMES.join(", ")))
    }
}
