//! Conversion to and from the matrices of other crates, with one cargo feature for each crate.

#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "sprs")]
mod sprs;
