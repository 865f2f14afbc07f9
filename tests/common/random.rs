//! Random numbers: one generator for all tests, which shares no code with the library's.

#![allow(dead_code)] // not every test program uses all of it

use residua::Scalar;

/// A reproducible sequence (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub fn vec<T>(&mut self, n: usize, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..n).map(|_| item(self)).collect()
    }

    /// Between -1 and 1.
    pub fn signed(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// Between -1 and 1, in both parts of a complex number.
    pub fn scalar<T: Scalar>(&mut self) -> T {
        let (re, im) = (self.signed(), self.signed());
        T::from_parts(re, if T::COMPLEX { im } else { 0.0 }).unwrap()
    }

    pub fn vector<T: Scalar>(&mut self, n: usize) -> Vec<T> {
        self.vec(n, Self::scalar)
    }
}
