//! Which format a matrix is stored in.

use residua::matrix::FORMAT_NAMES;

/// The name of a format, or `auto`.
pub(crate) fn parse_format(text: &str) -> Result<String, String> {
    if text == "auto" || FORMAT_NAMES.contains(&text) {
        Ok(text.to_string())
    } else {
        Err(format!("choose auto, {}", FORMAT_NAMES.join(", ")))
    }
}

/// Products with A that a solve of `n` unknowns can be expected to take for each right-hand side.
///
/// Conjugate gradients need about 2.3 n^(1/3) of them for Poisson's equation in three dimensions (296 iterations for
/// 128^3 points, 581 for 256^3, to 1e-8), and more for almost everything that is harder. What takes fewer is solved
/// before a better format could pay, so counting on this many is on the safe side.
pub(crate) fn expected_products(n: usize, right_hand_sides: usize, max_iterations: Option<usize>) -> usize {
    let iterations = 2.3 * (n as f64).cbrt();
    max_iterations.unwrap_or(usize::MAX).min(iterations as usize).saturating_mul(right_hand_sides)
}
