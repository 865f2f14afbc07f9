//! The choice of a format, on the host.

use crate::common::choice::choice_cases;
use residua::Host;

#[test]
fn every_matrix_gets_a_format_that_multiplies_like_csr() {
    choice_cases(&Host);
}
