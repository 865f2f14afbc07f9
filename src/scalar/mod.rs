//! The element types of buffers and matrices. All traits here are sealed, since a backend has kernels for a fixed set.

use crate::direct::Factorable;
use num_complex::Complex;
use num_traits::{Float, NumAssign};
use std::fmt::{Debug, Display, LowerExp};
use std::ops::Neg;

mod bytes;
mod combine;
mod symmetry;

#[cfg(feature = "ranks")]
pub(crate) use bytes::bytes_of_mut;
pub(crate) use bytes::{bytes_of, elements_of};
pub use combine::{Combine, Max, Min, Number, Sum};
pub use symmetry::Symmetry;

mod sealed {
    pub trait Sealed {}
}

/// The types that a buffer can hold: plain bits, for which all zeros are valid.
pub trait Element: sealed::Sealed + Copy + Default + Debug + PartialEq + Send + Sync + 'static {
    /// Name in messages, tables and kernel names.
    const NAME: &'static str;
}

/// A matrix or vector entry: a real or complex floating-point number.
pub trait Scalar: Number + NumAssign + Neg<Output = Self> + std::iter::Sum + Display + Promote<Self> {
    /// The type of magnitudes: `f64` for `Complex<f64>`, itself for a real type.
    type Real: Real;
    /// True if the type has an imaginary part.
    const COMPLEX: bool;
    /// The real number `re`.
    fn from_real(re: Self::Real) -> Self;
    /// The nearest value to a double.
    fn from_f64(value: f64) -> Self;
    /// The nearest value to `re + im i`; `None` if the type is real and `im` is not zero.
    fn from_parts(re: f64, im: f64) -> Option<Self>;
    /// Real part.
    fn re(self) -> Self::Real;
    /// Imaginary part, zero for a real type.
    fn im(self) -> Self::Real;
    /// Complex conjugate; the value itself for a real type.
    fn conj(self) -> Self;
    /// Squared magnitude.
    fn abs2(self) -> Self::Real;
    /// Magnitude.
    fn abs(self) -> Self::Real;
    /// Returns whether all parts are finite.
    fn is_finite(self) -> bool;
    /// The type of half the width; for the narrowest type itself.
    type Lower: Scalar<Lower = Self::Lower> + Promote<Self>;
    /// The same number in the narrower type, if that represents it exactly.
    fn narrow(self) -> Option<Self::Lower>;
    /// The nearest number of the narrower type.
    fn to_lower(self) -> Self::Lower;
    /// The type in which systems are factorised: double precision.
    type Double: Factorable;
    /// The same number as a double.
    fn to_double(self) -> Self::Double;
    /// The nearest number of this type.
    fn from_double(value: Self::Double) -> Self;
    /// The bits of the real and of the imaginary part; the latter are 0 for a real type.
    fn bits(self) -> [u64; 2];
    /// The inverse of [`Scalar::bits`].
    fn from_bits(bits: [u64; 2]) -> Self;
}

/// A real [`Scalar`].
pub trait Real: Scalar<Real = Self> + Key + Float + PartialOrd + LowerExp {
    /// The nearest double.
    fn to_f64(self) -> f64;
}

/// Types that are narrower than the computing type, and are widened without loss: matrix values in `f32` for vectors in
/// `f64`.
pub trait Promote<T>: Element {
    /// The same number in the wider type.
    fn widen(self) -> T;
}

/// Row offsets: 32 bits if the number of nonzeros allows it, else 64.
pub trait Offset: Element + Ord {
    /// Conversion to a size.
    fn to_usize(self) -> usize;
    /// Conversion from a size that is known to fit.
    fn from_usize(value: usize) -> Self;
    /// The largest value.
    const MAX: usize;
}

/// A sort key: an order-preserving map to unsigned integers, so that radix sort works for every type. Floats are
/// ordered as by IEEE 754 `totalOrder`: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
pub trait Key: Element {
    /// Number of significant bits.
    const BITS: u32;
    /// Bits in the order of the keys.
    fn to_ordered(self) -> u64;
    /// The inverse of [`Key::to_ordered`].
    fn from_ordered(bits: u64) -> Self;
}

macro_rules! element {
    ($($t:ty => $name:literal),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t { const NAME: &'static str = $name; }
        impl Promote<$t> for $t { #[inline(always)] fn widen(self) -> $t { self } }
    )*};
}
element!(u8 => "u8", u16 => "u16", u32 => "u32", u64 => "u64", i8 => "i8", i16 => "i16", i32 => "i32", i64 => "i64",
    f32 => "f32", f64 => "f64", Complex<f32> => "c32", Complex<f64> => "c64");

impl Promote<f64> for f32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self)
    }
}

impl Promote<Complex<f64>> for Complex<f32> {
    #[inline(always)]
    fn widen(self) -> Complex<f64> {
        Complex::new(f64::from(self.re), f64::from(self.im))
    }
}

macro_rules! real {
    ($t:ident) => {
        impl Scalar for $t {
            type Real = $t;
            const COMPLEX: bool = false;
            #[inline(always)]
            fn from_real(re: $t) -> $t {
                re
            }
            #[inline(always)]
            fn from_f64(value: f64) -> $t {
                value as $t
            }
            #[inline(always)]
            fn from_parts(re: f64, im: f64) -> Option<$t> {
                (im == 0.0).then_some(re as $t)
            }
            #[inline(always)]
            fn re(self) -> $t {
                self
            }
            #[inline(always)]
            fn im(self) -> $t {
                0.0
            }
            #[inline(always)]
            fn conj(self) -> $t {
                self
            }
            #[inline(always)]
            fn abs2(self) -> $t {
                self * self
            }
            #[inline(always)]
            fn abs(self) -> $t {
                $t::abs(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            type Lower = f32;
            #[inline(always)]
            fn to_lower(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn narrow(self) -> Option<f32> {
                let narrow = self as f32;
                (Self::from(narrow).to_bits() == self.to_bits()).then_some(narrow)
            }
            type Double = f64;
            #[inline(always)]
            fn to_double(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn from_double(value: f64) -> $t {
                value as $t
            }
            #[inline(always)]
            fn bits(self) -> [u64; 2] {
                [u64::from(self.to_bits()), 0]
            }
            #[inline(always)]
            fn from_bits(bits: [u64; 2]) -> $t {
                <$t>::from_bits(bits[0] as _)
            }
        }
        impl Real for $t {
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
        }
        impl Scalar for Complex<$t> {
            type Real = $t;
            const COMPLEX: bool = true;
            #[inline(always)]
            fn from_real(re: $t) -> Self {
                Complex::new(re, 0.0)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                Complex::new(value as $t, 0.0)
            }
            #[inline(always)]
            fn from_parts(re: f64, im: f64) -> Option<Self> {
                Some(Complex::new(re as $t, im as $t))
            }
            #[inline(always)]
            fn re(self) -> $t {
                self.re
            }
            #[inline(always)]
            fn im(self) -> $t {
                self.im
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            #[inline(always)]
            fn abs2(self) -> $t {
                self.re * self.re + self.im * self.im
            }
            #[inline(always)]
            fn abs(self) -> $t {
                self.re.hypot(self.im)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
            type Lower = Complex<f32>;
            #[inline(always)]
            fn to_lower(self) -> Complex<f32> {
                Complex::new(self.re as f32, self.im as f32)
            }
            #[inline(always)]
            fn narrow(self) -> Option<Complex<f32>> {
                Some(Complex::new(Scalar::narrow(self.re)?, Scalar::narrow(self.im)?))
            }
            type Double = Complex<f64>;
            #[inline(always)]
            fn to_double(self) -> Complex<f64> {
                Complex::new(f64::from(self.re), f64::from(self.im))
            }
            #[inline(always)]
            fn from_double(value: Complex<f64>) -> Self {
                Complex::new(value.re as $t, value.im as $t)
            }
            #[inline(always)]
            fn bits(self) -> [u64; 2] {
                [u64::from(self.re.to_bits()), u64::from(self.im.to_bits())]
            }
            #[inline(always)]
            fn from_bits(bits: [u64; 2]) -> Self {
                Complex::new(<$t>::from_bits(bits[0] as _), <$t>::from_bits(bits[1] as _))
            }
        }
    };
}
real!(f32);
real!(f64);

macro_rules! offset {
    ($t:ty) => {
        impl Offset for $t {
            #[inline(always)]
            fn to_usize(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn from_usize(value: usize) -> Self {
                debug_assert!(value <= <Self as Offset>::MAX);
                value as $t
            }
            const MAX: usize = <$t>::MAX as usize;
        }
    };
}
offset!(u32);
offset!(u64);

macro_rules! unsigned_key {
    ($($t:ty),*) => {$(
        impl Key for $t {
            const BITS: u32 = <$t>::BITS;
            #[inline(always)]
            fn to_ordered(self) -> u64 { u64::from(self) }
            #[inline(always)]
            fn from_ordered(bits: u64) -> Self { bits as $t }
        }
    )*};
}
unsigned_key!(u8, u16, u32, u64);

macro_rules! signed_key {
    ($($t:ty as $u:ty),*) => {$(
        impl Key for $t {
            const BITS: u32 = <$t>::BITS;
            #[inline(always)]
            fn to_ordered(self) -> u64 { u64::from((self as $u) ^ (1 << (<$u>::BITS - 1))) }
            #[inline(always)]
            fn from_ordered(bits: u64) -> Self { ((bits as $u) ^ (1 << (<$u>::BITS - 1))) as $t }
        }
    )*};
}
signed_key!(i8 as u8, i16 as u16, i32 as u32, i64 as u64);

macro_rules! float_key {
    ($($t:ty as $u:ty),*) => {$(
        impl Key for $t {
            const BITS: u32 = <$u>::BITS;
            #[inline(always)]
            fn to_ordered(self) -> u64 {
                let bits = self.to_bits();
                let sign = 1 << (<$u>::BITS - 1);
                u64::from(if bits & sign == 0 { bits ^ sign } else { !bits })
            }
            #[inline(always)]
            fn from_ordered(bits: u64) -> Self {
                let bits = bits as $u;
                let sign = 1 << (<$u>::BITS - 1);
                <$t>::from_bits(if bits & sign == 0 { !bits } else { bits ^ sign })
            }
        }
    )*};
}
float_key!(f32 as u32, f64 as u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_keys_follow_total_order() {
        let mut values =
            [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 1.5, -1.5, 5e-324];
        values.sort_by(f64::total_cmp);
        for pair in values.windows(2) {
            assert!(pair[0].to_ordered() < pair[1].to_ordered(), "{pair:?}");
        }
        for v in values {
            assert_eq!(f64::from_ordered(v.to_ordered()).to_bits(), v.to_bits());
        }
    }

    #[test]
    fn numbers_narrow_only_without_loss() {
        for exact in [0.0, -0.0, 1.0, -6.0, 0.375, f64::INFINITY, 16_777_216.0, f64::from(f32::MIN_POSITIVE)]
        {
            assert_eq!(exact.narrow().map(|v| f64::from(v).to_bits()), Some(exact.to_bits()), "{exact}");
        }
        for inexact in [0.1, 16_777_217.0, 1e300, 5e-324] {
            assert_eq!(inexact.narrow(), None, "{inexact}");
        }
        assert_eq!(Complex::new(1.0, 0.1).narrow(), None);
        assert_eq!(Complex::new(1.0, 0.5).narrow(), Some(Complex::new(1.0_f32, 0.5)));
    }

    #[test]
    fn signed_keys_keep_order_and_value() {
        for pair in [i32::MIN, -7, -1, 0, 1, i32::MAX].windows(2) {
            assert!(pair[0].to_ordered() < pair[1].to_ordered());
            assert_eq!(i32::from_ordered(pair[0].to_ordered()), pair[0]);
        }
    }
}
