//! Cases of every format for every backend: conversions and products.

#![allow(dead_code)]

pub mod cases;
pub mod choice;
pub mod conversions;
pub mod half;
pub mod products;
