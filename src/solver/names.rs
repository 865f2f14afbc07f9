//! Options by name: method, preconditioner, precision and order. Each is parsed from, and printed as, the word that the
//! command line takes for it.

use crate::error::{Error, Result};
use crate::multigrid::{Coarsening, MultigridOptions, Prolongation, Smoothing};
use std::fmt;
use std::str::FromStr;

/// The name with which the solver chooses the format by a model, so that the same matrix always has the same format.
pub(super) const AUTO: &str = "auto";

/// The name with which the solver chooses the format by timing products.
pub(super) const MEASURED: &str = "measured";

/// Returns whether the solver chooses the format of this name.
pub(super) fn chooses_format(name: &str) -> bool {
    [AUTO, MEASURED].contains(&name)
}

/// The default number of steps of a polynomial, and that of one in half the precision.
const STEPS: usize = 4;
pub(super) const SINGLE_STEPS: usize = 14;

/// The maximum number of steps in a polynomial.
const MOST_STEPS: usize = 64;

/// The largest fill, and the maximum number of digits, of an incomplete factorisation.
const MOST_FILL: usize = 1000;
const MOST_DIGITS: usize = 16;

/// The maximum number of rows in a diagonal block.
const MOST_ROWS: usize = 32;

/// Defines an enumeration of words, with conversions between a value and its word.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$told:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$told])* $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word that names it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == text).ok_or_else(|| {
                    let all: Vec<&str> = Self::ALL.iter().map(|value| value.name()).collect();
                    Error::InvalidArgument(format!("'{text}' is not possible: choose one of {}", all.join(", ")))
                })
            }
        }
    };
}

words! {
    /// How a system is solved.
    Method {
        /// The method that suits the matrix, and another one if it fails.
        #[default]
        Auto = "auto",
        /// Conjugate gradients: A Hermitian positive definite.
        Cg = "cg",
        /// MINRES: A Hermitian.
        Minres = "minres",
        /// Restarted GMRES: any square A.
        Gmres = "gmres",
        /// BiCGSTAB: any square A, with little memory.
        BiCgStab = "bicgstab",
        /// LSMR: least squares, for A of any shape.
        Lsmr = "lsmr",
        /// A factorisation.
        Direct = "direct",
    }
}

words! {
    /// The precision in which a method iterates. The certified residual is always computed in full precision.
    Precision {
        /// The precision of the matrix and the vectors.
        #[default]
        Double = "double",
        /// Half of it, with iterative refinement in full precision.
        Mixed = "mixed",
        /// As `Mixed`, and then full precision if that does not reach the tolerance.
        Auto = "auto",
    }
}

words! {
    /// The order of the unknowns in which a solver computes. Inputs and outputs are in the caller's order.
    Reorder {
        /// The order of a grid, if the pattern is that of a grid whose points were numbered differently; else reverse
        /// Cuthill-McKee. Both only if the expected products, or multigrid on the grid, pay for it.
        #[default]
        Auto = "auto",
        /// The order in which the caller gave the unknowns.
        None = "none",
        /// Reverse Cuthill-McKee, unless it increases the bandwidth.
        Rcm = "rcm",
    }
}

/// A preconditioner by name, see [`crate::precondition`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PreconditionerChoice {
    /// Jacobi, or what is likely to be faster: multigrid on grids, or if conjugate gradients converge slowly; a
    /// polynomial in half the precision on a GPU if that moves many fewer bytes.
    #[default]
    Auto,
    /// No preconditioner.
    None,
    /// The diagonal.
    Jacobi,
    /// Diagonal blocks of this many rows, 1 to 32; `None` means a block for each group of unknowns that belong
    /// together.
    BlockJacobi(Option<usize>),
    /// A factorised sparse approximate inverse.
    Fsai,
    /// A polynomial of this many steps, 1 to 64.
    Chebyshev(usize),
    /// A polynomial in half the precision.
    ChebyshevSingle(usize),
    /// An incomplete factorisation without fill: Cholesky for conjugate gradients and MINRES, else LU.
    Ilu,
    /// An incomplete LU factorisation with the largest entries of the fill.
    Ilut(IlutChoice),
    /// Algebraic multigrid.
    Multigrid(MultigridChoice),
}

/// The options of an incomplete factorisation with fill: `ilut:option=value,...`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct IlutChoice {
    /// `fill`: the maximum number of entries in a row of either factor, as a multiple of the mean row length of A.
    pub fill: usize,
    /// `digits`: entries smaller than 10^-digits times the norm of their row are dropped.
    pub digits: usize,
}

impl Default for IlutChoice {
    fn default() -> Self {
        Self { fill: 5, digits: 3 }
    }
}

impl IlutChoice {
    /// The fraction of a row's norm below which entries are dropped.
    pub(super) fn drop(self) -> f64 {
        10f64.powi(-(self.digits as i32))
    }
}

impl FromStr for IlutChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut choice = Self::default();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let number = |text: &str, most| text.parse().ok().filter(|number| (1..=most).contains(number));
            let chosen = option.split_once('=').and_then(|(name, value)| match name {
                "fill" => number(value, MOST_FILL).map(|fill| choice.fill = fill),
                "digits" => number(value, MOST_DIGITS).map(|digits| choice.digits = digits),
                _ => None,
            });
            if chosen.is_none() {
                return Err(Error::InvalidArgument(format!(
                    "ilut '{option}': choose from fill=1..{MOST_FILL}, digits=1..{MOST_DIGITS}"
                )));
            }
        }
        Ok(choice)
    }
}

impl fmt::Display for IlutChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fill={},digits={}", self.fill, self.digits)
    }
}

/// The options of multigrid: `amg:option=value,...`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MultigridChoice {
    /// `steps`: steps of smoothing before and after the correction. Default: two for a Hermitian matrix, or one with
    /// blocks if each unknown is a node; else three.
    pub steps: Option<usize>,
    /// `unknowns`: unknowns of each node, which must be consecutive; 0 means that they are found as rows with the same
    /// columns.
    pub unknowns: usize,
    /// `smoothing`: `auto`, `diagonal` or `blocks`.
    pub smoothing: Smoothing,
    /// `coarsening`: `auto`, `aggregation` or `classical`.
    pub coarsening: Coarsening,
    /// `weights`: with classical coarsening, an unknown interpolates from at most this many coarse ones.
    pub weights: usize,
    /// `prolongation`: `smoothed` or `least-energy`.
    pub prolongation: Prolongation,
    /// `precision`: `single` for half the precision, or `double` for that of the solve.
    pub narrow: bool,
    /// `boxes`: `yes` or `no`, whether matrices on grids get levels on grids.
    pub boxes: bool,
}

impl Default for MultigridChoice {
    fn default() -> Self {
        Self {
            steps: None,
            unknowns: 0,
            smoothing: Smoothing::Auto,
            coarsening: Coarsening::Auto,
            weights: MultigridOptions::default().weights,
            prolongation: Prolongation::Smoothed,
            narrow: true,
            boxes: true,
        }
    }
}

impl MultigridChoice {
    /// The options for the hierarchy.
    pub(super) fn options(self) -> MultigridOptions {
        let Self { steps, unknowns, smoothing, coarsening, weights, prolongation, narrow, boxes } = self;
        let mut options = MultigridOptions::default().unknowns_a_node(unknowns.max(1));
        options.steps = steps;
        let options = options.coarsening(coarsening).weights(weights).prolongation(prolongation);
        options.smoothing(smoothing).narrow(narrow).boxes(boxes)
    }
}

impl FromStr for MultigridChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut choice = Self::default();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let refused = |all: &str| Err(Error::InvalidArgument(format!("multigrid '{option}': {all}")));
            let number = |text: &str| text.parse().ok().filter(|number| (1..=MOST_STEPS).contains(number));
            let Some((name, value)) = option.split_once('=') else {
                return refused("options are written name=value");
            };
            match (name, number(value), value) {
                ("steps", Some(steps), _) => choice.steps = Some(steps),
                ("unknowns", Some(unknowns), _) => choice.unknowns = unknowns,
                ("unknowns", _, "auto") => choice.unknowns = 0,
                ("smoothing", _, "auto") => choice.smoothing = Smoothing::Auto,
                ("smoothing", _, "diagonal") => choice.smoothing = Smoothing::Diagonal,
                ("smoothing", _, "blocks") => choice.smoothing = Smoothing::Blocks,
                ("coarsening", _, "auto") => choice.coarsening = Coarsening::Auto,
                ("coarsening", _, "aggregation") => choice.coarsening = Coarsening::Aggregation,
                ("coarsening", _, "classical") => choice.coarsening = Coarsening::Classical,
                ("weights", Some(weights), _) => choice.weights = weights,
                ("prolongation", _, "smoothed") => choice.prolongation = Prolongation::Smoothed,
                ("prolongation", _, "least-energy") => choice.prolongation = Prolongation::LeastEnergy,
                ("precision", _, "single") => choice.narrow = true,
                ("precision", _, "double") => choice.narrow = false,
                ("boxes", _, "yes") => choice.boxes = true,
                ("boxes", _, "no") => choice.boxes = false,
                _ => {
                    return refused(
                        "choose from steps=1..64, unknowns=auto|1..64, smoothing=auto|diagonal|blocks, \
                         coarsening=auto|aggregation|classical, weights=1..64, prolongation=smoothed|least-energy, \
                         precision=single|double, boxes=yes|no",
                    );
                }
            }
        }
        Ok(choice)
    }
}

impl fmt::Display for MultigridChoice {
    /// Writes the options that differ from the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (default, mut all) = (Self::default(), Vec::new());
        if let Some(steps) = self.steps {
            all.push(format!("steps={steps}"));
        }
        if self.unknowns != default.unknowns {
            all.push(format!("unknowns={}", self.unknowns));
        }
        if self.smoothing != default.smoothing {
            let blocks = self.smoothing == Smoothing::Blocks;
            all.push(format!("smoothing={}", if blocks { "blocks" } else { "diagonal" }));
        }
        if self.coarsening != default.coarsening {
            let classical = self.coarsening == Coarsening::Classical;
            all.push(format!("coarsening={}", if classical { "classical" } else { "aggregation" }));
        }
        if self.weights != default.weights {
            all.push(format!("weights={}", self.weights));
        }
        if self.prolongation != default.prolongation {
            all.push("prolongation=least-energy".into());
        }
        if !self.narrow {
            all.push("precision=double".into());
        }
        if !self.boxes {
            all.push("boxes=no".into());
        }
        f.write_str(&all.join(","))
    }
}

impl PreconditionerChoice {
    /// Refuses numbers out of range.
    pub(super) fn check(self) -> Result<()> {
        let refused = |what: String| Err(Error::InvalidArgument(what));
        match self {
            Self::BlockJacobi(Some(rows)) if !(1..=MOST_ROWS).contains(&rows) => {
                refused(format!("blocks cannot have {rows} rows: choose 1 to {MOST_ROWS}"))
            }
            Self::Chebyshev(steps) | Self::ChebyshevSingle(steps) if !(1..=MOST_STEPS).contains(&steps) => {
                refused(format!("a polynomial cannot have {steps} steps: choose 1 to {MOST_STEPS}"))
            }
            _ => Ok(()),
        }
    }
}

impl FromStr for PreconditionerChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, number) = match text.split_once(':') {
            Some(("amg", options)) => return options.parse().map(Self::Multigrid),
            Some(("ilut", options)) => return options.parse().map(Self::Ilut),
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let no_number =
            |number| Error::InvalidArgument(format!("'{text}': '{number}' is not a whole number"));
        let number = number.map(|n| n.parse::<usize>().map_err(|_| no_number(n))).transpose()?;
        let choice = match (name, number) {
            ("auto", None) => Self::Auto,
            ("none", None) => Self::None,
            ("jacobi", None) => Self::Jacobi,
            ("block-jacobi", rows) => Self::BlockJacobi(rows),
            ("fsai", None) => Self::Fsai,
            ("ilu", None) => Self::Ilu,
            ("ilut", None) => Self::Ilut(IlutChoice::default()),
            ("amg", None) => Self::Multigrid(MultigridChoice::default()),
            ("chebyshev", steps) => Self::Chebyshev(steps.unwrap_or(STEPS)),
            ("chebyshev-single", steps) => Self::ChebyshevSingle(steps.unwrap_or(SINGLE_STEPS)),
            _ => {
                return Err(Error::InvalidArgument(format!(
                    "'{text}' is not possible: choose one of auto, none, jacobi, block-jacobi[:ROWS], fsai, \
                     chebyshev[:STEPS], chebyshev-single[:STEPS], ilu, ilut[:fill=N,digits=N], \
                     amg[:OPTION=VALUE,...]"
                )));
            }
        };
        choice.check().map(|()| choice)
    }
}

impl fmt::Display for PreconditionerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::None => f.pad("none"),
            Self::Jacobi => f.pad("jacobi"),
            Self::BlockJacobi(None) => f.pad("block-jacobi"),
            Self::BlockJacobi(Some(rows)) => write!(f, "block-jacobi:{rows}"),
            Self::Fsai => f.pad("fsai"),
            Self::Chebyshev(steps) => write!(f, "chebyshev:{steps}"),
            Self::ChebyshevSingle(steps) => write!(f, "chebyshev-single:{steps}"),
            Self::Ilu => f.pad("ilu"),
            Self::Ilut(choice) if *choice == IlutChoice::default() => f.pad("ilut"),
            Self::Ilut(choice) => write!(f, "ilut:{choice}"),
            Self::Multigrid(choice) if *choice == MultigridChoice::default() => f.pad("amg"),
            Self::Multigrid(choice) => write!(f, "amg:{choice}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were_typed() {
        let names =
            ["auto", "none", "jacobi", "block-jacobi", "block-jacobi:3", "fsai", "chebyshev:5", "amg"];
        let of_levels = [
            "amg:steps=1,unknowns=3,smoothing=blocks,precision=double,boxes=no",
            "amg:prolongation=least-energy,boxes=no",
            "amg:coarsening=classical,weights=3",
        ];
        for name in names.into_iter().chain(of_levels) {
            assert_eq!(name.parse::<PreconditionerChoice>().unwrap().to_string(), name);
        }
        assert_eq!(
            "chebyshev".parse::<PreconditionerChoice>().unwrap(),
            PreconditionerChoice::Chebyshev(STEPS)
        );
        for wrong in [
            "magic",
            "jacobi:2",
            "block-jacobi:0",
            "block-jacobi:33",
            "chebyshev:x",
            "fsai:1",
            "amg:steps=0",
            "amg:3",
            "",
        ] {
            assert!(wrong.parse::<PreconditionerChoice>().is_err(), "{wrong}");
        }
        for &method in Method::ALL {
            assert_eq!(method.to_string().parse::<Method>().unwrap(), method);
        }
        assert!("lu".parse::<Method>().unwrap_err().to_string().contains("auto, cg, minres"));
        assert_eq!("mixed".parse::<Precision>().unwrap(), Precision::Mixed);
        assert_eq!("rcm".parse::<Reorder>().unwrap(), Reorder::Rcm);
    }
}
