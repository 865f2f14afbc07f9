//! Tests up to 64 bytes at once. The result is one word, in which bit i is the result for byte i.

/// Bytes of at most `limit`.
#[inline(always)]
pub(super) fn at_most<const N: usize>(bytes: &[u8; N], limit: u8) -> u64 {
    vectors::at_most(bytes, limit)
}

/// Bytes of at least `limit`.
#[inline(always)]
pub(super) fn at_least<const N: usize>(bytes: &[u8; N], limit: u8) -> u64 {
    vectors::at_least(bytes, limit)
}

/// Bytes that are `byte`.
#[inline(always)]
pub(super) fn equal<const N: usize>(bytes: &[u8; N], byte: u8) -> u64 {
    vectors::equal(bytes, byte)
}

/// Sixteen bytes at a time.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::*;

    #[inline(always)]
    fn bits<const N: usize>(bytes: &[u8; N], test: impl Fn(__m128i) -> __m128i) -> u64 {
        let mut bits = 0;
        for (k, bytes) in bytes.as_chunks::<16>().0.iter().enumerate() {
            // SAFETY: every x86-64 processor has SSE2; the load reads 16 existing bytes and needs no alignment.
            let found = unsafe { _mm_movemask_epi8(test(_mm_loadu_si128(bytes.as_ptr().cast()))) };
            bits |= u64::from(found as u16) << (16 * k);
        }
        bits
    }

    #[inline(always)]
    pub(super) fn at_most<const N: usize>(bytes: &[u8; N], limit: u8) -> u64 {
        // SAFETY: every x86-64 processor has SSE2.
        bits(bytes, |b| unsafe { _mm_cmpeq_epi8(_mm_min_epu8(b, _mm_set1_epi8(limit as i8)), b) })
    }

    #[inline(always)]
    pub(super) fn at_least<const N: usize>(bytes: &[u8; N], limit: u8) -> u64 {
        // SAFETY: every x86-64 processor has SSE2.
        bits(bytes, |b| unsafe { _mm_cmpeq_epi8(_mm_max_epu8(b, _mm_set1_epi8(limit as i8)), b) })
    }

    #[inline(always)]
    pub(super) fn equal<const N: usize>(bytes: &[u8; N], byte: u8) -> u64 {
        // SAFETY: every x86-64 processor has SSE2.
        bits(bytes, |b| unsafe { _mm_cmpeq_epi8(b, _mm_set1_epi8(byte as i8)) })
    }
}

/// One byte at a time, in a form that compilers vectorise.
#[cfg(not(target_arch = "x86_64"))]
mod vectors {
    #[inline(always)]
    fn bits<const N: usize>(bytes: &[u8; N], test: impl Fn(u8) -> bool) -> u64 {
        bytes.iter().enumerate().map(|(k, &byte)| u64::from(test(byte)) << k).sum()
    }

    #[inline(always)]
    pub(super) fn at_most<const N: usize>(bytes: &[u8; N], limit: u8) -> u64 {
        bits(bytes, |b| b <= limit)
    }

    #[inline(always)]
    pub(super) fn at_least<const N: usize>(bytes: &[u8; N], limit: u8) -> u64 {
        bits(bytes, |b| b >= limit)
    }

    #[inline(always)]
    pub(super) fn equal<const N: usize>(bytes: &[u8; N], byte: u8) -> u64 {
        bits(bytes, |b| b == byte)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn masks_agree_with_a_test_of_each_byte() {
        for shift in 0..=255u8 {
            let bytes: [u8; 64] = std::array::from_fn(|k| (k as u8).wrapping_mul(37).wrapping_add(shift));
            let by_byte =
                |test: &dyn Fn(u8) -> bool| (0..64).map(|k| u64::from(test(bytes[k])) << k).sum::<u64>();
            assert_eq!(super::at_most(&bytes, b' '), by_byte(&|b| b <= b' '));
            assert_eq!(super::at_least(&bytes, b'@'), by_byte(&|b| b >= b'@'));
            assert_eq!(super::equal(&bytes, b'.'), by_byte(&|b| b == b'.'));
        }
    }
}
