//! The measurements as text.

use super::claims;
use super::compare::REFERENCE;
use super::line::Line;
use crate::report::{Align, Table, bytes, count, seconds};

/// The measurements for one matrix on one device in one type, what follows from them, and notes.
pub(super) fn table(lines: &[Line], copy: f64, notes: &[String]) -> String {
    let Some(first) = lines.first() else { return String::new() };
    let right = Align::Right;
    let mut table = Table::new([
        ("format", Align::Left),
        ("storage", right),
        ("padding", right),
        ("convert", right),
        ("product", right),
        ("spread", right),
        ("GB/s", right),
        ("of copy", right),
        ("pays after", right),
    ]);
    let fastest = lines.iter().filter_map(|line| line.product_seconds).min_by(f64::total_cmp);
    for line in lines {
        if let Some(reason) = &line.refused {
            table.row([line.format.clone(), format!("refused: {reason}")]);
            continue;
        }
        let product = line.product_seconds.unwrap_or(f64::NAN);
        let pays = match line.break_even {
            Some(1) => "1 product".into(),
            Some(products) => format!("{} products", count(products)),
            None if line.format == REFERENCE => "-".into(),
            None => "never".into(),
        };
        let mark = if Some(product) == fastest { " < fastest" } else { "" };
        table.row([
            line.format.clone(),
            bytes(line.bytes),
            format!("{:.0} %", 100.0 * line.padding as f64 / line.nonzeros.max(1) as f64),
            seconds(line.convert_seconds.unwrap_or(f64::NAN)),
            seconds(product),
            format!("{:.1} %", 100.0 * line.spread),
            format!("{:.1}", line.gb_s.unwrap_or(0.0)),
            format!("{:.0} %", 100.0 * line.share_of_copy.unwrap_or(0.0)),
            format!("{pays}{mark}"),
        ]);
    }
    let size = format!("{} x {}", count(first.rows as u64), count(first.columns as u64));
    let notes: String = notes.iter().map(|note| format!("{note}\n")).collect();
    format!(
        "{}: {size}, {} nonzeros, {}, on {}; copy bandwidth {copy:.1} GB/s\n\n{table}\n{}{notes}\n",
        first.matrix,
        count(first.nonzeros as u64),
        first.r#type,
        first.device,
        claims::table(lines),
    )
}
