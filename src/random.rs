//! A small, fast pseudo-random number generator with a seed.

use crate::mixing::mixed;

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): the same numbers
/// for the same seed on every machine. Good for model problems, not for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

/// 2^64 divided by the golden ratio, which SplitMix64 adds at every step.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Stream number `index` of `seed`. Each row or cell has its own stream, so that they can be generated in any
    /// order.
    pub fn stream(seed: u64, index: u64) -> Self {
        Self {
            state: mixed(seed.wrapping_add(GOLDEN_GAMMA))
                ^ mixed(index.wrapping_mul(GOLDEN_GAMMA) ^ 0x5851_f42d),
        }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        mixed(self.state)
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform in 0..limit, by multiplication (Lemire, ACM TOMACS 2019, without the rejection: the bias is below
    /// limit / 2^64). `limit` must not be zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_reference_stream() {
        // The first outputs of Vigna's splitmix64.c with state 1234567.
        let mut random = Random::new(1234567);
        let expected = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert_eq!([random.bits(), random.bits(), random.bits()], expected);
    }

    #[test]
    fn is_uniform_enough() {
        let mut random = Random::stream(7, 3);
        let n = 10_000;
        let draws: Vec<f64> = (0..n).map(|_| random.unit()).collect();
        assert!(draws.iter().all(|u| (0.0..1.0).contains(u)));
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        // Five standard deviations of the mean.
        assert!((mean - 0.5).abs() < 5.0 / (12.0 * f64::from(n)).sqrt(), "{mean}");
        assert!((0..n).all(|_| random.below(7) < 7));
    }
}
