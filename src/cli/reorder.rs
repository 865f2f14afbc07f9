//! `residua reorder`: renumbers a matrix for a small bandwidth, or for factors with little fill.

use super::device::{self, Device};
use super::failure::About;
use super::load::{Loaded, is_complex, load_and_warn, save};
use super::sink::{Sink, takes_stdout};
use super::{Ending, Failure, console};
#[cfg(feature = "cuda")]
use crate::backend::cuda::compile::units_of_an_ordering;
use crate::backend::{Backend, GraphSteps};
use crate::graph::{self, Adjacency, Permutation};
use crate::prepare::{OrderSize, dissection_order, graph_order_size, minimum_degree_order};
use crate::report::{Align, Table, count, seconds};
use crate::{Csr, Error, Host, Scalar};
use num_complex::Complex;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File of any format that `residua solve` reads; '-' is standard input
    matrix: PathBuf,
    /// File for the renumbered matrix; gzip if it ends in .gz
    #[arg(short, long)]
    output: PathBuf,
    /// How to order: rcm (reverse Cuthill-McKee, for products), nested-dissection or minimum-degree (for factors with
    /// little fill)
    #[arg(long, default_value = "rcm")]
    method: By,
    /// Write, for each row of the new matrix, its number in the old one, counted from zero, one per line
    #[arg(long, value_name = "FILE")]
    permutation: Option<PathBuf>,
    /// Where to order: auto (a GPU if there is one, otherwise the CPU), cpu, cuda or cuda:N; all except rcm run on the
    /// CPU
    #[arg(long, default_value = "auto", value_parser = super::device::parse)]
    device: String,
    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The orderings.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum By {
    Rcm,
    NestedDissection,
    MinimumDegree,
}

/// The JSON of `residua reorder`.
#[derive(Serialize)]
struct Figures {
    bandwidth_before: usize,
    bandwidth_after: usize,
    profile_before: u64,
    profile_after: u64,
    /// Entries of a Cholesky factor, and multiplications of its factorisation.
    #[serde(flatten)]
    fill: Option<Fill>,
    seconds: f64,
}

/// The size of a factor before and after reordering.
#[derive(Serialize)]
struct Fill {
    factor_entries_before: f64,
    factor_entries_after: f64,
    multiplications_before: f64,
    multiplications_after: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    if is_complex(&arguments.matrix)? {
        reorder::<Complex<f64>>(arguments)
    } else {
        reorder::<f64>(arguments)
    }
}

fn reorder<T: Scalar>(arguments: &Arguments) -> Result<Ending, Failure> {
    let path = arguments.matrix.as_path();
    let output = Sink::for_numbers(&arguments.output)?;
    let permutation_sink = arguments.permutation.as_deref().map(Sink::open).transpose()?;
    let json = arguments.json.as_deref().map(Sink::open).transpose()?;
    // The result may replace the matrix's own file.
    takes_stdout([path], [permutation_sink.as_ref(), json.as_ref()])?;
    let silent = takes_stdout([], [Some(&output), permutation_sink.as_ref(), json.as_ref()])?;
    let device = match arguments.method {
        By::Rcm => device::open(&arguments.device)?,
        _ => Device::Cpu(None),
    };
    #[cfg(feature = "cuda")]
    let _loading = match &device {
        Device::Cuda(cuda) => Some(cuda.compile_ahead(units_of_an_ordering())),
        Device::Cpu(_) => None,
    };
    let Loaded { a, .. } = load_and_warn::<T>(path)?;
    if a.rows() != a.columns() {
        let cause = format!(
            "{} x {} is not square, and only a square matrix can be renumbered",
            a.rows(),
            a.columns()
        );
        return Err(Failure::about(path, cause));
    }
    let start = Instant::now();
    let (done, place) = match device {
        _ if arguments.method != By::Rcm => (for_factors(&a, arguments.method), Host.description()),
        Device::Cpu(reason) => {
            (reordered(&Host, a), Host.description() + &device::not_on_gpu(reason.as_deref()))
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(cuda) => (reordered(&cuda, a), cuda.description()),
    };
    let (b, ordering) = done.about(path)?;
    let figures = Figures {
        bandwidth_before: ordering.bandwidth[0],
        bandwidth_after: ordering.bandwidth[1],
        profile_before: ordering.profile[0],
        profile_after: ordering.profile[1],
        fill: ordering.fill.map(|[before, after]| Fill {
            factor_entries_before: before.entries,
            factor_entries_after: after.entries,
            multiplications_before: before.multiplications,
            multiplications_after: after.multiplications,
        }),
        seconds: start.elapsed().as_secs_f64(),
    };
    save(&output, &b)?;
    if let Some(sink) = permutation_sink {
        let lines: Vec<String> =
            ordering.permutation.new_to_old().iter().map(|old| format!("{old}\n")).collect();
        sink.write(&lines.concat())?;
    }
    if let Some(sink) = json {
        sink.write_json(&figures)?;
    }
    if !silent {
        console::say(&words(&figures, &ordering, &arguments.output, &place))?;
    }
    Ok(Ending::Done)
}

/// P A P^T and the ordering P, computed on a backend; the result is the same on each.
fn reordered<T: Scalar, B: GraphSteps>(backend: &B, a: Csr<T>) -> Result<(Csr<T>, Ordered), Error> {
    let there = a.into_backend(backend)?;
    let ordering = graph::ordering_on(backend, &there)?;
    let permuted = graph::permute_symmetric_on(backend, &there, ordering.permutation())?;
    drop(there);
    let ordered = Ordered {
        bandwidth: [ordering.bandwidth_before(), ordering.bandwidth_after(), ordering.bandwidth_rcm()],
        profile: [ordering.profile_before(), ordering.profile_after(), ordering.profile_rcm()],
        natural: ordering.keeps_natural_order(),
        permutation: ordering.permutation().to_host(backend)?,
        fill: None,
    };
    Ok((permuted.to_host(backend)?, ordered))
}

/// P A P^T and an ordering P for factors with little fill.
fn for_factors<T: Scalar>(a: &Csr<T>, by: By) -> Result<(Csr<T>, Ordered), Error> {
    let graph = Adjacency::new(a)?;
    let permutation = match by {
        By::MinimumDegree => minimum_degree_order(&graph)?,
        By::Rcm | By::NestedDissection => dissection_order(&graph)?,
    };
    let permuted = graph::permute_symmetric(a, &permutation)?;
    let natural = Permutation::identity(a.rows())?;
    let [bandwidth, profile] = [graph::bandwidth(&permuted) as u64, graph::profile(&permuted)?];
    let ordered = Ordered {
        bandwidth: [graph::bandwidth(a), bandwidth as usize, 0],
        profile: [graph::profile(a)?, profile, 0],
        natural: false,
        fill: Some([graph_order_size(&graph, &natural)?, graph_order_size(&graph, &permutation)?]),
        permutation,
    };
    Ok((permuted, ordered))
}

/// An ordering: figures before, after, and under reverse Cuthill-McKee.
struct Ordered {
    bandwidth: [usize; 3],
    profile: [u64; 3],
    natural: bool,
    fill: Option<[OrderSize; 2]>,
    permutation: Permutation,
}

fn words(figures: &Figures, ordering: &Ordered, output: &Path, place: &str) -> String {
    let headings = [("", Align::Left), ("before", Align::Right), ("after", Align::Right)];
    let mut table = Table::new(headings);
    let n = |n: usize| count(n as u64);
    table.row(["bandwidth".to_string(), n(figures.bandwidth_before), n(figures.bandwidth_after)]);
    table.row(["profile".to_string(), count(figures.profile_before), count(figures.profile_after)]);
    if let Some(fill) = &figures.fill {
        let n = |n: f64| count(n as u64);
        table.row([
            "entries of a factor".to_string(),
            n(fill.factor_entries_before),
            n(fill.factor_entries_after),
        ]);
        let times = |times: f64| format!("{times:.2e}");
        table.row([
            "its multiplications".to_string(),
            times(fill.multiplications_before),
            times(fill.multiplications_after),
        ]);
    }
    let kept = if ordering.natural {
        format!(
            "the order is kept: reverse Cuthill-McKee would give bandwidth {} and profile {}\n",
            n(ordering.bandwidth[2]),
            count(ordering.profile[2])
        )
    } else {
        String::new()
    };
    format!("{table}{kept}{} written, {} on {place}\n", output.display(), seconds(figures.seconds))
}
