//! Output of the command: tables for a terminal, pictures as SVG, and the measured copy bandwidth for comparison.
//!
//! | file | what it holds |
//! |---|---|
//! | `table`, `units` | aligned columns; numbers with suitable units |
//! | `spy` | the spy plot of a matrix |
//! | `convergence` | the convergence plot |
//! | `levels` | a picture of the levels of multigrid |
//! | `facts` | symmetry, diagonal and dominance of a matrix |
//! | `bandwidth` | the copy bandwidth of this machine |
//! | `html` | a report as a page |
//! | `svg`, `png`, `axis` | drawing |

mod axis;
mod bandwidth;
mod convergence;
mod facts;
#[cfg(feature = "cli")]
mod html;
mod levels;
mod png;
mod spy;
mod svg;
mod table;

pub use crate::units::{bytes, count, ratio, seconds};
pub use bandwidth::copy_bandwidth;
pub use convergence::{Curve, convergence_svg};
pub use facts::Facts;
pub(crate) use facts::ROUNDING;
#[cfg(feature = "cli")]
pub(crate) use html::Page;
pub use spy::spy_svg;
pub use table::{Align, Table};
