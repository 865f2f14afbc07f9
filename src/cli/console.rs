//! Standard output and standard error, without the panic of `println!` if the reader is gone.

use super::Failure;
use crate::Error;
use std::io::{self, Write};

/// Prints on standard output.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|source| Error::Io { path: "-".into(), source }.into())
}

/// Prints on standard error. If that fails, nothing can be done.
pub(crate) fn tell(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}
