//! Factorisations in dense fronts on the device, by residua's own kernels.
//!
//! ```text
//! values of A -> places in the fronts -> level by level, the lowest first:
//!     small fronts            one block of threads each, from assembly to contribution
//!     large ones, together    assemble, then for each block of pivots: invert, divide, update; contribute
//! triangles of several blocks are inverted together
//! b -> up the levels -> down the levels -> x
//! ```
//!
//! A level contains the fronts at one distance from the root. Only the next level needs the contributions of a level,
//! so two buffers contain them alternately.
//!
//! | file | what it holds |
//! |---|---|
//! | `schedule` | levels, classes of size and tiles: what is launched |
//! | `kernels` | the kernels with their arguments |
//! | `factorise`, `solve` | the launches of a level |
//! | `recorded` | the launches of a solve, recorded and replayed as one |
//! | `determinant` | determinant and inertia from blocks of pivots |

mod determinant;
mod factorise;
mod kernels;
mod recorded;
mod schedule;
mod solve;

use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, record, tuning};
use crate::backend::{Backend, Determinant, FactorEstimate, Factors, FrontPlan};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::scalar::{Element, Scalar, Symmetry};
use recorded::Sweeps;
use schedule::{Schedule, Tiled};
use std::sync::{Arc, Mutex};

/// Launches a kernel in this shape: a call on few lines, since there are many with many arguments.
macro_rules! launch {
    ($cuda:expr, $kernel:ident [$shape:expr] $($argument:expr),*) => {
        kernels::$kernel($cuda, $shape, $($argument),*)
    };
}
use launch;

/// What is launched, and the arrays in the device's memory that launches read.
struct Layout {
    cuda: Cuda,
    n: usize,
    schedule: Schedule,
    fronts: DeviceVec<u64>,
    children: DeviceVec<u32>,
    starts: DeviceVec<u32>,
    joined: DeviceVec<u64>,
    rows: DeviceVec<u32>,
    places: DeviceVec<u32>,
    steps: DeviceVec<u32>,
}

impl Layout {
    /// Returns the number of fronts of a launch, the numbers of tiles before each, and the number of all tiles.
    fn tiled(&self, tiled: Tiled) -> (u32, &Slice<u32>, usize) {
        (tiled.fronts as u32, self.starts.part(tiled.at..tiled.at + tiled.fronts), tiled.blocks)
    }
}

/// The structure in the device's memory and, after the first factorisation, the factors. A recorded solve uses both,
/// so they are shared with it.
pub(super) struct Fronts<T: Scalar> {
    layout: Arc<Layout>,
    estimate: FactorEstimate,
    pivots: (T::Real, T::Real),
    /// Whether upper tiles are mirror images of lower ones: a constant of `kernels/fronts.cu`.
    mirror: u32,
    is_hermitian: bool,
    targets: DeviceVec<u64>,
    scales: Option<DeviceVec<f64>>,
    from: DeviceVec<u32>,
    to: DeviceVec<u32>,
    scaling: Option<(DeviceVec<f64>, DeviceVec<f64>)>,
    numbers: Option<Arc<Mutex<Numbers<T>>>>,
    /// The number of perturbed pivots.
    perturbed: Option<usize>,
    sweeps: Option<Sweeps<T>>,
}

/// The factors, the contributions of two levels, the largest entry, and the number of perturbed pivots.
struct Numbers<T: Scalar> {
    factors: DeviceVec<T>,
    contributions: [DeviceVec<T>; 2],
    largest: DeviceVec<u64>,
    made_up: DeviceVec<u32>,
}

impl<T: Scalar> Fronts<T> {
    pub(super) fn new(cuda: Cuda, plan: &FrontPlan) -> Result<Self> {
        record::forbid(cuda, "the analysis of a factorisation")?;
        let schedule = Schedule::new(plan, tuning::small_fronts(size_of::<T>()));
        let entries = plan.entries() as usize;
        let numbers = entries + schedule.contributions.iter().sum::<usize>();
        let bytes = |numbers: usize| (numbers * size_of::<T>()) as u64;
        let estimate = FactorEstimate {
            entries: entries as f64,
            flops: Some(2.0 * plan.multiplications),
            bytes: bytes(entries),
            peak: bytes(numbers + 2 * plan.from.len() + schedule.rows),
            free: 0,
        };
        let layout = Layout {
            cuda,
            n: plan.from.len(),
            fronts: written(cuda, &schedule.fronts)?,
            children: written(cuda, &schedule.children)?,
            starts: written(cuda, &schedule.starts)?,
            joined: written(cuda, &schedule.joined)?,
            rows: written(cuda, &plan.rows)?,
            places: written(cuda, &plan.places)?,
            steps: written(cuda, &plan.blocks)?,
            schedule,
        };
        let mut made = Self {
            layout: Arc::new(layout),
            estimate,
            pivots: (real::<T>(plan.preference), real::<T>(plan.least)),
            mirror: match plan.symmetry {
                Symmetry::Symmetric => 1,
                Symmetry::Hermitian => 2,
                Symmetry::General | Symmetry::SkewSymmetric => 0,
            },
            is_hermitian: plan.symmetry == Symmetry::Hermitian
                || (plan.symmetry == Symmetry::Symmetric && !T::COMPLEX),
            targets: written(cuda, &plan.targets)?,
            scales: plan.scales.as_ref().map(|scales| written(cuda, scales)).transpose()?,
            from: written(cuda, &plan.from)?,
            to: written(cuda, &plan.to)?,
            scaling: match &plan.scaling {
                Some((rows, columns)) => Some((written(cuda, rows)?, written(cuda, columns)?)),
                None => None,
            },
            numbers: None,
            perturbed: None,
            sweeps: None,
        };
        made.estimate.free = cuda.memory()?.0 as u64;
        Ok(made)
    }

    fn numbers(&self) -> Result<Numbers<T>> {
        let cuda = self.layout.cuda;
        let [even, odd] = self.layout.schedule.contributions;
        Ok(Numbers {
            factors: cuda.uninitialised(self.estimate.entries as usize)?,
            contributions: [cuda.uninitialised(even)?, cuda.uninitialised(odd)?],
            largest: cuda.uninitialised(1)?,
            made_up: cuda.uninitialised(1)?,
        })
    }
}

/// Returns a buffer with these elements.
fn written<T: Element>(cuda: Cuda, elements: &[T]) -> Result<DeviceVec<T>> {
    let mut buffer = cuda.uninitialised(elements.len())?;
    cuda.write(elements, &mut buffer)?;
    Ok(buffer)
}

fn real<T: Scalar>(value: f64) -> T::Real {
    T::from_f64(value).re()
}

impl<T: Scalar> Factors<T, Cuda> for Fronts<T> {
    fn estimate(&self) -> FactorEstimate {
        self.estimate
    }

    fn factorise(&mut self, values: &Slice<T>) -> Result<Option<usize>> {
        Error::check_dimension("number of values", self.targets.len(), values.len())?;
        let cuda = self.layout.cuda;
        record::forbid(cuda, "a factorisation")?;
        let shared = match self.numbers.take() {
            Some(numbers) => numbers,
            None => {
                // After a factorisation that failed, a recorded solve refers to the old factors.
                self.sweeps = None;
                Arc::new(Mutex::new(self.numbers()?))
            }
        };
        let mut numbers = lock(&shared);
        cuda.fill(T::default(), &mut numbers.factors)?;
        cuda.fill(0, &mut numbers.largest)?;
        cuda.fill(0, &mut numbers.made_up)?;
        let Numbers { factors, largest, .. } = &mut *numbers;
        kernels::front_entries(
            cuda,
            tuning::front_entries(cuda.0.chip, size_of::<T>(), values.len()),
            values.len() as u64,
            values,
            self.scales.as_deref(),
            &self.targets,
            factors,
            largest,
        )?;
        for (number, level) in self.layout.schedule.levels.iter().enumerate() {
            self.eliminate(number, level, &mut numbers)?;
        }
        self.join(&mut numbers.factors)?;
        self.perturbed = Some(cuda.value(&numbers.made_up)? as usize);
        drop(numbers);
        self.numbers = Some(shared);
        cuda.synchronize()?;
        Ok(None)
    }

    fn solve(&mut self, count: usize, b: &Slice<T>, x: &mut Slice<T>) -> Result<()> {
        let (cuda, n) = (self.layout.cuda, self.layout.n);
        Error::check_dimension("length of b", n * count, b.len())?;
        Error::check_dimension("length of x", n * count, x.len())?;
        let Some(numbers) = &self.numbers else {
            return Err(Error::InvalidArgument("a solve before the first factorisation".into()));
        };
        let mut sweeps = match self.sweeps.take().filter(|sweeps| sweeps.count() == count) {
            Some(sweeps) => sweeps,
            None => Sweeps::new(&self.layout, numbers, count)?,
        };
        let many = count as u64;
        let shape = tuning::front_vectors(cuda.0.chip, n * count);
        let (rows, columns) = match &self.scaling {
            Some((rows, columns)) => (Some(&**rows), Some(&**columns)),
            None => (None, None),
        };
        let n = n as u64;
        kernels::gather_vectors(cuda, shape, n, many, &self.from, rows, b, &mut sweeps.vectors().y)?;
        sweeps.run()?;
        kernels::scatter_vectors(cuda, shape, n, many, &self.to, columns, &sweeps.vectors().x, x)?;
        self.sweeps = Some(sweeps);
        Ok(())
    }

    fn perturbed(&self) -> Option<usize> {
        self.perturbed
    }

    fn determinant(&self) -> Result<Determinant<T>> {
        match &self.numbers {
            Some(numbers) => self.determinant_of(&lock(numbers).factors),
            None => Err(Error::InvalidArgument("a determinant before the first factorisation".into())),
        }
    }
}
