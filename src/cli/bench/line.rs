//! One measurement, and files of measurements.

use crate::{Error, Result};
use serde::Serialize;

/// One format on one matrix: the JSON of `residua bench` is a list of these.
#[derive(Serialize, Clone)]
pub(super) struct Line {
    pub(super) matrix: String,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) nonzeros: usize,
    pub(super) device: String,
    /// The format's name; `measured:sell` if a trial chose sell, `plain:sell` if a trial without compression did.
    pub(super) format: String,
    pub(super) r#type: String,
    /// Bytes of storage.
    pub(super) bytes: u64,
    /// Entries stored beyond the nonzeros.
    pub(super) padding: u64,
    pub(super) convert_seconds: Option<f64>,
    pub(super) product_seconds: Option<f64>,
    pub(super) gb_s: Option<f64>,
    pub(super) share_of_copy: Option<f64>,
    pub(super) break_even: Option<u64>,
    pub(super) refused: Option<String>,
    #[serde(skip)]
    pub(super) spread: f64,
    /// Entries of the longest row.
    #[serde(skip)]
    pub(super) longest: usize,
}

impl Line {
    /// Returns whether this is a format of the library, and not an automatic choice.
    pub(super) fn is_format(&self) -> bool {
        !self.format.contains(':')
    }

    /// Sets the time of a product that moves `moved` bytes, on a device that copies at `copy` GB/s.
    pub(super) fn product(&mut self, measured: super::timing::Measured, moved: usize, copy: f64) {
        let rate = moved as f64 / measured.seconds / 1e9;
        self.product_seconds = Some(measured.seconds);
        self.spread = measured.spread;
        self.gb_s = Some(rate);
        self.share_of_copy = Some(rate / copy);
    }

    /// Sets the result of measuring: a format for which the device has no kernel or not enough memory counts as
    /// refused, and the others continue.
    pub(super) fn refuse(&mut self, measured: Result<()>) -> Result<()> {
        match measured {
            Err(error @ Error::OutOfMemory { .. }) => self.refused = Some(error.to_string()),
            Err(Error::Unsupported(reason) | Error::Refused { reason, .. }) => self.refused = Some(reason),
            measured => return measured,
        }
        Ok(())
    }
}

pub(super) fn to_csv(lines: &[Line]) -> String {
    let mut text = String::from(
        "matrix,rows,columns,nonzeros,device,format,type,bytes,padding,convert_seconds,product_seconds,spread,gb_s,\
         share_of_copy,break_even,refused\n",
    );
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for line in lines {
        let cells = [
            quoted(&line.matrix),
            line.rows.to_string(),
            line.columns.to_string(),
            line.nonzeros.to_string(),
            quoted(&line.device),
            line.format.clone(),
            line.r#type.clone(),
            line.bytes.to_string(),
            line.padding.to_string(),
            number(line.convert_seconds),
            number(line.product_seconds),
            number(line.product_seconds.map(|_| line.spread)),
            number(line.gb_s),
            number(line.share_of_copy),
            line.break_even.map_or(String::new(), |products| products.to_string()),
            line.refused.as_deref().map_or(String::new(), quoted),
        ];
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

/// Quoted according to RFC 4180 if a cell has a comma, a quote or a line end.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_string()
    }
}
