//! The settings of a solver.

use super::device::Device;
use super::forecast::expected_products;
use super::names::{AUTO, Method, Precision, PreconditionerChoice, Reorder, chooses_format};
use super::near_null::NearNull;
use crate::error::{Error, Result};
use crate::krylov::SolveOptions;
use crate::matrix::{Csr, FORMAT_NAMES};
use crate::scalar::{Real, Scalar, Symmetry};
use crate::settings::settings;
use num_complex::Complex;
use std::sync::Arc;
use std::time::Duration;

/// The null space as the caller states it.
#[derive(Debug, Clone, Default)]
pub(super) enum NullSpaceWish {
    /// Not stated: constants are found if a Hermitian matrix maps them to zero.
    #[default]
    Auto,
    /// Constants on each component of the matrix's graph.
    Constants,
    /// Spanned by these vectors.
    Vectors(Arc<Vec<Vec<Complex<f64>>>>),
}

/// The settings of a [`Solver`](super::Solver). Each has a default, and [`Builder::build`] checks them all.
///
/// ```
/// use residua::prelude::*;
/// use residua::solver::{Device, PreconditionerChoice};
/// let a = residua::generate::poisson2d(20, 20)?;
/// let mut solver = Solver::builder()
///     .tolerance(1e-10)
///     .device(Device::Cpu)
///     .preconditioner(PreconditionerChoice::Fsai)
///     .build(a)?;
/// assert!(solver.solve(&[1.0; 400])?.report.outcome.is_converged());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder makes nothing until `build` is called"]
pub struct Builder {
    tolerance: Option<f64>,
    absolute: f64,
    pub(super) max_iterations: Option<usize>,
    stagnation_window: Option<usize>,
    pub(super) time_limit: Option<Duration>,
    pub(super) memory_limit: Option<u64>,
    pub(super) method: Method,
    pub(super) preconditioner: PreconditionerChoice,
    pub(super) candidates: Vec<(Method, PreconditionerChoice)>,
    pub(super) precision: Precision,
    pub(super) format: String,
    pub(super) device: Device,
    pub(super) reorder: Reorder,
    pub(super) right_hand_sides: usize,
    pub(super) updates: bool,
    pub(super) symmetry: Option<Symmetry>,
    /// How a symmetry is known that was not looked for.
    pub(super) known_from: &'static str,
    /// Why the backend of [`Builder::build_on`] was taken, for the trail.
    pub(super) placed_because: Option<String>,
    pub(super) near_null: Option<Arc<NearNull>>,
    pub(super) condition: bool,
    pub(super) null_space: NullSpaceWish,
    pub(super) row_wise: bool,
    pub(super) all_parts: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            tolerance: None,
            absolute: 0.0,
            max_iterations: None,
            stagnation_window: None,
            time_limit: None,
            memory_limit: None,
            method: Method::Auto,
            preconditioner: PreconditionerChoice::Auto,
            candidates: Vec::new(),
            precision: Precision::Double,
            format: AUTO.into(),
            device: Device::Auto,
            reorder: Reorder::Auto,
            right_hand_sides: 1,
            updates: false,
            symmetry: None,
            known_from: "as given",
            placed_because: None,
            near_null: None,
            condition: false,
            null_space: NullSpaceWish::Auto,
            row_wise: true,
            all_parts: false,
        }
    }
}

settings! { Builder;
    /// The relative tolerance: a solve has converged if ||b - A x|| is at most this times ||b||, in the 2-norm.
    /// Default: 1e-8 in double precision, 1e-5 in single.
    pub fn tolerance(relative: f64) => tolerance = Some(relative);

    /// Whether a solve must also meet the tolerance with each row divided by its norm: ||D (b - A x)|| <= tolerance ||D
    /// b||, where D = 1 / the norm of each row of A. Otherwise rows with large entries alone (fields in large units,
    /// penalties, fixed values) decide when a solve ends. Rows that differ much in scale are scaled before iterations
    /// begin. Default: yes.
    pub fn row_wise(yes: bool) => row_wise = yes;

    /// Whether [`Builder::build_spread`] uses all ranks even if a single one is expected to be faster. Default: no.
    pub fn all_parts(all: bool) => all_parts = all;

    /// A solve has also converged if ||b - A x|| is at most this, in the units of b. Default: 0.
    pub fn absolute_tolerance(absolute: f64) => absolute = absolute;

    /// The maximum number of iterations of a solve, over all methods that it tries. Default: 10 n for n unknowns, at
    /// least 1000 and at most 100 000.
    pub fn max_iterations(iterations: usize) => max_iterations = Some(iterations);

    /// The longest time of a solve, which then ends with [`Outcome::TimeLimit`](crate::krylov::Outcome::TimeLimit).
    /// Iterations, setups, orderings and factorisations check the clock every few milliseconds; a factorisation that is
    /// expected to take longer than the time left is not begun. Default: none.
    pub fn time_limit(limit: Duration) => time_limit = Some(limit);

    /// The numbers of a factorisation may take at most this many bytes. Default: seven eighths of the memory that is
    /// free on this machine and in this process's control group, or free on the GPU.
    pub fn memory_limit(bytes: u64) => memory_limit = Some(bytes);

    /// How many iterations without a new smallest residual a method may take before it counts as stagnated, see
    /// [`SolveOptions::stagnation_window`].
    pub fn stagnation_window(iterations: usize) => stagnation_window = Some(iterations);

    /// The method. Default: [`Method::Auto`].
    pub fn method(method: Method) => method = method;

    /// The preconditioner. Default: [`PreconditionerChoice::Auto`].
    pub fn preconditioner(preconditioner: PreconditionerChoice) => preconditioner = preconditioner;
}

impl Builder {
    /// The candidates to try in this order instead of the solver's own: pairs of a method and its preconditioner, where
    /// `Auto` stands for the solver's first choice. Each may take a part of the remaining iterations, the last one all
    /// of them. Default: empty, which means the solver's own list.
    ///
    /// ```
    /// use residua::prelude::*;
    /// use residua::solver::PreconditionerChoice;
    /// let a = residua::generate::poisson2d(20, 20)?;
    /// let multigrid = PreconditionerChoice::Multigrid(Default::default());
    /// let listed = [(Method::Cg, multigrid), (Method::Direct, PreconditionerChoice::Auto)];
    /// let report = Solver::builder().candidates(&listed).build(a)?.solve(&[1.0; 400])?.report;
    /// assert_eq!((report.method, report.trail.stages.len()), (Method::Cg, 2));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn candidates(mut self, listed: &[(Method, PreconditionerChoice)]) -> Self {
        self.candidates = listed.to_vec();
        self
    }
}

settings! { Builder;
    /// The precision of the iteration. Default: [`Precision::Double`]. If the matrix is in single precision, there is
    /// no lower one, and this changes nothing.
    pub fn precision(precision: Precision) => precision = precision;

    /// The storage format of the matrix: one of [`FORMAT_NAMES`], `auto` for the fastest by a model of the device, or
    /// `measured` for the fastest of a few timed products. With `measured` two formats that are equally fast may win in
    /// turn, and the last bits of x then differ between runs. Default: `auto`.
    pub fn format(name: impl Into<String>) => format = name.into();

    /// Where to compute, for [`Builder::build`]. Default: [`Device::Auto`].
    pub fn device(device: Device) => device = device;

    /// The order of the unknowns in which the solver computes; b, x and new values stay in the caller's. Default:
    /// [`Reorder::Auto`].
    pub fn reorder(reorder: Reorder) => reorder = reorder;

    /// The number of right-hand sides that will be solved for: an expensive setup may pay for many solves, but not for
    /// one. Default: 1.
    pub fn right_hand_sides(expected: usize) => right_hand_sides = expected;

    /// Whether values will be replaced ([`Solver::update`](super::Solver::update)): the matrix is then stored in CSR
    /// from the start. Without it, the first update changes the format. Default: no.
    pub fn updates(expected: bool) => updates = expected;

    /// The symmetry of the matrix, if it is known, so that the solver need not check it: [`Symmetry::Symmetric`] or
    /// [`Symmetry::Hermitian`]. Both triangles must be given all the same. Default: not known.
    pub fn symmetry(known: Symmetry) => symmetry = Some(known);
}

impl Builder {
    /// [`Builder::symmetry`], known from the header of a file.
    #[cfg(feature = "cli")]
    pub(crate) fn symmetry_of_file(mut self, known: Symmetry) -> Self {
        self.known_from = "says the file";
        self.symmetry(known)
    }

    /// The reason why the CPU computes, for the trail.
    #[cfg(feature = "cli")]
    pub(crate) fn placed_because(mut self, reason: Option<&str>) -> Self {
        self.placed_because = reason.map(Into::into);
        self
    }

    /// The coordinates of the mesh points to which the unknowns belong: `dimensions` numbers for each point, one point
    /// after another. They are for multigrid, which is then the preconditioner unless another is named: if each point
    /// has as many unknowns as dimensions (displacements), coarse levels represent the rigid body modes exactly. The
    /// unknowns of a point must be consecutive, and are not renumbered. Default: none.
    pub fn coordinates(mut self, dimensions: usize, coordinates: impl Into<Vec<f64>>) -> Self {
        self.near_null = Some(Arc::new(NearNull::Points { dimensions, coordinates: coordinates.into() }));
        self
    }

    /// Near-null vectors for multigrid, which is then the preconditioner unless another is named: vectors that the
    /// matrix maps nearly to zero away from boundaries. Entry i of vector j is at i * `count` + j. Unknowns are not
    /// renumbered. Default: vectors of ones.
    pub fn near_null_space(mut self, count: usize, entries: impl Into<Vec<f64>>) -> Self {
        self.near_null = Some(Arc::new(NearNull::Vectors { count, entries: entries.into() }));
        self
    }

    /// Returns the requested order, and refuses one that would separate the unknowns of a node.
    pub(super) fn order(&self) -> Result<Reorder> {
        let nodes = self.near_null.is_some()
            || matches!(self.preconditioner, PreconditionerChoice::Multigrid(choice) if choice.unknowns > 1);
        match self.reorder {
            Reorder::Auto if nodes => Ok(Reorder::None),
            Reorder::Rcm if nodes => Err(Error::Unsupported(
                "reordering unknowns that are grouped in nodes; use reorder auto or none".into(),
            )),
            order => Ok(order),
        }
    }

    /// Whether to estimate the condition number if a factorisation solves: some ten solves with the factors, once for
    /// each factorisation. [`SolveReport::condition`](super::SolveReport::condition) and the digits that can be trusted
    /// follow from it. Default: no.
    pub fn condition(mut self, yes: bool) -> Self {
        self.condition = yes;
        self
    }

    /// States that the null space of A is spanned by these vectors. x is then the shortest of all solutions. If A is
    /// Hermitian, the part of b outside of the range of A is removed first
    /// ([`SolveReport::outside_range`](super::SolveReport::outside_range)); if that part exceeds the tolerance, the
    /// solve ends as [`Outcome::LeastSquares`](crate::krylov::Outcome::LeastSquares). Vectors that A does not map to
    /// zero are refused. Default: constants are found automatically if A is Hermitian and its rows sum to zero, up to
    /// rounding of its entries.
    ///
    /// ```
    /// use residua::{Csr, Solver};
    /// // | 1 -1  . |
    /// // |-1  2 -1 |, a path of three points: constants are mapped to zero.
    /// // | . -1  1 |
    /// let a = Csr::from_parts(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2],
    ///     vec![1.0_f64, -1.0, -1.0, 2.0, -1.0, -1.0, 1.0])?;
    /// let mut solver = Solver::builder().null_space(&[vec![1.0; 3]]).build(&a)?;
    /// let solution = solver.solve(&[2.0, 1.0, 0.0])?;
    /// // b adds up to 3, so that (1, 1, 1) of it is beyond the range.
    /// assert!((solution.report.outside_range.unwrap() - 3_f64.sqrt()).abs() < 1e-12);
    /// assert!((solution.x[0] - 1.0).abs() + solution.x[1].abs() + (solution.x[2] + 1.0).abs() < 1e-7);
    /// # Ok::<(), residua::Error>(())
    /// ```
    pub fn null_space<T: Scalar>(mut self, vectors: &[Vec<T>]) -> Self {
        let number = |v: &T| Complex::new(v.re().to_f64(), v.im().to_f64());
        let vectors = vectors.iter().map(|vector| vector.iter().map(number).collect()).collect();
        self.null_space = NullSpaceWish::Vectors(Arc::new(vectors));
        self
    }

    /// States that the null space of A is spanned by constants on each component of its graph, as for the Laplacian of
    /// a graph or for Neumann conditions on the whole boundary. Otherwise as [`Builder::null_space`].
    pub fn null_space_constants(mut self) -> Self {
        self.null_space = NullSpaceWish::Constants;
        self
    }

    /// Returns an error for invalid settings.
    pub(super) fn check(&self) -> Result<()> {
        let refused = |what: String| Err(Error::InvalidArgument(what));
        for (what, tolerance) in [("relative", self.tolerance.unwrap_or(0.0)), ("absolute", self.absolute)] {
            if !(0.0..f64::INFINITY).contains(&tolerance) {
                return refused(format!(
                    "the {what} tolerance must be a number of at least 0, not {tolerance}"
                ));
            }
        }
        if !chooses_format(&self.format) && !FORMAT_NAMES.contains(&self.format.as_str()) {
            let names = FORMAT_NAMES.join(", ");
            return refused(format!("there is no format '{}': choose auto, measured, {names}", self.format));
        }
        if self.right_hand_sides == 0 {
            return refused("the expected number of right-hand sides must be at least 1, not 0".into());
        }
        let named = self.method != Method::Auto || self.preconditioner != PreconditionerChoice::Auto;
        if !self.candidates.is_empty() && (named || self.near_null.is_some()) {
            return refused(
                "candidates cannot be combined with a method, a preconditioner or near-null vectors".into(),
            );
        }
        self.candidates.iter().try_for_each(|(_, preconditioner)| preconditioner.check())?;
        self.preconditioner.check()
    }

    /// The options of the Krylov methods.
    pub(super) fn options(&self) -> SolveOptions {
        let mut options = SolveOptions::default().absolute_tolerance(self.absolute);
        if let Some(relative) = self.tolerance {
            options = options.tolerance(relative);
        }
        if let Some(iterations) = self.max_iterations {
            options = options.max_iterations(iterations);
        }
        if let Some(iterations) = self.stagnation_window {
            options = options.stagnation_window(iterations);
        }
        options
    }

    /// The kernels that a solver is likely to need. They can be compiled ahead
    /// ([`Cuda::compile_ahead`](crate::Cuda::compile_ahead)) while a matrix is being read.
    #[cfg(feature = "cuda")]
    pub fn kernels<T: Scalar>(&self) -> Vec<crate::backend::cuda::compile::Unit> {
        use crate::backend::cuda::compile::{units_of_a_solve, units_of_an_ordering};
        let solve = || if T::COMPLEX { Vec::new() } else { units_of_a_solve() };
        match self.reorder {
            // One kernel of the ordering takes longest to compile, so it comes first.
            Reorder::Rcm => [units_of_an_ordering(), solve()].concat(),
            // An ordering seldom pays; if it does, the solver waits for its kernels.
            _ => solve(),
        }
    }

    /// The expected number of products with a matrix of `n` rows.
    pub(super) fn expected_products(&self, n: usize) -> usize {
        expected_products(n, self.right_hand_sides, self.max_iterations)
    }

    /// The settings for A^T. The stated null space of A is dropped unless A^T `is_the_same` as A, because A^T has
    /// another one.
    pub(super) fn of_transpose(mut self, is_the_same: bool) -> Self {
        if !is_the_same {
            self.null_space = NullSpaceWish::Auto;
        }
        self
    }

    /// Returns whether the rows of the matrix may be scaled. Factorisations have their own scaling, and near-null
    /// vectors are those of the unscaled matrix.
    pub(super) fn may_scale(&self) -> bool {
        self.row_wise && self.near_null.is_none() && self.method != Method::Direct
    }

    /// Returns whether values can be replaced without setting everything up again.
    pub(super) fn can_stay_open(&self) -> bool {
        (chooses_format(&self.format) || self.format == Csr::<f64>::NAME)
            && self.precision == Precision::Double
            && !matches!(
                self.preconditioner,
                PreconditionerChoice::Chebyshev(_) | PreconditionerChoice::ChebyshevSingle(_)
            )
    }
}
