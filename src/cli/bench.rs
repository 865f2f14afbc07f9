//! `residua bench`: the formats compared on a matrix.

use super::choice::parse_format;
use super::device::{self, Device};
use super::failure::About;
use super::load::{Loaded, is_complex, load};
use super::sink::{Sink, takes_stdout};
use super::{Ending, Failure, console};
use num_complex::Complex;
use residua::backend::{Conversions, Products};
use residua::matrix::{self, FORMAT_NAMES, Format, RowLengths};
use residua::report::{Align, Table, bytes, copy_bandwidth, count, seconds};
use residua::scalar::Widen;
use residua::{Backend, Csr, Error, Host, Scalar};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Seconds that the repetitions of one product, or one conversion, should last together.
const PRODUCT_TIME: f64 = 0.3;
const CONVERT_TIME: f64 = 0.1;

/// The format that others are compared with.
const REFERENCE: &str = "csr";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Matrix Market files
    #[arg(required = true)]
    matrices: Vec<PathBuf>,
    /// Formats to compare, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = parse_one)]
    formats: Vec<String>,
    /// Types in which real values are stored, separated by commas; products are computed in f64 all the same
    #[arg(long, value_delimiter = ',', default_value = "f64", value_parser = ["f64", "f32"])]
    types: Vec<String>,
    /// Where to compute: auto (a GPU where there is one, else the CPU), cpu, cuda or cuda:N
    #[arg(long, default_value = "auto", value_parser = device::parse)]
    device: String,
    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the figures as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn parse_one(text: &str) -> Result<String, String> {
    match parse_format(text) {
        Ok(name) if name != "auto" => Ok(name),
        _ => Err(format!("choose from {}", FORMAT_NAMES.join(", "))),
    }
}

/// One format on one matrix: the JSON of `residua bench` is a list of these.
#[derive(Serialize)]
struct Line {
    matrix: String,
    rows: usize,
    columns: usize,
    nonzeros: usize,
    device: String,
    format: &'static str,
    r#type: &'static str,
    /// Bytes of storage.
    bytes: u64,
    /// Entries stored beyond the nonzeros.
    padding: u64,
    convert_seconds: Option<f64>,
    product_seconds: Option<f64>,
    gb_s: Option<f64>,
    share_of_copy: Option<f64>,
    break_even: Option<u64>,
    refused: Option<String>,
    #[serde(skip)]
    spread: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let json = arguments.json.as_deref().map(Sink::open).transpose()?;
    let csv = arguments.csv.as_deref().map(Sink::open).transpose()?;
    let silent = takes_stdout([json.as_ref(), csv.as_ref()])?;
    match device::open(&arguments.device)? {
        Device::Cpu(_) => bench(&Host, arguments, json, csv, silent),
        #[cfg(feature = "cuda")]
        Device::Cuda(cuda) => bench(&cuda, arguments, json, csv, silent),
    }
}

fn bench<B: Products + Conversions>(
    backend: &B,
    arguments: &Arguments,
    json: Option<Sink>,
    csv: Option<Sink>,
    silent: bool,
) -> Result<Ending, Failure> {
    let copy = copy_bandwidth(backend, 5)?;
    let mut lines = Vec::new();
    for path in &arguments.matrices {
        let new = if is_complex(path)? {
            let Loaded { a, .. } = load::<Complex<f64>>(path)?;
            compare::<Complex<f64>, _, _>(backend, path, a, &arguments.formats, copy)?
        } else {
            let Loaded { a, .. } = load::<f64>(path)?;
            let wants = |name: &str| arguments.types.iter().any(|wanted| wanted == name);
            let narrow = wants("f32").then(|| a.map(|value| value as f32));
            let mut lines = Vec::new();
            if wants("f64") {
                lines.extend(compare::<f64, _, _>(backend, path, a, &arguments.formats, copy)?);
            }
            if let Some(a) = narrow {
                lines.extend(compare::<f64, _, _>(backend, path, a, &arguments.formats, copy)?);
            }
            lines
        };
        if !silent {
            console::say(&table(&new, copy))?;
        }
        lines.extend(new);
    }
    if let Some(sink) = json {
        sink.write_json(&lines)?;
    }
    if let Some(sink) = csv {
        sink.write(&to_csv(&lines))?;
    }
    Ok(Ending::Done)
}

/// Measures the formats named (all, where none is) on one matrix.
fn compare<T: Scalar, V: Scalar + Widen<T>, B: Products + Conversions>(
    backend: &B,
    path: &Path,
    a: Csr<V>,
    names: &[String],
    copy: f64,
) -> Result<Vec<Line>, Failure> {
    let lengths = RowLengths::of(&Host, &a).about(path)?;
    let a = a.into_backend(backend).about(path)?;
    let wanted =
        |format: &Format<T, B, V>| names.is_empty() || names.iter().any(|name| name == format.name());
    let (mut lines, mut reference) = (Vec::new(), None);
    for format in matrix::formats::<T, B, V>() {
        if !wanted(&format) && format.name() != REFERENCE {
            continue;
        }
        let storage = format.storage(&lengths);
        let mut line = Line {
            matrix: path.display().to_string(),
            rows: a.rows(),
            columns: a.columns(),
            nonzeros: a.nonzeros(),
            device: backend.description(),
            format: format.name(),
            r#type: V::NAME,
            bytes: storage.bytes,
            padding: storage.padding,
            convert_seconds: None,
            product_seconds: None,
            gb_s: None,
            share_of_copy: None,
            break_even: None,
            refused: storage.refused,
            spread: 0.0,
        };
        if line.refused.is_none() {
            match measure(backend, &mut line, &format, &a, copy) {
                // A device that has no kernel for a format refuses it, and the others go on.
                Err(Error::Unsupported(reason)) => line.refused = Some(reason),
                measured => measured.about(path)?,
            }
        }
        if format.name() == REFERENCE {
            reference = line.product_seconds;
        } else if let (Some(csr), Some(convert), Some(product)) =
            (reference, line.convert_seconds, line.product_seconds)
        {
            line.break_even = (product < csr).then(|| (convert / (csr - product)).ceil() as u64);
        }
        if wanted(&format) {
            lines.push(line);
        }
    }
    Ok(lines)
}

fn measure<T: Scalar, V: Scalar + Widen<T>, B: Products + Conversions>(
    backend: &B,
    line: &mut Line,
    format: &Format<T, B, V>,
    a: &Csr<V, B>,
    copy: f64,
) -> residua::Result<()> {
    let stored = format.build(backend, a)?;
    // CSR is what the file is assembled into: nothing is converted.
    let convert = match format.name() {
        REFERENCE => 0.0,
        _ => repeat(backend, CONVERT_TIME, || format.build(backend, a).map(drop))?.0,
    };
    let x = backend.upload(vec![T::one(); a.columns()])?;
    let mut y = backend.zeros(a.rows())?;
    let (product, spread) =
        repeat(backend, PRODUCT_TIME, || stored.product(backend, T::one(), &x, T::zero(), &mut y))?;
    let rate = stored.bytes() as f64 / product / 1e9;
    line.bytes = stored.storage_bytes() as u64;
    line.padding = stored.padding() as u64;
    line.convert_seconds = Some(convert);
    line.product_seconds = Some(product);
    line.gb_s = Some(rate);
    line.share_of_copy = Some(rate / copy);
    line.spread = spread;
    Ok(())
}

/// Median and spread (half the distance between the quartiles, over the median) of the seconds that `body` takes:
/// repeated for `total` seconds and at least three times, after one run to warm up.
fn repeat(
    backend: &impl Backend,
    total: f64,
    mut body: impl FnMut() -> residua::Result<()>,
) -> residua::Result<(f64, f64)> {
    let mut run = || -> residua::Result<f64> {
        let start = Instant::now();
        body().and_then(|()| backend.synchronize())?;
        Ok(start.elapsed().as_secs_f64())
    };
    run()?;
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < 3 || (start.elapsed().as_secs_f64() < total && times.len() < 100_000) {
        times.push(run()?);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    Ok((at(0.5), (at(0.75) - at(0.25)) / 2.0 / at(0.5)))
}

fn table(lines: &[Line], copy: f64) -> String {
    // One table for each type of values.
    let rest = lines.iter().position(|line| line.r#type != lines[0].r#type);
    let (lines, rest) = lines.split_at(rest.unwrap_or(lines.len()));
    let rest = if rest.is_empty() { String::new() } else { table(rest, copy) };
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
    let fastest = lines.iter().filter_map(|line| line.product_seconds).fold(f64::INFINITY, f64::min);
    for line in lines {
        if let Some(reason) = &line.refused {
            table.row([line.format.to_string(), format!("refused: {reason}")]);
            continue;
        }
        let product = line.product_seconds.unwrap_or(f64::NAN);
        let pays = match line.break_even {
            Some(products) => format!("{} products", count(products)),
            None if line.format == REFERENCE => "-".into(),
            None => "never".into(),
        };
        let mark = if product == fastest { " <" } else { "" };
        table.row([
            line.format.to_string(),
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
    format!(
        "{}: {size}, {} nonzeros, {}, on {}; copy bandwidth {copy:.1} GB/s\n\n{table}\n{rest}",
        first.matrix,
        count(first.nonzeros as u64),
        first.r#type,
        first.device
    )
}

fn to_csv(lines: &[Line]) -> String {
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
            line.format.to_string(),
            line.r#type.to_string(),
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

/// As RFC 4180 asks where a cell holds a comma, a quote or a line end.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_string()
    }
}
