//! The ticks of an axis.

/// Ticks at multiples of 1, 2 or 5 times a power of ten, from zero to `last` inclusive, with at most `most` steps.
pub(super) fn ticks(last: u64, most: u64) -> Vec<u64> {
    let mut step = 1u64;
    'search: loop {
        for factor in [1, 2, 5] {
            let candidate = step.saturating_mul(factor);
            if last / candidate <= most {
                step = candidate;
                break 'search;
            }
        }
        step = step.saturating_mul(10);
    }
    (0..=last / step).map(|k| k * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0, 6), [0]);
        assert_eq!(ticks(5, 6), [0, 1, 2, 3, 4, 5]);
        assert_eq!(ticks(99, 6), [0, 20, 40, 60, 80]);
        assert_eq!(ticks(1137, 6), [0, 200, 400, 600, 800, 1000]);
        assert_eq!(ticks(u64::MAX, 6).len(), 4);
    }
}
