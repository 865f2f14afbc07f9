//! Conversion to and from the matrices of other crates, a feature each.

#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "sprs")]
mod sprs;
