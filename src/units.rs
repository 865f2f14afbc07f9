//! Formats numbers for people.

/// A time: `12.3 us`, `4.56 ms`, `1.23 s`, `2 min 3 s`.
pub fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        "-".into()
    } else if seconds == 0.0 {
        "0 s".into()
    } else if seconds < 0.999_5e-3 {
        format!("{} us", three_digits(seconds * 1e6))
    } else if seconds < 0.999_5 {
        format!("{} ms", three_digits(seconds * 1e3))
    } else if seconds < 119.5 {
        format!("{} s", three_digits(seconds))
    } else {
        let whole = seconds.round() as u64;
        format!("{} min {} s", whole / 60, whole % 60)
    }
}

/// An amount of memory in decimal units: `830 B`, `12.3 kB`, `4.56 MB`.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB", "TB"] {
        if value < 999.5 {
            return if unit == "B" {
                format!("{bytes} B")
            } else {
                format!("{} {unit}", three_digits(value))
            };
        }
        value /= 1000.0;
    }
    format!("{} PB", three_digits(value))
}

/// A whole number in groups of three digits: `1 234 567`. Four digits stay together.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut grouped = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// A ratio that may be tiny: `0`, `0.125`, `3.9`, `8.71e-9`.
pub fn ratio(value: f64) -> String {
    if value == 0.0 {
        "0".into()
    } else if (1e-2..1e4).contains(&value) {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else if value.is_finite() {
        format!("{value:.2e}")
    } else {
        "not finite".into()
    }
}

fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let times =
            [(0.0, "0 s"), (1.5e-6, "1.50 us"), (9.996e-4, "1.00 ms"), (0.0123, "12.3 ms"), (1.0, "1.00 s")];
        for (time, text) in times.into_iter().chain([(99.96, "100 s"), (125.0, "2 min 5 s"), (f64::NAN, "-")])
        {
            assert_eq!(seconds(time), text);
        }
        let sizes =
            [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (999_999, "1.00 MB"), (25_300_000, "25.3 MB")];
        for (size, text) in sizes {
            assert_eq!(bytes(size), text);
        }
        for (n, text) in [(0, "0"), (1234, "1234"), (12345, "12 345"), (1_234_567, "1 234 567")] {
            assert_eq!(count(n), text);
        }
    }
}
