//! The spy plot of a matrix: the positions of its nonzeros.

use super::axis::ticks;
use super::svg::{Anchor, INK, PALE, Svg};
use super::{count, png};
use crate::backend::with_offsets;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};

/// Length of the longer side of the picture in pixels; a large matrix has one cell for each pixel.
const SIDE: usize = 640;

/// Up to this many rows and columns, each entry is drawn as its own square.
const SINGLE: usize = 160;

/// The number of shades, from one entry per cell to the fullest cell.
const SHADES: usize = 32;

/// Draws the positions of the entries of a matrix of any size, rows downwards, columns to the right, counted from zero.
/// Entries are squares as long as these are large enough. In larger matrices a pixel is darker the more entries it
/// contains, on a logarithmic scale from one entry to the fullest pixel, so that single entries are still visible.
/// `name` is the title.
///
/// # Errors
/// If the picture cannot be encoded.
pub fn spy_svg<V: Scalar>(a: &Csr<V>, name: &str) -> Result<String> {
    let (rows, columns) = (a.rows(), a.columns());
    let longest = rows.max(columns).max(1);
    let single = longest <= SINGLE;
    // Cells of the raster, and pixels of the picture; the ratio of the sides is at most 16.
    let cells = |n: usize| if single { n } else { (n * SIDE / longest).max(SIDE / 16).min(n) };
    let pixels = |n: usize| (n as f64 / longest as f64 * SIDE as f64).max(SIDE as f64 / 16.0);
    let (high, wide) = (cells(rows), cells(columns));
    let size = (pixels(columns), pixels(rows));
    let density = raster(a, high, wide);
    let fullest = density.iter().copied().max().unwrap_or(0);

    let origin = (78.0, 92.0);
    let legend = if fullest > 1 { 118.0 } else { 30.0 };
    let mut svg = Svg::new((origin.0 + size.0 + legend).max(380.0), (origin.1 + size.1).max(260.0) + 30.0);
    let share = a.nonzeros() as f64 / (rows as f64 * columns as f64).max(1.0) * 100.0;
    svg.title((24.0, 32.0), name);
    let facts = format!(
        "{} \u{d7} {}, {} nonzeros ({})",
        count(rows as u64),
        count(columns as u64),
        count(a.nonzeros() as u64),
        if share >= 0.01 { format!("{share:.2} %") } else { format!("{share:.1e} %") }
    );
    svg.text((24.0, 52.0), Anchor::Start, 13.0, PALE, &facts);

    if single {
        let side = size.0.max(size.1) / longest as f64;
        let gap = if side >= 6.0 { 1.0 } else { 0.0 };
        for (k, _) in density.iter().enumerate().filter(|(_, entries)| **entries > 0) {
            let (x, y) = ((k % wide) as f64, (k / wide) as f64);
            let at = (origin.0 + x * size.0 / wide as f64, origin.1 + y * size.1 / high as f64);
            svg.fill(at, (size.0 / wide as f64 - gap, size.1 / high as f64 - gap), &hex(shade(0.75)));
        }
    } else if !density.is_empty() {
        let scale = f64::from(fullest.max(2)).ln();
        let index = |entries: u32| match entries {
            0 => 0,
            n => 1 + (f64::from(n).ln() / scale * (SHADES - 1) as f64).round() as u8,
        };
        let pixels: Vec<u8> = density.iter().map(|&entries| index(entries)).collect();
        let palette: Vec<[u8; 3]> = [[255; 3]]
            .into_iter()
            .chain((0..SHADES).map(|s| shade(s as f64 / (SHADES - 1) as f64)))
            .collect();
        let image =
            png::encode(wide, &pixels, &palette).map_err(|source| Error::Io { path: name.into(), source })?;
        svg.image(origin, size, &image);
        if fullest > 1 {
            draw_legend(&mut svg, (origin.0 + size.0 + 26.0, origin.1), fullest);
        }
    }
    svg.frame(origin, size, INK);
    draw_ticks(&mut svg, origin, size, rows, columns);
    Ok(svg.finish())
}

/// The number of entries in each of `high` x `wide` cells, row by row.
fn raster<V: Scalar>(a: &Csr<V>, high: usize, wide: usize) -> Vec<u32> {
    let parts = a.parts();
    let (rows, columns) = (parts.rows, parts.columns);
    let mut density = vec![0u32; high * wide];
    if density.is_empty() {
        return density;
    }
    with_offsets!(parts.offsets, offsets => density.par_chunks_mut(wide).enumerate().for_each(|(line, cells)| {
        // The rows i with i * high / rows == line.
        let (start, end) = ((line * rows).div_ceil(high), ((line + 1) * rows).div_ceil(high));
        for &j in &parts.indices[offsets[start].to_usize()..offsets[end].to_usize()] {
            let cell = &mut cells[(j as usize * wide) / columns];
            *cell = cell.saturating_add(1);
        }
    }));
    density
}

fn draw_ticks(svg: &mut Svg, origin: (f64, f64), size: (f64, f64), rows: usize, columns: usize) {
    // The centre of entry k of n.
    let centre = |k: u64, n: usize, length: f64| (k as f64 + 0.5) / n as f64 * length;
    for k in
        ticks((columns as u64).saturating_sub(1), (size.0 / 80.0) as u64).into_iter().filter(|_| columns > 0)
    {
        let x = origin.0 + centre(k, columns, size.0);
        svg.line((x, origin.1 - 5.0), (x, origin.1), INK, 1.0, "");
        svg.text((x, origin.1 - 10.0), Anchor::Middle, 12.0, PALE, &count(k));
    }
    for k in ticks((rows as u64).saturating_sub(1), (size.1 / 80.0) as u64).into_iter().filter(|_| rows > 0) {
        let y = origin.1 + centre(k, rows, size.1);
        svg.line((origin.0 - 5.0, y), (origin.0, y), INK, 1.0, "");
        svg.text((origin.0 - 9.0, y + 4.0), Anchor::End, 12.0, PALE, &count(k));
    }
}

fn draw_legend(svg: &mut Svg, at: (f64, f64), fullest: u32) {
    let step = 5.0;
    for s in 0..SHADES {
        let colour = hex(shade(s as f64 / (SHADES - 1) as f64));
        let y = at.1 + 26.0 + (SHADES - 1 - s) as f64 * step;
        svg.fill((at.0, y), (14.0, step + 0.3), &colour);
    }
    svg.text((at.0, at.1 + 12.0), Anchor::Start, 12.0, PALE, "nonzeros a pixel");
    svg.text((at.0 + 20.0, at.1 + 26.0 + 9.0), Anchor::Start, 12.0, PALE, &count(u64::from(fullest)));
    svg.text((at.0 + 20.0, at.1 + 26.0 + SHADES as f64 * step), Anchor::Start, 12.0, PALE, "1");
}

/// A colour from light blue through teal to dark blue. Lightness falls evenly, so the order is visible in a grey print.
fn shade(t: f64) -> [u8; 3] {
    const STOPS: [[f64; 3]; 4] = [[158., 202., 225.], [66., 146., 198.], [17., 89., 155.], [8., 29., 74.]];
    let place = t.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let (stop, part) =
        ((place as usize).min(STOPS.len() - 2), place - (place as usize).min(STOPS.len() - 2) as f64);
    [0, 1, 2].map(|c| (STOPS[stop][c] + part * (STOPS[stop + 1][c] - STOPS[stop][c])).round() as u8)
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn the_raster_counts_every_entry_once() {
        for (a, high, wide) in [
            (generate::poisson2d(30, 31).unwrap(), 100, 100),
            (generate::random(597, 43, generate::RowLengths::Uniform(0, 20), 1).unwrap(), 100, 40),
            (generate::arrow(1000).unwrap(), 7, 13),
        ] {
            let density = raster(&a, high, wide);
            assert_eq!(density.iter().map(|&n| n as usize).sum::<usize>(), a.nonzeros());
        }
        let diagonal = raster(&generate::diagonal(1000).unwrap(), 10, 10);
        for (k, &entries) in diagonal.iter().enumerate() {
            assert_eq!(entries, if k % 10 == k / 10 { 100 } else { 0 });
        }
    }

    #[test]
    fn any_shape_can_be_drawn() {
        for (rows, columns) in [(0, 0), (1, 1), (1, 5000), (5000, 1), (0, 3), (161, 161), (100_000, 3)] {
            let length = columns.min(1);
            let a = generate::random(rows, columns, generate::RowLengths::Constant(length), 1).unwrap();
            let svg = spy_svg(&a, "x").unwrap();
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{rows} x {columns}");
        }
    }
}
