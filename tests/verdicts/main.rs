//! Checks that what is reported about x is true for the x that is returned: for systems of the kinds that users have
//! reported problems with, and for random ones. The truth about them is computed without rounding.
//!
//! | file | what it holds |
//! |---|---|
//! | `exact`, `elimination` | numbers without rounding; small systems solved with them |
//! | `measure`, `nearness` | measures of an x; the distance of a matrix from a singular one |
//! | `judge` | whether a verdict, as it is worded, is true |
//! | `cases`, `ways` | the systems with their right results; the ways to call a solver |
//! | `named`, `random_systems` | the tests of these, and of random systems |
//! | `claims` | condition numbers, "no x solves it" and "symmetric" |
//! | `batches` | the tests of batches of small systems |
//! | `memory`, `unchanged` | a failure does not affect later solves; new values and the old ones again |

mod batches;
mod cases;
mod claims;
mod elimination;
mod exact;
mod judge;
mod measure;
mod memory;
mod named;
mod nearness;
#[path = "../common/random.rs"]
mod random;
mod random_systems;
mod unchanged;
mod ways;
