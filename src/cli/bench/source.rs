//! The matrices to compare: files and model problems.

use crate::Csr;
use crate::cli::Failure;
use crate::cli::load::{Loaded, is_complex, load_and_warn};
use crate::generate::{Model, Parameters, RowLengths, along_the_diagonal};
use num_complex::Complex;
use std::path::PathBuf;
use std::str::FromStr;

/// A file, or a model problem.
#[derive(Debug, Clone)]
pub(super) enum Source {
    File(PathBuf),
    /// The text that names it, the model, and its parameters.
    Model(String, &'static Model, Parameters),
}

/// A real or complex matrix.
pub(super) enum Matrix {
    Real(Csr<f64>),
    Complex(Csr<Complex<f64>>),
}

impl Source {
    pub(super) fn name(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Model(text, ..) => text.clone(),
        }
    }

    /// The matrix, repeated `copies` times along a diagonal.
    pub(super) fn read(&self, copies: usize) -> Result<Matrix, Failure> {
        let repeated = |error| Failure::Usage(format!("--copies {copies} of {}: {error}", self.name()));
        match self.read_one()? {
            one if copies == 1 => Ok(one),
            Matrix::Real(a) => along_the_diagonal(&a, copies).map(Matrix::Real).map_err(repeated),
            Matrix::Complex(a) => along_the_diagonal(&a, copies).map(Matrix::Complex).map_err(repeated),
        }
    }

    fn read_one(&self) -> Result<Matrix, Failure> {
        match self {
            Source::File(path) if is_complex(path)? => {
                let Loaded { a, .. } = load_and_warn::<Complex<f64>>(path)?;
                Ok(Matrix::Complex(a))
            }
            Source::File(path) => {
                let Loaded { a, .. } = load_and_warn::<f64>(path)?;
                Ok(Matrix::Real(a))
            }
            Source::Model(text, model, parameters) => {
                let built = model.build(parameters);
                built.map(Matrix::Real).map_err(|error| Failure::Usage(format!("--generate {text}: {error}")))
            }
        }
    }
}

/// `KIND[:SIZE][,OPTION=VALUE]...`, as in `random:2000000,row-lengths=4..32,seed=7`.
impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let (kind, size) = match parts.next().unwrap_or_default().split_once(':') {
            Some((kind, size)) => (kind, Some(size)),
            None => (text.split(',').next().unwrap_or_default(), None),
        };
        let model = Model::find(kind).map_err(|error| error.to_string())?;
        let mut parameters = Parameters::default();
        if let Some(size) = size {
            let numbers: Result<Vec<usize>, _> = size.split(['x', 'X', '*']).map(str::parse).collect();
            let numbers = numbers.map_err(|_| "write the size as 100x100x100, or as one number")?;
            parameters = parameters.size(numbers);
        }
        for option in parts {
            let (name, value) = option.split_once('=').ok_or("write an option as name=value")?;
            if !model.options.contains(&name) {
                let known =
                    if model.options.is_empty() { "only the size".into() } else { model.options.join(", ") };
                return Err(format!("{kind} has no option {name}; its options are {known}"));
            }
            parameters = set(parameters, name, value)?;
        }
        Ok(Source::Model(text.to_string(), model, parameters))
    }
}

fn set(parameters: Parameters, name: &str, value: &str) -> Result<Parameters, String> {
    fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
        value.parse().map_err(|_| format!("{name}: {value} is not a valid number"))
    }
    Ok(match name {
        "seed" => parameters.seed(number(name, value)?),
        "anisotropy" => parameters.anisotropy(number(name, value)?),
        "contrast" => parameters.contrast(number(name, value)?),
        "block" => parameters.block(number(name, value)?),
        "diffusion" => parameters.diffusion(number(name, value)?),
        "poisson-ratio" => parameters.poisson_ratio(number(name, value)?),
        "edge-factor" => parameters.edge_factor(number(name, value)?),
        "peclet" => parameters.peclet(number(name, value)?),
        "wavelength" => parameters.wavelength(number(name, value)?),
        "viscosity" => parameters.viscosity(number(name, value)?),
        "row-lengths" => {
            parameters.row_lengths(value.parse::<RowLengths>().map_err(|error| format!("{name}: {error}"))?)
        }
        _ => return Err(format!("there is no option {name}")),
    })
}
