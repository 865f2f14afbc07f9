//! What is said of x is true of the x that is given. Systems are made of kinds that people have reported trouble with,
//! and at random; what is true of them is computed without rounding.
//!
//! | file | what it holds |
//! |---|---|
//! | `exact`, `elimination` | numbers without rounding; small systems solved with them |
//! | `measure`, `nearness` | what is true of an x; how far a matrix is from a singular one |
//! | `judge` | whether a verdict, as it is worded, is true |
//! | `cases`, `ways` | the systems with what is right for them; the ways to call a solver |
//! | `named`, `random_systems` | the tests of these, and of random systems |
//! | `batches` | the tests of batches of small systems |
//! | `memory`, `unchanged` | a failure leaves no trace; new values and the old ones again |

mod batches;
mod cases;
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
