//! `residua info`: facts about a matrix, for choosing how to solve with it.

use super::failure::About;
use super::load::{Loaded, is_complex, load_and_warn};
use super::sink::{Sink, takes_stdout};
use super::{Ending, Failure, console};
use crate::graph::{self, Adjacency, Ordering};
use crate::look::{Fit, Look, MethodFit};
use crate::matrix::{self, RowLengths, RowStatistics, Storage};
use crate::prepare::{OrderKind, dissection_order, graph_order_size, minimum_degree_order};
use crate::report::{Align, Table, bytes, count, spy_svg};
use crate::{Csr, Error, Host, Scalar};
use num_complex::Complex;
use serde::Serialize;
use std::path::PathBuf;

/// The fill of a factor is counted for matrices of at most this many nonzeros, which takes at most ten seconds.
const COUNTED: usize = 10_000_000;

// The arguments of `residua info`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File of any format that `residua solve` reads; '-' is standard input
    matrix: PathBuf,
    /// Write the same facts as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the positions of the nonzeros as SVG
    #[arg(long, value_name = "FILE")]
    spy: Option<PathBuf>,
}

/// The JSON of `residua info`.
#[derive(Serialize)]
struct Info {
    matrix: String,
    rows: usize,
    columns: usize,
    nonzeros: usize,
    field: &'static str,
    stored_as: &'static str,
    explicit_zeros: usize,
    pattern_symmetric: bool,
    symmetric: bool,
    hermitian: bool,
    skew_symmetric: bool,
    asymmetry: Option<f64>,
    diagonal: Diagonal,
    dominant_rows: usize,
    strictly_dominant_rows: usize,
    empty_rows: usize,
    empty_columns: usize,
    row_lengths: Lengths,
    bandwidth: usize,
    bandwidth_rcm: Option<usize>,
    profile: Option<u64>,
    profile_rcm: Option<u64>,
    components: Option<usize>,
    factor: Option<Factor>,
    formats: Vec<FormatInfo>,
    advice: Advice,
    words: Vec<String>,
    methods: Vec<MethodFit>,
    look: Look,
}

/// The size of a Cholesky factor of A + A^T in the better of two orderings, and in minimum degree.
#[derive(Serialize)]
struct Factor {
    order: String,
    entries: f64,
    multiplications: f64,
    multiplications_minimum_degree: f64,
    multiplications_nested_dissection: f64,
}

/// The numbers of positive, negative, and zero or missing diagonal entries.
#[derive(Serialize)]
struct Diagonal {
    positive: usize,
    negative: usize,
    zero: usize,
}

/// Statistics of the row lengths.
#[derive(Serialize)]
struct Lengths {
    min: usize,
    max: usize,
    mean: f64,
    variation: f64,
    histogram: Vec<Bin>,
}

/// A bin of the histogram of row lengths.
#[derive(Serialize)]
struct Bin {
    from: u64,
    to: u64,
    rows: usize,
}

/// The storage that a format takes for the matrix.
#[derive(Serialize)]
struct FormatInfo {
    format: &'static str,
    bytes: u64,
    padding: u64,
    refused: Option<String>,
}

/// The advised format and method.
#[derive(Serialize)]
struct Advice {
    format: String,
    format_reason: String,
    method: Option<&'static str>,
    method_reason: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    if is_complex(&arguments.matrix)? { tell::<Complex<f64>>(arguments) } else { tell::<f64>(arguments) }
}

/// Analyses the matrix, and prints or writes the results.
fn tell<T: Scalar<Real = f64>>(arguments: &Arguments) -> Result<Ending, Failure> {
    let path = arguments.matrix.as_path();
    let json = arguments.json.as_deref().map(Sink::open).transpose()?;
    let spy = arguments.spy.as_deref().map(Sink::open).transpose()?;
    let silent = takes_stdout([path], [json.as_ref(), spy.as_ref()])?;
    let Loaded { a, header, .. } = load_and_warn::<T>(path)?;
    let look = Look::of(&a).about(path)?;
    let facts = &look.facts;
    let lengths = RowLengths::of(&Host, &a).about(path)?;
    let statistics = lengths.statistics();
    let square = a.rows() == a.columns();
    let ordering = square.then(|| graph::ordering(&a)).transpose().about(path)?;
    let formats = matrix::storage_estimates::<T, Host>(&lengths);
    let choice = matrix::advise::<T, _>(&Host, &lengths);
    let advised = look.iterative_method();
    let info = Info {
        matrix: path.display().to_string(),
        rows: a.rows(),
        columns: a.columns(),
        nonzeros: a.nonzeros(),
        field: header.field().name(),
        stored_as: header.symmetry().name(),
        explicit_zeros: facts.explicit_zeros,
        pattern_symmetric: facts.pattern_symmetric,
        symmetric: facts.is_symmetric(),
        hermitian: facts.is_hermitian(),
        skew_symmetric: facts.is_skew_symmetric(),
        asymmetry: Some(facts.asymmetry).filter(|asymmetry| asymmetry.is_finite()),
        diagonal: Diagonal {
            positive: facts.diagonal_positive,
            negative: facts.diagonal_negative,
            zero: facts.diagonal_zero,
        },
        dominant_rows: facts.dominant_rows,
        strictly_dominant_rows: facts.strictly_dominant_rows,
        empty_rows: facts.empty_rows,
        empty_columns: facts.empty_columns,
        row_lengths: Lengths::of(&statistics),
        bandwidth: graph::bandwidth(&a),
        bandwidth_rcm: ordering.as_ref().map(Ordering::bandwidth_rcm),
        profile: ordering.as_ref().map(Ordering::profile_before),
        profile_rcm: ordering.as_ref().map(Ordering::profile_rcm),
        components: square.then_some(look.structure.components),
        factor: (square && a.nonzeros() <= COUNTED).then(|| factor(&a)).transpose().about(path)?,
        formats: formats.into_iter().map(FormatInfo::of).collect(),
        advice: Advice {
            format: choice.format.to_string(),
            format_reason: choice.reason,
            method: advised.as_ref().map(|fit| fit.method),
            method_reason: advised.map_or_else(|| nothing(&look), |fit| fit.reason),
        },
        words: look.words(),
        methods: look.methods(),
        look,
    };
    if let Some(sink) = spy {
        let name = path.file_name().map_or_else(|| "A".into(), |name| name.to_string_lossy());
        sink.write(&spy_svg(&a, &name).about(path)?)?;
    }
    if let Some(sink) = json {
        sink.write_json(&info)?;
    }
    if !silent {
        console::say(&words(&info, arguments))?;
    }
    Ok(Ending::Done)
}

/// Counts the entries of a factor of A.
fn factor<T: Scalar>(a: &Csr<T>) -> Result<Factor, Error> {
    let graph = Adjacency::new(a)?;
    let degree = graph_order_size(&graph, &minimum_degree_order(&graph)?)?;
    let dissection = graph_order_size(&graph, &dissection_order(&graph)?)?;
    let (order, size) = match dissection.multiplications < degree.multiplications {
        true => (OrderKind::NestedDissection, dissection),
        false => (OrderKind::MinimumDegree, degree),
    };
    Ok(Factor {
        order: order.to_string(),
        entries: size.entries,
        multiplications: size.multiplications,
        multiplications_minimum_degree: degree.multiplications,
        multiplications_nested_dissection: dissection.multiplications,
    })
}

/// The reason why no method is possible.
fn nothing(look: &Look) -> String {
    look.methods().into_iter().next().map_or_else(String::new, |fit| fit.reason)
}

impl Lengths {
    fn of(statistics: &RowStatistics) -> Self {
        let bins = statistics.histogram.iter().enumerate().map(|(k, &rows)| match k {
            0 => Bin { from: 0, to: 0, rows },
            _ => Bin { from: 1 << (k - 1), to: (1 << k) - 1, rows },
        });
        Self {
            min: statistics.min,
            max: statistics.max,
            mean: statistics.mean,
            variation: statistics.cv,
            histogram: bins.collect(),
        }
    }
}

impl FormatInfo {
    fn of((format, storage): (&'static str, Storage)) -> Self {
        Self { format, bytes: storage.bytes, padding: storage.padding, refused: storage.refused }
    }
}

fn words(info: &Info, arguments: &Arguments) -> String {
    let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
    let n = |n: usize| count(n as u64);
    table.row(["matrix".to_string(), info.matrix.clone()]);
    let kind = format!("{}, stored as {}", info.field, info.stored_as);
    table.row([
        "size".to_string(),
        format!("{} x {}, {} nonzeros ({kind})", n(info.rows), n(info.columns), n(info.nonzeros)),
    ]);
    if info.explicit_zeros > 0 {
        let are = if info.explicit_zeros == 1 { "is a stored zero" } else { "are stored zeros" };
        table.row(["".to_string(), format!("{} of them {are}", n(info.explicit_zeros))]);
    }
    table.row(["symmetry".to_string(), symmetry(info)]);
    let diagonal = &info.diagonal;
    let signs = match (diagonal.negative, diagonal.zero) {
        (0, 0) => "positive".to_string(),
        (negative, zero) => {
            format!(
                "{} positive, {} negative, {} zero or missing",
                n(diagonal.positive),
                n(negative),
                n(zero)
            )
        }
    };
    table.row(["diagonal".to_string(), signs]);
    table.row(["dominance".to_string(), dominance(info)]);
    if info.empty_rows + info.empty_columns > 0 {
        table.row([
            "empty".to_string(),
            format!("rows: {}, columns: {}", n(info.empty_rows), n(info.empty_columns)),
        ]);
    }
    let bandwidth = match (info.bandwidth_rcm, info.profile, info.profile_rcm) {
        (Some(rcm), Some(profile), Some(profile_rcm)) => format!(
            "{}, after reverse Cuthill-McKee {} (profile {}, after {})",
            n(info.bandwidth),
            n(rcm),
            count(profile),
            count(profile_rcm)
        ),
        _ => n(info.bandwidth),
    };
    table.row(["bandwidth".to_string(), bandwidth]);
    if let Some(components) = info.components {
        table.row(["components".to_string(), n(components)]);
    }
    if let Some(factor) = &info.factor {
        let (degree, dissection) =
            (factor.multiplications_minimum_degree, factor.multiplications_nested_dissection);
        let (other, most) = match degree <= dissection {
            true => (OrderKind::NestedDissection, dissection),
            false => (OrderKind::MinimumDegree, degree),
        };
        table.row([
            "factor".to_string(),
            format!(
                "Cholesky: {} entries, {:.1e} multiplications ({}; {other} needs {most:.1e})",
                count(factor.entries as u64),
                factor.multiplications,
                factor.order
            ),
        ]);
    }
    let mut text = table.to_string();
    text.push('\n');
    info.words.iter().for_each(|sentence| text += &wrapped(sentence));
    text.push('\n');
    text += &methods(info);
    text.push('\n');
    text += &histogram(&info.row_lengths);
    text.push('\n');
    text += &storage(info);
    text.push('\n');
    let advice = &info.advice;
    let method = advice.method.unwrap_or("none");
    text += &format!(
        "format  {} on the CPU: {}\nmethod  {method}: {}\n",
        advice.format, advice.format_reason, advice.method_reason
    );
    text += "This judges the matrix alone; residua solve --dry-run lists what a solve tries.\n";
    if let Some(spy) = &arguments.spy {
        text += &format!("picture written to {}\n", spy.display());
    }
    text
}

/// Wraps a sentence for a terminal, with later lines indented.
fn wrapped(sentence: &str) -> String {
    const WIDTH: usize = 96;
    let (mut text, mut line) = (String::new(), String::new());
    for word in sentence.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            text += &line;
            text.push('\n');
            line = " ".into();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    text + &line + "\n"
}

fn methods(info: &Info) -> String {
    let mut table = Table::new([("method", Align::Left), ("", Align::Left), ("why", Align::Left)]);
    for MethodFit { method, fit, reason, .. } in &info.methods {
        let fit = match fit {
            Fit::Suits => "suits",
            Fit::Possible => "possible",
            _ => "no",
        };
        // The names of the command: factorisations are kinds of `direct`.
        let name = match *method {
            "cholesky" | "ldlt" | "lu" | "qr" => format!("direct ({method})"),
            name => name.to_string(),
        };
        table.row([name.as_str(), fit, reason]);
    }
    table.to_string()
}

fn symmetry(info: &Info) -> String {
    let pattern = if info.pattern_symmetric { "pattern symmetric" } else { "pattern not symmetric" };
    if info.rows != info.columns {
        return "none: not square".into();
    }
    if info.symmetric && info.asymmetry.is_some_and(|asymmetry| asymmetry > 0.0) {
        return format!("symmetric up to rounding ({:.1e})", info.asymmetry.unwrap_or(0.0));
    }
    match (info.symmetric, info.hermitian, info.skew_symmetric) {
        (true, true, _) => "symmetric".into(),
        (true, false, _) => "complex symmetric, not Hermitian".into(),
        (false, true, _) => "Hermitian".into(),
        (false, false, true) => "skew-symmetric".into(),
        _ => format!(
            "{pattern}, values not (they differ by up to {:.1e} of the largest entry)",
            info.asymmetry.unwrap_or(0.0)
        ),
    }
}

fn dominance(info: &Info) -> String {
    let (rows, weak, strict) = (info.rows.min(info.columns), info.dominant_rows, info.strictly_dominant_rows);
    if strict == rows {
        "diagonally dominant, strictly in every row".into()
    } else if weak == rows {
        format!("diagonally dominant in every row, strictly in {}", count(strict as u64))
    } else {
        format!("diagonally dominant in {} of {} rows", count(weak as u64), count(rows as u64))
    }
}

fn histogram(lengths: &Lengths) -> String {
    const BAR: usize = 40;
    let most = lengths.histogram.iter().map(|bin| bin.rows).max().unwrap_or(0).max(1);
    let mut table = Table::new([("entries a row", Align::Right), ("rows", Align::Right), ("", Align::Left)]);
    // Empty bins before the first row are skipped.
    for bin in lengths.histogram.iter().skip_while(|bin| bin.rows == 0) {
        let range =
            if bin.from == bin.to { bin.from.to_string() } else { format!("{} to {}", bin.from, bin.to) };
        let bar = (bin.rows * BAR).div_ceil(most);
        table.row([range, count(bin.rows as u64), "#".repeat(bar)]);
    }
    format!(
        "{table}shortest {}, longest {}, mean {:.1}, standard deviation / mean {:.2}\n",
        lengths.min, lengths.max, lengths.mean, lengths.variation
    )
}

fn storage(info: &Info) -> String {
    let mut table = Table::new([
        ("format", Align::Left),
        ("storage", Align::Right),
        ("padding", Align::Right),
        ("", Align::Left),
    ]);
    for format in &info.formats {
        let padding = format!("{:.0} %", 100.0 * format.padding as f64 / (info.nonzeros as f64).max(1.0));
        let note = match &format.refused {
            Some(reason) => format!("refused: {reason}"),
            None if format.format == info.advice.format => "advised".into(),
            None => String::new(),
        };
        table.row([format.format.to_string(), bytes(format.bytes), padding, note]);
    }
    table.to_string()
}
