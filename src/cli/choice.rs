//! Which format a matrix is stored in.

use residua::backend::Backend;
use residua::matrix::FORMAT_NAMES;
use residua::{Csr, Result, Scalar};

/// A format and why.
pub(crate) struct Choice {
    pub(crate) format: &'static str,
    pub(crate) reason: String,
}

/// The format that is advised for `a` on `backend`.
pub(crate) fn choose<T: Scalar, B: Backend>(_backend: &B, _a: &Csr<T>) -> Result<Choice> {
    Ok(Choice { format: "csr", reason: "suits any matrix".into() })
}

/// The name of a format, or `auto`.
pub(crate) fn parse_format(text: &str) -> Result<String, String> {
    if text == "auto" || FORMAT_NAMES.contains(&text) {
        Ok(text.to_string())
    } else {
        Err(format!("choose auto, {}", FORMAT_NAMES.join(", ")))
    }
}
