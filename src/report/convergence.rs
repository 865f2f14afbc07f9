//! The convergence plot: residual against iteration.

use super::axis::ticks;
use super::svg::{Anchor, GRID, INK, PALE, Svg};
use super::{count, levels};

/// The history of one right-hand side.
#[derive(Debug, Clone)]
pub struct Curve<'a> {
    /// Name in the legend; the legend is left out for a single curve.
    pub name: String,
    /// Relative residual before each iteration and after the last.
    pub history: &'a [f64],
    /// Relative residual b - A x computed anew at the end, drawn as a ring.
    pub confirmed: Option<f64>,
}

/// A palette for the colour-blind (Okabe and Ito, 2008).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 78.0;
const RIGHT: f64 = 30.0;
const BOTTOM: f64 = 62.0;

/// Curves with more points are thinned out, because the difference is not visible.
const MOST_POINTS: usize = 1500;

/// The legend names at most this many curves.
const MOST_NAMES: usize = 12;

/// Draws log10 of the relative residual against the iteration, one curve per right-hand side, and the tolerance as a
/// dashed line. Points at zero or not finite are left out. Below it are the `levels` of multigrid, if there are any:
/// the rows and entries of each, finest first.
pub fn convergence_svg(
    title: &str,
    facts: &str,
    curves: &[Curve<'_>],
    tolerance: f64,
    levels: &[(usize, usize)],
) -> String {
    let drawable = |value: &f64| value.is_finite() && *value > 0.0;
    let values = || curves.iter().flat_map(|c| c.history.iter().copied().chain(c.confirmed)).filter(drawable);
    let with_tolerance = || values().chain(Some(tolerance).filter(drawable));
    let low = with_tolerance().fold(f64::INFINITY, f64::min).min(1.0).log10();
    let high = with_tolerance().fold(f64::NEG_INFINITY, f64::max).max(1.0).log10();
    let (low, high) = ((low - 0.15).floor(), (high - 0.02).ceil().max(low.floor() + 1.0));
    let last = curves.iter().map(|c| c.history.len().saturating_sub(1)).max().unwrap_or(0).max(1);

    let (wide, tall) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let x = |iteration: f64| LEFT + iteration / last as f64 * wide;
    let y = |value: f64| TOP + (high - value.log10()) / (high - low) * tall;

    let mut svg = Svg::new(WIDTH, HEIGHT + levels::height(levels.len()));
    svg.title((24.0, 32.0), title);
    svg.text((24.0, 53.0), Anchor::Start, 13.0, PALE, facts);
    let decades = (high - low) as i32;
    let step = decades.div_euclid(11) + 1;
    for exponent in (low as i32..=high as i32).filter(|e| e.rem_euclid(step) == 0) {
        let level = y(10f64.powi(exponent));
        svg.line((LEFT, level), (LEFT + wide, level), GRID, 1.0, "");
        svg.power_of_ten((LEFT - 10.0, level + 4.0), Anchor::End, exponent);
    }
    for iteration in ticks(last as u64, 8) {
        let place = x(iteration as f64);
        svg.line((place, TOP), (place, TOP + tall), GRID, 1.0, "");
        svg.text((place, TOP + tall + 19.0), Anchor::Middle, 12.0, PALE, &count(iteration));
    }
    if drawable(&tolerance) {
        let level = y(tolerance);
        svg.line((LEFT, level), (LEFT + wide, level), PALE, 1.2, "6 4");
        svg.text((LEFT + 8.0, level - 6.0), Anchor::Start, 12.0, PALE, &format!("tolerance {tolerance:e}"));
    }
    for (k, curve) in curves.iter().enumerate().rev() {
        let colour = COLOURS[k % COLOURS.len()];
        let points: Vec<(f64, f64)> = thinned(curve.history)
            .filter(|(_, value)| drawable(value))
            .map(|(i, v)| (x(i as f64), y(v)))
            .collect();
        svg.polyline(&points, colour, 1.8);
        if let Some(confirmed) = curve.confirmed.filter(drawable) {
            let end = curve.history.len().saturating_sub(1) as f64;
            svg.circle((x(end), y(confirmed)), 4.0, "#ffffff", colour);
        }
    }
    svg.frame((LEFT, TOP), (wide, tall), INK);
    svg.text((LEFT + wide / 2.0, HEIGHT - 18.0), Anchor::Middle, 13.0, INK, "iteration");
    svg.upright((26.0, TOP + tall / 2.0), 13.0, INK, "relative residual");
    if curves.len() > 1 {
        draw_legend(&mut svg, curves, (LEFT + wide - 14.0, TOP + 22.0));
    }
    levels::draw(&mut svg, levels, HEIGHT);
    svg.finish()
}

fn draw_legend(svg: &mut Svg, curves: &[Curve<'_>], at: (f64, f64)) {
    for (k, curve) in curves.iter().take(MOST_NAMES).enumerate() {
        let level = at.1 + 18.0 * k as f64;
        svg.line((at.0 - 22.0, level - 4.0), (at.0, level - 4.0), COLOURS[k % COLOURS.len()], 2.5, "");
        svg.text((at.0 - 28.0, level), Anchor::End, 12.0, INK, &curve.name);
    }
    if curves.len() > MOST_NAMES {
        let level = at.1 + 18.0 * MOST_NAMES as f64;
        svg.text((at.0, level), Anchor::End, 12.0, PALE, &format!("and {} more", curves.len() - MOST_NAMES));
    }
}

/// Every point of a short history; the lowest and the highest point of each bucket of a long one, so that peaks are
/// kept.
fn thinned(history: &[f64]) -> impl Iterator<Item = (usize, f64)> + '_ {
    let bucket = (2 * history.len()).div_ceil(MOST_POINTS).max(1);
    history.chunks(bucket).enumerate().flat_map(move |(b, part)| {
        let at = |k: usize| (b * bucket + k, part[k]);
        let order = |a: &usize, b: &usize| part[*a].total_cmp(&part[*b]);
        let low = (0..part.len()).min_by(order).unwrap_or(0);
        let high = (0..part.len()).max_by(order).unwrap_or(0);
        let both = [at(low.min(high)), at(low.max(high))];
        both.into_iter().take(if low == high { 1 } else { 2 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_short_histories_and_extremes() {
        let short = [1.0, 0.5, 0.7];
        assert_eq!(thinned(&short).collect::<Vec<_>>(), [(0, 1.0), (1, 0.5), (2, 0.7)]);
        let mut long = vec![1.0; 100_000];
        long[77_777] = 1e9;
        long[33_333] = 1e-9;
        let kept: Vec<_> = thinned(&long).collect();
        assert!(kept.len() <= 2 * MOST_POINTS);
        assert!(kept.contains(&(77_777, 1e9)) && kept.contains(&(33_333, 1e-9)));
        assert!(kept.windows(2).all(|w| w[0].0 < w[1].0));
    }

    #[test]
    fn odd_histories_draw_no_nonsense() {
        for history in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY], &[1.0], &[1e-300, 1e300]] {
            for tolerance in [0.0, 1e-8, f64::NAN] {
                let curve = Curve { name: "b".into(), history, confirmed: Some(0.0) };
                let svg = convergence_svg("t", "f", &[curve.clone(), curve], tolerance, &[]);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{history:?} {tolerance}: {svg}");
            }
        }
    }
}
