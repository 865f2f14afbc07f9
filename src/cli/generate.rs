//! `residua generate`: model problems.

use super::load::save;
use super::sink::Sink;
use super::{Ending, Failure, console};
use crate::Scalar;
use crate::generate::{COMPLEX_MODELS, MODELS, Model, Parameters, RowLengths};
use crate::graph::{Permutation, permute_symmetric};
use crate::report::{Align, Table};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "Without KIND, all kinds are listed.")]
pub(crate) struct Arguments {
    /// The kind of model problem
    kind: Option<String>,
    /// Points, elements or rows in each direction, such as 100x100x100; a single number stands for all of them
    #[arg(long, value_parser = parse_size)]
    size: Option<Size>,
    /// File to write; gzip if it ends in .gz
    #[arg(short, long, default_value = "-")]
    output: PathBuf,
    /// Seed of random numbers [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Coefficient of the weak direction [default: 1e-3]
    #[arg(long)]
    anisotropy: Option<f64>,
    /// Largest coefficient over smallest [default: 1e6]
    #[arg(long)]
    contrast: Option<f64>,
    /// Edge of a block of equal coefficients, in cells [default: 8]
    #[arg(long)]
    block: Option<usize>,
    /// Diffusion coefficient, relative to a convection of about 1 [default: 1e-2]
    #[arg(long)]
    diffusion: Option<f64>,
    /// Poisson's ratio of the elastic material [default: 0.3]
    #[arg(long)]
    poisson_ratio: Option<f64>,
    /// Edges drawn per vertex [default: 8]
    #[arg(long)]
    edge_factor: Option<usize>,
    /// Entries of each row: 16, 4..32 or power:1..1000:2.1 (shortest..longest:exponent) [default: 16]
    #[arg(long)]
    row_lengths: Option<RowLengths>,
    /// Mesh Peclet number, which gives the diffusion: speed times spacing over it
    #[arg(long, conflicts_with = "diffusion")]
    peclet: Option<f64>,
    /// Points per wavelength [default: 10]
    #[arg(long)]
    wavelength: Option<f64>,
    /// Viscosity of the fluid [default: 1]
    #[arg(long)]
    viscosity: Option<f64>,
    /// Renumber the unknowns at random, rows and columns alike
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
}

/// The size of a model problem: one number for each direction, or one for all.
#[derive(Clone)]
struct Size(Vec<usize>);

fn parse_size(text: &str) -> Result<Size, String> {
    let numbers: Result<Vec<usize>, _> =
        text.split(['x', 'X', '*']).map(|part| part.trim().parse()).collect();
    numbers.map(Size).map_err(|_| "write the size as 100x100x100, or as one number".to_string())
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let Some(kind) = &arguments.kind else {
        console::say(&list())?;
        return Ok(Ending::Done);
    };
    match COMPLEX_MODELS.iter().find(|model| model.name == kind) {
        Some(model) => make(arguments, model),
        None => make(arguments, Model::find(kind).map_err(usage)?),
    }
}

fn make<T: Scalar>(arguments: &Arguments, model: &Model<T>) -> Result<Ending, Failure> {
    let parameters = arguments.parameters(model)?;
    let sink = Sink::for_numbers(&arguments.output)?;
    // A size or an option out of range is a wrong command line; no file is involved yet.
    let a = model.build(&parameters).map_err(usage)?;
    let a = match arguments.shuffle {
        Some(_) if a.rows() != a.columns() => {
            let cause =
                format!("--shuffle needs a square matrix, but {} x {} is not square", a.rows(), a.columns());
            return Err(Failure::Usage(cause));
        }
        Some(seed) => permute_symmetric(&a, &Permutation::random(a.rows(), seed)?)?,
        None => a,
    };
    save(&sink, &a)?;
    if !sink.is_stdout() {
        let (rows, columns, nonzeros) = (a.rows(), a.columns(), crate::report::count(a.nonzeros() as u64));
        console::say(&format!("{}: {rows} x {columns}, {nonzeros} nonzeros\n", arguments.output.display()))?;
    }
    Ok(Ending::Done)
}

fn usage(error: crate::Error) -> Failure {
    match error {
        crate::Error::InvalidArgument(cause) => Failure::Usage(cause),
        other => other.into(),
    }
}

impl Arguments {
    /// The library's parameters; an option that the model does not use is refused rather than ignored.
    fn parameters<T: Scalar>(&self, model: &Model<T>) -> Result<Parameters, Failure> {
        let mut parameters = Parameters::default();
        if let Some(Size(size)) = &self.size {
            parameters = parameters.size(size.clone());
        }
        let mut given = Vec::new();
        macro_rules! take {
            ($($field:ident: $name:literal),*) => {$(
                if let Some(value) = self.$field {
                    parameters = parameters.$field(value);
                    given.push($name);
                }
            )*};
        }
        take!(seed: "seed", anisotropy: "anisotropy", contrast: "contrast", block: "block", diffusion: "diffusion",
            poisson_ratio: "poisson-ratio", edge_factor: "edge-factor", row_lengths: "row-lengths",
            peclet: "peclet", wavelength: "wavelength", viscosity: "viscosity");
        match given.iter().find(|name| !model.options.contains(name)) {
            None => Ok(parameters),
            Some(name) => {
                let known: Vec<String> = model.options.iter().map(|option| format!("--{option}")).collect();
                let known = if known.is_empty() { "only --size".into() } else { known.join(", ") };
                Err(Failure::Usage(format!("{} has no option --{name}; its options are {known}", model.name)))
            }
        }
    }
}

fn list() -> String {
    let mut table = Table::new([
        ("kind", Align::Left),
        ("default size", Align::Left),
        ("what it is", Align::Left),
        ("options", Align::Left),
    ]);
    MODELS.iter().for_each(|model| list_one(&mut table, model));
    COMPLEX_MODELS.iter().for_each(|model| list_one(&mut table, model));
    table.to_string()
}

fn list_one<T: Scalar>(table: &mut Table, model: &Model<T>) {
    let size: Vec<String> = model.size.iter().map(usize::to_string).collect();
    let options: Vec<String> = model.options.iter().map(|option| format!("--{option}")).collect();
    table.row([model.name, &size.join("x"), model.about, &options.join(" ")]);
}
