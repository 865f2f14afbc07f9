//! Compares the formats for one matrix on one device in one type.

use super::Arguments;
use super::line::Line;
use super::place::Bench;
use super::timing::{alone, in_batches};
use crate::backend::{Conversions, Products};
use crate::matrix::{self, ChoiceOptions, ChoiceReport, Format, RowLengths, SparseMatrix};
use crate::scalar::Promote;
use crate::{Csr, Host, Result, Scalar};

/// The format that others are compared with.
pub(super) const REFERENCE: &str = "csr";

/// An expected number of products so large that the cost of a conversion does not matter: `bench` looks for the format
/// with the fastest product.
const MANY: usize = 1 << 30;

impl<B: Products + Conversions> Bench<B> {
    /// Measures the requested formats. Returns a line for each, and notes for the terminal.
    pub(super) fn compare<T, V>(
        &self,
        name: &str,
        kind: &str,
        host: &Csr<V>,
        arguments: &Arguments,
    ) -> Result<(Vec<Line>, Vec<String>)>
    where
        T: Scalar,
        V: Scalar + Promote<T>,
        V::Lower: Promote<T>,
    {
        let lengths = RowLengths::of(&Host, host)?;
        let a = host.to_backend(&self.backend)?;
        let start = Line {
            matrix: name.to_string(),
            rows: a.rows(),
            columns: a.columns(),
            nonzeros: a.nonzeros(),
            device: self.backend.description(),
            format: String::new(),
            r#type: kind.to_string(),
            bytes: 0,
            padding: 0,
            convert_seconds: None,
            product_seconds: None,
            gb_s: None,
            share_of_copy: None,
            break_even: None,
            refused: None,
            spread: 0.0,
            longest: lengths.longest(),
        };
        let (mut lines, mut notes) = (Vec::new(), Vec::new());
        for format in matrix::formats::<T, B, V>() {
            if arguments.wants(format.name()) || format.name() == REFERENCE {
                lines.push(self.format(&start, &format, &lengths, &a)?);
            }
        }
        let csr = lines.iter().find(|line| line.format == REFERENCE).and_then(|line| line.product_seconds);
        drop(a);
        if arguments.wants("measured") {
            let options = ChoiceOptions::default().products(MANY).cache(false);
            let plain = host.to_backend(&self.backend)?;
            let plain_options = options.clone().compression(false);
            lines.push(self.choice::<T, V>(&start, "plain", plain, &plain_options, csr, &mut notes)?);
            lines.push(match host.to_lower() {
                Some(a) => {
                    let a = a.into_backend(&self.backend)?;
                    self.choice::<T, V::Lower>(&start, "measured", a, &options, csr, &mut notes)?
                }
                None => {
                    let a = host.to_backend(&self.backend)?;
                    self.choice::<T, V>(&start, "measured", a, &options, csr, &mut notes)?
                }
            });
        }
        for line in lines.iter_mut().filter(|line| line.format != REFERENCE) {
            if let (Some(csr), Some(convert), Some(product)) =
                (csr, line.convert_seconds, line.product_seconds)
            {
                let same = line.format.ends_with(":csr");
                line.break_even = (product < csr && !same).then(|| (convert / (csr - product)).ceil() as u64);
            }
        }
        lines.retain(|line| line.format != REFERENCE || arguments.wants(REFERENCE));
        Ok((lines, notes))
    }

    fn format<T: Scalar, V: Scalar + Promote<T>>(
        &self,
        start: &Line,
        format: &Format<T, B, V>,
        lengths: &RowLengths,
        a: &Csr<V, B>,
    ) -> Result<Line> {
        let storage = format.storage(lengths);
        let mut line = Line {
            format: format.name().into(),
            bytes: storage.bytes,
            padding: storage.padding,
            refused: storage.refused,
            ..start.clone()
        };
        if line.refused.is_none() {
            let measured = format.build(&self.backend, a).and_then(|stored| {
                self.product(&mut line, &*stored)?;
                drop(stored);
                // The file is assembled into CSR, which needs no conversion.
                line.convert_seconds = Some(match format.name() {
                    REFERENCE => 0.0,
                    _ => {
                        alone(&self.backend, self.time.0 / 3.0, || format.build(&self.backend, a).map(drop))?
                            .seconds
                    }
                });
                Ok(())
            });
            line.refuse(measured)?;
        }
        Ok(line)
    }

    /// Measures the automatic choice, and what it cost.
    fn choice<T: Scalar, V: Scalar + Promote<T>>(
        &self,
        start: &Line,
        word: &str,
        a: Csr<V, B>,
        options: &ChoiceOptions,
        csr: Option<f64>,
        notes: &mut Vec<String>,
    ) -> Result<Line> {
        let (stored, report) = matrix::choose::<T, V, B>(&self.backend, a, options)?.into_parts();
        let mut line = Line { format: format!("{word}:{}", report.format), ..start.clone() };
        self.product(&mut line, &*stored)?;
        // Without first-use costs, as for the formats, whose kernels have been used before.
        line.convert_seconds = Some(report.seconds - report.first_use_seconds);
        notes.push(note::<T, V>(word, &report, csr, line.product_seconds));
        Ok(line)
    }

    /// Times the product of a stored matrix.
    fn product<T: Scalar, V: Scalar>(
        &self,
        line: &mut Line,
        stored: &dyn SparseMatrix<T, B, V>,
    ) -> Result<()> {
        let backend = &self.backend;
        let x = backend.upload(vec![T::one(); stored.columns()])?;
        let mut y = backend.zeros::<T>(stored.rows())?;
        let measured =
            in_batches(backend, self.time, || stored.product(backend, T::one(), &x, T::zero(), &mut y))?;
        line.bytes = stored.storage_bytes() as u64;
        line.padding = stored.padding() as u64;
        line.product(measured, stored.bytes(), self.copy());
        Ok(())
    }
}

fn note<T: Scalar, V: Scalar>(
    word: &str,
    report: &ChoiceReport,
    csr: Option<f64>,
    product: Option<f64>,
) -> String {
    let stored = if T::NAME == V::NAME { String::new() } else { format!(", values in {}", V::NAME) };
    // For csr itself the ratio would only show the scatter of times.
    let itself = report.format == REFERENCE && stored.is_empty();
    let gain = match (csr, product) {
        (Some(csr), Some(product)) if !itself => format!("; {:.2} times as fast as csr", csr / product),
        _ => String::new(),
    };
    let what =
        if word == "plain" { "the measured choice without compression" } else { "the measured choice" };
    format!("{word} ({what}{stored}): {report}{gain}")
}
