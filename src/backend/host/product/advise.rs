//! Which format the CPU multiplies fastest. The figures behind the rule are in docs/formats.md.

use crate::matrix::{Advice, Traits};

pub(super) fn advise(matrix: &Traits) -> Advice {
    let rows = &matrix.rows;
    Advice::new(
        "csr",
        format!(
            "a CPU reads csr at the speed of memory whatever the row lengths ({} to {}, mean {:.1}), without padding",
            rows.min, rows.max, rows.mean
        ),
    )
}
