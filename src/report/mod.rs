//! What the command tells: tables for a terminal, pictures as SVG, and the measured copy bandwidth to compare with.
//!
//! | file | what it holds |
//! |---|---|
//! | `table`, `units` | aligned columns; numbers with the unit that a person would choose |
//! | `spy` | the places of a matrix's nonzeros, as a picture |
//! | `convergence` | residual against iteration, as a picture |
//! | `levels` | the levels of multigrid, as a picture |
//! | `facts` | symmetry, diagonal and dominance of a matrix |
//! | `bandwidth` | how fast this machine copies |
//! | `html` | a page for a colleague |
//! | `svg`, `png`, `axis` | what the pictures are drawn with |

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
