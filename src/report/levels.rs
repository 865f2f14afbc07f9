//! A picture of the levels of multigrid: bars for the rows and the entries of each, on a logarithmic scale.

use super::count;
use super::svg::{Anchor, INK, PALE, Svg};

/// Colours of rows and entries (Okabe and Ito, 2008).
const ROWS: &str = "#0072b2";
const ENTRIES: &str = "#e69f00";

const LEFT: f64 = 84.0;
/// The length of the longest bar; its numbers are written next to it.
const LONGEST: f64 = 420.0;
const HEADING: f64 = 40.0;
const LEVEL: f64 = 26.0;
const BELOW: f64 = 16.0;

/// The height of the picture for this number of levels; zero for none.
pub(super) fn height(levels: usize) -> f64 {
    if levels == 0 { 0.0 } else { HEADING + LEVEL * levels as f64 + BELOW }
}

/// Draws levels, each with its rows and entries, finest first, from `top` on.
pub(super) fn draw(svg: &mut Svg, levels: &[(usize, usize)], top: f64) {
    let Some(finest) = levels.first() else { return };
    let all = levels.iter().map(|level| level.1).sum::<usize>() as f64 / finest.1.max(1) as f64;
    let words = format!("levels of multigrid: {all:.2} times the entries of the matrix");
    svg.text((LEFT, top + 16.0), Anchor::Start, 13.0, INK, &words);
    let decades = |size: usize| (size.max(1) as f64).log10();
    let most = levels.iter().map(|level| decades(level.0.max(level.1))).fold(1.0, f64::max);
    for (number, &(rows, entries)) in levels.iter().enumerate() {
        let at = top + HEADING + LEVEL * number as f64;
        svg.text((LEFT - 10.0, at + 12.0), Anchor::End, 12.0, PALE, &(number + 1).to_string());
        for (size, down, colour) in [(rows, 0.0, ROWS), (entries, 8.0, ENTRIES)] {
            svg.fill((LEFT, at + down), ((decades(size) / most * LONGEST).max(1.0), 7.0), colour);
        }
        let numbers = format!("{} rows, {} entries", count(rows as u64), count(entries as u64));
        svg.text((LEFT + LONGEST + 10.0, at + 12.0), Anchor::Start, 12.0, INK, &numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_its_numbers_and_two_bars() {
        let levels = [(1_000_000, 6_940_000), (1, 1), (0, 0)];
        let mut svg = Svg::new(760.0, height(3));
        draw(&mut svg, &levels, 0.0);
        let text = svg.finish();
        for words in ["1.00 times the entries", "1 rows, 1 entries", "0 rows, 0 entries"] {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert_eq!((text.matches(ROWS).count(), text.matches(ENTRIES).count()), (3, 3));
        assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("\"-"));
        assert_eq!(height(0), 0.0);
    }
}
