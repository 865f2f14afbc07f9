//! Arithmetic without rounding. A finite double is an integer times a power of two, and so are sums and products of
//! such numbers: residuals, their norms squared and determinants are computed to the last digit.

use num_bigint::BigInt;
use residua::{Real, Scalar};
use std::cmp::Ordering;
use std::ops::{Add, Mul, Neg, Sub};

/// An integer times a power of two.
#[derive(Debug, Clone)]
pub struct Dyadic {
    integer: BigInt,
    exponent: i64,
}

impl Dyadic {
    pub fn zero() -> Self {
        Self { integer: BigInt::ZERO, exponent: 0 }
    }

    /// A finite double as such a number.
    pub fn new(value: f64) -> Self {
        assert!(value.is_finite(), "{value}");
        let (bits, biased) = (value.to_bits() & ((1 << 52) - 1), (value.to_bits() >> 52 & 0x7ff) as i64);
        let (whole, exponent) = if biased == 0 { (bits, -1074) } else { (bits | 1 << 52, biased - 1075) };
        if whole == 0 {
            return Self::zero();
        }
        let zeros = whole.trailing_zeros();
        let signed = if value < 0.0 { -((whole >> zeros) as i64) } else { (whole >> zeros) as i64 };
        Self { integer: signed.into(), exponent: exponent + i64::from(zeros) }
    }

    pub fn is_zero(&self) -> bool {
        self.integer == BigInt::ZERO
    }

    pub fn square(&self) -> Self {
        self * self
    }

    /// The same times a power of two.
    pub fn shifted(mut self, by: i64) -> Self {
        self.exponent += by;
        self
    }

    /// The exponent of the last binary digit that can be other than zero.
    pub fn exponent(&self) -> i64 {
        self.exponent
    }

    /// The integer that this is in units of a power of two, none finer than [`Dyadic::exponent`].
    pub fn in_units_of(&self, exponent: i64) -> BigInt {
        if self.is_zero() { BigInt::ZERO } else { &self.integer << (self.exponent - exponent) as u64 }
    }

    pub fn of_integer(integer: BigInt, exponent: i64) -> Self {
        Self { integer, exponent }
    }

    /// A number of 64 digits, and its power of two.
    fn leading(&self) -> (f64, i64) {
        let dropped = self.integer.bits().saturating_sub(64);
        let leading: i128 = (&self.integer >> dropped).try_into().expect("65 bits");
        (leading as f64, self.exponent + dropped as i64)
    }

    /// This divided by `other`, rounded; infinite if only `other` is zero, and zero if this is.
    pub fn over(&self, other: &Self) -> f64 {
        if self.is_zero() {
            return 0.0;
        }
        let ((above, raised), (below, lowered)) = (self.leading(), other.leading());
        // In two steps: 2^shift alone can overflow or underflow although the quotient does not.
        let shift = (raised - lowered).clamp(-4000, 4000) as i32;
        above / below * 2_f64.powi(shift / 2) * 2_f64.powi(shift - shift / 2)
    }

    pub fn to_f64(&self) -> f64 {
        self.over(&Self::new(1.0))
    }
}

impl Add for &Dyadic {
    type Output = Dyadic;
    fn add(self, other: &Dyadic) -> Dyadic {
        if self.is_zero() {
            return other.clone();
        }
        if other.is_zero() {
            return self.clone();
        }
        let (fine, coarse) = if self.exponent <= other.exponent { (self, other) } else { (other, self) };
        Dyadic { integer: coarse.in_units_of(fine.exponent) + &fine.integer, exponent: fine.exponent }
    }
}

impl Neg for &Dyadic {
    type Output = Dyadic;
    fn neg(self) -> Dyadic {
        Dyadic { integer: -&self.integer, exponent: self.exponent }
    }
}

impl Sub for &Dyadic {
    type Output = Dyadic;
    fn sub(self, other: &Dyadic) -> Dyadic {
        self + &-other
    }
}

impl Mul for &Dyadic {
    type Output = Dyadic;
    fn mul(self, other: &Dyadic) -> Dyadic {
        Dyadic { integer: &self.integer * &other.integer, exponent: self.exponent + other.exponent }
    }
}

impl PartialEq for Dyadic {
    fn eq(&self, other: &Self) -> bool {
        (self - other).is_zero()
    }
}

impl PartialOrd for Dyadic {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self - other).integer.partial_cmp(&BigInt::ZERO)
    }
}

/// A complex number of two such parts.
#[derive(Debug, Clone)]
pub struct Exact {
    pub re: Dyadic,
    pub im: Dyadic,
}

impl Exact {
    pub fn zero() -> Self {
        Self { re: Dyadic::zero(), im: Dyadic::zero() }
    }

    pub fn new<T: Scalar>(value: T) -> Self {
        Self { re: Dyadic::new(value.re().to_f64()), im: Dyadic::new(value.im().to_f64()) }
    }

    pub fn of_all<T: Scalar>(values: &[T]) -> Vec<Self> {
        values.iter().map(|&value| Self::new(value)).collect()
    }

    pub fn conj(&self) -> Self {
        Self { re: self.re.clone(), im: -&self.im }
    }

    /// |z|, rounded.
    pub fn abs(&self) -> f64 {
        self.re.to_f64().hypot(self.im.to_f64())
    }

    /// |z|^2.
    pub fn square(&self) -> Dyadic {
        &self.re.square() + &self.im.square()
    }

    pub fn plus(&self, other: &Self) -> Self {
        Self { re: &self.re + &other.re, im: &self.im + &other.im }
    }

    pub fn minus(&self, other: &Self) -> Self {
        Self { re: &self.re - &other.re, im: &self.im - &other.im }
    }

    pub fn times(&self, other: &Self) -> Self {
        let real = self.im.is_zero() && other.im.is_zero();
        Self {
            re: if real { &self.re * &other.re } else { &(&self.re * &other.re) - &(&self.im * &other.im) },
            im: if real { Dyadic::zero() } else { &(&self.re * &other.im) + &(&self.im * &other.re) },
        }
    }
}

/// The norm of a vector, squared.
pub fn norm_squared<'a>(vector: impl IntoIterator<Item = &'a Exact>) -> Dyadic {
    vector.into_iter().fold(Dyadic::zero(), |sum, item| &sum + &item.square())
}

#[test]
fn nothing_is_rounded() {
    let number = Dyadic::new;
    let sum = &(&number(1e17) + &number(1.0)) - &number(1e17);
    assert_eq!(sum, number(1.0));
    // The double 0.1 is more than a tenth.
    let tenth = number(0.1);
    let above = &(&tenth * &number(10.0)) - &number(1.0);
    assert_eq!(above, number(2_f64.powi(-54)));
    // Far below and above the range of doubles, and back.
    let tiny = number(f64::from_bits(3));
    assert_eq!(tiny.square().over(&tiny.square()), 1.0);
    assert_eq!(tiny.over(&number(f64::from_bits(1))), 3.0);
    assert_eq!(number(-1e300).square().over(&number(1e300)), 1e300);
    assert!(number(-2.0) < number(f64::from_bits(1)) && number(1e300) > number(3.0));
    let i = Exact { re: Dyadic::zero(), im: number(1.0) };
    assert_eq!((i.times(&i).re, i.square(), i.abs()), (number(-1.0), number(1.0), 1.0));
}
