//! Columns of text, aligned.

use std::fmt;

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left, for words.
    Left,
    /// Right, for numbers.
    Right,
}

/// A table for a terminal: a heading, a rule and rows. `Display` prints it with two spaces between columns.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings. If all headings are empty, neither they nor the rule are printed.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        let columns = columns.into_iter().map(|(heading, align)| (heading.to_string(), align)).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Appends a row. A row may have fewer cells than the heading; its last cell may be longer than its column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full = self.columns.len();
        let mut widths: Vec<usize> =
            self.columns.iter().map(|(heading, _)| heading.chars().count()).collect();
        for row in &self.rows {
            for (k, (width, cell)) in widths.iter_mut().zip(row).enumerate() {
                if k + 1 < row.len() || row.len() == full {
                    *width = (*width).max(cell.chars().count());
                }
            }
        }
        let line = |f: &mut fmt::Formatter<'_>, cells: &[String]| {
            let mut text = String::new();
            for (k, cell) in cells.iter().enumerate() {
                let (width, last) = (widths.get(k).copied().unwrap_or(0), k + 1 == cells.len());
                match self.columns.get(k).map(|column| column.1) {
                    Some(Align::Right) if !last || cells.len() == full => text += &format!("{cell:>width$}"),
                    _ => text += &format!("{cell:<width$}"),
                }
                if !last {
                    text += "  ";
                }
            }
            writeln!(f, "{}", text.trim_end())
        };
        if self.columns.iter().any(|(heading, _)| !heading.is_empty()) {
            let headings: Vec<String> = self.columns.iter().map(|column| column.0.clone()).collect();
            line(f, &headings)?;
            writeln!(f, "{}", "-".repeat(widths.iter().sum::<usize>() + 2 * full.saturating_sub(1)))?;
        }
        self.rows.iter().try_for_each(|row| line(f, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new([("format", Align::Left), ("GB/s", Align::Right), ("note", Align::Left)]);
        table.row(["csr", "9.5", "a"]);
        table.row(["sell", "12.25", "longer"]);
        table.row(["ell", "refused: one row is long"]);
        let text = "format   GB/s  note\n---------------------\ncsr       9.5  a\nsell    12.25  longer\n\
                    ell     refused: one row is long\n";
        assert_eq!(table.to_string(), text);
    }
}
