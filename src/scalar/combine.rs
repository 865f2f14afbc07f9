//! Operations of reductions and scans. A backend has kernels for each, so they are types and not closures.

use super::{Element, Key, sealed};
use num_complex::Complex;

/// Types with addition: integers (wrapping) and scalars.
pub trait Number: Element {
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
}

macro_rules! number {
    (integer: $($i:ty),*; float: $($f:ty),*) => {
        $(impl Number for $i {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
        })*
        $(impl Number for $f {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
        })*
    };
}
number!(integer: u8, u16, u32, u64, i8, i16, i32, i64; float: f32, f64, Complex<f32>, Complex<f64>);

/// An associative operation on `T` with an identity. Sealed: [`Sum`], [`Min`] and [`Max`].
pub trait Combine<T: Element>: sealed::Sealed + Copy + Send + Sync + 'static {
    /// Name in kernels: `sum`, `min`, `max`.
    const NAME: &'static str;
    /// The identity: the value that changes no other (for floating-point sums +0, which turns -0 into +0).
    fn identity() -> T;
    /// Combines `a` and `b`.
    fn combine(a: T, b: T) -> T;
}

/// Addition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum;

/// The smaller of two, in the order of [`Key`] (which also orders NaN and signed zeros).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Min;

/// The larger of two, in the order of [`Key`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Max;

impl sealed::Sealed for Sum {}
impl sealed::Sealed for Min {}
impl sealed::Sealed for Max {}

impl<T: Number> Combine<T> for Sum {
    const NAME: &'static str = "sum";
    #[inline(always)]
    fn identity() -> T {
        T::default()
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.plus(b)
    }
}

impl<T: Key> Combine<T> for Min {
    const NAME: &'static str = "min";
    #[inline(always)]
    fn identity() -> T {
        T::from_ordered(u64::MAX >> (64 - T::BITS))
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        if b.to_ordered() < a.to_ordered() { b } else { a }
    }
}

impl<T: Key> Combine<T> for Max {
    const NAME: &'static str = "max";
    #[inline(always)]
    fn identity() -> T {
        T::from_ordered(0)
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        if b.to_ordered() > a.to_ordered() { b } else { a }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_neutral() {
        for x in [f64::NEG_INFINITY, -0.0, 0.0, 3.5, f64::INFINITY, f64::NAN, -f64::NAN] {
            assert_eq!(Min::combine(<Min as Combine<f64>>::identity(), x).to_bits(), x.to_bits());
            assert_eq!(Max::combine(x, <Max as Combine<f64>>::identity()).to_bits(), x.to_bits());
        }
        for x in [i32::MIN, -1, 0, i32::MAX] {
            assert_eq!(Min::combine(<Min as Combine<i32>>::identity(), x), x);
            assert_eq!(Max::combine(<Max as Combine<i32>>::identity(), x), x);
        }
    }
}
